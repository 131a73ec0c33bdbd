"""The program of echo.c in Python, with ctypes alone; the two talk to one another.

    echo.py LIBRARY server PATH [SPIN_US]         echoes until the client ends
    echo.py LIBRARY client PATH COUNT [SPIN_US]   sends COUNT messages and checks what comes back

LIBRARY is what `zig build lib` made: zig-out/lib/libmillrace.so.

A peer in TypeScript that posts twice in one job sends one message of codec 3, whose payload is a
JSON array of both: `json.loads` gives the list.
"""

import ctypes
import sys
import time
from ctypes import POINTER, Structure, byref, c_char_p, c_int32, c_size_t, c_uint32, c_uint64
from ctypes import c_uint8, c_void_p

# From millrace.h.
DONE, NOTHING, END = 1, 0, 2
KIND_DATA, CODEC_JSON = 1, 2
PATIENCE_MS = 10_000
SERVER, CLIENT = 0, 1


class Channel(Structure):
    _fields_ = [
        *((name, c_uint32) for name in ("writer", "reader", "capacity", "label", "start", "kind")),
        ("name", c_char_p),
    ]


class Message(Structure):
    _fields_ = [
        ("payload", c_void_p),
        ("size", c_size_t),
        ("total", c_uint64),
        ("tag", c_uint32),
        ("kind", c_uint8),
        ("codec", c_uint8),
        ("flags", c_uint8),
        ("reserved", c_uint8),
    ]


# ctypes cannot know them: without these, it would take a pointer for an int of 32 bits.
SIGNATURES = {
    "millrace_segment_size": (c_size_t, []),
    "millrace_port_size": (c_size_t, []),
    "millrace_status_text": (c_char_p, [c_int32]),
    "millrace_reason_name": (c_char_p, [c_uint32]),
    "millrace_segment_create_file": (
        c_int32,
        [c_void_p, c_char_p, c_uint32, POINTER(Channel), c_uint32, c_uint32, c_int32],
    ),
    "millrace_segment_leave": (c_int32, [c_void_p]),
    "millrace_port_attach": (c_int32, [c_void_p, c_void_p, c_uint32]),
    "millrace_port_set_spin": (c_int32, [c_void_p, c_uint32]),
    "millrace_port_set_calls": (c_int32, [c_void_p, c_int32]),
    "millrace_port_write_kind": (
        c_int32,
        [c_void_p, c_uint32, c_char_p, c_size_t, c_uint32, c_uint32, c_int32],
    ),
    "millrace_port_read": (c_int32, [c_void_p, c_void_p, c_size_t, c_int32, POINTER(Message)]),
    "millrace_port_end": (c_int32, [c_void_p]),
    "millrace_port_reason": (c_uint32, [c_void_p]),
    "millrace_port_leave": (c_int32, [c_void_p]),
}


class Millrace:
    """A library, and one port of a segment in a file, as a context manager."""

    def __init__(self, library: str, path: str, side: int, spin_us: int | None) -> None:
        self.lib = ctypes.CDLL(library)
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        # Numbers of 64 bits, because the storage of an object is aligned to 8 bytes.
        self.segment = (c_uint64 * (self.lib.millrace_segment_size() // 8 + 1))()
        self.port = (c_uint64 * (self.lib.millrace_port_size() // 8 + 1))()
        self.storage = ctypes.create_string_buffer(4096)
        channels = (Channel * 2)(Channel(0, 1, 65_536), Channel(1, 0, 65_536))
        self.check("use " + path, self.lib.millrace_segment_create_file(
            self.segment, path.encode(), 2, channels, 2, side, 1_000))
        self.check("attach", self.lib.millrace_port_attach(self.port, self.segment, side))
        self.lib.millrace_port_set_calls(self.port, 1)
        if spin_us is not None:
            self.lib.millrace_port_set_spin(self.port, spin_us)

    def __enter__(self) -> "Millrace":
        return self

    def __exit__(self, *_: object) -> None:
        self.lib.millrace_port_leave(self.port)
        self.lib.millrace_segment_leave(self.segment)

    def check(self, what: str, status: int) -> None:
        if status == DONE:
            return
        reason = self.lib.millrace_port_reason(self.port)
        why = f" ({self.lib.millrace_reason_name(reason).decode()})" if reason else ""
        raise SystemExit(f"Cannot {what}: {self.lib.millrace_status_text(status).decode()}{why}")

    def write(self, payload: bytes, kind: int, codec: int, tag: int) -> None:
        self.check("write", self.lib.millrace_port_write_kind(
            self.port, kind, payload, len(payload), codec, tag, PATIENCE_MS))

    def read(self, timeout_ms: int) -> tuple[bytes, int, int, int] | None:
        """Returns payload, kind, codec and tag, or None at the end of the stream."""
        message = Message()
        status = self.lib.millrace_port_read(
            self.port, self.storage, len(self.storage), timeout_ms, byref(message))
        if status == END:
            return None
        self.check("read", status)
        payload = ctypes.string_at(message.payload, message.size)
        return payload, message.kind, message.codec, message.tag

    def end(self) -> None:
        self.check("end", self.lib.millrace_port_end(self.port))


def serve(port: Millrace) -> None:
    while (found := port.read(-1)) is not None:
        port.write(*found)
    port.end()
    print("served")


def ask(port: Millrace, count: int) -> None:
    begin = 0
    for index in range(count):
        question = b'{"question":%d}' % index
        port.write(question, KIND_DATA, CODEC_JSON, index)
        if port.read(PATIENCE_MS) != (question, KIND_DATA, CODEC_JSON, index):
            raise SystemExit(f"Answer {index} is not the question")
        if index == 0:  # which may have waited for the server to start
            print("connected", flush=True)
            begin = time.perf_counter_ns()
    if count > 1:
        each_us = (time.perf_counter_ns() - begin) / (count - 1) / 1_000
        print(f"{each_us:.2f} us there and back")
    port.end()
    # Who closes takes back what was not read: wait until the server has read the end.
    if port.read(PATIENCE_MS) is not None:
        raise SystemExit("More came than was asked for")


def main(arguments: list[str]) -> None:
    role = arguments[1] if len(arguments) > 1 else ""
    spin_at = {"server": 3, "client": 4}.get(role, sys.maxsize)
    if len(arguments) < spin_at:
        raise SystemExit(__doc__)
    spin_us = int(arguments[spin_at]) if len(arguments) > spin_at else None
    side = CLIENT if role == "client" else SERVER
    with Millrace(arguments[0], arguments[2], side, spin_us) as port:
        if side == CLIENT:
            ask(port, int(arguments[3]))
        else:
            serve(port)


if __name__ == "__main__":
    main(sys.argv[1:])
