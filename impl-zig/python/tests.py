"""The tests of the package, with the standard library alone; `python_test.ts` runs them.

    tests.py                  all of them
    tests.py echo PATH        the other process of some of them
"""

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


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="millrace-python-", dir="/dev/shm")
        self.addCleanup(folder.cleanup)
        self.path = f"{folder.name}/segment"

    def pair(self, **options) -> list:
        """Two ports; to either side belongs its own opening of the file."""
        ports = []
        for endpoint in (0, 1):
            file = SegmentFile.create(self.path, endpoint=endpoint, **options)
            self.addCleanup(file.close)
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


class SegmentTest(Case):
    def test_what_cannot_be_opened(self) -> None:
        with self.fails(millrace.SegmentError, "segment.missing"):
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
        with self.assertRaises(ValueError):
            SegmentFile.create(self.path, endpoint=0, channels=[Ring(0, 0)])
        with self.assertRaises(OSError):
            SegmentFile.create(f"{self.path}/none/there", endpoint=0)


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
        for kind in (millrace.Port, SegmentFile, millrace.PropertyReader, millrace.PropertyWriter):
            for name, method in inspect.getmembers(kind, inspect.isfunction):
                if not name.startswith("_"):
                    self.assertIn("return", method.__annotations__, name)
        self.assertEqual(millrace.library_version()[0], 1)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        echo(sys.argv[2])
    else:
        unittest.main(verbosity=2)
