#!/usr/bin/env python3
"""What a C++ program that holds the executor weighs and how long it takes to be ready, beside hashing its package.

    /usr/bin/python3 bench/python/embedded_start.py [MODEL.onnx] [--rounds 15] [--json FILE]

Without a model: ResNet-50 of bench/models. The program loads the package and makes an executor; its time is that of the whole process,
from its start to its end. Hashing is SHA-256 by this Python's OpenSSL over the package's file, which is in memory for both. Rounds take
turns; the least of each counts.
"""

import argparse
import hashlib
import json
import mmap
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/bin/tensormill"
SOURCE = """
#include <tensormill.hpp>

int main(int, char** words) {
  const tensormill::Runtime runtime(1);
  const tensormill::Package package(words[1]);
  const tensormill::Executor executor(runtime, package);
  return package.inputs().empty() ? 1 : 0;
}
"""


def run(*words):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def build(folder):
    """The program, stripped, and the library that it is linked with."""
    run("cmake", "--install", ROOT / "build", "--component", "dev", "--prefix", folder / "installed")
    (folder / "main.cc").write_text(SOURCE)
    library = folder / "installed/lib"
    run("c++", "-std=c++17", "-O2", "-s", f"-I{folder}/installed/include", folder / "main.cc", f"-L{library}", "-ltensormill",
        f"-Wl,-rpath,{library}", "-o", folder / "program")
    run("strip", "-o", folder / "library.so", library / "libtensormill.so.0")
    return folder / "program"


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def hash_file(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as bytes_:
        hashlib.sha256(bytes_).digest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = options.model
        if model is None:
            run(sys.executable, ROOT / "bench/models/generate.py", folder, "resnet50")
            model = folder / "resnet50.onnx"
        package = folder / "package.tar"
        run(PROGRAM, "compile", model, "-o", package)
        program = build(folder)
        ready, hashed, nothing = [], [], []
        for _ in range(options.rounds):
            ready.append(seconds(lambda: run(program, package)))
            hashed.append(seconds(lambda: hash_file(package)))
            nothing.append(seconds(lambda: run("true")))
        report = {"model": model.name, "package_bytes": package.stat().st_size, "program_bytes": program.stat().st_size,
                  "library_bytes": (folder / "library.so").stat().st_size, "ready_ms": 1e3 * min(ready), "hash_ms": 1e3 * min(hashed),
                  "process_ms": 1e3 * min(nothing)}
    print("{model}: package {package_bytes} bytes; program {program_bytes} and library {library_bytes} bytes, stripped; ready in {ready_ms:.1f} ms, "
          "of which a process that does nothing {process_ms:.1f} ms; hashing {hash_ms:.1f} ms".format(**report))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
