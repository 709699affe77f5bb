"""Every overload of PyTorch that is imported, varied (torch_variations.py), beside eager torch, as exported programs:
python torch_overloads_sweep.py [--families unary,binary] [--pairs] [--count 6] [--seed 1].

Needs torch and torchvision (tests/fixtures/requirements-pytorch.txt) and the built program. Prints each case that differs or that is
refused, and ends with their numbers. What torch itself does not export is left out.
"""

import argparse
import logging
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

import torch_variations
from torch_sweep import difference
from torch_variations import NUMBERED, PAIRED, pairs, readable, variations

PROGRAM = Path(__file__).resolve().parents[2] / "build/bin/tensormill"
CASES_A_MODEL = 48
# Of the largest number of an output. Shorter floats: two units of the last place, as sums in another order may be.
TOLERANCES = {torch.float64: 1e-5, torch.float32: 1e-4, torch.float16: 2**-9, torch.bfloat16: 2**-6}
warnings.simplefilter("ignore")
logging.disable(logging.ERROR)  # torch tells at length why it does not export something


class Calls(torch.nn.Module):
    def __init__(self, cases):
        super().__init__()
        self.cases = cases

    def forward(self, inputs):
        results = []
        for case, given in zip(self.cases, inputs):
            # numpy has no bfloat16: such an input is made of another one.
            typed = {name: given[name].to(case.inputs[name].dtype) if case.inputs[name].dtype == torch.bfloat16 else given[name]
                     for name in case.inputs}
            results += case.results(typed)
        return results


def given(case, inputs):
    return {name: readable(value).clone() for name, value in inputs.items()}


def longer(case):
    """Inputs whose free axes are longer by two; nothing where torch does not take them."""
    generator = torch.Generator().manual_seed(len(case.text))
    made = {}
    for name, value in case.inputs.items():
        for axis, extent in enumerate(value.shape):
            if extent == case.free:
                more = value.index_select(axis, torch.tensor([extent - 1] * 2))
                if value.is_floating_point() and name != "edges":
                    more = more * torch.rand(more.shape, generator=generator).to(more.dtype)  # equal ones have no order
                value = torch.cat([value, more], axis)
        made[name] = value
    try:
        results = case.results({name: value.clone() for name, value in made.items()})
    except Exception:  # whatever torch says of it
        return None
    return made if len(results) == len(case.results(given(case, case.inputs))) else None


class NotExported(Exception):
    pass


def exported(cases):
    inputs = [given(case, case.inputs) for case in cases]
    dynamic = [{name: {axis: torch.export.Dim.AUTO for axis, extent in enumerate(value.shape) if extent == case.free} or None
                for name, value in case.inputs.items()} if case.free else {name: None for name in case.inputs} for case in cases]
    module = Calls(cases).eval()
    try:
        with torch.no_grad():
            return torch.export.export(module, (inputs,), dynamic_shapes=(dynamic,) if any(case.free for case in cases) else None, strict=False)
    except Exception as error:
        raise NotExported(str(error).splitlines()[0][:200] if str(error) else type(error).__name__) from error


def said(folder, *arguments):
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"exit code {done.returncode}" if done.returncode != 0 else None


def tolerance_of(case):
    if "bfloat16" in case.text:
        return TOLERANCES[torch.bfloat16]
    return max((TOLERANCES.get(value.dtype, 0) for value in case.inputs.values()), default=0) or TOLERANCES[torch.float32]


class Count:
    def __init__(self):
        self.cases = self.outputs = self.wrong = self.failed = self.refused = self.left_out = 0


def is_refused(program, case, inputs):
    """Whether the program itself does not take those extents."""
    if any(each.upper < 1 << 20 for each in program.range_constraints.values()):
        return True
    try:
        program.module()([given(case, inputs)])
    except Exception:  # whatever torch says of it
        return True
    return False


def judge(cases, count, level):
    """Compares; cases that fail together are halved until the one is found."""
    if not cases:
        return
    try:
        program = exported(cases)
    except NotExported:
        if len(cases) == 1:
            count.left_out += 1
        else:
            judge(cases[:len(cases) // 2], count, level)
            judge(cases[len(cases) // 2:], count, level)
        return
    runs = [[case.inputs for case in cases]]
    if any(case.free for case in cases):
        runs.append([(longer(case) if case.free else None) or case.inputs for case in cases])
    names, outputs = program.graph_signature.user_inputs, program.graph_signature.user_outputs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.export.save(program, folder / "model.pt2")
        why = said(folder, "compile", "model.pt2", "-O", str(level), "-o", "model.tar")
        for turn, inputs in enumerate(runs if why is None else []):
            flat = [value for case, each in zip(cases, inputs) for value in given(case, each).values()]
            np.savez(folder / f"in{turn}.npz", **{key: value.numpy() for key, value in zip(names, flat)})
            why = why or said(folder, "run", "model.tar", "-i", f"in{turn}.npz", "-o", f"out{turn}.npz")
        if why is not None:
            if len(cases) == 1 and len(runs) > 1 and is_refused(program, cases[0], runs[1][0]):
                count.left_out += 1
            elif len(cases) == 1:
                # What is not implemented is said by its name, and is no failure.
                is_named = "not supported" in why
                count.cases, count.refused, count.failed = count.cases + 1, count.refused + is_named, count.failed + (not is_named)
                print(f"refused: {cases[0].label()}: {' '.join(why.split())[:400]}", flush=True)
            else:
                judge(cases[:len(cases) // 2], count, level)
                judge(cases[len(cases) // 2:], count, level)
            return
        for turn, inputs in enumerate(runs):
            with np.load(folder / f"out{turn}.npz") as archive:
                compare(cases, inputs, outputs, archive, count, turn)
    count.cases += len(cases)


def compare(cases, inputs, outputs, archive, count, turn):
    place = 0
    for case, each in zip(cases, inputs):
        with torch.no_grad():
            results = case.results({name: value.clone() for name, value in each.items()})
        whys = []
        for index, want in enumerate(results):
            key = outputs[place]
            place += 1
            count.outputs += 1
            if want.dtype == torch.int64 and not case.is_ordered(each):
                continue
            got = archive[key] if key in archive else np.empty(0)
            if want.dtype == torch.uint8 and "upsample" in case.text and got.shape == want.shape:
                # Bytes are interpolated with weights of 16 bits.
                got = np.where(np.abs(got.astype(int) - want.numpy()) <= 1, want.numpy(), got)
            why = difference(got, want.numpy(), tolerance_of(case)) if key in archive else "it is not there"
            whys += [f"result {index}: {why}"] if why else []
        if whys:
            count.wrong += 1
            print(f"differs{', of longer ones' if turn else ''}: {case.label()}: {'; '.join(whys)[:500]}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", default=",".join(torch_variations.torch_cases.FAMILIES))
    parser.add_argument("--pairs", action="store_true", help="all pairs of types instead")
    parser.add_argument("--operators", default=" ".join(dict.fromkeys((*PAIRED, *NUMBERED))))
    parser.add_argument("--count", type=int, default=6, help="variations of each case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--level", type=int, default=1)
    arguments = parser.parse_args()
    count = Count()
    if arguments.pairs:
        groups = [(operator, pairs(operator)) for operator in arguments.operators.split()]
    else:
        groups = [(family, variations(family, arguments.seed, arguments.count)) for family in arguments.families.split(",")]
    for group, cases in groups:
        before = count.cases
        batch = []
        size = 120 if arguments.pairs else CASES_A_MODEL
        for case in cases:
            batch.append(case)
            if len(batch) == size:
                judge(batch, count, arguments.level)
                batch = []
        judge(batch, count, arguments.level)
        print(f"{group}: {count.cases - before} cases", flush=True)
    print(f"{count.cases} cases, {count.outputs} outputs: {count.wrong} wrong, {count.failed} failed, {count.refused} not implemented; "
          f"{count.left_out} that torch does not export")
    sys.exit(1 if count.wrong or count.failed else 0)


if __name__ == "__main__":
    main()
