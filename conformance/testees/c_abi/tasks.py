"""The tasks of live runs: the messages of a workload, and the transcript of what went by."""

import struct
import threading
import time
import zlib

from calling import Draws, Method
from ends import Full, MailboxEnd, PortError, PropertyEnd, SegmentEnd
from library import NOTHING, Refused

POLL_S = 0.0002
LETTERS = bytes(range(ord("a"), ord("z") + 1))
WORD = 0xFFFF_FFFF
PLAIN = {"kind": 1, "codec": 0, "tag": 0}
# Stands for the size of an entry without a message.
NO_MESSAGE = WORD


class Workload:
    """The messages that a seed stands for."""

    def __init__(self, seed: int, capacity: int, letters: bool) -> None:
        self.state, self.capacity, self.letters = seed, capacity, letters
        size = 3 * capacity + 256
        # Message k with another first byte is the same bytes, each a little higher.
        self.base = bytes((k + (k >> 8)) & 255 for k in range(size))
        self.alphabet = LETTERS * (size // 26 + 2)

    def random(self) -> int:
        x = self.state
        x ^= x << 13 & WORD
        x ^= x >> 17
        x ^= x << 5 & WORD
        self.state = x
        return x

    def next(self) -> bytes:
        kind, draw, first = self.random() % 8, self.random(), self.random() & 255
        whole = self.capacity // 2 - 16
        size = {
            0: 0,
            1: 1 + draw % 16,
            2: draw % (whole + 1),
            3: whole,
            4: whole + 1,
            5: draw % (3 * self.capacity + 1),
        }.get(kind, draw % 64)
        if self.letters:
            return self.alphabet[first % 26 :][:size]
        return self.base[:size].translate(bytes((first + k) & 255 for k in range(256)))


class Transcript:
    """What was written or read, in order."""

    def __init__(self, keeps: bool) -> None:
        self.count = self.size = self.crc32 = self.lost = 0
        self.record = [] if keeps else None

    def add(self, tag: int, payload: bytes) -> None:
        head = struct.pack("<II", tag, len(payload))
        self.crc32 = zlib.crc32(payload, zlib.crc32(head, self.crc32))
        self.count += 1
        self.size += len(payload)
        if self.record is not None:
            self.record.append([tag, len(payload), zlib.crc32(payload)])

    def add_none(self, tag: int) -> None:
        """An entry without a message: a version without a value, or how many were lost."""
        self.crc32 = zlib.crc32(struct.pack("<II", tag, NO_MESSAGE), self.crc32)
        self.count += 1
        if self.record is not None:
            self.record.append([tag, NO_MESSAGE, 0])

    def told(self) -> dict:
        told = {"count": self.count, "size": self.size, "crc32": self.crc32}
        return told if self.record is None else {**told, "record": self.record}


class Task:
    """One task, on one end."""

    def __init__(self, end: SegmentEnd | MailboxEnd, task: dict, timeout_ms: int) -> None:
        self.end, self.task, self.timeout_ms = end, task, timeout_ms
        self.is_mailbox = isinstance(end, MailboxEnd)
        self.is_property = isinstance(end, PropertyEnd)
        self.polls = task["wait"] == "poll"
        self.transcript = Transcript(task.get("record", False))
        self.workload = Workload(task["seed"], task["capacity"], self.is_mailbox)
        self.under_way = 0

    def unfit(self) -> str | None:
        """Why the end cannot do it, or nothing."""
        if self.task["wait"] == "event" or self.task["role"] == "cross":
            return "no event loop"
        role = self.task["role"]
        if role == "tree" and getattr(self.end, "calling", None) is None:
            return "no calls here"
        if self.is_property:
            fits = "write" if self.end.writes else "read"
            return None if role == fits else "not for this role"
        reads, writes = role != "write", role != "read"
        if reads and not self.end.can("read") or writes and not self.end.can("write"):
            return "not for this role"
        return None

    def tree(self) -> str:
        """Trees of calls, beside those of the peer."""
        own, task = self.end.calling, self.task
        own.patience_ms = self.timeout_ms
        draws = Draws(task["seed"])
        for index in range(task["count"]):
            if task.get("plain", False):
                self.end.write(PLAIN, struct.pack("<I", index), self.timeout_ms)
            try:
                value = own.value_of_tree(draws.next(), task["depth"], task["width"])
            except Method as failure:
                self.raise_for(failure.status)
            self.transcript.add(index, struct.pack("<I", value))
        self.end.write(PLAIN, b"", self.timeout_ms)
        while (message := self.receive()) is not None and message["payload"]:
            self.transcript.add(message["tag"], message["payload"])
        self.end_own()
        while (message := self.receive()) is not None:
            self.transcript.add(message["tag"], message["payload"])
        return "ended"

    def raise_for(self, status: int) -> None:
        """How a call of a task has ended that had to give a value."""
        if self.end.lib.check(status, self.end.port) == NOTHING:
            raise PortError("wait.timeout")
        raise PortError("call.form")

    def run(self) -> dict:
        before = self.end.stats()
        timer = threading.Timer(self.task.get("close_ms", 0) / 1000, self.end.close)
        if "close_ms" in self.task:
            timer.start()
        try:
            outcome = {"end": getattr(self, self.task["role"])()}
            if self.task["then"] == "close":
                self.end.close()
            elif self.task["then"] == "end" and self.task["role"] not in ("drive", "tree"):
                self.end_own()
        except PortError as error:
            reason = {} if error.reason is None else {"reason": error.reason}
            outcome = {"end": error.code, **reason}
        timer.cancel()
        if self.task.get("lossy", False):
            outcome["lost"] = self.transcript.lost
        counted = {name: value - before[name] for name, value in self.end.stats().items()}
        return {**self.transcript.told(), **outcome, **counted}

    def write(self) -> str:
        for index in range(self.task["count"]):
            self.pause(index)
            payload = self.workload.next()
            self.send(index, payload)
            self.transcript.add(index, payload)
        return "done"

    def read(self) -> str:
        if self.is_property:
            return self.get()
        index = 0
        while index < self.task.get("count", WORD):
            self.pause(index)
            try:
                message = self.receive()
            except PortError as error:
                if not (self.task.get("lossy", False) and error.code.startswith("message.")):
                    raise
                lost = error.count or 0
                if lost > 0:
                    self.transcript.add_none(lost)
                self.transcript.lost += max(lost, 1)
                index += 1
                continue
            if message is None:
                return "ended"
            self.transcript.add(message["tag"], message["payload"])
            if self.task["role"] == "echo":
                self.write_message(message, message["payload"])
            index += 1
        return "done"

    echo = read

    def get(self) -> str:
        """Gets each value that is another one than the last, up to the version of the count."""
        last, version = None, 0
        deadline = time.monotonic() + self.timeout_ms / 1000
        while True:
            try:
                got = self.end.get()
            except PortError as error:
                if error.code != "property.busy":
                    raise
                continue
            if got["version"] != 0 and got != last:
                last, version = got, got["version"]
                if "item" in got:
                    self.transcript.add(version, got["item"]["payload"])
                else:
                    self.transcript.add_none(version)
                deadline = time.monotonic() + self.timeout_ms / 1000
            if version == self.task.get("count"):
                return "ended"
            if not self.polls:
                self.end.changed(self.timeout_ms)
            elif time.monotonic() >= deadline:
                raise PortError("wait.timeout")

    def drive(self) -> str:
        count, written = self.task["count"], 0
        while written < count or self.transcript.count < count:
            if written < count and self.under_way <= self.task["capacity"]:
                self.pause(written)
                payload = self.workload.next()
                self.under_way += len(payload)
                self.send(written, payload)
                written += 1
            elif not self.take_back(self.receive()):
                return "ended"  # too early, as the transcript shows
        self.end_own()
        self.take_back(self.receive())  # what must not come is in the transcript
        return "ended"

    def take_back(self, message: dict | None) -> bool:
        if message is None:
            return False
        self.transcript.add(message["tag"], message["payload"])
        self.under_way -= len(message["payload"])
        return True

    def end_own(self) -> None:
        if not self.is_mailbox and self.end.can("end"):
            self.end.end()

    def send(self, tag: int, payload: bytes) -> None:
        if self.is_mailbox:
            text = payload.decode()
            payload = f'[[{tag},"{text}"]]'.encode()
        if self.is_property and len(payload) == 0:
            return self.end.clear()
        self.write_message({"kind": 1, "codec": 0, "tag": tag}, payload)

    def write_message(self, message: dict, payload: bytes) -> None:
        if not self.polls:
            return self.end.write(message, payload, self.timeout_ms)
        deadline = time.monotonic() + self.timeout_ms / 1000
        begun = False
        while True:
            try:
                if begun:
                    return self.end.resume(0)
                return self.end.write(message, payload, 0 if self.is_mailbox else None)
            except Refused:
                # A message that never fits the ring at once has no call that does not wait.
                return self.end.write(message, payload, self.timeout_ms)
            except (Full, PortError) as error:
                if isinstance(error, PortError) and error.code != "wait.timeout":
                    raise
                # Calls that do not wait do not read either: who drives must, or both sides stand
                # before full rings.
                if self.task["role"] == "drive" and self.take_back(self.look()):
                    continue
                begun = self.is_mailbox and self.end.lib.mailbox_partial(self.end.mailbox) == 1
                self.rest(deadline)

    def look(self) -> dict | None:
        got = self.end.read(0)
        return self.message(got["item"]) if "item" in got else None

    def receive(self) -> dict | None:
        """Returns the next message, or nothing at the end of the stream."""
        deadline = time.monotonic() + self.timeout_ms / 1000
        while True:
            got = self.end.read(0 if self.polls else self.timeout_ms)
            if "item" in got:
                return self.message(got["item"])
            if got["end"] == "ended":
                return None
            if not self.polls:
                raise PortError("wait.timeout")
            self.rest(deadline)

    def message(self, item: dict) -> dict:
        if not self.is_mailbox:
            return item
        match item["json"]:
            case [int(tag), str(text)] if not isinstance(tag, bool) and 0 <= tag <= WORD:
                return {**item, "tag": tag, "payload": text.encode()}
        raise PortError("message.json")

    def pause(self, index: int) -> None:
        if "delay_us" in self.task and index % self.task["delay_every"] == 0:
            time.sleep(self.task["delay_us"] / 1e6)

    @staticmethod
    def rest(deadline: float) -> None:
        if time.monotonic() >= deadline:
            raise PortError("wait.timeout")
        time.sleep(POLL_S)
