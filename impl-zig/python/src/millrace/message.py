"""Messages, and how values become payloads [spec/codec.md]."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any


class Codec(enum.IntEnum):
    """How a payload is written; numbers from 128 to 255 are the application's."""

    BYTES = 0
    TEXT = 1
    JSON = 2
    JSON_BATCH = 3
    VALUES = 4
    CBOR = 5


@dataclass(frozen=True)
class Message:
    """A message that was read: a copy."""

    payload: bytes
    codec: int
    tag: int

    @property
    def value(self) -> Any:
        """Text, what the JSON says, or the bytes. `ValueError` where they are not what they say."""
        return decode(self.payload, self.codec)


def encode(value: Any, codec: int | None) -> tuple[bytes, int]:
    """Bytes as they are, text in UTF-8, and anything else as JSON; with a codec, bytes alone."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), Codec.BYTES if codec is None else codec
    if codec is not None:
        raise TypeError("a codec goes with bytes")
    if isinstance(value, str):
        return value.encode(), Codec.TEXT
    # NaN and infinities are no JSON.
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.encode(), Codec.JSON


def decode(payload: bytes, codec: int) -> Any:
    if codec == Codec.TEXT:
        return payload.decode()
    if codec == Codec.JSON:
        return json.loads(payload)
    return payload
