"""The adapter: reads the kit's commands, a JSON object a line, and answers each with one line.

It adapts and nothing more, as conformance/protocol/README.md asks; a fault of its own ends it.
"""

import json
import sys
from types import SimpleNamespace

from layout import Fault, Memory, Mistake
from mailbox import MailboxReader, MailboxWriter
from pipe import ENDED, Message, Reader, Writer
from segment import Segment, create

ABOUT = {
    "protocol": 1,
    "name": "millrace-python-example",
    "version": "1.0.0",
    "language": "Python",
    "levels": ["static", "scripted", "mailbox"],
    "nouns": ["segment", "wait", "frame", "ring", "mailbox", "codec", "pipe"],
    "roles": ["segment", "reader", "writer", "mailbox_reader", "mailbox_writer"],
    "carriers": ["bytes"],
    "waits": [],
    # It moves bytes and decodes none of them, and lends no memory.
    "lacks": ["values", "lending"],
}
OK = {"outcome": "ok"}
HANDLES = {}


class Decline(Exception):
    pass


def open_(c: dict) -> dict:
    handle = HANDLES[c["handle"]] = SimpleNamespace(end=None)
    size, behind = c["memory"]["size"], c.get("memory_offset", 0)
    handle.memory = Memory(memoryview(bytearray(size)), behind)
    patch(handle, c["memory"]["bytes"])
    if c["kind"] == "create":
        geometry = c["geometry"]
        rings = [
            (r["writer"], r["reader"], r["capacity"], r.get("label", 0), r.get("start", 0))
            for r in geometry["channels"]
        ]
        create(handle.memory, geometry["endpoints"], rings, c.get("sole_owner", False))
    handle.end = attach(handle.memory, c)
    return OK


def attach(memory: Memory, c: dict):
    role, limit = c["role"], c.get("limit", 4096)
    if role == "mailbox_reader":
        return MailboxReader(memory, limit)
    if role == "mailbox_writer":
        return MailboxWriter(memory)
    if c.get("values"):
        raise Decline("values")
    if role == "reader":
        return Reader(memory, c.get("endpoint", 1), c.get("channel"), limit, c.get("calls", False))
    if role == "writer":
        return Writer(memory, c.get("endpoint", 0), c.get("channel"))
    if role == "segment":
        return Segment(memory)
    raise Decline(f"role {role}")


def read(c: dict) -> dict:
    got = HANDLES[c["handle"]].end.read(c["timeout_ms"] / 1000)
    if got is None:
        return {"end": "nothing"}
    if got is ENDED:
        return {"end": "ended"}
    if isinstance(got, list):  # A mailbox has JSON, and nothing beside it.
        return {"item": {"kind": 1, "codec": 2, "tag": 0, "json": got[0]}}
    kind, codec, tag, payload = got
    return {"item": {"kind": kind, "codec": codec, "tag": tag, "hex": payload.hex()}}


def write(c: dict) -> dict:
    end, m = HANDLES[c["handle"]].end, c["message"]
    timeout = c["timeout_ms"] / 1000 if "timeout_ms" in c else None
    if isinstance(end, MailboxWriter):
        end.write(m["json"], timeout)
        return OK
    message = Message(m["kind"], m["codec"], m["tag"], bytes.fromhex(m["hex"]))
    return OK if end.write(message, timeout) else {"outcome": "full"}


def patch(handle: SimpleNamespace, runs: list) -> dict:
    for run in runs:
        stored = bytes.fromhex(run["hex"])
        handle.memory.view[run["offset"] : run["offset"] + len(stored)] = stored
    return OK


def dump(c: dict) -> dict:
    view, start = HANDLES[c["handle"]].memory.view, c.get("from", 0)
    return {"hex": view[start : start + c.get("size", len(view))].hex()}


COMMANDS = {
    "start": lambda c: ABOUT,
    "open": open_,
    "read": read,
    "write": write,
    "publish": lambda c: HANDLES[c["handle"]].end.publish() or OK,
    "end": lambda c: HANDLES[c["handle"]].end.end() or OK,
    "resume": lambda c: HANDLES[c["handle"]].end.resume(c["timeout_ms"] / 1000) or OK,
    "vacate": lambda c: HANDLES[c["handle"]].end.vacate() or OK,
    "close": lambda c: HANDLES[c["handle"]].end.close() or OK,
    "patch": lambda c: patch(HANDLES[c["handle"]], c["bytes"]),
    "dump": dump,
    # Nobody but this program sees the memory, so that an end that is open need not be closed.
    "drop": lambda c: HANDLES.pop(c["handle"]) and OK,
}


def answer(c: dict) -> dict:
    if c["command"] not in COMMANDS:
        return {"decline": "unknown command"}
    try:
        return {"result": COMMANDS[c["command"]](c)}
    except Decline as why:
        return {"decline": str(why)}
    except Mistake:
        return {"result": {"outcome": "refused"}}
    except Fault as fault:
        reason = {} if fault.reason is None else {"reason": fault.reason}
        return {"error": {"code": fault.code, **reason}}


for line in sys.stdin:
    command = json.loads(line)
    print(json.dumps({"id": command["id"], **answer(command)}), flush=True)
