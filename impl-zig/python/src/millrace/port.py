"""Both directions of one endpoint [spec/port.md]."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any

from .call import Calls
from .closing import Closing
from .error import WaitTimeout, check
from .library import END, NOTHING, ffi, lib, make, milliseconds
from .message import Codec, Message, encode
from .property import PropertyReader, PropertyWriter

# For so long a read waits without a look at signals such as that of Ctrl-C.
SLICE_MS = 100
INBOX_SIZE = 65_536


class Port(Closing):
    """One endpoint at work. It belongs to one thread at a time, and to the process that made it."""

    def __init__(
        self, owner: Any, segment: Any, endpoint: int, limit: int, rings: bool
    ) -> None:
        """Not to be called: `SegmentFile.port` does."""
        # The library points into the segment, which must outlive the port.
        self._owner = owner
        self._storage = make(lib.millrace_port_size())
        self._port: Any = ffi.cast("millrace_port *", self._storage)
        attach = lib.millrace_port_attach if rings else lib.millrace_port_attach_endpoint
        check(attach(self._port, segment, endpoint))
        self._left = False
        self._ended = False
        self._limit = limit
        self._payload = ffi.new("char[]", max(1, limit))
        self._message = ffi.new("millrace_message *")
        self._elements: deque[Message] = deque()
        self._properties: list[PropertyReader | PropertyWriter] = []
        self._calls: Calls | None = None
        if rings:
            # What comes while a write waits for room.
            self._inbox = ffi.new("uint64_t[]", INBOX_SIZE // 8)
            check(lib.millrace_port_set_inbox(self._port, self._inbox, INBOX_SIZE))

    def write(
        self,
        value: Any,
        *,
        tag: int = 0,
        codec: int | None = None,
        timeout: float | None = None,
    ) -> None:
        """Writes a message, and waits for room: bytes, text, or anything that JSON can say.

        With a codec, `value` is the bytes of one. Raises `WaitTimeout`, `PeerError`, `ClosedError`.
        """
        if not self._write(value, tag, codec, milliseconds(timeout)):
            raise WaitTimeout

    def try_write(self, value: Any, *, tag: int = 0, codec: int | None = None) -> bool:
        """Writes a message if there is room for all of it now.

        `ValueError` where there will never be: such a message needs `write`.
        """
        return self._write(value, tag, codec, 0)

    def _write(self, value: Any, tag: int, codec: int | None, timeout_ms: int) -> bool:
        payload, how = encode(value, codec)
        status = lib.millrace_port_write(
            self._pointer(), payload, len(payload), how, tag, timeout_ms
        )
        return check(status, self._port) != NOTHING

    def read(self, timeout: float | None = None) -> Message | None:
        """Waits for the next message; `None` after the end of the stream.

        What a peer sent as a batch comes one by one. Raises `WaitTimeout`, `PeerError`,
        `MessageError` for one message that was lost, `CorruptError`, `ClosedError`.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left_ms = SLICE_MS
            if deadline is not None:
                left_ms = min(SLICE_MS, milliseconds(deadline - time.monotonic()))
            message = self._read(left_ms)
            if message is not None or self._ended:
                return message
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeout

    def try_read(self) -> Message | None:
        """The next message if it is there; `None` also after the end, which `ended` says."""
        return self._read(0)

    @property
    def ended(self) -> bool:
        """Whether the peer has ended its stream, and everything before that was read."""
        return self._ended

    def __iter__(self) -> Iterator[Message]:
        """All messages up to the end of the stream."""
        while (message := self.read()) is not None:
            yield message

    def _read(self, timeout_ms: int) -> Message | None:
        if self._elements:
            return self._elements.popleft()
        found = self._message
        status = check(
            lib.millrace_port_read(
                self._pointer(), self._payload, self._limit, timeout_ms, found
            ),
            self._port,
        )
        if status in (NOTHING, END):
            self._ended = status == END
            return None
        if found.codec == Codec.JSON_BATCH:
            self._take_apart(found.size, found.tag)
            return self._elements.popleft()
        return Message(ffi.buffer(self._payload, found.size)[:], found.codec, found.tag)

    def _take_apart(self, size: int, tag: int) -> None:
        at, element = ffi.new("size_t *"), ffi.new("millrace_bytes *")
        elements: deque[Message] = deque()
        while check(lib.millrace_batch_next(self._payload, size, at, element)) != END:
            payload = ffi.buffer(element.address, element.size)[:]
            elements.append(Message(payload, Codec.JSON, tag))
        self._elements = elements

    def end(self) -> None:
        """Ends the outgoing stream: the peer reads everything, and then its end."""
        check(lib.millrace_port_end(self._pointer()), self._port)

    def _end_quietly(self) -> None:
        # What refuses this is that nobody is left to be told, or that there are no rings.
        if self._left:
            return
        if self._calls is not None and not self._calls._left:
            lib.millrace_calls_end(self._calls._calls, 0)
        else:
            lib.millrace_port_end(self._port)

    def property_writer(self, which: str | int) -> PropertyWriter:
        """The property of this name, or channel, to set: once."""
        return self._keep(PropertyWriter(self, self._pointer(), which))

    def property_reader(self, which: str | int) -> PropertyReader:
        """The property of this name, or channel, to get."""
        return self._keep(PropertyReader(self, self._pointer(), which))

    def calls(self) -> Calls:
        """Calls over this port, both ways; until they are closed, it is used through them alone."""
        self._calls = Calls(self, self._pointer(), self._limit)
        return self._calls

    def _keep(self, end: Any) -> Any:
        self._properties.append(end)
        return end

    def shut(self) -> None:
        """Closes both directions, and ends a wait of the owner's. Any thread may call this."""
        check(lib.millrace_port_close(self._pointer()))

    def close(self) -> None:
        """Closes both directions at once, and gives the endpoint up. Again, it does nothing."""
        if self._left:
            return
        check(lib.millrace_port_close(self._port))
        if self._calls is not None:
            self._calls.close()
        for end in self._properties:
            end._leave()
        check(lib.millrace_port_leave(self._port))
        self._left = True

    def _pointer(self) -> Any:
        if self._left:
            # What the library says of a port that was closed.
            check(-lib.MILLRACE_REASON_PIPE_CLOSED)
        return self._port
