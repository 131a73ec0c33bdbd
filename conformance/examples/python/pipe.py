"""The chapters wait, frame, ring and pipe: whole messages one way, as bytes of any codec."""

import time
from collections import namedtuple

from layout import LIMIT, M32, Fault, Memory, Mistake, Structure, table
from segment import CONTROL, KIND as CHANNEL_KIND, RECORD, STATE, Segment, is_final, reason_of

HEADER, PREAMBLE = Structure("frame_header"), Structure("message_preamble")
EXTENSION = Structure("header_extension")
KIND, FLAG = table("enums", "frame_kind"), table("flags", "frame_flag")
MESSAGES = (KIND.data, KIND.call, getattr(KIND, "return"), KIND.throw)
WHOLE, CANCELLED = FLAG.first | FLAG.last, FLAG.last | FLAG.cancel
BATCH = table("enums", "codec").json_batch
TOTAL_UNKNOWN = (1 << 64) - 1

Message = namedtuple("Message", "kind codec tag payload")
ENDED = object()  # What a read gives at the end of the stream.


def extent_of(size: int) -> int:
    """[frame.extent]: header and payload, rounded up."""
    return (HEADER.size + size + LIMIT.frame_align - 1) & -LIMIT.frame_align


def identity(frame) -> tuple:
    """What all frames of a message have in common: [frame.multipart]."""
    return frame.kind, frame.codec, frame.tag


def reached(cursor: int, position: int) -> bool:
    """Whether `cursor - position`, as a signed 32-bit number, is not negative."""
    return (cursor - position) & M32 < 1 << 31


class Pipe:
    """What a reader and a writer have in common: a ring, two endpoints, and what ended them."""

    def __init__(self, memory: Memory, side: str, endpoint: int, channel=None):
        self.segment, self.memory, self.endpoint = Segment(memory), memory, endpoint
        self.segment.check_vacant(endpoint)
        # [pipe.find], [pipe.find_none]: the endpoint first, and no state has changed so far.
        for index, row in enumerate(self.segment.channels):
            mine = row.kind == CHANNEL_KIND.ring and getattr(row, side) == endpoint
            if mine and channel in (None, index):
                break
        else:
            raise Fault("segment.channel")
        self.control, self.area, self.capacity = row.control_offset, row.data_offset, row.data_size
        self.peer = row.reader if side == "writer" else row.writer
        self.row, self.closed = row, False
        self.word = self.segment.take(endpoint)
        start = row.start  # [ring.start]
        if memory.load(self.segment.word(endpoint, RECORD.at.generation)) > 0:
            own = CONTROL.at.head if side == "reader" else CONTROL.at.tail
            start = memory.load(self.control + own) & -LIMIT.frame_align  # [ring.start_again]
        self.begin(start)

    def begin(self, position: int) -> None:
        """[ring.start], [pipe.vacated]: both cursors stand here, and nothing has happened yet."""
        self.head = self.tail = position
        self.ended, self.fault, self.peer_state = False, None, None

    def vacate(self) -> None:
        """Gives the peer's endpoint back, whose owner is dead, as the caller knows.

        [segment.vacate_dead]. Whoever attaches to it next goes on in the same ring.
        """
        self.refuse_closed()
        segment, memory, peer = self.segment, self.memory, self.peer
        state = segment.state(peer)
        channels = [row for row in segment.channels if peer in (row.writer, row.reader)]
        alone = segment.state(self.endpoint) == self.word and channels == [self.row]
        dead = state & LIMIT.state_mask in (STATE.closed, STATE.failed)
        generation = memory.load(segment.word(peer, RECORD.at.generation))
        if not (dead and alone and generation < M32 and self.has_all()):
            raise Mistake(f"Cannot vacate endpoint {peer} now")
        position = self.position()  # [segment.vacate_words]
        for word in (CONTROL.at.tail, CONTROL.at.head):
            memory.store(self.control + word, position)
        memory.store(self.control + self.peers_wants, 0)
        for field in (RECORD.at.wakes, RECORD.at.agent, RECORD.at.features):
            memory.store(segment.word(peer, field), 0)
        memory.store(segment.word(peer, RECORD.at.generation), generation + 1)
        vacant = STATE.vacant | (generation + 1) << LIMIT.reason_shift & M32
        memory.compare_exchange(segment.word(peer, RECORD.at.state), state, vacant)
        segment.ring_all(peer)  # [segment.vacate_state]
        self.begin(position)

    def close(self) -> None:
        """[pipe.close]; a second close does nothing."""
        if not self.closed:
            self.closed = True
            closed = self.word - STATE.attached + STATE.closed  # [segment.state_reason]
            self.segment.change_state(self.endpoint, lambda state: state == self.word, closed)

    def refuse_closed(self) -> None:
        if self.closed:
            raise Fault("pipe.closed")

    def refuse(self) -> None:
        """The rows of [pipe.first_answer] that need no look at the memory."""
        self.refuse_closed()
        if self.fault:
            raise Fault(self.fault)

    def gone(self):
        """The own state, then the peer's: the error to report, or None."""
        own = self.segment.state(self.endpoint)
        low = own & LIMIT.state_mask
        if low == STATE.closed:
            return Fault("pipe.closed")
        if own != self.word:  # [segment.own_state]
            return Fault("pipe.failed", reason_of(own) if low == STATE.failed else "none")
        if self.peer_state is None:
            state = self.segment.state(self.peer)
            if not is_final(state):
                return None
            self.peer_state = state  # [segment.state_invalid]: kept, and never loaded again.
        low = self.peer_state & LIMIT.state_mask
        if low == STATE.closed:
            return Fault("peer.closed")
        failed = low == STATE.failed
        return Fault("peer.failed", reason_of(self.peer_state) if failed else "segment.state")

    def fail(self, code: str) -> Fault:
        """[pipe.fault]: kept for every later call."""
        self.fault = code
        self.segment.fail(self.peer, code)
        return Fault(code)

    def load_cursor(self, offset: int) -> int:
        cursor = self.memory.load(self.control + offset)
        if cursor % LIMIT.frame_align != 0:
            raise self.fail("ring.cursor")
        return cursor

    def store_cursor(self, offset: int, cursor: int, wants: int) -> None:
        """[wait.store_order], [wait.exchange]: the cursor first, then its reader's request."""
        self.memory.store(self.control + offset, cursor)
        request = self.memory.load(self.control + wants)
        if request and reached(cursor, request & ~LIMIT.wants_armed):
            if self.memory.exchange(self.control + wants, 0) != 0:
                self.segment.ring(self.peer, self.endpoint)


def nap(deadline: float) -> None:
    """[wait.poll]: nobody sleeps on a bell here, and so nobody asks for a ring in `wants`."""
    time.sleep(max(0, min(deadline - time.monotonic(), LIMIT.wait_poll_ms / 2000)))


class Reader(Pipe):
    """Takes messages of up to `limit` bytes; `calls` says whether calls are offered as well."""

    peers_wants = CONTROL.at.writer_wants

    def __init__(self, memory: Memory, endpoint=1, channel=None, limit=4096, calls=False):
        super().__init__(memory, "reader", endpoint, channel)
        self.limit, self.kinds = limit, MESSAGES if calls else (KIND.data,)

    def begin(self, position: int) -> None:
        super().begin(position)
        self.first = None  # The header of the first frame of the message in progress.
        self.parts = None  # Its parts so far; None when it was dropped, and that was reported.
        self.total = None  # What its parts add up to; None when that is not compared.
        self.got = 0  # The bytes that have come of them.

    def read(self, timeout: float = 0):
        """A Message, ENDED, or None when nothing came. A lost message is a Fault message.*"""
        deadline = time.monotonic() + timeout  # [wait.deadline]
        self.refuse()
        if self.ended:  # [pipe.end_once]
            return ENDED
        while True:
            # [ring.one_load]: what was known, one load, and what that showed.
            got = self.take() or self.look() or self.take_gone()
            if got or time.monotonic() >= deadline:
                return got
            nap(deadline)

    def look(self):
        self.load_tail()
        return self.take()

    def load_tail(self) -> None:
        tail = self.load_cursor(CONTROL.at.tail)
        known, now = (self.tail - self.head) & M32, (tail - self.head) & M32
        if not known <= now <= self.capacity:  # [ring.cursor]
            raise self.fail("ring.cursor")
        self.tail = tail

    def has_all(self) -> bool:
        """[segment.vacate_read]: up to an `end`, a fault, or a `tail` loaded now."""
        if not self.ended and not self.fault:
            self.load_tail()
        return bool(self.ended or self.fault) or self.head == self.tail

    def position(self) -> int:
        return self.head

    def take_gone(self):
        """[pipe.look_again], [pipe.drain]: what was published comes before who has gone."""
        gone = self.gone()
        if not gone:
            return None
        got = self.look()
        if got:
            return got
        self.parts = None  # [pipe.keep_parts]
        raise gone

    def take(self):
        """Goes through what is known, up to the next thing that the caller is told."""
        before, got = self.head, None
        try:
            while self.head != self.tail and not got:
                got = self.take_frame()
        finally:
            # [ring.release], [ring.release_all]: all that was read, by one store. Not with a
            # fault, for then nothing in this channel is stored any more: [ring.fault].
            if self.head != before and not self.fault:
                self.store_cursor(CONTROL.at.head, self.head, CONTROL.at.writer_wants)
        return got

    def take_frame(self):
        at = self.area + self.head % self.capacity
        frame = HEADER.read(self.memory, at)
        plain = self.check(frame, at + HEADER.size)
        self.head = (self.head + extent_of(frame.size)) & M32
        if frame.kind == KIND.end:
            return self.take_end()
        if frame.kind in MESSAGES:
            return self.take_message(plain, at + HEADER.size + frame.size - plain.size)
        return None  # [frame.skip]

    def check(self, frame, at: int):
        """[frame.check]: every check of the table, in its order, on a copy of the header.

        `at` is where the payload begins. Returns the header as it would be without an extension.
        """
        kind, extent = frame.kind, extent_of(frame.size)
        message, extended = kind in MESSAGES, frame.flags & FLAG.extended
        flags = frame.flags & ~FLAG.extended
        to_end = self.capacity - self.head % self.capacity
        first, whole = message and flags & FLAG.first, flags == WHOLE
        most = to_end if kind == KIND.pad else min(to_end, self.capacity // 2)
        if not (1 <= kind <= KIND.pad or kind >= LIMIT.frame_kind_extension_min):
            raise self.fail("frame.kind")
        if kind <= KIND.pad and frame.reserved:
            raise self.fail("frame.reserved")
        if kind in (KIND.pad, KIND.end) and frame.flags:
            raise self.fail("frame.flags")
        if message and flags not in (0, FLAG.first, FLAG.last, WHOLE, CANCELLED):
            raise self.fail("frame.flags")
        if message and extended and flags == CANCELLED:
            raise self.fail("frame.flags")
        if message and frame.codec == BATCH and not whole:
            raise self.fail("frame.flags")
        if extent > (self.tail - self.head) & M32 or extent > most:
            raise self.fail("frame.size")
        if kind == KIND.pad and extent != to_end:
            raise self.fail("frame.pad")
        if kind == KIND.end and frame.size != 0:
            raise self.fail("frame.size")
        if not message:
            return frame
        if extended:  # [frame.skip_extension]: skipped, whatever its kind.
            own = EXTENSION.read(self.memory, at).size if frame.size >= EXTENSION.size else 0
            if not EXTENSION.size <= own <= frame.size or own % EXTENSION.size:
                raise self.fail("frame.extension")
            frame, at = frame._replace(size=frame.size - own, flags=flags), at + own
        cancel = flags == CANCELLED
        least = 0 if whole or cancel else PREAMBLE.size if first else 1
        if frame.size < least or (cancel and frame.size != 0):
            raise self.fail("frame.size")
        if bool(first) != (self.first is None):
            raise self.fail("frame.sequence")
        if not first and identity(frame) != identity(self.first):
            raise self.fail("frame.sequence")
        if first and not whole:
            preamble = PREAMBLE.read(self.memory, at)
            if any(preamble.reserved):
                raise self.fail("frame.reserved")
            self.total, self.got = preamble.total, -PREAMBLE.size
            if self.total == TOTAL_UNKNOWN:
                self.total = None
        self.got += frame.size
        if whole or self.total is None:  # [frame.check_total]
            return frame
        complete = flags == FLAG.last
        if self.got > self.total or (complete and self.got != self.total):
            raise self.fail("frame.total")
        return frame

    def take_message(self, frame, at: int):
        """The message that this frame completes, if it does."""
        first, whole, end = frame.flags & FLAG.first, frame.flags == WHOLE, at + frame.size
        if first:
            # [pipe.unknown_kind], [pipe.limit]: at the first frame, and the kind before the size.
            size = frame.size if whole else self.got if self.total is None else self.total
            lost = "message.kind" if frame.kind not in self.kinds else "message.size"
            if frame.kind not in self.kinds or size > self.limit:
                self.first, self.parts, self.total = None if whole else frame, None, None
                raise Fault(lost)
            self.first, self.parts = frame, []
            at += 0 if whole else PREAMBLE.size
        elif self.parts is not None and self.total is None and self.got > self.limit:
            self.parts = None  # [pipe.limit_unknown]
            self.first = None if frame.flags & FLAG.last else self.first
            raise Fault("message.size")
        if self.parts is not None:
            self.parts.append(bytes(self.memory.view[at:end]))
        if not frame.flags & FLAG.last:
            return None
        parts, self.first, self.parts = self.parts, None, None
        if parts is None:  # [pipe.report_once]
            return None
        if frame.flags & FLAG.cancel:
            raise Fault("message.cancelled")
        return Message(frame.kind, frame.codec, frame.tag, b"".join(parts))

    def take_end(self):
        self.ended = True  # [frame.after_end]
        if self.first and self.parts is not None:
            raise Fault("message.truncated")
        return ENDED


class Writer(Pipe):
    """Writes messages whole where they fit half of the ring, and else in quarters of it."""

    peers_wants = CONTROL.at.reader_wants

    def __init__(self, memory: Memory, endpoint=0, channel=None):
        super().__init__(memory, "writer", endpoint, channel)

    def begin(self, position: int) -> None:
        super().begin(position)
        self.published = position
        self.owed = None  # The message of which a cancel is owed.

    def has_all(self) -> bool:
        return True  # A reader publishes nothing.

    def position(self) -> int:
        return self.published

    def write(self, message: Message, timeout=None) -> bool:
        """False when there is no room now; with a timeout, waits for it, up to wait.timeout."""
        deadline = None if timeout is None else time.monotonic() + timeout
        size, half = len(message.payload), self.capacity // 2 - HEADER.size
        if message.kind not in MESSAGES:
            raise Mistake(f"Cannot write message of kind {message.kind}")
        if message.codec == BATCH and size > half:  # [frame.batch_whole]
            raise Mistake(f"Cannot write batch of {size} bytes: more than one frame")
        if timeout is None and size > max(half, self.capacity - 128):  # [pipe.try_never]
            raise Mistake(f"Cannot write {size} bytes at once: too large")
        self.refuse()
        if self.ended:
            raise Fault("pipe.ended")
        gone = self.gone()
        if gone:  # [pipe.peer_gone]
            raise gone
        if self.owed:  # [pipe.owed]
            if not self.place([(CANCELLED, b"")], self.owed, deadline):
                return False
            self.owed = None
        return self.place(self.cut(message.payload), message, deadline)

    def cut(self, payload: bytes) -> list:
        """The frames of a message from here on, as (flags, payload).

        Quarters of the ring, and up to the end of the area where that is nearer: so that
        capacity - 128 bytes have room in an empty ring at every position ([pipe.try_size]).
        """
        size, quarter = len(payload), self.capacity // 4
        if HEADER.size + size <= self.capacity // 2:
            return [(WHOLE, payload)]
        # [frame.preamble], [frame.part]
        body, parts, position = size.to_bytes(8, "little") + bytes(8) + payload, [], self.tail
        while body:
            to_end = self.capacity - position % self.capacity
            most = (to_end if 2 * HEADER.size <= to_end < quarter else quarter) - HEADER.size
            extent = extent_of(len(body[:most]))
            position += self.pad(position, extent) + extent
            parts.append(body[:most])
            body = body[most:]
        middle = [(0, part) for part in parts[1:-1]]
        return [(FLAG.first, parts[0]), *middle, (FLAG.last, parts[-1])]

    def place(self, frames: list, message: Message, deadline) -> bool:
        if deadline is None:  # [pipe.try_write]: all frames or none.
            extents = [extent_of(len(part)) for _, part in frames]
            if not self.fits(extents):
                self.look()
            if not self.fits(extents):
                return False
        late = False
        for index, (flags, part) in enumerate(frames):
            while not self.fits([extent_of(len(part))]):
                self.publish()  # [ring.publish_all]
                if late:
                    self.owed = message if index > 0 else self.owed
                    raise Fault("wait.timeout")
                self.look()  # [ring.one_load]: the deadline is looked at after each load.
                late = time.monotonic() >= deadline
                if not self.fits([extent_of(len(part))]):
                    gone = self.gone()
                    if gone:
                        raise gone
                    nap(deadline)
            self.finish(flags, part, message)
        self.publish()
        return True

    def fits(self, extents: list) -> bool:
        """[ring.room]: whether such frames, and the pads between them, have room as is known."""
        end = self.tail
        for extent in extents:
            end += self.pad(end, extent) + extent
        return (end - self.head) & M32 <= self.capacity - LIMIT.ring_reserve

    def look(self) -> None:
        head = self.load_cursor(CONTROL.at.head)
        used, known = (self.published - head) & M32, (self.published - self.head) & M32
        if used > min(self.capacity, known):  # [ring.cursor]
            raise self.fail("ring.cursor")
        self.head = head

    def pad(self, position: int, extent: int) -> int:
        to_end = self.capacity - position % self.capacity
        return to_end if extent > to_end else 0

    def finish(self, flags: int, part: bytes, message: Message) -> None:
        extent = extent_of(len(part))
        pad = self.pad(self.tail, extent)
        if pad:  # [ring.pad], [frame.pad]
            self.put(pad - HEADER.size, KIND.pad, 0, 0, 0)
        at = self.area + self.tail % self.capacity + HEADER.size
        self.memory.view[at : at + len(part)] = part
        self.put(len(part), message.kind, flags, message.codec, message.tag)

    def put(self, size: int, kind: int, flags: int, codec: int, tag: int) -> None:
        """[frame.header]: every field; no time is measured."""
        at = self.area + self.tail % self.capacity
        HEADER.write(self.memory, at, size, kind, flags, codec, 0, tag, 0)
        self.tail = (self.tail + extent_of(size)) & M32

    def publish(self) -> None:
        """[ring.publish], and only what is new: [ring.tail_owner]."""
        if self.tail != self.published:
            self.published = self.tail
            self.store_cursor(CONTROL.at.tail, self.tail, CONTROL.at.reader_wants)

    def end(self) -> None:
        """[pipe.end]: without waiting; a second end does nothing."""
        if self.ended:
            return
        self.refuse()
        if not self.gone():  # [pipe.end_closed] otherwise
            if self.owed and not self.fits([HEADER.size]):
                self.look()
            if self.owed and self.fits([HEADER.size]):  # [pipe.owed_end]
                self.finish(CANCELLED, b"", self.owed)
            self.put(0, KIND.end, 0, 0, 0)  # [frame.end], [pipe.end_now]
            self.publish()
        self.ended = True
