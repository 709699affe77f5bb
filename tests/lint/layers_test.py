"""The layer graph as written in CMake: an #include of a room that is not a declared dependency fails."""

import re
import unittest
from pathlib import Path

from sources import ROOT, ROOMS, tracked

INCLUDE = re.compile(r'^\s*#include "([a-z_]+/[^"]+)"', re.MULTILINE)


def tracked_sources():
    return [path for path in tracked("*.cc", "*.h", "*.def") if path.parts[0] in ROOMS]


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


if __name__ == "__main__":
    unittest.main()
