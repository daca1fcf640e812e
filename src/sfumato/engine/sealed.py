"""What is handed to a cluster in such a way that its logs cannot tell what it was."""

from __future__ import annotations

from typing import Generic, TypeVar

Value = TypeVar("Value")


class Sealed(Generic[Value]):
    """A value that shows nothing of itself: Dask logs the arguments of a task that fails."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "<sealed>"


class WorkError(Exception):
    """Brings an error from a worker to the client; its own text, which Dask logs, says nothing of the data."""

    def __init__(self, error: Exception, traceback: str) -> None:
        super().__init__("the work on a part failed; the client is told how")
        self.error = error
        self.traceback = traceback

    def __reduce__(self) -> tuple[type[WorkError], tuple[Exception, str]]:
        return WorkError, (self.error, self.traceback)


class WorkerError(Exception):
    """The cause of an error that comes from a worker: where it was raised there."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"
