"""The chapter mailbox, which is a track of its own: JSON messages one way, part by part."""

import json
import math
import time
from collections import deque

from layout import LIMIT, M32, Fault, Memory, Mistake, Structure, table

HEADER = Structure("mailbox_header")
AT = HEADER.at
SIGNAL, STATUS = table("enums", "mailbox_signal"), table("enums", "mailbox_status")
DISPOSED = STATUS.disposed & M32  # -1, as a word that was loaded.


class Mailbox:
    """What both sides have in common: whose turn it is, and how it ends."""

    def __init__(self, memory: Memory):
        if memory.address % 4 != 0 or memory.size < LIMIT.mailbox_size_min:  # [mailbox.section]
            raise Fault("mailbox.size")
        self.memory, self.capacity = memory, memory.size - HEADER.size
        self.closed, self.gone, self.fault = False, False, None

    def close(self) -> None:
        """[mailbox.close]; a second close does nothing."""
        if not self.closed:
            self.closed = True
            self.dispose()

    def dispose(self) -> None:
        self.memory.store(AT.status, DISPOSED)
        self.memory.exchange(AT.signal, DISPOSED)

    def refuse(self) -> None:
        """[mailbox.first_answer], without what a reader still has to deliver."""
        if self.closed:
            raise Fault("pipe.closed")
        if self.fault:
            raise Fault(self.fault)
        if self.gone:
            raise Fault("peer.closed")

    def fail(self, code: str) -> Fault:
        """[mailbox.check]: closes the mailbox, and keeps the code for every later call."""
        self.fault = code
        self.dispose()
        return Fault(code)

    def check(self, word: int, *known: int) -> int:
        """A `signal` or a `status`: one of those known, or the peer has closed."""
        if word == DISPOSED:
            self.gone = True
            raise Fault("peer.closed")
        if word not in known:
            raise self.fail("mailbox.signal")
        return word

    def turn(self) -> int:
        """[mailbox.turn]: `signal` first, then `status`."""
        signal, status = self.memory.load(AT.signal), self.memory.load(AT.status)
        self.check(signal, SIGNAL.may_write, SIGNAL.may_read)
        self.check(status, STATUS.active)
        return signal

    def pass_on(self, old: int, new: int) -> None:
        """[mailbox.signal_exchange]; whoever looks for it polls: [mailbox.mechanism]."""
        if not self.memory.compare_exchange(AT.signal, old, new):
            self.gone = True
            if self.memory.load(AT.signal) != DISPOSED:  # [mailbox.lost_turn]
                self.dispose()

    def nap(self, deadline: float) -> None:
        time.sleep(max(0, min(deadline - time.monotonic(), LIMIT.wait_poll_ms / 2000)))


class MailboxWriter(Mailbox):
    """Writes a list of messages as one payload."""

    def __init__(self, memory: Memory):
        super().__init__(memory)
        self.rest, self.begun = deque(), False  # The parts that are not written yet.

    def write(self, messages: list, timeout: float = 0) -> None:
        """Begins only when the payload before it is written: [mailbox.write_all]."""
        try:  # [mailbox.payload]
            text = json.dumps(messages, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            payload = text.encode()
        except (TypeError, ValueError) as error:
            raise Mistake("Cannot write messages: not JSON") from error
        if not messages:
            raise Mistake("Cannot write messages: none")
        deadline = time.monotonic() + timeout
        self.flush(deadline)
        # [mailbox.parts], [mailbox.full_parts]
        parts = [payload[at : at + self.capacity] for at in range(0, len(payload), self.capacity)]
        if len(parts) > LIMIT.mailbox_part_count_max:
            raise Mistake(f"Cannot write {len(payload)} bytes: too many parts")
        self.rest.extend((len(parts), index, part) for index, part in enumerate(parts))
        self.flush(deadline)

    def resume(self, timeout: float = 0) -> None:
        """Goes on with the payload of which a part is written; nothing, where none is."""
        self.flush(time.monotonic() + timeout)

    def flush(self, deadline: float) -> None:
        self.refuse()
        while self.rest:
            while self.turn() != SIGNAL.may_write:  # [mailbox.write]
                if time.monotonic() >= deadline:
                    # [mailbox.begun]: the rest of a payload is kept, a whole one is not begun.
                    if not self.begun:
                        self.rest.clear()
                    raise Fault("wait.timeout")
                self.nap(deadline)
            count, index, part = self.rest.popleft()
            self.memory.view[HEADER.size : HEADER.size + len(part)] = part
            words = {AT.part_count: count, AT.part_index: index, AT.length: len(part)}
            for at, word in words.items():
                self.memory.store(at, word)
            self.begun = bool(self.rest)
            self.pass_on(SIGNAL.may_write, SIGNAL.may_read)
            self.refuse()


class MailboxReader(Mailbox):
    """Reads payloads of up to `limit` bytes."""

    def __init__(self, memory: Memory, limit: int = 4096):
        super().__init__(memory)
        self.limit, self.messages = limit, deque()
        self.count, self.index, self.payload = None, 0, b""  # What has come of a payload.

    def read(self, timeout: float = 0):
        """A list of one message, or None when nothing came."""
        deadline = time.monotonic() + timeout
        if self.messages and not self.closed:
            return [self.messages.popleft()]
        self.refuse()
        while True:
            if self.turn() == SIGNAL.may_read:
                self.take()
                if self.messages:
                    return [self.messages.popleft()]
                self.refuse()
                if time.monotonic() >= deadline:
                    return None
            elif time.monotonic() >= deadline:
                return None
            else:
                self.nap(deadline)

    def take(self) -> None:
        load = self.memory.load
        length, count, index = load(AT.length), load(AT.part_count), load(AT.part_index)
        self.check(load(AT.status), STATUS.active)  # [mailbox.read_status]
        if not 1 <= length <= self.capacity:  # [mailbox.check]
            raise self.fail("mailbox.length")
        in_order = index == self.index < count <= LIMIT.mailbox_part_count_max
        if not in_order or self.count not in (None, count):
            raise self.fail("mailbox.part")
        fits = self.payload is not None and len(self.payload) + length <= self.limit
        lost = self.payload is not None and not fits  # [mailbox.limit]: told once.
        # [mailbox.copy]; None is a payload that was dropped.
        part = bytes(self.memory.view[HEADER.size : HEADER.size + length]) if fits else b""
        payload = self.payload + part if fits else None
        self.pass_on(SIGNAL.may_read, SIGNAL.may_write)
        self.count, self.index, self.payload = count, index + 1, payload
        if self.index == count:  # [mailbox.complete]: delivered, whatever came meanwhile.
            self.count, self.index, self.payload = None, 0, b""
            if payload is not None:
                self.messages.extend(decode(payload))
        if lost:
            raise Fault("message.size")


def decode(payload: bytes) -> list:
    """[mailbox.bad_payload]"""
    try:
        value = json.loads(payload.decode(), parse_constant=reject, parse_float=finite)
    except UnicodeDecodeError:
        raise Fault("message.text") from None
    except (ValueError, RecursionError):
        raise Fault("message.json") from None
    if not isinstance(value, list) or not value:
        raise Fault("message.json")
    return value


def reject(word: str):
    raise ValueError(f"{word} is no JSON")


def finite(digits: str) -> float:
    """A number that Python's float cannot hold has no JSON either, so nobody could write it."""
    if math.isinf(float(digits)):
        reject(digits)
    return float(digits)
