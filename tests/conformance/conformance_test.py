"""The standard's own cases (Debian's libonnx-testdata), compiled and run. ledger.txt names every case that does not pass,
with the reason; a listed case that passes fails the run as well.

As a program: conformance_test.py [--write-ledger] [PATTERN] prints the counts and the cases that differ from the ledger. Of
another suite, with a ledger of its own: TENSORMILL_ONNX_TESTDATA=FOLDER TENSORMILL_LEDGER=FILE conformance_test.py.
"""

import collections
import os
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np
import onnx

import cases

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/tools"))

import scope  # noqa: E402 (found through the line above)
from line_program import LineProgram  # noqa: E402

BUILD = Path(os.environ.get("TENSORMILL_BUILD", SOURCE / "build"))
PROGRAM = BUILD / "bin" / "conformance_cases"
LEDGER = Path(os.environ.get("TENSORMILL_LEDGER", Path(__file__).with_name("ledger.txt")))
WORKERS = 2
# Of which rank the elements of its list are; all else is an input of a run.
BOUND = {"node/test_loop16_seq_none"}


def read_ledger():
    """Case -> reason."""
    rows = [line.split(None, 1) for line in LEDGER.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return {name: reason for name, reason in rows}


class Worker(LineProgram):
    """The program that runs cases, in files of one folder."""

    def __init__(self, folder):
        super().__init__([PROGRAM])
        self.folder = Path(folder)
        self.bound = set()

    def run_set(self, case, model, data):
        inputs, outputs = self.folder / "in.npz", self.folder / "out.npz"
        expected = cases.values(model, data, "output")
        cases.save(inputs, cases.values(model, data, "input"))
        answer = self.ask(f"{cases.ROOT / case / 'model.onnx'} {inputs} {outputs}")
        if not answer.startswith("ok "):
            return answer.removeprefix("error ")
        if int(answer.split()[1]):
            self.bound.add(case)
        with np.load(outputs) as archive:
            actual = [archive[str(i)] for i in range(len(archive.files))]
        if len(actual) == len(expected) + 1 and actual[-1].shape == () and actual[-1].dtype == np.bool_ and actual[-1]:
            actual.pop()  # That there is an optional value, where the run decides about it.
        if len(actual) == 2 and len(actual) < len(expected) == len(actual[1]):
            # A list whose length the run worked out: all of it, and the extents of each.
            actual = [each[tuple(map(slice, extents))] for each, extents in zip(*actual)]
        if len(actual) != len(expected):
            return f"{len(actual)} outputs, expected {len(expected)}"
        for array, (name, wanted) in zip(actual, expected.items()):
            found = cases.difference(array, wanted)
            if found:
                return f"output {name}: {found}"
        return ""

    def run(self, case):
        """Empty when the case passes, else the reason."""
        try:
            model = onnx.load(str(cases.ROOT / case / "model.onnx"))
            for data in cases.data_sets(case):
                reason = self.run_set(case, model, data)
                if reason:
                    return reason
            return ""
        except cases.NotATensor as error:
            return str(error)


def run_cases(names):
    """Case -> reason, empty for those that pass; and the cases in which values of inputs had to be known at import."""
    queue, results, bound = collections.deque(names), {}, set()

    def work():
        with tempfile.TemporaryDirectory() as folder:
            worker = Worker(folder)
            try:
                while True:
                    try:
                        name = queue.popleft()
                    except IndexError:
                        return
                    results[name] = worker.run(name)
            finally:
                worker.close()
                bound.update(worker.bound)

    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, bound


class Conformance(unittest.TestCase):
    def test_the_ledger_says_what_happens(self):
        names, ledger = cases.all_cases(), read_ledger()
        self.assertGreater(len(names), 1000, f"install libonnx-testdata: {cases.ROOT} has too few cases")
        self.assertEqual(set(ledger) - set(names), set(), "the ledger lists cases that do not exist")
        names = scope.sampled(names, 440)
        results, bound = run_cases(names)
        self.assertEqual(set(results), set(names), "a worker ended before its cases were run")
        passed = sum(not reason for reason in results.values())
        print(f"conformance: {passed} of {len(names)} cases pass")
        self.assertEqual(bound, BOUND & set(names), "cases that need values of inputs when they are compiled")
        broken = {name: reason for name, reason in results.items() if reason and name not in ledger}
        self.assertEqual(broken, {}, "cases that fail and are not in the ledger")
        fixed = [name for name, reason in results.items() if not reason and name in ledger]
        self.assertEqual(fixed, [], "cases that pass now; remove them from the ledger")

    def test_a_difference_is_seen(self):
        ones = np.ones((2, 3), np.float32)
        self.assertEqual(cases.difference(ones, ones * np.float32(1.0005)), "")
        for other in (ones * 2, ones.astype(np.float64), ones[:1], ones * np.float32(np.nan), ones * np.float32(np.inf)):
            self.assertNotEqual(cases.difference(ones, other), "")
            self.assertNotEqual(cases.difference(other, ones), "")
        self.assertNotEqual(cases.difference(ones * np.inf, ones * -np.inf), "")
        self.assertEqual(cases.difference(ones * np.nan, ones * np.nan), "")


def write_ledger(results):
    kept = read_ledger() if LEDGER.exists() else {}
    kept = {name: reason for name, reason in kept.items() if name not in results}
    kept.update({name: reason[:160] for name, reason in results.items() if reason})
    text = "# Cases of libonnx-testdata that do not pass: name, reason. conformance_test.py --write-ledger writes it anew.\n"
    LEDGER.write_text(text + "".join(f"{name} {kept[name]}\n" for name in sorted(kept)), encoding="utf-8")


def main():
    pattern = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    results, bound = run_cases([name for name in cases.all_cases() if pattern in name])
    ledger = read_ledger() if LEDGER.exists() else {}
    for name, reason in sorted(results.items()):
        if reason and (pattern or name not in ledger):
            print(f"FAIL {name}: {reason}")
        elif not reason and name in ledger:
            print(f"passes now: {name}")
    print(f"{sum(not reason for reason in results.values())} of {len(results)} cases pass; values known at import: {sorted(bound)}")
    if "--write-ledger" in sys.argv:
        write_ledger(results)


if __name__ == "__main__":
    main()
