"""Makes a wheel of Millrace for Python: the library for C, by `zig build lib`, and this package.

    build_wheel.py FOLDER [ARCH [LIBRARY]]

ARCH is x86_64 or aarch64, or the machine's own where it is left out; LIBRARY is one that was built
before. Prints the path of the wheel. One wheel serves glibc and musl alike, since the library needs
neither of them: it only asks its process for `getauxval`, which both have. Needs Python's own
library, and zig where it has to build.
"""

import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HEADERS = ["millrace.h", "millrace_property.h", "millrace_call.h"]
METADATA = """Metadata-Version: 2.1
Name: millrace
Version: {version}
Summary: Messages between threads, runtimes and processes through shared memory
License: {license}
Requires-Python: >=3.9
Requires-Dist: cffi>=1.15
Classifier: Operating System :: POSIX :: Linux
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

{about}"""
WHEEL = """Wheel-Version: 1.0
Generator: millrace
Root-Is-Purelib: false
"""


def declarations() -> str:
    """What cffi parses: the headers without comments, directives and what is for C++."""
    text = ""
    for name in HEADERS:
        header = (ROOT / "impl-zig" / "include" / name).read_text()
        header = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", header, flags=re.S)
        header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
        text += re.sub(r"^#.*\n", "", header, flags=re.M)
    return re.sub(r"\n\s*\n+", "\n", text).strip() + "\n"


def build_library(arch: str, folder: pathlib.Path) -> bytes:
    target = [f"-Dtarget={arch}-linux-gnu"]
    command = ["zig", "build", "lib", *target, "--prefix", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
    return (folder / "lib" / "libmillrace.so").read_bytes()


def files_of(library: bytes, version: str, tags: list[str]) -> dict[str, bytes]:
    sources = sorted((HERE / "src" / "millrace").iterdir())
    files = {f"millrace/{path.name}": path.read_bytes() for path in sources if path.is_file()}
    files["millrace/declarations.py"] = f"DECLARATIONS = '''\n{declarations()}'''\n".encode()
    files["millrace/libmillrace.so"] = library
    info = f"millrace-{version}.dist-info"
    about = (HERE / "README.md").read_text()
    license_text = (ROOT / "LICENSE").read_text()
    stated = METADATA.format(version=version, license=license_text.split("\n")[0], about=about)
    files[f"{info}/METADATA"] = stated.encode()
    files[f"{info}/LICENSE"] = license_text.encode()
    files[f"{info}/WHEEL"] = (WHEEL + "".join(f"Tag: {tag}\n" for tag in tags)).encode()
    return files


def record(files: dict[str, bytes], name: str) -> bytes:
    lines = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{name},,\n"]).encode()


def make_wheel(folder: pathlib.Path, arch: str, library: bytes) -> pathlib.Path:
    manifest = (ROOT / "build.zig.zon").read_text()
    version = re.search(r'\.version = "([^"]+)"', manifest)[1]
    platforms = [f"manylinux_2_17_{arch}", f"musllinux_1_1_{arch}"]
    files = files_of(library, version, [f"py3-none-{each}" for each in platforms])
    name = f"millrace-{version}.dist-info/RECORD"
    files[name] = record(files, name)
    path = folder / f"millrace-{version}-py3-none-{'.'.join(platforms)}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for each, content in sorted(files.items()):
            # Always the same time, so that the same files make the same wheel.
            wheel.writestr(zipfile.ZipInfo(each, (2020, 1, 1, 0, 0, 0)), content)
    return path


def main() -> int:
    if len(sys.argv) not in (2, 3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    arch = sys.argv[2] if len(sys.argv) > 2 else platform.machine()
    if len(sys.argv) > 3:
        library = pathlib.Path(sys.argv[3]).read_bytes()
    else:
        with tempfile.TemporaryDirectory(prefix="millrace-wheel-") as folder:
            library = build_library(arch, pathlib.Path(folder))
    print(make_wheel(pathlib.Path(sys.argv[1]), arch, library))
    return 0


if __name__ == "__main__":
    sys.exit(main())
