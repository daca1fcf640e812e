"""``sf.studio(X, y)``: the room itself can be called, because ``sfumato.studio`` is its name as well.

Nothing heavy is imported before that.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from ..errors import InputError

if TYPE_CHECKING:
    from .server import Studio


class _Room(ModuleType):
    """The room ``sfumato.studio``, which can be called."""

    def __call__(self, X: Any = None, y: Any = None, *, port: int | None = None) -> Studio:
        """A studio for the rows ``X``, ``y``, which runs beside this program: ``.url``, ``.session``, ``.stop()``.

        It says its address; a notebook shows its page below the cell that ends with it, and ``.wait()`` keeps a script
        from ending. ``X`` and ``y`` are as for ``sf.fit_prior``, or ``X`` is a table with both; without them
        a table is opened on the page.

        Guarantee: it listens on 127.0.0.1 only, lets in whoever has the token in its address, keeps the data in
        memory, and writes nothing before *Publish*.
        """
        from .server import check_installed, open_studio, where_text

        if X is None and y is not None:
            raise InputError("sf.studio has y and no X; give both, or one table as X, or neither.")
        check_installed()
        from .session import Session

        session = Session()
        if X is not None:
            session.open_arrays(X, y)
        opened = open_studio(session, port=port, framed=_in_notebook())
        print(where_text(opened))
        return opened


def _in_notebook() -> bool:
    """Whether output can be a page: a kernel runs this, not a terminal."""
    python = sys.modules.get("IPython")
    shell = None if python is None else python.get_ipython()
    return getattr(shell, "kernel", None) is not None


_room = sys.modules[__package__]
_room.__class__ = _Room

studio = cast(_Room, _room)
"""The studio, opened: ``sf.studio(X, y)`` shows it in the output cell of a notebook, or says where it is.

``sf.studio()`` opens it without rows. It comes back at once with ``.url``, ``.session``, ``.stop()`` and ``.wait()``.
"""
