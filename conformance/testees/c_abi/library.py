"""libmillrace as Python sees it, by ctypes alone: what its headers say, as far as it is used."""

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int32, c_size_t, c_uint8, c_uint32
from ctypes import c_uint64, c_void_p

DONE, NOTHING, END = 1, 0, 2
# The caller's mistake, and the first of the statuses without a reason code.
INVALID, UNSUPPORTED = -256, -257
FIRST_CHANNEL = NOBODY = 0xFFFF_FFFF
PROPERTY, FANOUT = 2, 3


class Channel(Structure):
    _fields_ = [
        *((name, c_uint32) for name in ("writer", "reader", "capacity", "label", "start", "kind")),
        ("name", c_char_p),
    ]


class FanoutMessage(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("number", c_uint64),
        ("lost", c_uint64),
        ("tag", c_uint32),
        ("codec", c_uint32),
    ]


class PropertyValue(Structure):
    _fields_ = [("size", c_size_t), ("version", c_uint32), ("codec", c_uint32)]


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


class Value(Structure):
    _fields_ = [("payload", c_void_p), ("size", c_size_t), ("codec", c_uint32)]


class Failure(Structure):
    _fields_ = [
        *((name, kind) for part in ("name", "text", "data") for name, kind in (
            (part, c_void_p), (f"{part}_size", c_size_t),
        )),
        ("data_codec", c_uint32),
        ("has_data", c_uint32),
    ]


class Stats(Structure):
    _fields_ = [(name, c_uint64) for name in ("wakes", "wakes_elided", "parks", "late_wakes")]


SIZE = (c_size_t, [])
OBJECT = c_void_p
CHANNELS = [c_uint32, POINTER(Channel), c_uint32]
# Name, values and their count; time and token.
CALL = [c_char_p, c_void_p, c_size_t, c_int32, c_void_p]

# ctypes cannot know them: without these, it would take a pointer for an int of 32 bits.
SIGNATURES = {
    "segment_size": SIZE,
    "port_size": SIZE,
    "mailbox_size": SIZE,
    "property_size": SIZE,
    "fanout_size": SIZE,
    "stream_size": SIZE,
    "calls_size": SIZE,
    "token_size": SIZE,
    "status_text": (c_char_p, [c_int32]),
    "reason_name": (c_char_p, [c_uint32]),
    "memory_format": (c_int32, [c_void_p, c_size_t, *CHANNELS]),
    "segment_create": (c_int32, [OBJECT, c_void_p, c_size_t, *CHANNELS, c_int32]),
    "segment_attach": (c_int32, [OBJECT, c_void_p, c_size_t, c_int32]),
    "segment_create_file": (c_int32, [OBJECT, c_char_p, *CHANNELS, c_uint32, c_int32]),
    "segment_open_file": (c_int32, [OBJECT, c_char_p, c_uint32, c_int32]),
    "segment_leave": (c_int32, [OBJECT]),
    "port_attach": (c_int32, [OBJECT, OBJECT, c_uint32]),
    "port_attach_writer": (c_int32, [OBJECT, OBJECT, c_uint32, c_uint32]),
    "port_attach_reader": (c_int32, [OBJECT, OBJECT, c_uint32, c_uint32]),
    "port_attach_endpoint": (c_int32, [OBJECT, OBJECT, c_uint32]),
    "port_set_inbox": (c_int32, [OBJECT, c_void_p, c_size_t]),
    "port_set_spin": (c_int32, [OBJECT, c_uint32]),
    "port_set_calls": (c_int32, [OBJECT, c_int32]),
    "port_write_kind": (
        c_int32,
        [OBJECT, c_uint32, c_char_p, c_size_t, c_uint32, c_uint32, c_int32],
    ),
    "port_claim": (c_int32, [OBJECT, c_uint32, c_int32, POINTER(c_void_p)]),
    "port_publish": (c_int32, [OBJECT, c_uint32, c_uint32, c_uint32]),
    "port_abandon": (c_int32, [OBJECT]),
    "port_end": (c_int32, [OBJECT]),
    "port_read": (c_int32, [OBJECT, c_void_p, c_size_t, c_int32, POINTER(Message)]),
    "port_peek": (c_int32, [OBJECT, c_int32, POINTER(Message)]),
    "port_release": (c_int32, [OBJECT]),
    "port_reason": (c_uint32, [OBJECT]),
    "port_stats": (c_int32, [OBJECT, POINTER(Stats)]),
    "port_vacate": (c_int32, [OBJECT]),
    "port_close": (c_int32, [OBJECT]),
    "port_leave": (c_int32, [OBJECT]),
    "property_find": (c_int32, [OBJECT, c_uint32, c_char_p, c_uint32, POINTER(c_uint32)]),
    "property_open_writer": (c_int32, [OBJECT, OBJECT, c_uint32, c_char_p]),
    "property_open_reader": (c_int32, [OBJECT, OBJECT, c_uint32, c_char_p]),
    "property_value_size": (c_uint32, [OBJECT]),
    "property_set": (c_int32, [OBJECT, c_char_p, c_size_t, c_uint32]),
    "property_clear": (c_int32, [OBJECT]),
    "property_get": (c_int32, [OBJECT, c_void_p, c_size_t, POINTER(PropertyValue)]),
    "property_wait": (c_int32, [OBJECT, c_int32]),
    "property_leave": (c_int32, [OBJECT]),
    "fanout_find_writer": (c_int32, [OBJECT, c_uint32, c_uint32, POINTER(c_uint32)]),
    "fanout_find_reader": (c_int32, [OBJECT, c_uint32, c_uint32, POINTER(c_uint32)]),
    "fanout_open_writer": (c_int32, [OBJECT, OBJECT, c_uint32]),
    "fanout_open_reader": (c_int32, [OBJECT, OBJECT, c_uint32, c_int32]),
    "fanout_write": (c_int32, [OBJECT, c_char_p, c_size_t, c_uint32, c_uint32, c_int32]),
    "fanout_end": (c_int32, [OBJECT]),
    "fanout_read": (c_int32, [OBJECT, c_void_p, c_size_t, c_int32, POINTER(FanoutMessage)]),
    "fanout_set_joined": (c_int32, [OBJECT, c_int32]),
    "fanout_leave": (c_int32, [OBJECT]),
    "stream_memory_size": (c_size_t, [c_void_p]),
    "stream_open": (
        c_int32,
        [OBJECT, OBJECT, c_int32, c_int32, c_void_p, c_size_t, c_void_p],
    ),
    "stream_finish": (c_int32, [OBJECT, c_int32]),
    "stream_leave": (c_int32, [OBJECT]),
    "calls_attach": (c_int32, [OBJECT, OBJECT, c_void_p, c_void_p]),
    "calls_set_limits": (c_int32, [OBJECT, c_size_t, c_size_t, c_size_t]),
    "calls_leave": (c_int32, [OBJECT]),
    "calls_read": (c_int32, [OBJECT, c_void_p, c_size_t, c_int32, POINTER(Message)]),
    "calls_peek": (c_int32, [OBJECT, c_int32, POINTER(Message)]),
    "calls_release": (c_int32, [OBJECT]),
    "calls_write": (c_int32, [OBJECT, c_char_p, c_size_t, c_uint32, c_uint32, c_int32]),
    "calls_end": (c_int32, [OBJECT, c_int32]),
    "calls_vacate": (c_int32, [OBJECT]),
    "call": (c_int32, [OBJECT, *CALL, POINTER(Value)]),
    "call_begin": (c_int32, [OBJECT, *CALL, POINTER(c_size_t)]),
    "call_begin_items": (c_int32, [OBJECT, *CALL, POINTER(c_size_t)]),
    "call_next": (c_int32, [OBJECT, c_size_t, c_int32, OBJECT, POINTER(Value)]),
    "call_finish": (c_int32, [OBJECT, c_size_t, c_int32, OBJECT, POINTER(Value)]),
    "call_give_up": (c_int32, [OBJECT, c_size_t]),
    "call_notify": (c_int32, [OBJECT, *CALL]),
    "call_thrown": (c_int32, [OBJECT, POINTER(Failure)]),
    "serve": (c_int32, [OBJECT, c_void_p, c_void_p]),
    "serve_return": (c_int32, [OBJECT, c_size_t, c_void_p]),
    "serve_throw": (c_int32, [OBJECT, c_size_t, c_char_p, c_char_p, c_void_p]),
    "serve_item": (c_int32, [OBJECT, c_size_t, c_void_p, c_int32]),
    "serve_later": (c_int32, [OBJECT, c_size_t]),
    "serve_cancelled": (c_int32, [OBJECT, c_size_t]),
    "serve_token": (c_int32, [OBJECT, c_size_t, OBJECT]),
    "token_leave": (c_int32, [OBJECT]),
    "mailbox_attach_writer": (c_int32, [OBJECT, c_void_p, c_size_t]),
    "mailbox_attach_reader": (c_int32, [OBJECT, c_void_p, c_size_t]),
    "mailbox_set_spin": (c_int32, [OBJECT, c_uint32]),
    "mailbox_write": (c_int32, [OBJECT, c_char_p, c_size_t, c_int32]),
    "mailbox_read": (c_int32, [OBJECT, c_void_p, c_size_t, c_int32, POINTER(c_size_t)]),
    "mailbox_partial": (c_int32, [OBJECT]),
    "mailbox_close": (c_int32, [OBJECT]),
    "mailbox_leave": (c_int32, [OBJECT]),
}


class PortError(Exception):
    """What the library reports, by the name of its reason code."""

    def __init__(
        self, code: str, reason: str | int | None = None, count: int | None = None
    ) -> None:
        super().__init__(code)
        self.code, self.reason, self.count = code, reason, count

    def told(self) -> dict:
        """As the protocol has it."""
        told = {"code": self.code, "reason": self.reason, "count": self.count}
        return {name: value for name, value in told.items() if value is not None}


class Refused(Exception):
    """The library says that its caller made a mistake."""


class Library:
    """Calls without their prefix: `lib.port_size()` is `millrace_port_size`."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(library, f"millrace_{name}")
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        names = ((self.reason_name(code).decode(), code) for code in range(1, 256))
        self.reasons = {name: code for name, code in names if name != "unknown"}

    def make(self, kind: str):
        """Storage for an object: numbers of 64 bits, because it is aligned to 8 bytes."""
        return (c_uint64 * (getattr(self, f"{kind}_size")() // 8 + 1))()

    def check(self, status: int, port=None) -> int:
        """Returns a status that is none of an error."""
        if status >= 0:
            return status
        if status == INVALID:
            raise Refused(self.status_text(status).decode())
        if status <= UNSUPPORTED:
            # The machine's affair and no port's: the testee dies of it.
            raise OSError(self.status_text(status).decode())
        code = self.reason_name(-status).decode()
        if port is None or code not in ("pipe.failed", "peer.failed"):
            raise PortError(code)
        behind = self.port_reason(port)
        name = self.reason_name(behind).decode()
        raise PortError(code, "none" if behind == 0 else behind if name == "unknown" else name)
