"""Several releases of one secret keep one promise together (MATH.md 8).

It takes designs that were released before and the problem of the next one. It gives the noise that this one needs,
certificates of all releases together, and what is left of each promise.
"""

from .chained_file import Chain
from .ledger import Ledger, Remaining
from .past import Published
from .promises import promises_of
