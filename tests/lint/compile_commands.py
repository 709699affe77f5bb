"""How each file is compiled, also those that are compiled in batches (config/cmake/rooms.cmake)."""

import json
import re

from sources import ROOT

# Of GCC alone: clang refuses what it does not know.
GCC_ALONE = re.compile(r" (-finline-limit=\d+|-fno-gcse|-fno-tree-[\w-]+|-fno-schedule-insns2|--param ggc-min-heapsize=\d+)(?= )")
BATCHED = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)


def compiled():
    """The rows of build/compile_commands.json, batches as they are compiled, in the words that clang knows."""
    rows = json.loads((ROOT / "build" / "compile_commands.json").read_text())
    return [{**row, "command": GCC_ALONE.sub("", row["command"])} for row in rows]


def entries():
    """The same, but a batch gives a row for each of its files, as if it was compiled alone."""
    rows = []
    for row in compiled():
        if "/batches/" not in row["file"]:
            rows.append(row)
            continue
        with open(row["file"], encoding="utf-8") as batch:
            files = [str(ROOT / name) for name in BATCHED.findall(batch.read())]
        rows += [{**row, "file": file, "command": row["command"].replace(row["file"], file)} for file in files]
    return rows


def write(folder, rows):
    """A folder with the database that clang-tidy's -p takes."""
    (folder / "compile_commands.json").write_text(json.dumps(rows))
