"""The chapter segment: format and check a segment, take and leave an endpoint."""

from layout import LIMIT, M32, REASON, REASON_NAME, Fault, Memory, Mistake, Structure, table

HEADER, RECORD, CHANNEL, CONTROL = (
    Structure(name)
    for name in ("segment_header", "endpoint_record", "channel_descriptor", "ring_control")
)
READY, STATE = table("enums", "segment_ready"), table("enums", "endpoint_state")
KIND = table("enums", "channel_kind")
MAGIC = b"MILLRACE"


def round_up(size: int) -> int:
    return -(-size // LIMIT.segment_align) * LIMIT.segment_align


def is_capacity(size: int) -> bool:
    """[ring.capacity]"""
    in_range = LIMIT.ring_capacity_min <= size <= LIMIT.ring_capacity_max
    return in_range and size & (size - 1) == 0


def check_memory(memory: Memory, size: int) -> None:
    if memory.address % LIMIT.segment_align != 0 or memory.size < size:
        raise Fault("segment.size")


def place(endpoints: int, channels: list) -> tuple:
    """The descriptors of rings, as (writer, reader, capacity, label, start) say, and the size."""
    in_range = 1 <= endpoints <= LIMIT.endpoint_count_max
    if not in_range or len(channels) > LIMIT.channel_count_max:
        raise Mistake(f"Cannot place {endpoints} endpoints, {len(channels)} channels")
    offset = tables_end(endpoints, len(channels))
    rows = []
    for writer, reader, capacity, label, start in channels:
        ends = 0 <= writer < endpoints and 0 <= reader < endpoints and writer != reader
        words = 0 <= label <= M32 and 0 <= start <= M32 and start % LIMIT.frame_align == 0
        if not (ends and words and is_capacity(capacity)):
            raise Mistake(f"Cannot place ring of {capacity} bytes from {writer} to {reader}")
        control = round_up(offset)
        area = control + CONTROL.size
        offset = round_up(area + capacity)
        rows.append(CHANNEL.fields(
            KIND.ring, writer, reader, control, CONTROL.size, area, capacity, label, start, b""
        ))
    return rows, round_up(offset)


def tables_end(endpoints: int, channels: int) -> int:
    return LIMIT.endpoint_table_offset + endpoints * RECORD.size + channels * CHANNEL.size


def create(memory: Memory, endpoints: int, channels: list, sole_owner: bool = False) -> "Segment":
    """Formats blank memory, or finds that its other owner has done so; then attaches."""
    rows, size = place(endpoints, channels)
    check_memory(memory, size)  # [segment.claim_checked], [segment.size_limit]
    if size > LIMIT.segment_size_max:
        raise Fault("segment.size")
    if sole_owner:
        memory.store(HEADER.at.ready, READY.formatting)
    # [segment.claim]
    if sole_owner or memory.compare_exchange(HEADER.at.ready, READY.blank, READY.formatting):
        write(memory, endpoints, rows, size)
    segment = Segment(memory)
    # [segment.same_geometry]
    if segment.endpoints != endpoints or geometry(segment.channels) != geometry(rows):
        raise Fault("segment.geometry")
    return segment


def geometry(rows: list) -> list:
    return [row._replace(control_offset=0, data_offset=0, reserved=b"") for row in rows]


def write(memory: Memory, endpoints: int, rows: list, size: int) -> None:
    """[segment.write]; the byte areas and the gaps between areas stay as they are."""
    first = rows[0].control_offset if rows else size
    for start, end in [(12, first)] + [(r.control_offset, r.data_offset) for r in rows]:
        memory.view[start:end] = bytes(end - start)
    HEADER.write(memory, 0, MAGIC, READY.formatting, 1, 0, size, 0, 0, endpoints, len(rows), b"")
    for index, row in enumerate(rows):
        CHANNEL.write(memory, tables_end(endpoints, index), *row)
        for cursor in (CONTROL.at.tail, CONTROL.at.head):  # [ring.start]
            memory.store(row.control_offset + cursor, row.start)
    memory.store(HEADER.at.ready, READY.ready)  # [segment.publish]


class Segment:
    """A checked segment. Its geometry is private from here on: [segment.private]."""

    def __init__(self, memory: Memory):
        """[segment.check]: every check of the table, in its order."""
        check_memory(memory, LIMIT.segment_size_min)
        ready = memory.load(HEADER.at.ready)
        if ready not in vars(READY).values():
            raise Fault("segment.magic")
        if ready != READY.ready:  # [segment.await]; nobody waits here.
            raise Fault("segment.unready")
        header = HEADER.read(memory, 0)
        if header.magic != MAGIC:
            raise Fault("segment.magic")
        if header.version_major != 1:
            raise Fault("segment.version")
        if header.required_features != 0:
            raise Fault("segment.feature")
        if header.size % LIMIT.segment_align != 0 or header.size > memory.size:
            raise Fault("segment.size")
        counts = header.endpoint_count, header.channel_count
        in_range = (
            1 <= counts[0] <= LIMIT.endpoint_count_max and counts[1] <= LIMIT.channel_count_max
        )
        if not in_range or tables_end(*counts) > header.size:
            raise Fault("segment.table")
        self.memory, self.endpoints = memory, counts[0]
        self.channels = [
            CHANNEL.read(memory, tables_end(counts[0], index)) for index in range(counts[1])
        ]
        areas = []
        for row in self.channels:
            if row.kind == KIND.ring:  # [segment.unknown_kind]: others may have any ends.
                ends = max(row.writer, row.reader) < self.endpoints and row.writer != row.reader
                aligned = row.start % LIMIT.frame_align == 0
                large = row.control_size >= CONTROL.size and is_capacity(row.data_size)
                if not (ends and aligned and large):
                    raise Fault("segment.channel")
            areas.append((row.control_offset, row.control_offset + row.control_size))
            areas.append((row.data_offset, row.data_offset + row.data_size))
        for start, end in areas:
            if start % LIMIT.segment_align or start < tables_end(*counts) or end > header.size:
                raise Fault("segment.channel")
        taken = sorted((start, end) for start, end in areas if start != end)
        if any(end > start for (_, end), (start, _) in zip(taken, taken[1:])):
            raise Fault("segment.channel")

    def word(self, endpoint: int, field: int) -> int:
        return LIMIT.endpoint_table_offset + endpoint * RECORD.size + field

    def state(self, endpoint: int) -> int:
        return self.memory.load(self.word(endpoint, RECORD.at.state))

    def check_vacant(self, endpoint: int) -> int:
        """The last check of the table; the state, whose upper bits stay as they are."""
        state = self.state(endpoint) if endpoint < self.endpoints else STATE.attached
        if state & LIMIT.state_mask != STATE.vacant:  # [segment.state_low]
            raise Fault("segment.endpoint")
        return state

    def take(self, endpoint: int) -> int:
        """[segment.attach]; the word by which it is attached, as [segment.again] says."""
        state = self.check_vacant(endpoint)
        at, mine = self.word(endpoint, RECORD.at.state), state | STATE.attached
        taken = self.memory.compare_exchange(at, state, mine)
        if taken:
            # [wait.wakes] Nothing here can wake a sleeper, so its peers poll.
            self.memory.store(self.word(endpoint, RECORD.at.wakes), 0)
            self.memory.store(self.word(endpoint, RECORD.at.features), 0)  # [segment.features]
        self.ring_all(endpoint)
        if not taken:
            raise Fault("segment.endpoint")
        return mine

    def change_state(self, endpoint: int, allowed, new: int) -> None:
        """[segment.state_change]; rings in any case, as [segment.state_ring] asks."""
        at = self.word(endpoint, RECORD.at.state)
        for _ in range(LIMIT.state_tries):
            state = self.memory.load(at)
            if not allowed(state) or self.memory.compare_exchange(at, state, new):
                break
        self.ring_all(endpoint)

    def fail(self, endpoint: int, code: str) -> None:
        """[ring.fault], [segment.state_reason]"""
        failed = STATE.failed | REASON[code] << LIMIT.reason_shift
        self.change_state(endpoint, lambda state: not is_final(state), failed)

    def ring_all(self, endpoint: int) -> None:
        """[segment.state_ring]: rings an endpoint and all its peers."""
        bells = {endpoint}
        for row in self.channels:  # [segment.peers]
            if endpoint in (row.writer, row.reader):
                bells |= {end for end in (row.writer, row.reader) if end < self.endpoints}
        for bell in bells:
            self.ring(bell, endpoint)

    def ring(self, endpoint: int, who: int) -> None:
        """[wait.ring]: what sleeps on the bell looks at it again; there is nothing to notify."""
        rung = self.word(endpoint, RECORD.at.rung) + who // 32 * 4
        self.memory.store(rung, self.memory.load(rung) | 1 << who % 32)  # [wait.rung]
        self.memory.add(self.word(endpoint, RECORD.at.bell), 1)


def is_final(state: int) -> bool:
    """[segment.state_low]; what no endpoint may store counts as final."""
    return state & LIMIT.state_mask not in (STATE.vacant, STATE.attached)


def reason_of(state: int):
    """[pipe.failed_reason]: the code, the number where it has no name, or none."""
    number = state >> LIMIT.reason_shift
    return REASON_NAME.get(number, number) if number else "none"
