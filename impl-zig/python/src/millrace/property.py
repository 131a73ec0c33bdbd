"""The latest value of something [spec/property.md]."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from .error import WaitTimeout, check
from .library import FIRST, NOTHING, c_text, ffi, lib, make, milliseconds
from .message import decode, encode

SLICE_MS = 100


@dataclass(frozen=True)
class PropertyValue:
    """A value as it was found. The version grows with each that is set; 0 is none ever."""

    payload: bytes | None
    codec: int
    version: int

    @property
    def value(self) -> Any:
        """As that of a message; `None` where there is none."""
        return None if self.payload is None else decode(self.payload, self.codec)


class _End:
    def __init__(self, owner: Any, port: Any, opens: Any, which: str | int) -> None:
        # The library points into the port, which must outlive its properties.
        self._owner = owner
        self._port = port
        self._storage = make(lib.millrace_property_size())
        self._property: Any = ffi.cast("millrace_property *", self._storage)
        channel, name = (FIRST, c_text(which)) if isinstance(which, str) else (which, ffi.NULL)
        check(opens(self._property, port, channel, name))

    @property
    def size(self) -> int:
        """Bytes of the largest value."""
        return lib.millrace_property_value_size(self._property)

    def _leave(self) -> None:
        check(lib.millrace_property_leave(self._property))


class PropertyWriter(_End):
    """Sets a property, and never waits. It ends with its port."""

    def __init__(self, owner: Any, port: Any, which: str | int) -> None:
        """Not to be called: `Port.property_writer` does."""
        super().__init__(owner, port, lib.millrace_property_open_writer, which)

    def set(self, value: Any, *, codec: int | None = None) -> None:
        """Sets the value: bytes, text, or anything that JSON can say."""
        payload, how = encode(value, codec)
        check(lib.millrace_property_set(self._property, payload, len(payload), how), self._port)

    def clear(self) -> None:
        """Takes the value back: there is none from now on."""
        check(lib.millrace_property_clear(self._property), self._port)


class PropertyReader(_End):
    """Gets a property, again and again, also when its writer is gone. It ends with its port."""

    def __init__(self, owner: Any, port: Any, which: str | int) -> None:
        """Not to be called: `Port.property_reader` does."""
        super().__init__(owner, port, lib.millrace_property_open_reader, which)
        self._payload = ffi.new("char[]", self.size)
        self._found = ffi.new("millrace_property_value *")

    def get(self) -> PropertyValue:
        """The last value. Never waits, and takes nothing away."""
        found = self._found
        status = lib.millrace_property_get(self._property, self._payload, self.size, found)
        there = check(status, self._port) != NOTHING
        payload = ffi.buffer(self._payload, found.size)[:] if there else None
        return PropertyValue(payload, found.codec, found.version)

    def wait(self, timeout: float | None = None) -> None:
        """Waits for another value than `get` gave last; at first for any. Raises `WaitTimeout`, and
        `PeerError` where the writer has gone."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left_ms = SLICE_MS
            if deadline is not None:
                left_ms = min(SLICE_MS, milliseconds(deadline - time.monotonic()))
            status = lib.millrace_property_wait(self._property, left_ms)
            if check(status, self._port) != NOTHING:
                return
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeout
