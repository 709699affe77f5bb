"""Line coverage of one fuzz target's parser by its corpus: `coverage.py TARGET FOLDER...`.

Runs the program once over the files of the folders, prints the share of lines of each of the parser's files
(targets.def) and of all together; exits with 1 when that is below the bar."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BAR = 85.0


def parser_files(target):
    table = (ROOT / "tests/fuzz/targets.def").read_text(encoding="utf-8")
    row = re.search(rf'^TM_FUZZ\({target},\s*"[^"]*",((?:\s*"[^"]*")+)\)', table, re.MULTILINE)
    return " ".join(re.findall(r'"([^"]*)"', row[1])).split()


def line_counts(program, folders):
    """{file, relative to the root: (lines that ran, lines)}"""
    with tempfile.TemporaryDirectory() as folder:
        raw, profile = Path(folder) / "raw", Path(folder) / "profile"
        subprocess.run([program, "-runs=0", *folders], env={**os.environ, "LLVM_PROFILE_FILE": str(raw)}, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["llvm-profdata-19", "merge", "-sparse", raw, "-o", profile], check=True)
        done = subprocess.run(["llvm-cov-19", "export", "-summary-only", f"-instr-profile={profile}", program], check=True,
                              capture_output=True, text=True)
    return {row["filename"].lstrip("/"): (row["summary"]["lines"]["covered"], row["summary"]["lines"]["count"])
            for row in json.loads(done.stdout)["data"][0]["files"]}


def main():
    target, folders = sys.argv[1], sys.argv[2:]
    files = parser_files(target)
    counts = line_counts(str(ROOT / "build-fuzz/bin/fuzz" / target), folders)
    missing = [name for name in files if name not in counts]
    if missing:
        sys.exit(f"no coverage of {', '.join(missing)}: has the file moved?")
    for name in files:
        covered, lines = counts[name]
        print(f"  {100 * covered / lines:5.1f} %  {name}")
    total = 100 * sum(counts[name][0] for name in files) / sum(counts[name][1] for name in files)
    print(f"  {total:5.1f} %  of the lines of {target}'s parser" + ("" if total >= BAR else f", below {BAR:.0f} %"))
    return 0 if total >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
