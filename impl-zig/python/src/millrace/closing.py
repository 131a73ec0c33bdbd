"""What a `with` statement closes."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

_Self = TypeVar("_Self", bound="Closing")


class Closing:
    """Has a `with` statement close it, and end it first unless an error leaves the statement."""

    def close(self) -> None:
        """Again, it does nothing."""
        raise NotImplementedError

    def _end_quietly(self) -> None:
        """What is done before `close` if nothing was raised. Nobody hears how it went."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._end_quietly()
        self.close()
