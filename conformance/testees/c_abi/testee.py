"""The Zig implementation through its interface for C, as a testee on standard input and output.

    testee.py [LIBRARY]

LIBRARY is what `zig build lib` made: zig-out/lib/libmillrace.so. Needs Python 3.10 or later, and
nothing else.
"""

import sys

sys.dont_write_bytecode = True  # it runs from the checkout, which stays as it is

import json
import pathlib

from ends import FanoutEnd, Full, MailboxEnd, MappedFile, Memory, PropertyEnd, SegmentEnd
from library import Library, PortError, Refused
from streams import StreamEnd
from tasks import Task

HELLO = {
    "protocol": 1,
    "name": "Millrace for C",
    "version": "0.2.0",
    "language": "C, by way of Python",
    "levels": ["static", "scripted", "live", "mailbox"],
    "nouns": ["segment", "wait", "frame", "ring", "mailbox", "codec", "pipe", "port",
              "call", "property", "fanout", "stream"],
    "carriers": ["bytes", "file", "mapped", "stream"],
    "waits": ["block", "poll"],
    "streams": {"transports": ["unix", "tcp", "fifo"], "waits": ["block", "poll"]},
    # It moves bytes, of any codec; what is finished it publishes at once; and calls are numbered by
    # the library.
    "lacks": ["values", "unknown_codec", "finishing", "first_id"],
    "offers": ["read_many", "ways", "inbox", "lossy", "close_ms"],
}

OK = {"outcome": "ok"}
CALLS = (
    "read", "peek", "release", "write", "claim", "finish", "abandon", "publish", "end", "resume",
    "vacate", "close", "run", "get", "clear", "changed", "leave", "join",
)
CALLING = ("call", "notify", "give_up", "outcome", "item", "told")


ENDS = {"property": PropertyEnd, "fanout": FanoutEnd}


class Handle:
    """What a number stands for."""

    def __init__(self, memory: Memory | None) -> None:
        self.memory, self.end = memory, None


class Testee:
    """Answers commands, one at a time."""

    def __init__(self, lib: Library) -> None:
        self.lib, self.handles = lib, {}

    def answer(self, command: dict) -> dict:
        """Raises what is neither of the port nor of the kit: the testee dies of it."""
        try:
            return self.perform(command)
        except Refused:
            return {"result": {"outcome": "refused"}}
        except Full:
            return {"result": {"outcome": "full"}}
        except PortError as error:
            return {"error": error.told()}

    def perform(self, command: dict) -> dict:
        name = command["command"]
        if name == "start":
            return {"result": HELLO}
        if name == "open":
            return self.open(command)
        if name not in (*CALLS, *CALLING, "patch", "dump", "drop"):
            return {"decline": "unknown command"}
        handle = self.handles[command["handle"]]
        if name == "drop":
            del self.handles[command["handle"]]
            if handle.end is not None:
                handle.end.drop()
        elif name == "patch":
            handle.memory.store(command["bytes"])
        elif name == "dump":
            data = handle.memory.dump(command.get("from", 0), command.get("size"))
            return {"result": {"hex": data.hex()}}
        elif name in CALLING:
            own = getattr(handle.end, "calling", None)
            if own is None:
                return {"decline": "no calls here"}
            return {"result": getattr(own, name)(command)}
        else:
            return self.call(handle.end, name, command)
        return {"result": OK}

    def open(self, command: dict) -> dict:
        carrier, is_mailbox = command["carrier"], command["role"].startswith("mailbox")
        if carrier == "shared":
            return {"decline": "no memory is handed over to a process"}
        handle = Handle(None)
        # Whatever comes of it: the kit looks at the memory.
        self.handles[command["handle"]] = handle
        if carrier == "bytes":
            image = command["memory"]
            handle.memory = Memory(image["size"], command.get("memory_offset", 0))
            handle.memory.store(image["bytes"])
        elif carrier == "mapped":
            handle.memory = MappedFile(command["path"])
        if is_mailbox:
            place = handle.memory or MappedFile(command["path"])
            handle.end = MailboxEnd(self.lib, command, place)
        else:
            usual = StreamEnd if carrier == "stream" else SegmentEnd
            opened = ENDS.get(command["role"].partition("_")[0], usual)
            handle.end = opened(self.lib, command, handle.memory)
        return {"result": OK}

    def call(self, end: SegmentEnd | MailboxEnd | None, name: str, command: dict) -> dict:
        if end is None or not end.can(name) or not hasattr(end, name) and name != "run":
            return {"decline": "not for this role"}
        timeout_ms = command.get("timeout_ms")
        if command.get("wait") == "poll":
            timeout_ms = None if name == "write" else 0
        match name:
            case "read" if "count" in command:
                return {"result": read_many(end, command["count"], timeout_ms)}
            case "read":
                return {"result": told(end.read(timeout_ms))}
            case "get":
                return {"result": told(end.get())}
            case "changed":
                end.changed(timeout_ms)
            case "peek":
                return {"result": told(end.peek())}
            case "write":
                end.write(command["message"], payload_of(command), timeout_ms)
            case "claim":
                if command["message"]["kind"] != 1:
                    return {"decline": "claims are of data"}
                end.claim(command["size"])
                if command["abandon"]:
                    end.abandon()
                elif not command.get("open", False):
                    end.finish(command["message"], payload_of(command))
            case "finish":
                end.finish(command["message"], payload_of(command))
            case "resume":
                end.resume(timeout_ms)
            case "run":
                task = Task(end, command["task"], timeout_ms)
                why = task.unfit()
                return {"result": task.run()} if why is None else {"decline": why}
            case _:
                getattr(end, name)()
        return {"result": OK}


def read_many(end: SegmentEnd | MailboxEnd, count: int, timeout_ms: int) -> dict:
    """What so many reads give, and what has ended them before."""
    items = []
    while len(items) < count:
        try:
            got = told(end.read(timeout_ms))
        except PortError as error:
            if error.code.startswith(("message.", "call.")):
                counted = {} if error.count is None else {"count": error.count}
                items.append({"report": error.code, **counted})
                continue
            reason = {} if error.reason is None else {"reason": error.reason}
            return {"items": items, "end": error.code, **reason}
        if "end" in got:
            return {"items": items, "end": got["end"]}
        items.append(got["item"])
    return {"items": items}


def payload_of(command: dict) -> bytes:
    return bytes.fromhex(command["message"]["hex"])


def told(got: dict) -> dict:
    if "payload" not in got.get("item", {}):
        return got
    item = dict(got["item"])
    payload = item.pop("payload")
    return {**got, "item": {**item, "hex": payload.hex()}}


def main() -> None:
    root = pathlib.Path(__file__).resolve().parents[3]
    usual = root / "zig-out" / "lib" / "libmillrace.so"
    testee = Testee(Library(sys.argv[1] if len(sys.argv) > 1 else str(usual)))
    for line in sys.stdin:
        command = json.loads(line)
        reply = {"id": command["id"], **testee.answer(command)}
        sys.stdout.write(json.dumps(reply, separators=(",", ":")) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
