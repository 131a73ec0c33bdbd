"""Calls of functions of the other side, and of ours by it [spec/call.md]."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

import cffi

from .closing import Closing
from .error import CallThrown, MillraceError, WaitTimeout, check
from .library import DONE, END, NOTHING, c_text, ffi, lib, make, milliseconds
from .message import Codec, Message, decode, encode

# For so long a call waits without a look at signals such as that of Ctrl-C.
SLICE_MS = 100
INBOX_SIZE = 65_536
SERVING_SIZE = 64 << 20

_c: Any = cffi.FFI()
_c.cdef("void *malloc(size_t); void free(void *);")
_memory: Any = _c.dlopen(None)


@ffi.callback("void *(void *, void *, size_t)")
def _allocate(_context: Any, memory: Any, size: int) -> Any:
    if memory == ffi.NULL:
        return ffi.cast("void *", int(_c.cast("uintptr_t", _memory.malloc(size))))
    _memory.free(_c.cast("void *", int(ffi.cast("uintptr_t", memory))))
    return ffi.NULL


class Calls(Closing):
    """Calls over a port, both ways. While they last, the port is read and written through them.

    Whoever waits here for an answer, or for a message, serves the calls that come meanwhile. They
    belong to the thread of the port.
    """

    def __init__(self, port: Any, pointer: Any, limit: int) -> None:
        """Not to be called: `Port.calls` does."""
        # The library points into the port, which must outlive its calls.
        self._port = port
        self._pointer = pointer
        self._storage = make(lib.millrace_calls_size())
        self._calls: Any = ffi.cast("millrace_calls *", self._storage)
        check(lib.millrace_calls_attach(self._calls, pointer, _allocate, ffi.NULL))
        check(lib.millrace_calls_set_limits(self._calls, limit, INBOX_SIZE, SERVING_SIZE))
        self._handler = ffi.callback("millrace_handler", self._serve_one)
        self._methods: Mapping[str, Callable[..., Any]] = {}
        # What was raised in a method and is not to be answered, such as Ctrl-C.
        self._raised: BaseException | None = None
        self._left = False

    def serve(self, methods: Mapping[str, Callable[..., Any]]) -> None:
        """Lets the peer call these, whenever this side waits.

        Arguments are bytes, text or what the JSON says, and so is the result; `None` is no result.
        A generator gives its items one by one. What a method raises is raised at its caller.
        """
        self._methods = dict(methods)
        check(lib.millrace_serve(self._calls, self._handler, ffi.NULL))

    def call(self, name: str, *arguments: Any, timeout: float | None = None) -> Any:
        """Calls a method of the peer, and waits for its result; `None` where it has none.

        Raises `CallThrown` where the method has failed, `CallError` where the call has,
        `WaitTimeout`, which tells the callee, and whatever ends a port.
        """
        deadline = _deadline(timeout)
        values, kept = _values(arguments)
        begun = ffi.new("size_t *")
        self._finish(
            deadline,
            lambda left_ms: lib.millrace_call_begin(
                self._calls, c_text(name), values, len(kept), left_ms, ffi.NULL, begun
            ),
        )
        result = ffi.new("millrace_value *")
        try:
            self._finish(
                deadline,
                lambda left_ms: lib.millrace_call_finish(
                    self._calls, begun[0], left_ms, ffi.NULL, result
                ),
            )
        except BaseException as error:
            # After any other error of the library, the call has ended.
            if not isinstance(error, MillraceError) or isinstance(error, WaitTimeout):
                lib.millrace_call_give_up(self._calls, begun[0])
            raise
        return _value(result)

    def items(
        self,
        name: str,
        *arguments: Any,
        on_item: Callable[[Any], Any],
        timeout: float | None = None,
    ) -> Any:
        """The same where the result comes in pieces, each of which `on_item` takes.

        `timeout` is that for one item. Where `on_item` returns `False`, or raises, the call is
        given up. Ctrl-C interrupts it only when it is over.
        """
        raised: list[BaseException] = []
        given_up: list[bool] = []

        @ffi.callback("millrace_on_item")
        def take(_context: Any, item: Any) -> int:
            try:
                if on_item(_value(item)) is not False:
                    return 1
            except BaseException as error:  # it is raised again after the call
                raised.append(error)
            given_up.append(True)
            return 0

        values, kept = _values(arguments)
        result = ffi.new("millrace_value *")
        status = lib.millrace_call_items(
            self._calls, c_text(name), values, len(kept), milliseconds(timeout), ffi.NULL,
            take, ffi.NULL, result,
        )
        if raised:
            raise raised[0]
        if given_up:
            return None
        if self._check(status) == NOTHING:
            raise WaitTimeout
        return _value(result)

    def notify(self, name: str, *arguments: Any, timeout: float | None = None) -> None:
        """Calls a method that nobody answers."""
        values, kept = _values(arguments)
        self._finish(
            _deadline(timeout),
            lambda left_ms: lib.millrace_call_notify(
                self._calls, c_text(name), values, len(kept), left_ms, ffi.NULL
            ),
        )

    def run(self) -> None:
        """Serves until the peer has ended its stream; plain messages are dropped.

        What is wrong with a notice, of which nobody else is told, is raised: run it again.
        """
        while self.read() is not None:
            pass

    def read(self, timeout: float | None = None) -> Message | None:
        """Serves what comes until there is a plain message; `None` after the end of the stream.

        A batch comes as one message. What is wrong with a call that nobody else is told is raised
        once, and the next read goes on.
        """
        port = self._port
        found = port._message
        status = self._finish(
            _deadline(timeout),
            lambda left_ms: lib.millrace_calls_read(
                self._calls, port._payload, port._limit, left_ms, found
            ),
        )
        if status == END:
            port._ended = True
            return None
        return Message(ffi.buffer(port._payload, found.size)[:], found.codec, found.tag)

    def write(
        self,
        value: Any,
        *,
        tag: int = 0,
        codec: int | None = None,
        timeout: float | None = None,
    ) -> None:
        """Writes a plain message, as `Port.write`."""
        payload, how = encode(value, codec)
        self._finish(
            _deadline(timeout),
            lambda left_ms: lib.millrace_calls_write(
                self._calls, payload, len(payload), how, tag, left_ms
            ),
        )

    def end(self, timeout: float | None = None) -> None:
        """Ends the outgoing stream, after all answers: from then on nobody is called."""
        self._finish(
            _deadline(timeout), lambda left_ms: lib.millrace_calls_end(self._calls, left_ms)
        )

    def close(self) -> None:
        """Ends all calls, and gives the port back. Again, it does nothing."""
        if not self._left:
            check(lib.millrace_calls_leave(self._calls))
            self._left = True

    def _finish(self, deadline: float | None, wait: Callable[[int], int]) -> int:
        """Waits in slices until a call of the library has ended, and looks at signals between."""
        while True:
            left_ms = SLICE_MS
            if deadline is not None:
                left_ms = min(SLICE_MS, milliseconds(deadline - time.monotonic()))
            status = self._check(wait(left_ms))
            if status != NOTHING:
                return status
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeout

    def _check(self, status: int) -> int:
        if self._raised is not None:
            error, self._raised = self._raised, None
            raise error
        if status != -lib.MILLRACE_REASON_CALL_THROWN:
            return check(status, self._pointer)
        failure = ffi.new("millrace_failure *")
        check(lib.millrace_call_thrown(self._calls, failure))
        name = ffi.buffer(failure.name, failure.name_size)[:].decode()
        text = ffi.buffer(failure.text, failure.text_size)[:].decode()
        data = None
        if failure.has_data == 1:
            try:
                data = _decode(failure.data, failure.data_size, failure.data_codec)
            except (ValueError, RecursionError):  # more than Python's JSON reads
                data = ffi.buffer(failure.data, failure.data_size)[:]
        raise CallThrown(name, text, data)

    def _serve_one(
        self, _context: Any, _calls: Any, serving: int, name: Any, name_size: int, values: Any,
        count: int,
    ) -> int:
        """What the library calls. It must not raise: nobody would hear of that."""
        try:
            method = self._methods.get(ffi.buffer(name, name_size)[:].decode())
            if method is None:
                return -lib.MILLRACE_REASON_CALL_METHOD
            try:
                arguments = [_value(values + index) for index in range(count)]
            except (ValueError, RecursionError):  # more than Python's JSON reads
                return -lib.MILLRACE_REASON_CALL_ARGUMENTS
            result = method(*arguments)
            if not inspect.isgenerator(result):
                return self._return(serving, result)
            for item in result:
                if not self._send(serving, item):
                    return -lib.MILLRACE_REASON_CALL_RESULT
            return DONE
        except CallThrown as error:
            return self._throw(serving, error.name, error.text, error.data)
        except MillraceError as error:
            return -error.number
        except BaseException as error:
            if not isinstance(error, Exception):
                self._raised = error
            return self._throw(serving, type(error).__name__, self._text_of(error), None)

    def _text_of(self, error: BaseException) -> str:
        try:
            return str(error)
        except Exception:  # the text of an error is code of the application
            return ""
        except BaseException as worse:
            self._raised = worse
            return ""

    def _return(self, serving: int, result: Any) -> int:
        if result is None:
            return lib.millrace_serve_return(self._calls, serving, ffi.NULL)
        written = _written(result)
        if written is None:
            return -lib.MILLRACE_REASON_CALL_RESULT
        return lib.millrace_serve_return(self._calls, serving, written[0])

    def _send(self, serving: int, item: Any) -> bool:
        written = _written(item)
        if written is None:
            return False
        self._finish(
            None,
            lambda left_ms: lib.millrace_serve_item(self._calls, serving, written[0], left_ms),
        )
        return True

    def _throw(self, serving: int, name: Any, text: Any, data: Any) -> int:
        # Data that cannot be written is left out, as the library does.
        written = None if data is None else _written(data)
        return lib.millrace_serve_throw(
            self._calls, serving, _utf8(name), _utf8(text),
            ffi.NULL if written is None else written[0],
        )


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _values(items: Any) -> tuple[Any, list[Any]]:
    """A list of values, and what must live as long as that."""
    kept = []
    values = ffi.new("millrace_value[]", max(1, len(items)))
    for place, item in zip(values, items):
        payload, codec = encode(item, None)
        kept.append(ffi.from_buffer(payload))
        place.payload, place.size, place.codec = kept[-1], len(payload), codec
    return values, kept


def _written(item: Any) -> tuple[Any, list[Any]] | None:
    """A list of one value that a method gave; `None` if the value cannot be written."""
    try:
        return _values([item])
    except Exception:  # such as TypeError, and whatever the application's own classes raise
        return None


def _utf8(text: Any) -> bytes:
    """A text in UTF-8, with U+FFFD for each half of a character that stands alone."""
    whole = text if isinstance(text, str) else repr(text)
    return whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _value(value: Any) -> Any:
    return _decode(value.payload, value.size, value.codec)


def _decode(payload: Any, size: int, codec: int) -> Any:
    # JSON of no bytes is an argument that was left out, or no result.
    if codec == Codec.JSON and size == 0:
        return None
    return decode(ffi.buffer(payload, size)[:] if size > 0 else b"", codec)
