"""The ends that a testee opens: of a segment, and of a mailbox.

What a role does not have is not there; the testee then declines.
"""

import ctypes
import json
import mmap
from ctypes import byref, c_size_t, c_uint32, c_void_p, create_string_buffer

from calling import Calling
from library import DONE, END, FANOUT, FIRST_CHANNEL, NOBODY, NOTHING, PROPERTY, Channel
from library import FanoutMessage, Library, Message, PortError, PropertyValue, Refused, Stats
from values import Malformed, decoded

LIMIT = 1 << 20
PATIENCE_MS = 1_000
# Nothing in a file says how the peer of a mailbox wakes, and this side cannot be told to poll.
MAILBOX_SLICE_MS = 5
DATA, JSON = 1, 2


class Full(Exception):
    """There is no room now."""


class Memory:
    """Bytes of the testee's own, at a multiple of 128 and a little after."""

    def __init__(self, size: int, offset: int) -> None:
        self.room = create_string_buffer(size + offset + 128)
        base = ctypes.addressof(self.room)
        self.address, self.size = base + -base % 128 + offset, size

    def store(self, runs: list) -> None:
        for run in runs:
            data = bytes.fromhex(run["hex"])
            assert 0 <= run["offset"] <= self.size - len(data)
            ctypes.memmove(self.address + run["offset"], data, len(data))

    def dump(self, start: int, size: int | None) -> bytes:
        left = self.size - start
        assert 0 <= start <= self.size and (size is None or size <= left)
        return ctypes.string_at(self.address + start, left if size is None else size)


class MappedFile:
    """A file that is there, as memory."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)
        self.view = ctypes.c_char.from_buffer(self.map)
        self.address, self.size = ctypes.addressof(self.view), len(self.map)

    def close(self) -> None:
        del self.view
        self.map.close()


class SegmentEnd:
    """A segment, and what was taken of it."""

    # Where it offers calls, through which all is read and written; and what is left of a batch.
    calling, rest = None, ()

    def __init__(self, lib: Library, command: dict, memory: "Memory | MappedFile | None") -> None:
        self.lib, self.memory, self.port = lib, memory, None
        self.place = self.finished = None
        self.segment = lib.make("segment")
        self.open_segment(command, memory)
        try:
            if command["role"] != "segment":
                self.attach(command)
        except BaseException:
            lib.segment_leave(self.segment)
            raise

    def open_segment(self, command: dict, memory: "Memory | MappedFile | None") -> None:
        lib, creates = self.lib, command["kind"] == "create"
        geometry = []
        if creates:
            channels = [channel_of(stated) for stated in command["geometry"]["channels"]]
            array = (Channel * len(channels))(*channels)
            geometry = [command["geometry"]["endpoints"], array, len(channels)]
        if memory is None:
            path, endpoint = command["path"].encode(), command["endpoint"]
            patience_ms = command.get("timeout_ms", PATIENCE_MS)
            status = (
                lib.segment_create_file(self.segment, path, *geometry, endpoint, patience_ms)
                if creates
                else lib.segment_open_file(self.segment, path, endpoint, patience_ms)
            )
            if lib.check(status) == NOTHING:
                raise PortError("wait.timeout")
            return
        place = (memory.address, memory.size)
        if creates and not command.get("sole_owner", False):
            lib.check(lib.segment_create(self.segment, *place, *geometry, 0))
            return
        if creates:
            lib.check(lib.memory_format(*place, *geometry))
        lib.check(lib.segment_attach(self.segment, *place, 0))

    def attach(self, command: dict) -> None:
        lib, role, port = self.lib, command["role"], self.lib.make("port")
        channel = command.get("channel", FIRST_CHANNEL)
        if role == "port":
            status = lib.port_attach(port, self.segment, command["endpoint"])
        elif role == "reader":
            endpoint = command.get("endpoint", 1)
            status = lib.port_attach_reader(port, self.segment, endpoint, channel)
        else:
            endpoint = command.get("endpoint", 0)
            status = lib.port_attach_writer(port, self.segment, endpoint, channel)
        lib.check(status)
        self.port, self.reads, self.writes = port, role != "writer", role != "reader"
        self.prepare(command, role == "port")

    def prepare(self, command: dict, is_port: bool) -> None:
        """Gives a new port what the command says of it, and storage."""
        lib, port = self.lib, self.port
        if is_port:
            size = command.get("inbox", LIMIT)
            self.inbox = (ctypes.c_uint64 * (size // 8 + 2))()
            lib.check(lib.port_set_inbox(port, self.inbox, size))
        if self.reads:
            self.storage = create_string_buffer(max(1, command.get("limit", LIMIT)))
            self.limit = command.get("limit", LIMIT)
            lib.check(lib.port_set_calls(port, int(command.get("calls", False))))
        if "spin_us" in command:
            lib.check(lib.port_set_spin(port, command["spin_us"]))
        if command.get("serves", False):
            lib.check(lib.port_set_inbox(port, None, 0))
            self.calling = Calling(lib, port, command)

    def can(self, name: str) -> bool:
        """Whether the role has this call."""
        if self.port is None:
            return name == "close"
        if name in ("read", "peek", "release"):
            return self.reads
        writing = ("write", "claim", "finish", "abandon", "publish", "end")
        return name not in writing or self.writes

    def read(self, timeout_ms: int) -> dict:
        """Returns a message, or the end."""
        if self.calling is not None:
            return self.read_called(timeout_ms)
        message = Message()
        status = self.lib.port_read(
            self.port, self.storage, self.limit, timeout_ms, byref(message)
        )
        return self.told(status, message)

    def read_called(self, timeout_ms: int) -> dict:
        """The same over calls: messages are values, and what is in a batch comes one by one."""
        if not self.rest:
            message = Message()
            status = self.lib.calls_read(
                self.calling.calls, self.storage, self.limit, timeout_ms, byref(message)
            )
            self.calling.look(is_idle=status != DONE)
            got = self.told(status, message)
            if "item" not in got:
                return got
            try:
                self.rest = decoded(got["item"])
            except Malformed as wrong:
                raise PortError(str(wrong)) from None
        item, *self.rest = self.rest
        return {"item": item}

    def peek(self) -> dict:
        message = Message()
        if self.calling is not None:
            status = self.lib.calls_peek(self.calling.calls, 0, byref(message))
            self.calling.look(is_idle=status == NOTHING)
            return self.told(status, message)
        return self.told(self.lib.port_peek(self.port, 0, byref(message)), message)

    def told(self, status: int, message: Message) -> dict:
        if self.lib.check(status, self.port) != DONE:
            return {"end": "ended" if status == END else "nothing"}
        payload = ctypes.string_at(message.payload, message.size) if message.size else b""
        item = {"kind": message.kind, "codec": message.codec, "tag": message.tag}
        return {"item": {**item, "payload": payload}}

    def release(self) -> None:
        if self.calling is not None:
            self.lib.check(self.lib.calls_release(self.calling.calls))
            return
        self.lib.check(self.lib.port_release(self.port))

    def write(self, message: dict, payload: bytes, timeout_ms: int | None) -> None:
        """Raises `Full` where it was not to wait, else `wait.timeout`."""
        self.publish()
        what = (payload, len(payload), message["codec"], message["tag"])
        patience_ms = 0 if timeout_ms is None else timeout_ms
        if self.calling is None:
            status = self.lib.port_write_kind(self.port, message["kind"], *what, patience_ms)
        elif message["kind"] != DATA:
            raise Refused("calls are written by calling")
        else:
            status = self.lib.calls_write(self.calling.calls, *what, patience_ms)
        if self.lib.check(status, self.port) == NOTHING:
            raise Full if timeout_ms is None else PortError("wait.timeout")

    def claim(self, size: int) -> None:
        self.publish()
        place = c_void_p()
        status = self.lib.port_claim(self.port, size, 0, byref(place))
        if self.lib.check(status, self.port) == NOTHING:
            raise Full
        self.place = (place, size)

    def finish(self, message: dict, payload: bytes) -> None:
        """What is finished is published by `publish`: the library does both at once."""
        self.publish()
        finished = (len(payload), message["codec"], message["tag"])
        if self.place is None:
            self.lib.check(self.lib.port_publish(self.port, *finished), self.port)
            return
        place, size = self.place
        assert len(payload) <= size
        ctypes.memmove(place, payload, len(payload))
        self.place, self.finished = None, finished

    def abandon(self) -> None:
        self.publish()
        self.place = None
        self.lib.check(self.lib.port_abandon(self.port))

    def publish(self) -> None:
        if self.finished is not None:
            finished, self.finished = self.finished, None
            self.lib.check(self.lib.port_publish(self.port, *finished), self.port)

    def end(self) -> None:
        self.publish()
        if self.calling is not None:
            self.lib.check(self.lib.calls_end(self.calling.calls, 0), self.port)
            return
        self.lib.check(self.lib.port_end(self.port), self.port)

    def vacate(self) -> None:
        if self.calling is not None:
            self.lib.check(self.lib.calls_vacate(self.calling.calls))
        else:
            self.lib.check(self.lib.port_vacate(self.port))
        # What was claimed or finished for the last owner is dropped.
        self.place = self.finished = None

    def close(self) -> None:
        if self.port is not None:
            self.place, self.rest = None, ()
            self.lib.check(self.lib.port_close(self.port))

    def stats(self) -> dict:
        stats = Stats()
        self.lib.check(self.lib.port_stats(self.port, byref(stats)))
        return {"parks": stats.parks, "wakes": stats.wakes, "late_wakes": stats.late_wakes}

    def drop(self) -> None:
        self.leave_calls()
        if self.port is not None:
            self.lib.check(self.lib.port_leave(self.port))
        self.lib.check(self.lib.segment_leave(self.segment))
        if isinstance(self.memory, MappedFile):
            self.memory.close()

    def leave_calls(self) -> None:
        if self.calling is None:
            return
        self.lib.calls_release(self.calling.calls)  # refused where nothing is lent
        self.calling.leave()


class PropertyEnd(SegmentEnd):
    """One end of a property, whose port has no rings."""

    def attach(self, command: dict) -> None:
        lib, self.writes = self.lib, command["role"] == "property_writer"
        endpoint = command.get("endpoint", 0 if self.writes else 1)
        which = command.get("channel", FIRST_CHANNEL)
        name = command["property"].encode() if "channel" not in command else None
        found = c_uint32()
        # What cannot be opened must be refused before the endpoint is taken.
        writer = endpoint if self.writes else NOBODY
        lib.check(lib.property_find(self.segment, which, name, writer, byref(found)))
        port, self.property = lib.make("port"), lib.make("property")
        lib.check(lib.port_attach_endpoint(port, self.segment, endpoint))
        self.port = port
        if "spin_us" in command:
            lib.check(lib.port_set_spin(port, command["spin_us"]))
        opens = lib.property_open_writer if self.writes else lib.property_open_reader
        lib.check(opens(self.property, port, found.value, None))
        self.storage = create_string_buffer(lib.property_value_size(self.property))

    def can(self, name: str) -> bool:
        return name in ("close", "run", "write", "clear") if self.writes else name in (
            "close", "run", "get", "changed",
        )

    def write(self, message: dict, payload: bytes, timeout_ms: int | None) -> None:
        status = self.lib.property_set(
            self.property, payload, len(payload), message["codec"]
        )
        self.lib.check(status, self.port)

    def clear(self) -> None:
        self.lib.check(self.lib.property_clear(self.property), self.port)

    def get(self) -> dict:
        """Returns the version, and an item where there is a value."""
        value = PropertyValue()
        status = self.lib.property_get(
            self.property, self.storage, len(self.storage), byref(value)
        )
        if self.lib.check(status, self.port) == NOTHING:
            return {"version": value.version}
        item = {"kind": DATA, "codec": value.codec, "tag": 0}
        return {
            "item": {**item, "payload": self.storage.raw[: value.size]},
            "version": value.version,
        }

    def changed(self, timeout_ms: int) -> None:
        status = self.lib.property_wait(self.property, timeout_ms)
        if self.lib.check(status, self.port) == NOTHING:
            raise PortError("wait.timeout")

    def drop(self) -> None:
        self.close()
        self.lib.check(self.lib.property_leave(self.property))
        super().drop()


class FanoutEnd(SegmentEnd):
    """One end of a fanout, whose port has no rings."""

    def attach(self, command: dict) -> None:
        lib, self.writes = self.lib, command["role"] == "fanout_writer"
        endpoint = command.get("endpoint", 0 if self.writes else 1)
        which = command.get("channel", FIRST_CHANNEL)
        found = c_uint32()
        # What cannot be opened must be refused before the endpoint is taken.
        finds = lib.fanout_find_writer if self.writes else lib.fanout_find_reader
        lib.check(finds(self.segment, endpoint, which, byref(found)))
        port, self.fanout = lib.make("port"), lib.make("fanout")
        lib.check(lib.port_attach_endpoint(port, self.segment, endpoint))
        self.port = port
        if "spin_us" in command:
            lib.check(lib.port_set_spin(port, command["spin_us"]))
        if self.writes:
            lib.check(lib.fanout_open_writer(self.fanout, port, found.value))
            return
        oldest = int(command.get("oldest", False))
        lib.check(lib.fanout_open_reader(self.fanout, port, found.value, oldest))
        self.limit = command.get("limit", LIMIT)
        self.storage = create_string_buffer(max(1, self.limit))

    def can(self, name: str) -> bool:
        if name in ("close", "run"):
            return True
        return name in (("write", "end") if self.writes else ("read", "leave", "join"))

    def read(self, timeout_ms: int) -> dict:
        message = FanoutMessage()
        status = self.lib.fanout_read(
            self.fanout, self.storage, self.limit, timeout_ms, byref(message)
        )
        try:
            if self.lib.check(status, self.port) != DONE:
                return {"end": "ended" if status == END else "nothing"}
        except PortError as error:
            error.count = message.lost or None
            raise
        payload = ctypes.string_at(self.storage, message.size)
        item = {"kind": DATA, "codec": message.codec, "tag": message.tag}
        return {"item": {**item, "payload": payload}}

    def write(self, message: dict, payload: bytes, timeout_ms: int | None) -> None:
        if message["kind"] != DATA:
            raise Refused("fanouts carry data")
        status = self.lib.fanout_write(
            self.fanout, payload, len(payload), message["codec"], message["tag"],
            0 if timeout_ms is None else timeout_ms,
        )
        if self.lib.check(status, self.port) == NOTHING:
            raise Full if timeout_ms is None else PortError("wait.timeout")

    def end(self) -> None:
        self.lib.check(self.lib.fanout_end(self.fanout), self.port)

    def leave(self) -> None:
        self.lib.check(self.lib.fanout_set_joined(self.fanout, 0))

    def join(self) -> None:
        self.lib.check(self.lib.fanout_set_joined(self.fanout, 1))

    def drop(self) -> None:
        self.close()
        self.lib.check(self.lib.fanout_leave(self.fanout))
        super().drop()


def channel_of(stated: dict) -> Channel:
    """A channel of the kit's, of which `capacity` is that of its byte area."""
    fields = ("writer", "reader", "capacity", "label", "start", "kind")
    channel = Channel(*(stated.get(name, 0) for name in fields))
    if "readers" in stated:
        # The last of the endpoints after its writer.
        channel.kind, channel.reader = FANOUT, channel.writer + stated["readers"]
    if channel.kind == PROPERTY:
        slot_size, rest = divmod(channel.capacity, 4)
        # Sizes that no creator may choose cannot be asked for.
        if rest != 0 or slot_size % 128 != 0 or slot_size == 0:
            raise Refused("no property has such a byte area")
        channel.capacity = slot_size - 16
        channel.name = stated.get("name", "").encode()
    return channel


class MailboxEnd:
    """One side of a mailbox."""

    def __init__(self, lib: Library, command: dict, memory: Memory | MappedFile) -> None:
        self.lib, self.memory, self.mailbox = lib, memory, lib.make("mailbox")
        self.writes = command["role"] == "mailbox_writer"
        self.payload, self.rest = b"", []
        self.limit = command.get("limit", LIMIT)
        self.storage = create_string_buffer(max(1, self.limit))
        attach = lib.mailbox_attach_writer if self.writes else lib.mailbox_attach_reader
        lib.check(attach(self.mailbox, memory.address, memory.size))
        if "spin_us" in command:
            lib.check(lib.mailbox_set_spin(self.mailbox, command["spin_us"]))

    def can(self, name: str) -> bool:
        return name in ("close", "run") or name in (
            ("write", "resume") if self.writes else ("read",)
        )

    def read(self, timeout_ms: int) -> dict:
        """Returns the next message of a payload, or that there is none."""
        if not self.rest:
            size = c_size_t()
            for slice_ms in self.slices(timeout_ms):
                status = self.lib.mailbox_read(
                    self.mailbox, self.storage, self.limit, slice_ms, byref(size)
                )
                if self.lib.check(status) != NOTHING:
                    break
            if status == NOTHING:
                return {"end": "nothing"}
            self.rest = parse_payload(self.storage[: size.value])
        return {"item": {"kind": DATA, "codec": JSON, "tag": 0, "json": self.rest.pop(0)}}

    def write(self, message: dict, payload: bytes, timeout_ms: int | None) -> None:
        if self.lib.mailbox_partial(self.mailbox):
            raise Refused
        self.payload = payload
        self.go_on(timeout_ms or 0)

    def resume(self, timeout_ms: int) -> None:
        if self.lib.mailbox_partial(self.mailbox):
            self.go_on(timeout_ms)

    def go_on(self, timeout_ms: int) -> None:
        """The same bytes object each time: they must stay where they are."""
        for slice_ms in self.slices(timeout_ms):
            status = self.lib.mailbox_write(
                self.mailbox, self.payload, len(self.payload), slice_ms
            )
            if self.lib.check(status) != NOTHING:
                return
        raise PortError("wait.timeout")

    @staticmethod
    def slices(timeout_ms: int):
        """At least one; the last ones may be empty where the call took less than its time."""
        left = timeout_ms
        while True:
            yield min(left, MAILBOX_SLICE_MS)
            left -= MAILBOX_SLICE_MS
            if left <= 0:
                return

    def close(self) -> None:
        self.rest = []
        self.lib.check(self.lib.mailbox_close(self.mailbox))

    def stats(self) -> dict:
        return {}

    def drop(self) -> None:
        self.lib.check(self.lib.mailbox_leave(self.mailbox))
        if isinstance(self.memory, MappedFile):
            self.memory.close()


def parse_payload(text: bytes) -> list:
    """The messages of a payload that the library took for an array."""
    try:
        return json.loads(text.decode(), parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        raise PortError("message.json") from None


def refuse_constant(name: str) -> None:
    """Python knows NaN and infinities; JSON does not."""
    raise ValueError(name)
