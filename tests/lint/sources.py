"""The files that the lint tests look at, as git knows them."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("runtime", "compiler", "storage", "api", "server", "config")
# `./dev lint --all`: the slow checks look at every file, not only at the changed ones.
ALL = os.environ.get("TM_TEST_LINT_ALL") == "1"


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def tracked(*patterns):
    """Paths relative to the root of the tracked and the not yet tracked files that match."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns)
    return [Path(name) for name in sorted(set(listed.split("\n"))) if name and (ROOT / name).is_file()]


def merge_base():
    """Where this branch left main; HEAD on main itself and where there is no main to compare with."""
    head = git("rev-parse", "HEAD").strip()
    for branch in ("main", "origin/main"):
        found = subprocess.run(["git", "merge-base", "HEAD", branch], cwd=ROOT, capture_output=True, text=True,
                               check=False)
        if found.returncode == 0 and found.stdout.strip() != head:
            return found.stdout.strip()
    return head


def changed_files():
    """The files that differ from main, committed or not."""
    names = git("diff", "--name-only", merge_base()).split("\n")
    names += git("ls-files", "--others", "--exclude-standard").split("\n")
    return [Path(name) for name in names if name]


def changed(*patterns):
    """The files of those patterns that differ from main. With TM_TEST_LINT_ALL=1 all of them."""
    everything = tracked(*patterns)
    if ALL:
        return everything
    # A header is looked at through the file that implements it.
    paths = [path.with_suffix(".cc") if path.suffix == ".h" and path.with_suffix(".cc") in everything else path
             for path in changed_files()]
    return sorted(set(paths) & set(everything))


def in_parallel(action, items):
    """action(item) of each item, as many at once as there are cores; the results in order."""
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        return list(pool.map(action, items))
