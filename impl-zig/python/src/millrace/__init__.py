"""Messages between threads, runtimes and processes through shared memory.

    import millrace

    with millrace.SegmentFile.create("/dev/shm/service", endpoint=0) as file:
        with file.port() as port:
            port.write({"cmd": "run"})
            for message in port:
                print(message.value)

The other side, in whatever language, creates or opens the same file for endpoint 1.
"""

from .call import Calls
from .error import (
    CallError,
    CallThrown,
    ClosedError,
    CorruptError,
    MessageError,
    MillraceError,
    PeerError,
    SegmentError,
    SegmentMissing,
    WaitTimeout,
)
from .library import library_version
from .message import Codec, Message
from .port import Port
from .property import PropertyReader, PropertyValue, PropertyWriter
from .segment import Property, Ring, SegmentFile

__all__ = [
    "CallError",
    "CallThrown",
    "Calls",
    "ClosedError",
    "Codec",
    "CorruptError",
    "Message",
    "MessageError",
    "MillraceError",
    "PeerError",
    "Port",
    "Property",
    "PropertyReader",
    "PropertyValue",
    "PropertyWriter",
    "Ring",
    "SegmentError",
    "SegmentFile",
    "SegmentMissing",
    "WaitTimeout",
    "library_version",
]
