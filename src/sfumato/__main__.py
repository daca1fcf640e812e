"""The command ``sfumato``, put together: those of ``cli``, the studio, and the paper's. Also ``python -m sfumato``."""

import io
import sys

from .cli import app
from .paper import add_commands
from .studio import add_studio

__all__ = ["app", "main"]

add_studio(app)
add_commands(app)


def main() -> None:
    """Run the command that was typed.

    What a screen or a file has no letters for (ASCII, cp1252) is written by number: names and our own words have such
    letters, and a command that has written a release must not end as an error.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="sfumato")


if __name__ == "__main__":
    main()
