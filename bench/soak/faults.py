"""The disk fails at the k-th change of an operation, for every k: the tests of tests/server, compile jobs included, of which
the test run takes one change in thirteen."""

import os
import subprocess

from soak.common import ROOT

PROGRAM = ROOT / "build" / "bin" / "tests" / "server_tests"


def run():
    """What went wrong, a text each."""
    done = subprocess.run([PROGRAM, "--gtest_filter=*Faults*", "--gtest_brief=1"], text=True, check=False,
                          env={**os.environ, "TENSORMILL_TEST_STRIDE": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return [] if done.returncode == 0 else [done.stdout[-4000:]]
