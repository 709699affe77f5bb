"""A header stands alone: it names all that it uses.

A header with a .cc of its name is that file's first include, so that compiling the file alone shows it: clang-tidy does,
for those that changed. The others, few, are compiled alone: those that differ from main, or include what does. `./dev lint --all`
compiles every header alone.
"""

import re
import shlex
import shutil
import subprocess
import unittest
from pathlib import Path

import compile_commands
from sources import ALL, ROOT, changed_files, in_parallel, tracked

INCLUDE = re.compile(r'^#include [<"]([^>"]+)[>"]', re.MULTILINE)

# Headers of the product that read all of JSON, since they hold one or have code that does. Each passes a second of compiling
# on to every source that includes it: what only names Json in declarations includes runtime/base/json_fwd.h.
MOST_WITH_JSON = 19


def own_file(header):
    source = header.with_suffix(".cc")
    return source if (ROOT / source).is_file() else None


def flags_of(header, database):
    """The compile command of a file as near to the header as can be, without its input and output."""
    folder, near = header.parent, None
    while near is None:
        near = next((e for e in database if e["file"].startswith(f"{ROOT / folder}/")), None)
        folder = folder.parent
    kept, skip = [], False
    for word in shlex.split(near["command"]):
        if skip or word in ("-c", near["file"]):
            skip = False
        elif word in ("-o", "-MF", "-MT"):
            skip = True
        else:
            kept.append(word)
    return kept


def reach(headers, texts, changed):
    """Those of the headers that are changed, or include, however indirectly, what is. texts: of all files that may be included."""
    included = {path: {Path(name) for name in INCLUDE.findall(text)} & texts.keys() for path, text in texts.items()}
    reached, more = set(), set(changed)
    while more:
        reached |= more
        more = {path for path, names in included.items() if names & reached} - reached
    return [header for header in headers if header in reached]


class Headers(unittest.TestCase):
    def test_json_comes_by_its_name_where_a_name_is_enough(self):
        sources = {str(path): set(INCLUDE.findall((ROOT / path).read_text())) for path in tracked("*.h", "*.cc")}

        def who_includes(name):
            return sorted(path for path, included in sources.items() if name in included)

        self.assertEqual(who_includes("nlohmann/json.hpp"), ["runtime/base/json.h", "runtime/base/own_json.h"])
        self.assertEqual(who_includes("nlohmann/json_fwd.hpp"), ["runtime/base/json_fwd.h"])
        heavy = [path for path in who_includes("runtime/base/json.h") if path.endswith(".h") and not path.startswith("tests/")]
        self.assertLessEqual(len(heavy), MOST_WITH_JSON, heavy)

    def test_a_file_includes_its_own_header_first(self):
        wrong = []
        for header in tracked("*.h"):
            source = own_file(header)
            first = INCLUDE.search((ROOT / source).read_text()) if source else None
            if source and (first is None or first.group(1) != str(header)):
                wrong.append(f"{source}: the first include is not {header}")
        self.assertEqual(wrong, [])

    def test_headers_compile_alone(self):
        """As files whose objects the compiler's cache keeps, where the build has one: most headers are as they were."""
        database = compile_commands.entries()
        launcher = list(filter(None, [shutil.which("ccache")]))
        folder = ROOT / "build/headers"
        folder.mkdir(exist_ok=True)

        def compile_alone(header):
            source = folder / (str(header).replace("/", "_") + ".cc")
            text = f'#include "{header}"\n'
            if not source.exists() or source.read_text() != text:
                source.write_text(text)
            command = [*launcher, *flags_of(header, database), "-O0", "-g0", "-c", str(source), "-o", str(source.with_suffix(".o"))]
            done = subprocess.run(command, cwd=ROOT / "build", text=True, capture_output=True, check=False)
            return [] if done.returncode == 0 else [f"{header}: {done.stderr[:800]}"]

        texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in tracked("*.h", "*.def")}
        alone = [header for header in tracked("*.h") if ALL or own_file(header) is None]
        self.assertTrue(alone)
        if not ALL:
            alone = reach(alone, texts, changed_files())
        wrong = [text for found in in_parallel(compile_alone, alone) for text in found]
        self.assertEqual(wrong, [])

    def test_what_includes_a_changed_header_is_reached(self):
        a, b, c, d = (Path(f"room/{name}.h") for name in "abcd")
        texts = {a: '#include "room/b.h"\n', b: "#include <room/c.h>\n", c: "#include <vector>\n", d: ""}
        self.assertEqual(reach([a, c, d], texts, [c]), [a, c])
        self.assertEqual(reach([a, c, d], texts, [d]), [d])
        self.assertEqual(reach([a, c, d], texts, []), [])


if __name__ == "__main__":
    unittest.main()
