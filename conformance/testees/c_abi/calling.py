"""A port that offers calls: the methods of `conformance/protocol/README.md`, and the commands that
make calls."""

import ctypes
import math
import os
import sys
import traceback
from ctypes import CFUNCTYPE, byref, c_int32, c_size_t, c_void_p

from library import DONE, END, NOTHING, Failure, Library, PortError, Refused, Value
from values import ABSENT, JSON, TEXT, from_command, plain, shown, to_json

INBOX_SIZE = 1 << 16
SERVING_SIZE = 1 << 26
WORD = 0xFFFF_FFFF

ALLOCATE = CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)
HANDLER = CFUNCTYPE(
    c_int32, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_size_t
)

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = c_void_p, [c_size_t]
libc.free.restype, libc.free.argtypes = None, [c_void_p]


@ALLOCATE
def allocate(_context, memory, size):
    if memory is None:
        return libc.malloc(size)
    libc.free(memory)
    return None


class Method(Exception):
    """The status with which a method fails."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Calling:
    """The calls of a port, both ways."""

    def __init__(self, lib: Library, port, command: dict) -> None:
        self.lib, self.port = lib, port
        self.calls, self.result = lib.make("calls"), Value()
        # What was begun, in order: its number, or what has come of it.
        self.made: list[int | dict] = []
        self.takes_items: set[int] = set()
        self.kept, self.held, self.told_count = [], [], 0
        # Of each call of `count` that is not done: the next item, and how many there are.
        self.counting: dict[int, list[int]] = {}
        # For whoever waits in a method, or in the tree of a task.
        self.patience_ms = -1
        lib.check(lib.calls_attach(self.calls, port, allocate, None))
        sizes = (command.get("inbox", INBOX_SIZE), SERVING_SIZE)
        lib.check(lib.calls_set_limits(self.calls, command.get("limit", 1 << 20), *sizes))
        self.handler = HANDLER(self.handle)
        if command.get("methods", True):
            lib.check(lib.serve(self.calls, self.handler, None))

    def leave(self) -> None:
        self.lib.check(self.lib.calls_leave(self.calls))

    def look(self, is_idle: bool) -> None:
        """What a read has brought, beside a message: cancels, room for items, and answers."""
        self.sweep()
        for serving in list(self.counting):
            self.count_on(serving)
        if not is_idle:
            return
        # Nothing is left to be taken in: this tells what was.
        for index, made in enumerate(self.made):
            if isinstance(made, int) and made not in self.takes_items:
                self.outcome({"call": index})

    def sweep(self) -> None:
        """Who was told that it was cancelled is answered by itself, and known no more."""
        gone = [each for each in self.held if self.is_gone(each)]
        self.told_count += len(gone)
        self.held = [each for each in self.held if each not in gone]

    def is_gone(self, serving: int) -> bool:
        return self.lib.serve_cancelled(self.calls, serving) != NOTHING

    # What the kit asks for.

    def call(self, command: dict) -> dict:
        index, timeout_ms = len(self.made), command.get("timeout_ms")
        self.made.append({"outcome": "refused"})
        asked = self.asked(command)
        takes_items = command.get("items", False)
        if timeout_ms is not None and not takes_items:
            status = self.lib.call(self.calls, *asked, timeout_ms, None, byref(self.result))
            self.made[index] = self.outcome_of(status)
            return self.made[index]
        begins = self.lib.call_begin_items if takes_items else self.lib.call_begin
        number = c_size_t()
        status = begins(self.calls, *asked, timeout_ms or 0, None, byref(number))
        if status == NOTHING:
            raise PortError("wait.timeout")
        self.lib.check(status, self.port)
        self.made[index] = number.value
        if takes_items:
            self.takes_items.add(number.value)
        return {"outcome": "ok"}

    def notify(self, command: dict) -> dict:
        status = self.lib.call_notify(self.calls, *self.asked(command), 0, None)
        if self.lib.check(status, self.port) == NOTHING:
            raise PortError("wait.timeout")
        return {"outcome": "ok"}

    @staticmethod
    def asked(command: dict) -> tuple:
        """Name and values. A name with a zero in it is none that C can say."""
        name = command["name"].encode()
        if 0 in name:
            raise Refused("a name ends with its first zero")
        return name, *array_of([from_command(value) for value in command.get("values", [])])

    def give_up(self, command: dict) -> dict:
        made = self.made[command["call"]]
        if isinstance(made, int):
            self.lib.check(self.lib.call_give_up(self.calls, made))
            self.made[command["call"]] = {"outcome": "wait.aborted"}
        return {"outcome": "ok"}

    def item(self, command: dict) -> dict:
        made = self.made[command["call"]]
        if not isinstance(made, int) or made not in self.takes_items:
            return self.outcome(command)
        status = self.lib.call_next(self.calls, made, 0, None, byref(self.result))
        if status == DONE:
            return {"outcome": "item", "value": shown(value_at(self.result))}
        if status == END:
            return self.outcome(command)
        return self.settle(command["call"], status)

    def outcome(self, command: dict) -> dict:
        made = self.made[command["call"]]
        if not isinstance(made, int):
            return made
        status = self.lib.call_finish(self.calls, made, 0, None, byref(self.result))
        return self.settle(command["call"], status)

    def settle(self, index: int, status: int) -> dict:
        """Keeps what a call has ended with."""
        if status == NOTHING:
            return {"outcome": "pending"}
        self.made[index] = self.outcome_of(status)
        return self.made[index]

    def outcome_of(self, status: int) -> dict:
        if status == NOTHING:
            return {"outcome": "wait.timeout"}
        try:
            self.lib.check(status, self.port)
        except Refused:
            return {"outcome": "refused"}
        except PortError as error:
            if error.code != "call.thrown":
                return {"outcome": error.code}
            name, text, data = self.thrown()
            more = {} if data is None else {"data": shown(data)}
            return {"outcome": error.code, "error": {"name": name, "text": text, **more}}
        value = value_at(self.result)
        return {"outcome": "returned", **({} if value == ABSENT else {"value": shown(value)})}

    def thrown(self) -> tuple[str, str, tuple[int, bytes] | None]:
        failure = Failure()
        self.lib.check(self.lib.call_thrown(self.calls, byref(failure)))
        name = ctypes.string_at(failure.name, failure.name_size).decode()
        text = ctypes.string_at(failure.text, failure.text_size).decode()
        data = (failure.data_codec, ctypes.string_at(failure.data, failure.data_size))
        return name, text, data if failure.has_data else None

    def told(self, _command: dict) -> dict:
        self.sweep()
        return {"count": self.told_count}

    # What the peer asks for.

    def handle(self, _context, _calls, serving, name, name_size, values, count) -> int:
        """A method. What is neither of the port nor of the kit, the testee dies of."""
        try:
            method = METHODS.get(ctypes.string_at(name, name_size))
            if method is None:
                raise PortError("call.method")
            list_type = Value * count
            given = list_type.from_address(values) if count > 0 else []
            return method(self, serving, [value_at(value) for value in given])
        except Method as failure:
            return failure.status
        except PortError as error:
            return -self.lib.reasons[error.code]
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(70)

    def give(self, serving: int, value: tuple[int, bytes] | None) -> int:
        place = None if value is None else byref(value_of(value))
        return self.lib.serve_return(self.calls, serving, place)

    def throw(self, serving: int, name: str, text: str, data) -> int:
        place = None if data is None else byref(value_of(data))
        return self.lib.serve_throw(self.calls, serving, name.encode(), text.encode(), place)

    def identity(self, serving: int, values: list) -> int:
        return self.give(serving, argument(values, 0))

    def add(self, serving: int, values: list) -> int:
        total = number(argument(values, 0)) + number(argument(values, 1))
        if isinstance(total, float) and not math.isfinite(total):
            raise PortError("call.result")
        return self.give(serving, (JSON, to_json(total)))

    def fail(self, serving: int, values: list) -> int:
        name, text = string(argument(values, 0)), string(argument(values, 1))
        return self.throw(serving, name, text, values[2] if len(values) > 2 else None)

    def odd(self, serving: int, _values: list) -> int:
        """A list in a list."""
        return self.give(serving, (4, b""))

    def count(self, serving: int, values: list) -> int:
        self.counting[serving] = [0, int(number(argument(values, 0)))]
        self.lib.check(self.lib.serve_later(self.calls, serving))
        self.count_on(serving)
        return DONE

    def count_on(self, serving: int) -> None:
        """Goes on with its items, as far as its caller lets it."""
        while serving in self.counting:
            at, most = self.counting[serving]
            value = value_of((JSON, to_json(at)))
            if at == most:
                del self.counting[serving]
                self.lib.serve_return(self.calls, serving, byref(value))
                return
            # What is taken in meanwhile may lead here again.
            self.counting[serving][0] += 1
            status = self.lib.serve_item(self.calls, serving, byref(value), 0)
            if status == DONE:
                continue
            self.counting[serving][0] -= 1
            if status != NOTHING:
                self.counting.pop(serving, None)
            return

    def hold(self, serving: int, _values: list) -> int:
        self.held.append(serving)
        return self.lib.serve_later(self.calls, serving)

    def count_held(self, serving: int, _values: list) -> int:
        self.sweep()
        return self.give(serving, (JSON, to_json(len(self.held))))

    def note(self, _serving: int, values: list) -> int:
        self.kept.append(plain(argument(values, 0)))
        return DONE

    def noted(self, serving: int, _values: list) -> int:
        return self.give(serving, (JSON, to_json(self.kept)))

    def ask(self, serving: int, values: list) -> int:
        name = string(argument(values, 0)).encode()
        if not 0 < len(name) < 256 or 0 in name:
            raise PortError("call.arguments")
        token = self.lib.make("token")
        self.lib.check(self.lib.serve_token(self.calls, serving, token))
        asked, result = array_of(values[1:]), Value()
        status = self.lib.call(self.calls, name, *asked, -1, token, byref(result))
        self.lib.check(self.lib.token_leave(token))
        return self.give(serving, value_at(result)) if status == DONE else status

    # A tree of calls, of the protocol.

    def tree(self, serving: int, values: list) -> int:
        seed, depth, width = (number(argument(values, index)) for index in range(3))
        draws = Draws(seed)
        total = draws.next()
        children = 0 if depth == 0 else 1 + draws.next() % width
        for _ in range(children):
            way = 4 if width == 1 else draws.next() % 32
            value = self.branch(way, draws.next(), depth, width)
            total = (total * 31 + value) & WORD
        if width > 1 and draws.next() % 8 == 0:
            return self.throw(serving, "Tree", "", (JSON, to_json(total)))
        return self.give(serving, (JSON, to_json(total)))

    def branch(self, way: int, child: int, depth: int, width: int) -> int:
        if way == 0:
            return self.ends("hold", [], 1, NOTHING, 1)
        if way == 1:
            values = [(TEXT, b"Tree"), (TEXT, b""), (JSON, to_json(child))]
            return self.ends("fail", values, -1, -self.lib.reasons["call.thrown"], child)
        if way == 2:
            return self.ends("none", [], -1, -self.lib.reasons["call.method"], 2)
        if way == 3:
            values = array_of([(JSON, to_json(child))])
            status = self.lib.call_notify(self.calls, b"note", *values, self.patience_ms, None)
            if status != DONE:
                raise Method(status)
            return 3
        return self.value_of_tree(child, depth - 1, width)

    def ends(self, name: str, values: list, timeout_ms: int, expected: int, value: int) -> int:
        """Makes a call that must end so."""
        patience = self.patience_ms if timeout_ms < 0 else timeout_ms
        asked, result = array_of(values), Value()
        status = self.lib.call(
            self.calls, name.encode(), *asked, patience, None, byref(result)
        )
        if status != expected:
            raise Method(-self.lib.reasons["call.form"] if status == DONE else status)
        return value

    def value_of_tree(self, seed: int, depth: int, width: int) -> int:
        """What has come of a tree of the peer's."""
        asked = array_of([(JSON, to_json(each)) for each in (seed, depth, width)])
        result = Value()
        status = self.lib.call(
            self.calls, b"tree", *asked, self.patience_ms, None, byref(result)
        )
        if status == DONE:
            return number(value_at(result))
        if status == -self.lib.reasons["call.thrown"]:
            name, _, data = self.thrown()
            if name == "Tree":
                return (number(data) + 1) & WORD
        raise Method(status)


METHODS = {
    b"identity": Calling.identity,
    b"add": Calling.add,
    b"fail": Calling.fail,
    b"odd": Calling.odd,
    b"count": Calling.count,
    b"hold": Calling.hold,
    b"held": Calling.count_held,
    b"note": Calling.note,
    b"noted": Calling.noted,
    b"ask": Calling.ask,
    b"tree": Calling.tree,
}


class Draws:
    """The random numbers of the workload."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def next(self) -> int:
        x = self.state
        x ^= x << 13 & WORD
        x ^= x >> 17
        x ^= x << 5 & WORD
        self.state = x
        return x


def value_of(value: tuple[int, bytes]) -> Value:
    codec, payload = value
    made = Value(ctypes.cast(ctypes.c_char_p(payload), c_void_p), len(payload), codec)
    made.keeps = payload
    return made


def array_of(values: list[tuple[int, bytes]]):
    """An array, and its length. It keeps the payloads."""
    array = (Value * max(1, len(values)))(*map(value_of, values))
    array.keeps = values
    return array, len(values)


def value_at(value: Value) -> tuple[int, bytes]:
    return value.codec, ctypes.string_at(value.payload, value.size) if value.size else b""


def argument(values: list, index: int) -> tuple[int, bytes]:
    return values[index] if index < len(values) else ABSENT


def number(value: tuple[int, bytes]):
    found = plain(value) if value[0] == JSON else None
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise PortError("call.arguments")
    return found


def string(value: tuple[int, bytes]) -> str:
    found = plain(value) if value[0] in (TEXT, JSON) else None
    if not isinstance(found, str):
        raise PortError("call.arguments")
    return found
