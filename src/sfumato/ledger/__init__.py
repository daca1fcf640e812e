"""Several releases of one secret keep one promise together (MATH.md 8).

In come designs that were released before and the next one that is asked for. Out come the noise that is still allowed,
certificates of all releases together, and what is left.
"""

from .chained_file import Chain
from .ledger import Ledger
from .past import Published
from .promises import promises_of
from .remaining import Remaining
