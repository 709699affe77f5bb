"""Plants the bugs of planted.toml one at a time into a copy of the sources and fuzzes: planted.py [NAME...].

Each must be found within LIMIT_S seconds from the committed corpus alone; stops with 1 when one is not. The copy and its
build lie in build-planted/."""

import shutil
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/tools"))

from source_copy import SourceCopy  # noqa: E402  (found through the line above)

COPY = SourceCopy(ROOT / "build-planted/source")
BUILD = COPY.folder / "build-fuzz"
WORK = ROOT / "build-planted/work"
LIMIT_S = 120
FLAGS = ["-timeout=20", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-print_final_stats=1", "-seed=1"]

BUGS = tomllib.loads((ROOT / "tests/fuzz/planted.toml").read_text(encoding="utf-8"))["bug"]


def fuzz(target, seconds):
    """(exit code, output) of the copy's program; what it finds stays in WORK."""
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "corpus").mkdir(parents=True)
    return COPY.call([BUILD / "bin/fuzz" / target, *FLAGS, f"-max_total_time={seconds}", f"-artifact_prefix={WORK}/",
                      WORK / "corpus", ROOT / "tests/fuzz/corpus" / target], LLVM_PROFILE_FILE="/dev/null")


def finding(output):
    """The line that says what was found."""
    words = ("ERROR: ", "runtime error: ", "terminate called", "what():", "Assertion")
    return next((line.strip()[:100] for line in output.splitlines() if any(word in line for word in words)), "a finding")


def number_of_runs(output):
    lines = [line.rsplit(":", 1)[1].strip() for line in output.splitlines() if line.startswith("stat::number_of_executed_units")]
    return lines[0] if lines else "?"


def build(*targets):
    code, output = COPY.build(BUILD, *(f"fuzz_{target}" for target in targets))
    if code != 0:
        sys.exit(f"the copy does not build:\n{output[-4000:]}")


def try_bug(bug):
    """(found, words for the table)"""
    take_back = COPY.plant(bug)
    try:
        build(bug["target"])
        started = time.monotonic()
        code, output = fuzz(bug["target"], LIMIT_S)
        seconds = time.monotonic() - started
    finally:
        take_back()
    if code == 0:
        return False, f"not found in {seconds:.0f} s, {number_of_runs(output)} runs"
    return True, f"{seconds:6.1f} s, {number_of_runs(output)} runs: {finding(output)}"


def main(names):
    bugs = [bug for bug in BUGS if not names or bug["name"] in names]
    COPY.folder.mkdir(parents=True, exist_ok=True)
    COPY.sync()
    code, output = COPY.call(["cmake", "--preset", "fuzz", "-DTENSORMILL_TESTS=ON"])
    if code != 0:
        sys.exit(output)
    targets = sorted({bug["target"] for bug in bugs})
    build(*targets)
    for target in targets:
        code, output = fuzz(target, 2)
        if code != 0:
            sys.exit(f"{target} has a finding without any bug:\n{output[-3000:]}")
    found = 0
    for bug in bugs:
        good, words = try_bug(bug)
        found += good
        print(f"  {bug['target']:10} {bug['name']:34} {words}", flush=True)
    print(f"found {found} of {len(bugs)}")
    return 0 if found == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
