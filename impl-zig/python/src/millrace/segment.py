"""Segments in files, by which processes meet [spec/file.md]."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .closing import Closing
from .error import WaitTimeout, check
from .library import NOBODY, c_text, ffi, lib, make, milliseconds
from .port import Port

PATIENCE = 5.0


@dataclass(frozen=True)
class Ring:
    """Messages from one endpoint to another; two, there and back, make a port."""

    writer: int
    reader: int
    capacity: int = 65_536
    label: int = 0


@dataclass(frozen=True)
class Property:
    """The latest value of something, of up to `capacity` bytes, which one endpoint sets."""

    writer: int
    capacity: int
    name: str = ""
    label: int = 0


BOTH = (Ring(0, 1), Ring(1, 0))


class SegmentFile(Closing):
    """A segment in a file, with one endpoint of it that is this object's until `close`.

    It belongs to the process that opened it: after a fork, open it anew.
    """

    def __init__(self, segment: Any, endpoint: int) -> None:
        """Not to be called: `create` and `open` do."""
        self._segment: Any = segment
        self.endpoint = endpoint
        self._ports: list[Port] = []

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        endpoint: int,
        channels: Sequence[Ring | Property] = BOTH,
        endpoints: int = 2,
        timeout: float | None = PATIENCE,
    ) -> SegmentFile:
        """Makes the file, or opens the one that is there and in use, with the same channels.

        A file that nobody can meet anybody in any more is replaced. Either side may come first.
        """
        array = ffi.new("millrace_channel[]", len(channels))
        names = []
        for place, channel in zip(array, channels):
            if isinstance(channel, Ring):
                _require_capacity(channel.capacity)
            place.writer, place.capacity, place.label = (
                channel.writer, channel.capacity, channel.label,
            )
            if isinstance(channel, Ring):
                place.reader, place.kind = channel.reader, lib.MILLRACE_CHANNEL_KIND_RING
                continue
            names.append(ffi.new("char[]", c_text(channel.name)))
            place.reader, place.kind = NOBODY, lib.MILLRACE_CHANNEL_KIND_PROPERTY
            place.name = names[-1]
        segment = make(lib.millrace_segment_size())
        status = lib.millrace_segment_create_file(
            ffi.cast("millrace_segment *", segment), c_text(os.fsencode(path)), endpoints, array,
            len(channels), endpoint, milliseconds(timeout),
        )
        if check(status) == 0:
            raise WaitTimeout
        return cls(segment, endpoint)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        endpoint: int,
        timeout: float | None = PATIENCE,
    ) -> SegmentFile:
        """Opens the file that is there, whatever its channels; it does not wait for one."""
        segment = make(lib.millrace_segment_size())
        status = lib.millrace_segment_open_file(
            ffi.cast("millrace_segment *", segment), c_text(os.fsencode(path)), endpoint,
            milliseconds(timeout),
        )
        if check(status) == 0:
            raise WaitTimeout
        return cls(segment, endpoint)

    def port(self, *, limit: int = 1 << 20, rings: bool = True) -> Port:
        """Takes the endpoint. `limit` is the largest message that it reads; without `rings`, it is
        there for properties alone."""
        port = Port(self, self._pointer(), self.endpoint, limit, rings)
        self._ports.append(port)
        return port

    def _end_quietly(self) -> None:
        for port in self._ports:
            port._end_quietly()

    def close(self) -> None:
        """Closes the port, and gives up the endpoint and the memory; the file stays."""
        if self._segment is None:
            return
        for port in self._ports:
            port.close()
        check(lib.millrace_segment_leave(self._pointer()))
        self._segment = None

    def _pointer(self) -> Any:
        if self._segment is None:
            raise ValueError("the segment is closed")
        return ffi.cast("millrace_segment *", self._segment)


def _require_capacity(capacity: int) -> None:
    if not 256 <= capacity <= 1 << 30 or capacity & (capacity - 1) != 0:
        raise ValueError(
            f"the capacity of a ring must be a power of two from 256 to 2^30, but it is {capacity}"
        )
