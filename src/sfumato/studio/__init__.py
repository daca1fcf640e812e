"""The studio: one page in the browser, from a table to a release, on the owner's own machine.

It takes a table, or a file, and what the owner chooses on the page. It gives the files of *Publish*, and writes nothing
before. What the page shows and does is what the rooms below show and do. ``sf.studio(X, y)`` opens it.
"""

from .command import add_studio
from .opening import studio
