"""The library for C, by cffi without a compiler: `declarations.py` is made of its headers."""

from __future__ import annotations

import pathlib
from typing import Any

import cffi

from .declarations import DECLARATIONS

DONE, NOTHING, END = 1, 0, 2
INVALID = -256
FIRST = NOBODY = 0xFFFF_FFFF
FOR_EVER = -1

ffi: Any = cffi.FFI()
ffi.cdef(DECLARATIONS)
# In the mode of cffi that is used here, another thread runs while a call waits.
lib: Any = ffi.dlopen(str(pathlib.Path(__file__).with_name("libmillrace.so")))


def library_version() -> tuple[int, int]:
    """The version of the layout of segments that the library was built for."""
    version = lib.millrace_version()
    return version >> 16, version & 0xFFFF


def make(size: int) -> Any:
    """Storage for an object: of numbers of 64 bits, because it is aligned to 8 bytes."""
    return ffi.new("uint64_t[]", size // 8 + 1)


def c_text(text: str | bytes) -> bytes:
    """A text as C takes it, which would end at a NUL."""
    whole = text if isinstance(text, bytes) else text.encode()
    if b"\0" in whole:
        raise ValueError("embedded null byte")
    return whole


def milliseconds(timeout: float | None) -> int:
    """Seconds as the library counts them; `None` is for ever."""
    if timeout is None:
        return FOR_EVER
    # Rounded up, so that a short time is not none at all.
    return min(0x7FFF_FFFF, max(0, -int(-timeout * 1000 // 1)))
