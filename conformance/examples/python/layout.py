"""The numbers of spec/layout.json by their names, and the memory that they describe."""

import json
import struct
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

LAYOUT = json.loads((Path(__file__).resolve().parents[3] / "spec" / "layout.json").read_text())
M32 = 0xFFFFFFFF  # Cursors and bells wrap at 2^32.


def named(rows: list, column: str) -> SimpleNamespace:
    return SimpleNamespace(**{row["name"]: row[column] for row in rows})


def table(part: str, name: str) -> SimpleNamespace:
    """The values of an enum or a set of flags, such as `table("enums", "frame_kind").pad`."""
    return named(next(t for t in LAYOUT[part] if t["name"] == name)["values"], "value")


LETTERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}


def letter(type: str) -> str:
    """A field as `struct` has it; an array, such as u32[8], becomes bytes."""
    element, _, count = type.rstrip("]").partition("[")
    return f"{int(count) * int(element[1:]) // 8}s" if count else LETTERS[element]


class Structure:
    """One structure: `size` in bytes, the offsets of its fields in `at`, all fields by `read`."""

    def __init__(self, name: str):
        row = next(s for s in LAYOUT["structures"] if s["name"] == name)
        types = [field["type"] for field in row["fields"]]
        self.size = row["size"]
        self.at = named(row["fields"], "offset")
        # [segment.little_endian]
        self.format = struct.Struct("<" + "".join(map(letter, types)))
        self.fields = namedtuple(name, [field["name"] for field in row["fields"]])

    def read(self, memory: "Memory", offset: int):
        return self.fields._make(self.format.unpack_from(memory.view, offset))

    def write(self, memory: "Memory", offset: int, *values):
        self.format.pack_into(memory.view, offset, *values)


LIMIT = named(LAYOUT["limits"], "value")
REASON = {row["name"]: row["value"] for row in LAYOUT["reasons"]}
REASON_NAME = {number: name for name, number in REASON.items()}


class Fault(Exception):
    """What went wrong, by its reason code; `reason` stands beside pipe.failed and peer.failed."""

    def __init__(self, code: str, reason=None):
        super().__init__(code)
        self.code, self.reason = code, reason


class Mistake(ValueError):
    """The caller asked for what it must not; nothing was stored (README, The caller's mistakes)."""


class Memory:
    """Shared bytes whose words are read and changed.

    Python's standard library has no atomic operation on shared memory. What stands here works
    with a peer that is played, and not with one that runs at the same time (README, Memory order).

    `address` says how far after a multiple of 128 the memory begins; that of `mmap` has 0.
    """

    def __init__(self, view: memoryview, address: int = 0):
        self.view, self.address, self.size = view, address, len(view)

    def load(self, offset: int) -> int:
        return int.from_bytes(self.view[offset : offset + 4], "little")

    def store(self, offset: int, value: int) -> None:
        self.view[offset : offset + 4] = (value & M32).to_bytes(4, "little")

    def exchange(self, offset: int, value: int) -> int:
        old = self.load(offset)
        self.store(offset, value)
        return old

    def add(self, offset: int, value: int) -> None:
        self.store(offset, self.load(offset) + value)

    def compare_exchange(self, offset: int, old: int, new: int) -> bool:
        same = self.load(offset) == old
        if same:
            self.store(offset, new)
        return same
