"""The binary interface of libtensormill.so: functions, their types and the structures' layouts are those that are kept beside the
header for the library's soname. Programs that were linked with it run with each later library of the soname.

`python3 tests/docs/abi_test.py --write` keeps what has been added."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "runtime/capi/tensormill.h"
# Of abidiff's exit status, which says little of types: what was refused.
FAILED = 3


def soname():
    [version] = re.findall(r"SOVERSION (\d+)", (ROOT / "runtime/shared_runtime.cmake").read_text(encoding="utf-8"))
    return f"libtensormill.so.{version}"


def kept(name):
    return ROOT / f"runtime/capi/{name}.abi"


def run(*words):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)


def dump(header, name, into):
    """The interface as libabigail writes it, of a library of empty functions: the library's own debug information has no types.
    That it has these functions and no others is seen in embedding_test.py."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    functions = re.findall(r"^((?:const )?\w+[ *]+tm_\w+\([^;{}]*\));", text, re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tensormill.h").write_text(header, encoding="utf-8")
        bodies = [re.sub(r"\(void\)", "()", one) + " { __builtin_trap(); }" for one in functions]
        (Path(folder) / "empty.c").write_text('#include "tensormill.h"\n' + "\n".join(bodies), encoding="utf-8")
        library = Path(folder) / name
        for words in (("gcc", "-g", f"-ffile-prefix-map={folder}=.", "-w", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", library,
                       Path(folder) / "empty.c"),
                      ("abidw", "--no-comp-dir-path", "--no-corpus-path", "--no-show-locs", "--type-id-style", "hash", "--out-file", into,
                       library)):
            done = run(*words)
            if done.returncode != 0:
                raise AssertionError(f"{words}\n{done.stdout}{done.stderr}")
    return functions


def difference(before, header, name):
    """How many functions and variables are gone or of another form, how many are new, and abidiff's words."""
    with tempfile.TemporaryDirectory() as folder:
        now = Path(folder) / "now.abi"
        dump(header, name, now)
        done = run("abidiff", before, now)
    if done.returncode & FAILED:
        raise AssertionError(done.stdout + done.stderr)
    counts = re.findall(r"summary: (\d+) Removed, (\d+) Changed[^,]*, (\d+) Added", done.stdout)
    gone, changed, added = (sum(int(one[place]) for one in counts) for place in range(3))
    return gone + changed, added, done.stdout


class Abi(unittest.TestCase):
    HEADER = HEADER.read_text(encoding="utf-8")

    def test_the_interface_is_that_of_the_soname(self):
        name = soname()
        self.assertTrue(kept(name).exists(), f"{name} is new: keep its interface with --write")
        broken, added, words = difference(kept(name), self.HEADER, name)
        self.assertEqual(broken, 0, f"programs that are linked with {name} would break: raise SOVERSION\n{words}")
        self.assertEqual(added, 0, f"keep what is new with --write\n{words}")

    def test_each_function_of_the_header_is_in_it(self):
        with tempfile.TemporaryDirectory() as folder:
            functions = dump(self.HEADER, soname(), Path(folder) / "now.abi")
            text = (Path(folder) / "now.abi").read_text(encoding="utf-8")
        names = set(re.findall(r"\b(tm_\w+)\(", re.sub(r"/\*.*?\*/", "", self.HEADER, flags=re.DOTALL)))
        self.assertEqual({re.search(r"(tm_\w+)\(", one)[1] for one in functions}, names)
        self.assertEqual(set(re.findall(r"elf-symbol name='(\w+)'", text)), names)

    def test_changes_are_noticed(self):
        for before, after, breaks in (
                ("int32_t tm_runtime_create(int32_t threads,", "int32_t tm_runtime_create(int64_t threads,", True),
                ("void tm_runtime_destroy(tm_runtime* runtime);", "", True),
                ("  int32_t rank;\n  const int64_t* shape;\n  const void* data;", "  const int64_t* shape;\n  int32_t rank;\n  const void* data;",
                 True),
                ("TM_INT8 = 4,", "TM_INT8 = 104,", True),
                ("const char* tm_version(void);", "const char* tm_version(void);\nint32_t tm_more(int32_t one);", False)):
            with self.subTest(after=after):
                self.assertEqual(self.HEADER.count(before), 1)
                broken, added, words = difference(kept(soname()), self.HEADER.replace(before, after), soname())
                self.assertEqual((broken > 0, added), (breaks, 0 if breaks else 1), words)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        dump(HEADER.read_text(encoding="utf-8"), soname(), kept(soname()))
    else:
        unittest.main()
