"""What the end-to-end tests share: the program, generated models, and the reference's answers."""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/bin/tensormill"
CACHE = ROOT / "build/models"
GENERATORS = ROOT / "bench/models"

for folder in ("tests/peer", "tests/models", "tests/tools", "bench/models"):
    sys.path.insert(0, str(ROOT / folder))

import alive  # noqa: E402
import compare  # noqa: E402

LEVELS = range(5)
# What no program takes, on a busy machine neither.
PROGRAM_LIMIT_S = 1200


def tolerance(level):
    """Level 4 may move numerics."""
    return 1e-3 if level == 4 else 1e-4


def run_program(*args, timeout=PROGRAM_LIMIT_S):
    """Runs tensormill; returns the finished process, whatever its exit code."""
    return subprocess.run([str(PROGRAM), *map(str, args)], cwd=ROOT, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, check=False)


def check_program(test, *args, timeout=PROGRAM_LIMIT_S):
    """Runs tensormill, which must succeed; returns its stdout."""
    done = run_program(*args, timeout=timeout)
    test.assertEqual(done.returncode, 0, f"tensormill {' '.join(map(str, args))}\n{done.stdout}{done.stderr}")
    return done.stdout


def newest(paths):
    return max(os.stat(p).st_mtime for p in paths)


@contextlib.contextmanager
def kept_files(stem):
    """Files of CACHE under that name are this program's alone: test programs run side by side. Not reentrant."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{stem}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def generated(name, external=False):
    """The path of a generated model; written when missing or older than its generators."""
    folder = CACHE / ("external" if external else "onnx")
    path = folder / f"{name}.onnx"
    with kept_files(f"{folder.name}-{name}"):
        if not path.exists() or path.stat().st_mtime < newest(GENERATORS.glob("*.py")):
            command = ["/usr/bin/python3", str(GENERATORS / "generate.py"), str(folder), name]
            subprocess.run(command + (["--external"] if external else []), check=True, stdout=subprocess.DEVNULL)
    return path


def shapes_option(inputs):
    """The --input-shapes value that binds each input to the shape of its array."""
    return " ".join(f"{name}:[{','.join(map(str, array.shape))}]" for name, array in inputs.items())


def load_npz(path):
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def reference(model_path, inputs, stem):
    """Writes `inputs` to CACHE/STEM.in.npz; returns that path and ONNX Runtime's outputs, kept between runs."""
    feed, answer = CACHE / f"{stem}.in.npz", CACHE / f"{stem}.ref.npz"
    runner = ROOT / "tests/peer/ort_run.js"
    with kept_files(stem):
        known = feed.exists() and not compare.compare_sets(load_npz(feed), inputs, 0)
        if not known:
            np.savez(feed, **inputs)
        if not known or not answer.exists() or answer.stat().st_mtime < newest([model_path, runner, feed]):
            alive.ort_run(str(model_path), str(feed), str(answer))
        return feed, load_npz(answer)


def compile_model(test, model, package, level, inputs, *options):
    return check_program(test, "compile", model, "--target", "llvm -mcpu=native", "--opt-level", level,
                         "--input-shapes", shapes_option(inputs), "-o", package, *options)


def run_package(test, package, feed, out):
    """Runs a package on an NPZ file; returns its outputs."""
    check_program(test, "run", package, "-i", feed, "-o", out, "--repeat", 1, "--number", 1, "--warmup", 0)
    return load_npz(out)


def host_steps(test, package):
    """The number of steps of a package that are not compiled kernels."""
    return json.loads(check_program(test, "show", package, "--json"))["host_steps"]
