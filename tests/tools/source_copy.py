"""A copy of the sources in a build folder, in which bugs can be planted without touching the tree."""

import hashlib
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["api", "bench", "compiler", "config", "runtime", "server", "storage", "tests"]
FILES = ["CMakeLists.txt", "CMakePresets.json", "LICENSE", ".clang-format"]
SKIPPED = {"node_modules", "__pycache__", "results"}


def source_files():
    """Every file of a copy, relative to the root, sorted."""
    paths = [Path(name) for name in FILES if (ROOT / name).exists()]
    for folder in FOLDERS:
        for parent, folders, names in os.walk(ROOT / folder):
            folders[:] = [name for name in folders if name not in SKIPPED]
            paths += [Path(parent).relative_to(ROOT) / name for name in names]
    return sorted(paths)


class SourceCopy:
    """The copy in `folder`; calls run there."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def sync(self):
        """Makes the copy equal to the sources, leaves equal files untouched, and returns the digest of all."""
        digest, wanted = hashlib.sha256(), set()
        for path in source_files():
            data, target = (ROOT / path).read_bytes(), self.folder / path
            digest.update(f"{path}\0{len(data)}\0".encode() + data)
            wanted.add(target)
            if not target.exists() or target.read_bytes() != data:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
        for folder in FOLDERS:
            for old in [path for path in (self.folder / folder).rglob("*") if path.is_file() and path not in wanted]:
                old.unlink()
        return digest.hexdigest()

    def call(self, command, limit=None, **environment):
        """(exit code or "a time-out", output)."""
        variables = {**os.environ, "CCACHE_BASEDIR": str(self.folder), "CCACHE_NOHASHDIR": "1", **environment}
        try:
            done = subprocess.run([str(part) for part in command], cwd=self.folder, env=variables, text=True,
                                  timeout=limit, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, errors="replace", check=False)
            return done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            return "a time-out", (late.stdout or b"").decode(errors="replace")

    def build(self, folder, *targets):
        return self.call(["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 2), "--target", *targets])

    def plant(self, row):
        """Replaces the row's text, which must stand once in its file; returns a function that takes it back."""
        target = self.folder / row["file"]
        original = target.read_text(encoding="utf-8")
        if original.count(row["find"]) != 1:
            raise AssertionError(f"{row['file']} does not have the text once: {row['find']}")
        target.write_text(original.replace(row["find"], row["replace"]), encoding="utf-8")
        return lambda: target.write_text(original, encoding="utf-8")
