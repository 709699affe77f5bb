"""The layer graph and the sizes, as written in CMake: an #include of a room that is not a declared dependency fails."""

import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("runtime", "compiler", "storage", "api", "server", "config")
INCLUDE = re.compile(r'^\s*#include "([a-z_]+/[^"]+)"', re.MULTILINE)
MAX_LINES = {".cc": 500, ".h": 500}


def tracked_sources():
    names = subprocess.run(["git", "ls-files", "*.cc", "*.h", "*.def"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [Path(name) for name in names.stdout.split() if name.split("/")[0] in ROOMS]


def declared_layers():
    layers = {}
    for line in (ROOT / "build" / "layers.txt").read_text().splitlines():
        target, folder, *deps = line.split()
        layers[target] = (folder, deps)
    return layers


def target_of(path, layers):
    """The target whose folder is the longest prefix of the path."""
    found = [(len(folder), target) for target, (folder, _) in layers.items() if str(path).startswith(folder + "/")]
    return max(found)[1] if found else None


class Layers(unittest.TestCase):
    def test_includes_follow_the_declared_layers(self):
        layers = declared_layers()
        wrong = []
        for path in tracked_sources():
            own = target_of(path, layers)
            if own is None:
                continue
            for included in INCLUDE.findall((ROOT / path).read_text()):
                other = target_of(Path(included), layers)
                if other is not None and other != own and other not in layers[own][1]:
                    wrong.append(f"{path} includes {included}; {own} may include: {' '.join(layers[own][1])}")
        self.assertEqual(wrong, [])

    def test_only_code_generation_includes_llvm(self):
        users = [str(path) for path in tracked_sources()
                 if re.search(r'#include [<"](llvm|lld)/', (ROOT / path).read_text())]
        self.assertTrue(users)
        self.assertEqual([user for user in users if not user.startswith("compiler/codegen/llvm/")], [])

    def test_files_fit_a_reader(self):
        long = [f"{path}: {count} lines" for path in tracked_sources() if path.suffix in MAX_LINES
                for count in [len((ROOT / path).read_text().splitlines())] if count > MAX_LINES[path.suffix]]
        self.assertEqual(long, [])


if __name__ == "__main__":
    unittest.main()
