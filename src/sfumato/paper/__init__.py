"""The paper's experiments: its example, its satellite, its census rows, with tables and figures.

It takes settings ("paper" or "authors") and, for the census, a file of the Bureau. It gives tables with certificates,
figures, and the commands ``reproduce`` and ``data``.
"""

from .commands import add_commands
