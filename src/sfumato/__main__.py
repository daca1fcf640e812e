"""``python -m sfumato`` is the command ``sfumato``."""

from .cli import main

if __name__ == "__main__":
    main()
