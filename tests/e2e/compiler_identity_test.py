"""Who compiled: the compiler's identity follows its sources, and another compiler's package is no answer."""

import hashlib
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import mill
import serving

DIGITS = mill.ROOT / "tests/models/digits.onnx"
SUFFIXES = {".cc", ".h", ".def", ".fbs", ".txt", ".cmake"}


def digest_of_sources():
    """As compiler/driver/source_digest.cmake says."""
    files = sorted(str(path.relative_to(mill.ROOT)) for folder in ("compiler", "runtime/abi")
                   for path in (mill.ROOT / folder).rglob("*") if path.is_file() and path.suffix in SUFFIXES)
    lines = "".join(f"{hashlib.sha256((mill.ROOT / file).read_bytes()).hexdigest()}  {file}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def identity(program):
    line = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.search(r"tensormill \S+ \((\w+)\), llvm \S+", line)


class CompilerIdentity(unittest.TestCase):
    def test_it_is_a_digest_of_the_sources(self):
        self.assertEqual(identity(mill.PROGRAM).group(1), digest_of_sources())

    def test_what_another_compiler_made_is_compiled_again(self):
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        mine = identity(mill.PROGRAM)
        # Another compiler: this one under another digest, which is what an upgrade changes of the key.
        (folder / "store").mkdir()
        other = folder / "bin/tensormill"
        other.parent.mkdir()
        for module in mill.PROGRAM.parent.glob("*.so"):
            (other.parent / module.name).symlink_to(module)
        text = mill.PROGRAM.read_bytes()
        self.assertEqual(text.count(mine.group(1).encode()), 1)
        other.write_bytes(text.replace(mine.group(1).encode(), mine.group(1)[::-1].encode()))
        other.chmod(0o755)
        theirs = identity(other)
        self.assertNotEqual(theirs.group(1), mine.group(1))

        made = {}
        for program, build in ((mill.PROGRAM, mine), (other, theirs), (mill.PROGRAM, mine)):
            with mock.patch.object(mill, "PROGRAM", program):
                server = serving.Server(folder / "store")
            try:
                if not made:
                    server.upload("digits", DIGITS.read_bytes())
                self.assertEqual(server.request("GET", "/v1/info").json()["compiler"]["id"], build.group(0))
                answer = server.submit("digits", {"image": [1, 1, 28, 28]})
                first = build.group(0) not in made
                self.assertEqual(answer.status, 202 if first else 200, answer.body)
                job = answer.json() if not first else server.finished(answer.json()["id"])
                self.assertEqual(job["state"], "succeeded")
                package = server.request("GET", f"/v1/packages/{job['result']['package']}").json()
                self.assertEqual(package["metadata"]["compiler_build"], build.group(0))
                self.assertEqual(made.setdefault(build.group(0), job["result"]["package"]), job["result"]["package"])
            finally:
                server.stop()
        self.assertEqual(len(set(made.values())), 2)


if __name__ == "__main__":
    unittest.main()
