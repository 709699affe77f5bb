"""The files that the lint tests look at, as git knows them."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("runtime", "compiler", "storage", "api", "server", "config")
# `./dev lint --all`: the slow checks look at every file, not only at the changed ones.
ALL = os.environ.get("TENSORMILL_LINT_ALL") == "1"
# The slow checks' share of the test run: so many files are a minute or two on two cores.
NEWEST = 24


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def tracked(*patterns):
    """Paths relative to the root of the tracked and the not yet tracked files that match."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns)
    return [Path(name) for name in sorted(set(listed.split("\n"))) if name and (ROOT / name).is_file()]


def merge_base():
    """Where this branch left main; None on main itself and where there is no other branch to compare with."""
    head = git("rev-parse", "HEAD").strip()
    for branch in ("main", "origin/main"):
        found = subprocess.run(["git", "merge-base", "HEAD", branch], cwd=ROOT, capture_output=True, text=True,
                               check=False)
        if found.returncode == 0 and found.stdout.strip() != head:
            return found.stdout.strip()
    return None


def changed(*patterns):
    """The files changed since main, uncommitted ones first; on main itself those of the newest commits, NEWEST at
    most. With TENSORMILL_LINT_ALL=1 all of them."""
    everything = tracked(*patterns)
    if ALL:
        return everything
    base = merge_base()
    names = git("diff", "--name-only", base or "HEAD").split()
    names += git("ls-files", "--others", "--exclude-standard").split()
    if base is None:
        names += git("log", "--name-only", "--format=", "-n", "60").split()
    # A header is looked at through the file that implements it.
    names = [str(Path(name).with_suffix(".cc")) if name.endswith(".h") and Path(name).with_suffix(".cc") in everything
             else name for name in names]
    known = {str(path) for path in everything}
    picked = [Path(name) for name in dict.fromkeys(names) if name in known]
    return picked if base else picked[:NEWEST]


def in_parallel(action, items):
    """action(item) of each item, as many at once as there are cores; the results in order."""
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        return list(pool.map(action, items))
