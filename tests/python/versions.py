#!/usr/bin/env python3
"""The suite on each CPython of this machine that the package says it runs on, with the newest numpy and httpx for it.

    tests/python/versions.py [PYTHON...]

Without names: those on PATH and those of pyenv, one for each minor version. Fails where the oldest that the package names is not among
them: newer ones alone show nothing. Each gets a virtual environment that is thrown away.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("numpy", "httpx", "grpcio", "pytest")
FILES = ("test_run.py", "test_program.py", "test_http.py", "test_client.py", "test_html.py")


def oldest():
    """What pyproject.toml says: (3, 9)."""
    text = (ROOT / "api/python/pyproject.toml").read_text()
    return tuple(map(int, re.search(r'requires-python = ">=(\d+)\.(\d+)"', text).groups()))


def version_of(python):
    """(3, 9) of a CPython; None for what does not start or is another one."""
    code = "import sys; print(*sys.version_info[:2], sys.implementation.name)"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    words = done.stdout.split()
    return (int(words[0]), int(words[1])) if done.returncode == 0 and words[2:] == ["cpython"] else None


def pythons_here():
    """By minor version one interpreter."""
    names = [shutil.which(f"python3.{minor}") for minor in range(oldest()[1], 40)]
    names += sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"), key=str)
    found = {}
    for python in filter(None, names):
        version = version_of(python)
        if version and version >= oldest():
            found.setdefault(version, python)
    return found


def check(python):
    """Whether all tests passed; what they said is printed."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(python), "-m", "venv", folder], check=True)
        inside = Path(folder) / "bin/python"
        subprocess.run([str(inside), "-m", "pip", "-q", "install", "--disable-pip-version-check", *NEEDED], check=True)
        env = {**os.environ, "PYTHONPATH": str(ROOT / "api/python"), "PYTHONDONTWRITEBYTECODE": "1",
               "TM_PROGRAM": str(ROOT / "build/bin/tensormill"), "no_proxy": "*"}
        done = subprocess.run([str(inside), "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/python/suite/{name}" for name in FILES)],
                              cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        numpy = subprocess.run([str(inside), "-c", "import numpy; print(numpy.__version__)"], check=True, capture_output=True, text=True).stdout.strip()
    passed = re.search(r"\d+ passed", done.stdout)
    print(f"{python}, numpy {numpy}: {passed[0] if passed and done.returncode == 0 else done.stdout[-4000:]}", flush=True)
    return done.returncode == 0 and passed is not None


def main():
    found = {version_of(name): name for name in sys.argv[1:]} or pythons_here()
    if oldest() not in found:
        print(f"error: CPython {'.'.join(map(str, oldest()))} is not here, the oldest that the package is for", file=sys.stderr)
        return 1
    return 0 if all([check(found[version]) for version in sorted(found)]) else 1


if __name__ == "__main__":
    sys.exit(main())
