"""What can go wrong, each with the code of the specification."""

from __future__ import annotations

import errno
from typing import Any

from .library import INVALID, ffi, lib


class MillraceError(Exception):
    """Anything that the library reports. `code` is that of the specification: `"peer.lost"`."""

    def __init__(self, code: str, number: int, reason: str | int | None = None) -> None:
        text = ffi.string(lib.millrace_reason_text(number)).decode()
        because = "" if reason is None else f" Reason: {reason}."
        super().__init__(f"{code}: {text}{because}")
        self.code = code
        self.number = number
        self.reason = reason
        """The reason of `pipe.failed` or `peer.failed`: a code, or a number without a name."""


class ClosedError(MillraceError):
    """This end is closed, failed, ended, or was attached before a `fork`: `pipe.*`."""


class PeerError(MillraceError):
    """The other end is gone: `peer.*`."""


class SegmentError(MillraceError):
    """A segment, its file or its endpoint is not what was asked for: `segment.*`."""


class SegmentMissing(SegmentError, FileNotFoundError):
    """There is no file at the path: `segment.missing`."""

    def __init__(self, code: str, number: int, reason: str | int | None = None) -> None:
        super().__init__(code, number, reason)
        self.errno = errno.ENOENT


class CorruptError(MillraceError):
    """The other side broke the layout: `ring.*`, `frame.*`, `property.*` and so on."""


class MessageError(MillraceError):
    """One message was lost; the next call goes on: `message.*`."""


class CallError(MillraceError):
    """A call could not be made, or answered: `call.*`, such as `call.method` for a wrong name."""


class CallThrown(CallError):
    """The method that was called has failed; a method that raises one says more than others do."""

    def __init__(self, name: str, text: str, data: Any = None) -> None:
        super().__init__("call.thrown", lib.MILLRACE_REASON_CALL_THROWN)
        self.args = (f"{name}: {text}",)
        self.name = name
        self.text = text
        self.data = data
        """What the method gave beside it: bytes, text or what the JSON says."""


class WaitTimeout(MillraceError, TimeoutError):
    """The time was over before the call could be done: `wait.timeout`."""

    def __init__(self) -> None:
        super().__init__("wait.timeout", lib.MILLRACE_REASON_WAIT_TIMEOUT)


FAMILIES: dict[str, type[MillraceError]] = {
    "pipe": ClosedError,
    "peer": PeerError,
    "segment": SegmentError,
    "segment.missing": SegmentMissing,
    "message": MessageError,
    "call": CallError,
    "wait": MillraceError,
}


# What the system has refused, by the status of the library.
ERRNOS = {
    lib.MILLRACE_NOT_FOUND: errno.ENOENT,
    lib.MILLRACE_ACCESS_DENIED: errno.EACCES,
    lib.MILLRACE_NAME_TOO_LONG: errno.ENAMETOOLONG,
    lib.MILLRACE_NO_SPACE: errno.ENOSPC,
}


def name_of(number: int) -> str:
    return ffi.string(lib.millrace_reason_name(number)).decode()


def check(status: int, port: Any = None) -> int:
    """Returns a status that is none of an error, or raises what it stands for."""
    if status >= 0:
        return status
    text = ffi.string(lib.millrace_status_text(status)).decode()
    if status == INVALID:
        raise ValueError(text)
    if status < INVALID:
        # With a number, it is of the kind that Python has for that.
        raise OSError(ERRNOS[status], text) if status in ERRNOS else OSError(text)
    number = -status
    code = name_of(number)
    reason: str | int | None = None
    if port is not None and code in ("pipe.failed", "peer.failed"):
        behind = lib.millrace_port_reason(port)
        name = name_of(behind)
        reason = None if behind == 0 else behind if name == "unknown" else name
    family = FAMILIES.get(code) or FAMILIES.get(code.partition(".")[0], CorruptError)
    raise family(code, number, reason)
