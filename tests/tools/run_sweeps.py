#!/usr/bin/env python3
"""The long runs: all seeds, all sanitizers, kill rounds, wide comparisons.

    run_sweeps.py [--again] [NAME...]

Without a name it lists them with their last results. A sweep is a list of commands; which of them have passed on this
commit is kept in .cache/sweep/, so one that was stopped goes on where it was (`--again`: from the start). The last result of
each is a row of bench/results/sweeps.md. Exit code 1 when a command failed.
"""

import argparse
import datetime
import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from programs import ROOT, run_program
from sweeps import SWEEPS

STATE = ROOT / ".cache/sweep"
RESULTS = ROOT / "bench/results/sweeps.md"
UNIT_LIMIT_S = 4 * 3600
HEAD = """# Last results of the sweeps

`./dev sweep NAME` writes its row; an unfinished one says how far it came. `+` behind a commit: with changes that were not committed.

| sweep | date | commit | processor | commands | result | CPU min |
|---|---|---|---|---|---|---|
"""


def git(*args):
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def commit():
    """The last commit that changed more than the rows, and "+" where files differ from it: the row that a sweep leaves is no
    change, before it is committed or after."""
    others = (".", f":!{RESULTS.relative_to(ROOT)}")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", *others)
    return git("log", "-1", "--format=%h", "--abbrev=10", "--", *others) + ("+" if changed else "")


def processor():
    """The model's name and the widest vectors that it has: a name in a virtual machine often says little."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    flags = set((re.search(r"^flags\s*: (.*)$", text, re.MULTILINE) or [None, ""])[1].split())
    width = next((word for flag, word in (("amx_int8", "AMX"), ("avx512_bf16", "AVX512-BF16"), ("avx512f", "AVX-512"),
                                          ("avx2", "AVX2")) if flag in flags), "SSE")
    return f"{name[1].strip() if name else 'unknown'} ({width})"


class Progress:
    """Which commands of a sweep have ended on a commit, and how; kept in a file after each."""

    def __init__(self, sweep, again):
        self.path = STATE / f"{sweep.name}.json"
        self.commit, self.units = commit(), {}
        if self.path.exists() and not again:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            # Of uncommitted changes nobody can say that they are the same ones.
            if kept["commit"] == self.commit and not self.commit.endswith("+"):
                self.units = {unit: said for unit, said in kept["units"].items() if not said["failed"]}

    def note(self, unit, said):
        self.units[unit] = said
        STATE.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"commit": self.commit, "units": self.units}, indent=1), encoding="utf-8")


def outcome(code, output):
    """What a command's end says: its closing counts where it prints them, else its exit code."""
    found = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", output, re.MULTILINE)
    passed, failed, skipped = (int(number or 0) for number in found[-1]) if found else (int(code == 0), int(code != 0), 0)
    return {"passed": passed, "failed": failed if code == 0 else max(failed, 1), "skipped": skipped}


def write_row(sweep, progress):
    """Puts the sweep's row in its place among those of the table."""
    said = progress.units.values()
    totals = {key: sum(one[key] for one in said) for key in ("passed", "failed", "skipped")}
    row = (f"| {sweep.name} | {datetime.date.today().isoformat()} | {progress.commit} | {processor()} "
           f"| {len(progress.units)} of {len(sweep.units())} "
           f"| {totals['passed']} passed, {totals['failed']} failed, {totals['skipped']} skipped "
           f"| {sum(one['cpu_s'] for one in said) / 60:.1f} |")
    rows = last_rows()
    rows[sweep.name] = row
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(HEAD + "".join(f"{rows[one.name]}\n" for one in SWEEPS if one.name in rows), encoding="utf-8")


def last_rows():
    if not RESULTS.exists():
        return {}
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    return {line.split("|")[1].strip(): line for line in lines if line.startswith("| ") and not line.startswith("| sweep ")}


def run(sweep, again):
    """Runs what is left of a sweep; the number of commands that failed."""
    progress, failed = Progress(sweep, again), 0
    for unit in sweep.units():
        if unit in progress.units:
            print(f"== {unit}: passed before on {progress.commit}", flush=True)
            continue
        started = time.monotonic()
        code, output, cpu_s = run_program(shlex.split(unit), env=sweep.env, limit=UNIT_LIMIT_S)
        said = {**outcome(code, output), "cpu_s": cpu_s, "clock_s": time.monotonic() - started}
        failed += bool(said["failed"])
        progress.note(unit, said)
        write_row(sweep, progress)
    return failed


def main(argv):
    parser = argparse.ArgumentParser(description="the long runs; without a name, their list")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--again", action="store_true", help="run what has passed on this commit as well")
    args = parser.parse_args(argv)
    known = {sweep.name: sweep for sweep in SWEEPS}
    unknown = [name for name in args.names if name not in known]
    if unknown:
        parser.error(f"no sweep {', '.join(unknown)} (known: {', '.join(known)})")
    if not args.names:
        rows = last_rows()
        for sweep in SWEEPS:
            print(f"{sweep.name:14} {sweep.says}\n{'':14} last: {rows.get(sweep.name, 'never run')}")
        return 0
    failed = {name: run(known[name], args.again) for name in args.names}
    for name in args.names:
        print(f"sweep {name}: {failed[name]} commands failed" if failed[name] else f"sweep {name}: passed")
    return 1 if any(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
