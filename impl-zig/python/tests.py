"""The tests of the package, with the standard library alone; `python_test.ts` runs them.

    tests.py                  all of them
    tests.py echo PATH        the other process of some of them
    tests.py serve PATH       serves calls to whoever has made the file
"""

import errno
import gc
import inspect
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref

import millrace
from millrace import Message, Property, Ring, SegmentFile

# Far more than anything here takes.
PATIENCE = 20
README = pathlib.Path(__file__).with_name("README.md").read_text()


def echo(path: str) -> None:
    """Says what comes back, until the end."""
    with SegmentFile.create(path, endpoint=1) as file, file.port() as port:
        for message in port:
            port.write(message.payload, codec=message.codec, tag=message.tag, timeout=PATIENCE)
        port.end()
        # Until the peer has read it.
        try:
            port.read(PATIENCE)
        except millrace.PeerError:
            pass


def serve(path: str) -> None:
    """Serves until the peer ends its stream."""
    with SegmentFile.open(path, endpoint=1) as file, file.port() as port, port.calls() as calls:
        ask = lambda name: calls.call(name, timeout=PATIENCE)
        echo = lambda *values: values[0]
        calls.serve({"echo": echo, "count": range_of, "raise": fail, "ask": ask})
        calls.run()
        calls.end(PATIENCE)


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="millrace-python-", dir="/dev/shm")
        self.addCleanup(folder.cleanup)
        self.path = f"{folder.name}/segment"
        self.files: list = []

    def pair(self, **options) -> list:
        """Two ports; to either side belongs its own opening of the file."""
        ports = []
        for endpoint in (0, 1):
            file = SegmentFile.create(self.path, endpoint=endpoint, **options)
            self.addCleanup(file.close)
            self.files.append(file)
            ports.append(file.port(limit=10_000))
        return ports

    def process(self) -> subprocess.Popen:
        command = [sys.executable, __file__, "echo", self.path]
        other = subprocess.Popen(command)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        return other

    def fails(self, family: type, code: str):
        return self.assertRaisesRegex(family, f"^{re.escape(code)}: ")


class PortTest(Case):
    def test_another_process_says_what_it_was_told(self) -> None:
        self.process()
        with SegmentFile.create(self.path, endpoint=0) as file, file.port() as port:
            values = ["text: größe", b"\x00\xff", {"a": [1, None]}, 3.5, "", "x" * 300_000]
            for tag, value in enumerate(values):
                port.write(value, tag=tag, timeout=PATIENCE)
                message = port.read(PATIENCE)
                self.assertEqual((message.tag, message.value), (tag, value))
            port.end()
            self.assertIsNone(port.read(PATIENCE))
            self.assertTrue(port.ended)
            self.assertIsNone(port.try_read())

    def test_a_batch_comes_one_by_one(self) -> None:
        a, b = self.pair()
        a.write(b'[1, {"a": "[,]"}, "x"]', codec=millrace.Codec.JSON_BATCH, tag=5)
        a.write(b"\x01", codec=200)
        self.assertEqual([b.try_read().value for _ in range(3)], [1, {"a": "[,]"}, "x"])
        self.assertEqual(b.read(PATIENCE), Message(b"\x01", 200, 0))
        self.assertIsNone(b.try_read())
        a.write(b"[1,", codec=millrace.Codec.JSON_BATCH)
        with self.fails(millrace.MessageError, "message.json"):
            b.try_read()

    def test_a_full_ring_and_times_that_are_over(self) -> None:
        a, b = self.pair(channels=[Ring(0, 1, 256), Ring(1, 0, 256)])
        self.assertTrue(a.try_write(b"1" * 100))
        self.assertFalse(a.try_write(b"2" * 100))
        with self.assertRaises(TimeoutError) as caught:
            a.write(b"2" * 100, timeout=0.001)
        self.assertEqual(caught.exception.code, "wait.timeout")
        with self.assertRaises(ValueError):
            a.try_write(b"3" * 1000)
        self.assertEqual(b.read(0).payload, b"1" * 100)
        with self.assertRaises(millrace.WaitTimeout):
            b.read(0.001)
        with self.assertRaises(ValueError):
            a.write(float("nan"))
        with self.assertRaises(TypeError):
            a.write("text", codec=1)

    def test_a_message_above_the_limit_is_lost_alone(self) -> None:
        a, b = self.pair()
        a.write(b"x" * 10_001)
        a.write("next")
        with self.fails(millrace.MessageError, "message.size"):
            b.read(PATIENCE)
        self.assertEqual(b.read(PATIENCE).value, "next")

    def test_other_threads_run_while_one_reads(self) -> None:
        a, b = self.pair()
        found = []
        reader = threading.Thread(target=lambda: found.extend(b))
        reader.start()
        for number in range(100):
            a.write(number, timeout=PATIENCE)
        a.end()
        reader.join(PATIENCE)
        self.assertEqual([message.value for message in found], list(range(100)))

    def test_a_signal_ends_a_read(self) -> None:
        _, b = self.pair()

        def interrupt(*_) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        with self.assertRaises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            b.read(PATIENCE)

    def test_ends_of_either_side(self) -> None:
        a, b = self.pair()
        closer = threading.Thread(target=a.shut)
        closer.start()
        with self.fails(millrace.ClosedError, "pipe.closed"):
            a.read(PATIENCE)
        closer.join()
        with self.fails(millrace.PeerError, "peer.closed"):
            b.read(PATIENCE)
        for _ in range(2):
            a.close()
        with self.fails(millrace.ClosedError, "pipe.closed"):
            a.write("late")

    def test_a_with_statement_that_is_left_normally_ends_the_stream(self) -> None:
        for leaves in ("port", "file", "calls"):
            with self.subTest(leaves), SegmentFile.create(self.path, endpoint=1) as file:
                b = file.port()
                with SegmentFile.create(self.path, endpoint=0) as other:
                    if leaves == "port":
                        with other.port() as a:
                            a.write("last")
                    else:
                        a = other.port()
                        (a if leaves == "file" else a.calls()).write("last")
                self.assertEqual([message.value for message in b], ["last"])

    def test_a_with_statement_that_an_error_leaves_does_not_end_the_stream(self) -> None:
        with SegmentFile.create(self.path, endpoint=1) as file:
            b = file.port()
            with self.assertRaises(KeyError):
                with SegmentFile.create(self.path, endpoint=0) as other, other.port() as a:
                    a.write("half of it")
                    raise KeyError
            self.assertEqual(b.read(PATIENCE).value, "half of it")
            with self.fails(millrace.PeerError, "peer.closed"):
                b.read(PATIENCE)

    def test_a_process_that_is_killed_is_lost(self) -> None:
        other = self.process()
        with SegmentFile.create(self.path, endpoint=0) as file, file.port() as port:
            port.write("are you there?", timeout=PATIENCE)
            port.read(PATIENCE)
            other.kill()
            with self.assertRaises(millrace.PeerError) as caught:
                port.read(PATIENCE)
        self.assertEqual(caught.exception.code, "peer.failed")
        self.assertEqual(caught.exception.reason, "peer.lost")

    def test_a_port_keeps_what_it_stands_on(self) -> None:
        channels = [Ring(0, 1), Ring(1, 0), Property(0, 100, "gain")]
        other = SegmentFile.create(self.path, endpoint=1, channels=channels)
        self.addCleanup(other.close)
        reader = other.port().property_reader("gain")
        writer = SegmentFile.create(self.path, endpoint=0, channels=channels).port()
        writer.property_writer("gain").set("kept")
        gc.collect()
        held = weakref.ref(writer)
        self.assertEqual(reader.get().value, "kept")
        writer.write("kept")
        kept = writer.property_reader("gain")
        del writer
        gc.collect()
        self.assertIsNotNone(held())
        self.assertEqual(kept.get().value, "kept")
        held()._owner.close()

    def test_a_forked_child_is_told_and_harms_nobody(self) -> None:
        a, b = self.pair()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                a.write("from the child")
            except millrace.ClosedError as error:
                code = 0 if error.code == "pipe.forked" else 2
            a.close()
            try:
                self.files[0].port()
                code = 3
            except millrace.ClosedError as error:
                code = code if error.code == "pipe.forked" else 4
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        a.write("from the parent")
        self.assertEqual(b.read(PATIENCE).value, "from the parent")


class PropertyTest(Case):
    CHANNELS = (Ring(0, 1), Ring(1, 0), Property(0, 100, "gain"), Property(1, 8))

    def test_the_latest_value_is_got_again_and_again(self) -> None:
        a, b = self.pair(channels=self.CHANNELS)
        writer, reader = a.property_writer("gain"), b.property_reader("gain")
        self.assertEqual((reader.get().value, reader.get().version), (None, 0))
        with self.assertRaises(millrace.WaitTimeout):
            reader.wait(0.001)
        writer.set(0.5)
        writer.set({"gain": 0.75})
        reader.wait(PATIENCE)
        for _ in range(2):
            self.assertEqual((reader.get().value, reader.get().version), ({"gain": 0.75}, 2))
        writer.clear()
        self.assertIsNone(reader.get().value)
        with self.fails(millrace.CorruptError, "property.size"):
            writer.set(b"x" * (writer.size + 1))
        with self.fails(millrace.CorruptError, "property.channel"):
            b.property_writer("gain")
        b.property_writer(3).set("by its channel")
        writer.set("last")
        a.close()
        self.assertEqual(reader.get().value, "last")
        with self.fails(millrace.PeerError, "peer.closed"):
            reader.wait(PATIENCE)

    def test_an_endpoint_without_rings(self) -> None:
        for endpoint in (0, 1):
            file = SegmentFile.create(self.path, endpoint=endpoint, channels=self.CHANNELS)
            self.addCleanup(file.close)
            port = file.port(rings=False)
            if endpoint == 0:
                port.property_writer(2).set("there")
            else:
                self.assertEqual(port.property_reader(2).get().value, "there")
            with self.assertRaises(ValueError):
                port.try_read()


class CallTest(Case):
    def both(self, **methods) -> millrace.Calls:
        """Calls of this side, the other of which serves these on a thread of its own."""
        a, b = self.pair()
        self.there = there = b.calls()
        there.serve({"raise": fail, "count": range_of, **methods})
        thread = threading.Thread(target=lambda: (there.run(), there.end(PATIENCE)))
        thread.start()
        here = a.calls()
        self.addCleanup(thread.join, PATIENCE)
        self.addCleanup(here.end, PATIENCE)
        return here

    def test_values_cross_both_ways_and_calls_nest(self) -> None:
        nested = lambda text: self.there.call("name", timeout=PATIENCE) + text
        here = self.both(echo=lambda value: value, nothing=lambda: None, nested=nested)
        here.serve({"name": lambda: "größe"})
        for value in ["text: größe", b"\x00\xff", {"a": [1, None]}, 3.5, "", b"", "x" * 9_000]:
            self.assertEqual(here.call("echo", value, timeout=PATIENCE), value)
        self.assertIsNone(here.call("nothing", timeout=PATIENCE))
        self.assertEqual(here.call("nested", "!", timeout=PATIENCE), "größe!")

    def test_what_fails_says_why(self) -> None:
        here = self.both()
        with self.assertRaises(millrace.CallThrown) as caught:
            here.call("raise", "RuntimeError", timeout=PATIENCE)
        thrown = caught.exception
        self.assertEqual(
            (thrown.code, thrown.name, thrown.text, thrown.data, str(thrown)),
            ("call.thrown", "RuntimeError", "of it", None, "RuntimeError: of it"),
        )
        with self.assertRaises(millrace.CallThrown) as caught:
            here.call("raise", "own", timeout=PATIENCE)
        self.assertEqual((caught.exception.name, caught.exception.data), ("Own", {"n": 1}))
        with self.assertRaises(millrace.CallThrown) as caught:
            here.call("raise", timeout=PATIENCE)
        self.assertEqual(caught.exception.name, "TypeError")
        with self.fails(millrace.CallError, "call.method"):
            here.call("none", timeout=PATIENCE)
        for name in ("", "x" * 256, "count\0", "\ud800"):
            with self.assertRaises(ValueError):
                here.call(name, timeout=PATIENCE)
        with self.assertRaises(ValueError):
            here.call("raise", float("nan"))

    def test_a_result_that_cannot_be_written_is_no_error_of_the_method(self) -> None:
        endless: list = []
        endless.append(endless)
        results = [object(), {"in": {1, 2}}, float("nan"), "\ud800", {"in": "\ud800"}, endless]
        here = self.both(give=lambda at: results[at], pieces=lambda: iter_of(1, object(), 2))
        for at in range(len(results)):
            with self.fails(millrace.CallError, "call.result"):
                here.call("give", at, timeout=PATIENCE)
        items = []
        with self.fails(millrace.CallError, "call.result"):
            here.items("pieces", on_item=items.append, timeout=PATIENCE)
        self.assertEqual(items, [1])
        self.assertEqual(list_of(here, "count", 3), [0, 1, 2])

    def test_what_is_raised_crosses_whatever_its_text_is(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError("it has none")

        raised = [Mute(), ValueError("a\ud800b\U0001f600"), ValueError("\ud83d\ude00")]
        raised += [millrace.CallThrown("Own\udfff", "x", object()), millrace.CallThrown("", "")]

        def throw(at: int) -> None:
            raise raised[at]

        here = self.both(throw=throw)
        found = []
        for at in range(len(raised)):
            with self.assertRaises(millrace.CallThrown) as caught:
                here.call("throw", at, timeout=PATIENCE)
            found.append((caught.exception.name, caught.exception.text, caught.exception.data))
        self.assertEqual(
            found,
            [
                ("Mute", "", None),
                ("ValueError", "a\ufffdb\U0001f600", None),
                ("ValueError", "\U0001f600", None),
                ("Own\ufffd", "x", None),
                ("Error", "", None),
            ],
        )

    def test_what_cannot_be_read_is_told(self) -> None:
        digits = b"1" * 5_000  # Python reads no number of so many
        a, b = self.pair()
        millrace.port.lib.millrace_port_set_calls(b._pointer(), 1)
        here = a.calls()
        here.serve({"any": lambda value: value})
        entry = lambda size, codec: size.to_bytes(4, "little") + codec.to_bytes(4, "little")
        head = (2).to_bytes(8, "little") + entry(3, 1) + entry(len(digits), 2)
        kind = millrace.port.lib.MILLRACE_FRAME_KIND_CALL
        call = head + b"any" + bytes(5) + digits
        write = millrace.port.lib.millrace_port_write_kind
        self.assertEqual(write(b._pointer(), kind, call, len(call), 4, 7, 0), 1)
        with self.assertRaises(millrace.WaitTimeout):
            here.read(0)
        self.assertIn(b"call.arguments", b.read(PATIENCE).payload)

    def test_a_result_in_pieces(self) -> None:
        here, items = self.both(), []
        self.assertIsNone(here.items("count", 1000, on_item=items.append, timeout=PATIENCE))
        self.assertEqual(items, list(range(1000)))
        few = lambda item: item < 5
        self.assertIsNone(here.items("count", 10**9, on_item=few, timeout=PATIENCE))
        with self.assertRaises(ZeroDivisionError):
            here.items("count", 10**9, on_item=lambda item: 1 / (5 - item), timeout=PATIENCE)

    def test_time_and_signals_end_a_call(self) -> None:
        gate = threading.Event()
        here = self.both(wait=lambda: gate.wait(PATIENCE), add=lambda x, y: x + y)
        self.addCleanup(gate.set)
        with self.assertRaises(millrace.WaitTimeout):
            here.call("wait", timeout=0.001)
        gate.set()
        self.assertEqual(here.call("add", 1, 2, timeout=PATIENCE), 3)
        gate.clear()

        def interrupt(*_) -> None:
            gate.set()
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        with self.assertRaises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            here.call("wait", timeout=PATIENCE)
        self.assertEqual(here.call("add", 3, 4, timeout=PATIENCE), 7)

    def test_who_gives_a_call_up_tells_the_callee(self) -> None:
        a, b = self.pair()
        millrace.port.lib.millrace_port_set_calls(b._pointer(), 1)  # b sees all there is
        with self.assertRaises(millrace.WaitTimeout):
            a.calls().call("any", timeout=0.001)
        call, cancel = b.try_read(), b.try_read()
        self.assertEqual((cancel.payload, cancel.tag), (b"", call.tag | 1 << 30))

    def test_messages_and_notices_beside_calls(self) -> None:
        a, b = self.pair()
        here, there = a.calls(), b.calls()
        said = []
        there.serve({"say": said.append})
        here.notify("say", 1)
        here.write("plain", tag=3)
        for port in (a, b):
            with self.assertRaises(ValueError):
                port.try_read()
        self.assertEqual(there.read(PATIENCE), Message(b"plain", millrace.Codec.TEXT, 3))
        self.assertEqual(said, [1])
        with self.assertRaises(millrace.WaitTimeout):
            there.read(0.001)
        here.end()
        self.assertIsNone(there.read(PATIENCE))
        there.close()
        b.write("without calls")
        here.close()
        self.assertEqual(a.read(PATIENCE).value, "without calls")
        self.assertTrue(b.try_read() is None and b.ended)

    def test_what_is_no_error_ends_the_server_and_its_caller_is_told(self) -> None:
        a, b = self.pair()
        here, there = a.calls(), b.calls()

        def stop() -> None:
            raise SystemExit("enough")

        there.serve({"stop": stop})
        here.notify("stop")
        with self.assertRaises(SystemExit):
            there.read(PATIENCE)

    def test_the_program_of_the_page_runs(self) -> None:
        a, b = self.pair()
        there = b.calls()
        notices = []
        there.serve({"add": lambda x, y: x + y, "count": range_of, "done": notices.append})
        thread = threading.Thread(target=lambda: (there.run(), there.end(PATIENCE)))
        thread.start()
        [program] = re.findall(r"<!-- test: calls -->\n\n```python\n(.*?)```", README, flags=re.S)
        said = []
        names = {"port": a, "print": lambda *values: said.extend(values)}
        exec(compile(program, "README.md", "exec"), names)
        thread.join(PATIENCE)
        self.assertEqual((said, notices), ([3, 0, 1, 2], ["by page"]))


def range_of(count: int):
    yield from range(count)


def iter_of(*items):
    yield from items


def list_of(calls: millrace.Calls, name: str, *arguments) -> list:
    items: list = []
    calls.items(name, *arguments, on_item=items.append, timeout=PATIENCE)
    return items


def fail(how: str) -> None:
    if how == "own":
        raise millrace.CallThrown("Own", "text", {"n": 1})
    raise {"RuntimeError": RuntimeError}[how]("of it")


class SegmentTest(Case):
    def test_what_cannot_be_opened(self) -> None:
        for kind in (millrace.SegmentError, FileNotFoundError):
            with self.fails(kind, "segment.missing"):
                SegmentFile.open(self.path, endpoint=0)
        with SegmentFile.create(self.path, endpoint=0) as file:
            with self.fails(millrace.SegmentError, "segment.endpoint"):
                SegmentFile.open(self.path, endpoint=0)
            with self.fails(millrace.SegmentError, "segment.geometry"):
                SegmentFile.create(self.path, endpoint=1, channels=[Ring(0, 1), Ring(1, 0, 256)])
            with SegmentFile.open(self.path, endpoint=1) as other, other.port() as port:
                self.assertIsNone(port.try_read())
        for _ in range(2):
            file.close()
        with self.assertRaises(ValueError):
            file.port()
        for path in (f"{self.path}\0", f"{self.path}\0".encode()):
            with self.assertRaises(ValueError):
                SegmentFile.open(path, endpoint=0)
        with self.assertRaises(ValueError):
            SegmentFile.create(self.path, endpoint=0, channels=[Ring(0, 0)])
        for capacity in (1000, 128, 1 << 31, 0, -256):
            with self.assertRaisesRegex(ValueError, "a power of two from 256 to 2\\^30"):
                SegmentFile.create(self.path, endpoint=0, channels=[Ring(0, 1, capacity)])
        with self.assertRaises(FileNotFoundError) as caught:
            SegmentFile.create(f"{self.path}/none/there", endpoint=0)
        self.assertEqual(caught.exception.errno, errno.ENOENT)
        with self.assertRaises(OSError) as caught:
            SegmentFile.create(f"{self.path}{'x' * 5_000}", endpoint=0)
        self.assertEqual(caught.exception.errno, errno.ENAMETOOLONG)


class PackageTest(Case):
    def test_the_program_of_the_page_runs(self) -> None:
        self.process()
        [program] = re.findall(r"<!-- test -->\n\n```python\n(.*?)```", README, flags=re.S)
        said = []
        names = {"path": self.path, "print": lambda *values: said.extend(values)}
        exec(compile(program, "README.md", "exec"), names)
        self.assertEqual(said, [{"cmd": "run"}])

    def test_it_has_types_and_names_what_it_offers(self) -> None:
        folder = pathlib.Path(inspect.getfile(millrace)).parent
        self.assertTrue((folder / "py.typed").exists())
        self.assertNotEqual(folder.parent, pathlib.Path(__file__).parent, "not the installed one")
        for name in millrace.__all__:
            self.assertTrue(inspect.getdoc(getattr(millrace, name)), name)
        kinds = (millrace.Port, SegmentFile, millrace.Calls, millrace.PropertyReader)
        for kind in (*kinds, millrace.PropertyWriter):
            for name, method in inspect.getmembers(kind, inspect.isfunction):
                if not name.startswith("_"):
                    self.assertIn("return", method.__annotations__, name)
        self.assertEqual(millrace.library_version()[0], 1)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"echo": echo, "serve": serve}[sys.argv[1]](sys.argv[2])
    else:
        unittest.main(verbosity=2)
