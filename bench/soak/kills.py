"""kill -9 again and again: the rounds of tests/e2e/server_kill_test.py, more of them."""

import unittest

from soak import common  # noqa: F401  (puts the test's folder on the path)


def run(rounds):
    """What went wrong, a text each."""
    import server_kill_test

    server_kill_test.ROUNDS = rounds
    result = unittest.TestResult()
    server_kill_test.Kill("test_rounds").run(result)
    return [f"{test}: {text}" for test, text in result.failures + result.errors]
