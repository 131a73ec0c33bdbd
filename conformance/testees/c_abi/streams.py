"""Ports over sockets and FIFOs: how the testee connects, and the stream over that."""

import os
import socket
from ctypes import Structure, byref, c_uint32

from ends import Memory, SegmentEnd
from library import Library, Refused

# Frames of the workload of a live run have room in it, whatever the peer states.
QUEUE_SIZE = 256 * 1024


class Sizes(Structure):
    _fields_ = [(name, c_uint32) for name in ("largest", "window", "queue")]


class StreamEnd(SegmentEnd):
    """A port whose peer is at the other end of a transport. Nobody counts its sleeps."""

    def __init__(self, lib: Library, command: dict, _memory: None) -> None:
        self.lib, self.place, self.finished = lib, None, None
        sizes = byref(Sizes(command["largest"], command["window"], QUEUE_SIZE))
        needed = lib.stream_memory_size(sizes)
        if needed == 0:
            raise Refused("no stream has such sizes")
        self.memory = Memory(needed, 0)
        stream, self.port = lib.make("stream"), lib.make("port")
        descriptors = connect(command)
        place = (self.memory.address, self.memory.size, sizes)
        try:
            lib.check(lib.stream_open(stream, self.port, *descriptors, *place))
        except BaseException:
            for descriptor in set(descriptors):
                os.close(descriptor)
            raise
        self.stream = stream
        self.reads = self.writes = True
        self.prepare(command, is_port=True)

    def can(self, name: str) -> bool:
        return name != "vacate" and super().can(name)

    def stats(self) -> dict:
        return {}

    def close(self) -> None:
        """Lingers in the call, for 2 s at most: nobody else does it."""
        super().close()
        self.lib.check(self.lib.stream_finish(self.stream, -1))

    def drop(self) -> None:
        self.leave_calls()
        self.lib.check(self.lib.stream_leave(self.stream))


def connect(command: dict) -> tuple[int, int]:
    """What to read from and what to write to: of a socket the same."""
    match command["transport"]:
        case "unix":
            made = socket.socket(socket.AF_UNIX)
            made.connect(command["path"])
        case "tcp":
            made = socket.create_connection(("127.0.0.1", command["tcp_port"]))
        case "fifo":
            source = os.open(command["path"], os.O_RDONLY)
            return source, os.open(command["path_out"], os.O_WRONLY)
    descriptor = made.detach()
    return descriptor, descriptor
