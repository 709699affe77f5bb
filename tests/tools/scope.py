"""Which tests a run takes: the gate takes a sample of those that are many of one kind, a sweep takes all.

`TM_TEST_SCOPE=sweep` in the environment is a sweep; anything else the gate. The rows of samples.toml say what is sampled
and how many of it; a sample is the same in every run, spread evenly over the tests in their order. What a test goes
through itself it samples by `sampled`.
"""

import os
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

TABLE = Path(__file__).resolve().parent / "samples.toml"


def is_sweep():
    return os.environ.get("TM_TEST_SCOPE") == "sweep"


def spread(items, keep):
    """`keep` of the items, or all when there are fewer, evenly spread over them, the last one included."""
    items = list(items)
    if len(items) <= keep:
        return items
    return [items[(index + 1) * len(items) // keep - 1] for index in range(keep)]


def sampled(items, keep):
    """All items in a sweep; in the gate `keep` of them."""
    return list(items) if is_sweep() else spread(items, keep)


def rows():
    return tomllib.loads(TABLE.read_text(encoding="utf-8")).get("sample", [])


def chosen_tests(program, tests, table=None):
    """Those of a program's tests (names in their order) that this run takes."""
    if is_sweep():
        return list(tests)
    left = set()
    for row in rows() if table is None else table:
        if row["program"] == program:
            matching = [test for test in tests if fnmatchcase(test, row["tests"])]
            left |= set(matching) - set(spread(matching, row["keep"]))
    return [test for test in tests if test not in left]
