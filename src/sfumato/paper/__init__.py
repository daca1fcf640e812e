"""The paper's experiments: its example, its satellite, its census rows, with tables and figures.

In come settings ("paper" or "authors") and, for the census, a file of the Bureau. Out come tables with certificates,
figures, and the commands ``reproduce`` and ``data``.
"""

from .commands import add_commands
