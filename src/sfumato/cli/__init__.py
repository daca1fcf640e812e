"""The command ``sfumato``: one file a command; what several commands share stands in one place.

It takes options and files. It gives files, tables on the terminal or JSON, and exit codes: 0 done, 1 do not publish, 2
wrong use.
"""

from .app import app
from .command import add_command
from .demo import ERRORS, FLOOR, steering_orbit
from .options import Fit, Json, OutFolder, Replace, check_folder_name, check_new, flag, option
from .outputs import names_text
from .printing import as_json, findings_are_shown_later, say_lines
from .rehearse import FEW_ROWS, rehearsed_on_few
