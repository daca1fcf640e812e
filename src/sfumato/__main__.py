"""The command ``sfumato``, put together: those of ``cli``, and the paper's. Also ``python -m sfumato``."""

from .cli import app
from .paper import add_commands

__all__ = ["app", "main"]

add_commands(app)


def main() -> None:
    app(prog_name="sfumato")


if __name__ == "__main__":
    main()
