#!/usr/bin/env python3
"""Makes the wheels of the Python package.

    build_wheels.py --out FOLDER [--program build/bin/tensormill --library build/lib/libtensormill.so.0] [--max-glibc 2.36]

Without a program: the client alone, `py3-none-any`. With one: a wheel that carries the program with the modules beside it, every shared
library that they need but the C library, the executor's library, and a model with a picture. The libraries stand beside the program and
are found by its rpath; nothing of them is ever loaded into Python, but for the executor's library, which needs the C
library alone. Same files in, same bytes out.
"""

import argparse
import base64
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# What each system has: the C library's own, and nothing else.
OF_THE_SYSTEM = re.compile(r"^(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|nsl|anl)\.so\..*|linux-vdso.*)$")
DEMO = {"digits.onnx": "tests/models/digits.onnx", "labels.txt": "tests/models/digits.labels.txt",
        "7.png": "tests/models/pictures/7.png"}
# What the program loads when it needs it, of which the wheel has a copy as of what it links.
ON_DEMAND = ("libhdf5_serial.so.103",)
SOURCE = re.compile(r".*\.py|py\.typed")
MAX_BYTES = 100 * 1000 * 1000


def output_of(*command):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def libraries_of(program):
    """The shared libraries that a program needs, and theirs: name -> path. What is not found ends the build."""
    found = {}
    for line in output_of("ldd", program).splitlines():
        words = line.split()
        if OF_THE_SYSTEM.match(Path(words[0]).name):
            continue
        if len(words) < 3 or not words[2].startswith("/"):
            raise SystemExit(f"{program} needs {words[0]}, which is not here")
        found[words[0]] = Path(words[2]).resolve()
    return found


def loaded_libraries():
    """Those of ON_DEMAND, and what they need: name -> path."""
    known = dict(re.findall(r"^\s(\S+) \(.*x86-64.*\) => (\S+)$", output_of("/sbin/ldconfig", "-p"), re.MULTILINE))
    found = {}
    for name in ON_DEMAND:
        if name not in known:
            raise SystemExit(f"the program loads {name}, which is not here")
        found |= {name: Path(known[name]).resolve()} | libraries_of(known[name])
    return found


def glibc_of(files):
    """The newest version of the C library that a file's symbols ask for, and the file."""
    newest, where = (0, 0), None
    for file in files:
        for version in re.findall(r"\bGLIBC_(\d+)\.(\d+)", output_of("objdump", "-T", file)):
            if tuple(map(int, version)) > newest:
                newest, where = tuple(map(int, version)), file
    return newest, where


def packages_of(libraries):
    """path -> the Debian package that it is of. One question for all: each reads the whole list of files."""
    # Debian's database has some paths as they were before /lib became a link to /usr/lib.
    asked = {spelled: path for path in libraries for spelled in (str(path), str(path).replace("/usr/lib/", "/lib/", 1))}
    done = subprocess.run(["dpkg-query", "-S", *asked], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
                          check=False)
    found = {}
    for line in done.stdout.splitlines():
        package, _, path = line.rpartition(": ")
        if path in asked:
            found[asked[path]] = package.split(",")[0].split(":")[0]
    return found


def bundle(folder, program, library):
    """Fills `folder` with the program and what it needs; returns the licences."""
    licences = {}
    for name in ("bin", "lib/tensormill", "demo"):
        (folder / name).mkdir(parents=True)
    modules = sorted(program.parent.glob("tensormill-*.so"))
    libraries = loaded_libraries()
    for file in (program, *modules):
        libraries |= libraries_of(file)
    packages = packages_of(libraries.values())
    for name, path in libraries.items():
        shutil.copyfile(path, folder / "lib" / name)
        text = Path("/usr/share/doc") / packages.get(path, "unknown") / "copyright"
        if not text.exists():
            raise SystemExit(f"no licence is found of {path}")
        licences[packages[path]] = text.read_bytes()
    shutil.copyfile(program, folder / "bin" / "tensormill")
    shutil.copyfile(library, folder / "lib" / "libtensormill.so.0")
    for module in modules:
        shutil.copyfile(module, folder / "lib/tensormill" / module.name)
    # DT_RPATH, not DT_RUNPATH: it holds for the libraries' own needs as well.
    for file in sorted((folder / "lib").rglob("*.so*")):
        output_of("strip", "--strip-unneeded", file)
        if file.name != "libtensormill.so.0":
            where = "$ORIGIN/.." if file.parent.name == "tensormill" else "$ORIGIN"
            output_of("patchelf", "--force-rpath", "--set-rpath", where, file)
    output_of("strip", "--strip-all", folder / "bin" / "tensormill")
    output_of("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/../lib", folder / "bin" / "tensormill")
    (folder / "bin" / "tensormill").chmod(0o755)
    for name, path in DEMO.items():
        shutil.copyfile(ROOT / path, folder / "demo" / name)
    return licences


def metadata(version):
    """METADATA, of pyproject.toml's lines."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    lines = ["Metadata-Version: 2.1", "Name: tensormill", f"Version: {version}", f"Summary: {project['description']}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {one}" for one in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {one} ; extra == "{extra}"' for one in needs)]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", (HERE / "README.md").read_text()])


def members_of(folder, tag, version, licences):
    """name -> (bytes, is a program) of a wheel with the Python files and what `folder` has beside them."""
    members = {}
    for path in sorted((HERE / "tensormill").iterdir()):
        if SOURCE.fullmatch(path.name):
            members[f"tensormill/{path.name}"] = (path.read_bytes(), False)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = f"tensormill/_bundle/{path.relative_to(folder)}"
            members[name] = (path.read_bytes(), path.parent.name == "bin")
    info = f"tensormill-{version}.dist-info"
    members[f"{info}/METADATA"] = (metadata(version).encode(), False)
    pure = "true" if tag == "py3-none-any" else "false"
    wheel = f"Wheel-Version: 1.0\nGenerator: build_wheels.py\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"
    members[f"{info}/WHEEL"] = (wheel.encode(), False)
    members[f"{info}/entry_points.txt"] = (b"[console_scripts]\ntensormill = tensormill._main:main\n", False)
    members[f"{info}/licenses/LICENSE"] = ((ROOT / "LICENSE").read_bytes(), False)
    for name, text in sorted(licences.items()):
        members[f"{info}/licenses/{name}.txt"] = (text, False)
    record = []
    for name, (data, _) in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}")
    record.append(f"{info}/RECORD,,")
    members[f"{info}/RECORD"] = (("\n".join(record) + "\n").encode(), False)
    return members


def write_wheel(out, tag, version, members, is_smaller):
    path = out / f"tensormill-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, (data, is_program) in members.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (0o100755 if is_program else 0o100644) << 16
            archive.writestr(info, data)
    if is_smaller:
        # libdeflate's best form, a few percent smaller than zlib's.
        subprocess.run(["advzip", "--recompress", "--quiet", "--shrink-normal", path], check=True)
    if path.stat().st_size > MAX_BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size / 1e6:.1f} MB, {MAX_BYTES / 1e6:.0f} are allowed")
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    return path


def machine_of(program):
    """The machine's name in a wheel's tag."""
    with open(program, "rb") as file:
        number = file.read(20)[18]
    return {62: "x86_64", 183: "aarch64"}[number]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--program", type=Path)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--max-glibc", default="2.36")
    parser.add_argument("--smaller", action="store_true", help="compress as small as it gets, with advzip")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    version = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]["version"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if options.program is None:
            write_wheel(options.out, "py3-none-any", version, members_of(folder, "py3-none-any", version, {}), options.smaller)
            return
        licences = bundle(folder, options.program, options.library)
        binaries = [folder / "bin" / "tensormill", *sorted((folder / "lib").rglob("*.so*"))]
        floor, where = glibc_of(binaries)
        if floor > tuple(map(int, options.max_glibc.split("."))):
            raise SystemExit(f"{where.name} needs glibc {floor[0]}.{floor[1]}, {options.max_glibc} is allowed")
        print(f"glibc {floor[0]}.{floor[1]} or newer, for {where.name}; {len(binaries) - 2} libraries and modules beside the program")
        tag = f"py3-none-manylinux_{floor[0]}_{floor[1]}_{machine_of(options.program)}"
        write_wheel(options.out, tag, version, members_of(folder, tag, version, licences), options.smaller)


if __name__ == "__main__":
    sys.exit(main())
