"""What the sweeps of frameworks' operators and layers share: how numbers are compared, and how many cases are judged in one model."""

import subprocess
from pathlib import Path

import numpy as np

PROGRAM = Path(__file__).resolve().parents[2] / "build/bin/tensormill"
# Of the largest number of an output: sums in another order, and functions of a few units of the last place.
TOLERANCE = 1e-4
# By the type that is computed in. Shorter floats: two units of the last place, as sums in another order may be.
TOLERANCES = {"float64": 1e-5, "float32": 1e-4, "float16": 2**-9, "bfloat16": 2**-6}


def said(folder, *arguments):
    """What the program says where it fails; nothing where it does not."""
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode != 0 else None


def difference(got, want, tolerance=TOLERANCE):
    """Why both are not the same; nothing where they are."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    if want.size == 0:
        return None
    if not np.issubdtype(want.dtype, np.floating):
        return None if np.array_equal(got, want) else f"other values: {got.flatten()[:8]}, expected {want.flatten()[:8]}"
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return f"other infinities: {got.flatten()[:8]}, expected {want.flatten()[:8]}"
    if not finite.any():
        return None
    apart = np.abs(got[finite].astype(np.float64) - want[finite].astype(np.float64)).max()
    most = np.abs(want[finite].astype(np.float64)).max()
    return None if apart <= tolerance * max(most, 1e-3) else f"{apart} apart, of {most}: {got.flatten()[:8]}, expected {want.flatten()[:8]}"


class LeftOut(Exception):
    """The framework itself does not make a model of these."""


class Refused(Exception):
    """What the program says instead of compiling or running the model."""


class Count:
    def __init__(self):
        self.cases = self.outputs = self.wrong = self.failed = self.refused = self.left_out = 0

    def __str__(self):
        return (f"{self.cases} cases, {self.outputs} outputs: {self.wrong} wrong, {self.failed} failed, {self.refused} not implemented; "
                f"{self.left_out} that the framework makes no model of")


def judge(cases, count, run, is_left_out=lambda case: False):
    """Counts cases, of which `run` says what is wrong with each, and how many outputs were compared; cases that fail together are halved
    until the one is found. `is_left_out`: whether the framework does not take a case that was refused."""
    if not cases:
        return
    try:
        whys, outputs = run(cases)
    except (LeftOut, Refused) as error:
        if len(cases) > 1:
            judge(cases[:len(cases) // 2], count, run, is_left_out)
            judge(cases[len(cases) // 2:], count, run, is_left_out)
        elif isinstance(error, LeftOut) or is_left_out(cases[0]):
            count.left_out += 1
        else:
            # What is not implemented is said by its name, and is no failure.
            is_named = "not supported" in str(error)
            count.cases, count.refused, count.failed = count.cases + 1, count.refused + is_named, count.failed + (not is_named)
            print(f"refused: {cases[0].label()}: {' '.join(str(error).split())[:400]}", flush=True)
        return
    count.cases, count.outputs = count.cases + len(cases), count.outputs + outputs
    for case, why in zip(cases, whys):
        if why:
            count.wrong += 1
            print(f"differs: {case.label()}: {'; '.join(why)[:500]}", flush=True)


def judge_groups(groups, count, size, run, is_left_out=lambda case: False):
    """All cases of (name, cases) pairs, `size` in a model."""
    for name, cases in groups:
        before, batch = count.cases, []
        for case in cases:
            batch.append(case)
            if len(batch) == size:
                judge(batch, count, run, is_left_out)
                batch = []
        judge(batch, count, run, is_left_out)
        print(f"{name}: {count.cases - before} cases", flush=True)
    print(count)
    return 1 if count.wrong or count.failed else 0
