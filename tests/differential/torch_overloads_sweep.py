"""Every overload of PyTorch that is imported, varied (torch_variations.py), beside eager torch, as exported programs:
python torch_overloads_sweep.py [--families unary,binary] [--pairs] [--count 6] [--seed 1].

Needs torch and torchvision (tests/fixtures/requirements-pytorch.txt) and the built program. Prints each case that differs or that is
refused, and ends with their numbers. What torch itself does not export is left out.
"""

import argparse
import logging
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

import torch_variations
from comparison import TOLERANCES, Count, LeftOut, Refused, difference, judge_groups, said
from torch_variations import NUMBERED, PAIRED, pairs, readable, variations

CASES_A_MODEL = 48
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


def exported(cases):
    inputs = [given(case, case.inputs) for case in cases]
    dynamic = [{name: {axis: torch.export.Dim.AUTO for axis, extent in enumerate(value.shape) if extent == case.free} or None
                for name, value in case.inputs.items()} if case.free else {name: None for name in case.inputs} for case in cases]
    module = Calls(cases).eval()
    try:
        with torch.no_grad():
            return torch.export.export(module, (inputs,), dynamic_shapes=(dynamic,) if any(case.free for case in cases) else None, strict=False)
    except Exception as error:
        raise LeftOut(str(error).splitlines()[0][:200] if str(error) else type(error).__name__) from error


def tolerance_of(case):
    if "bfloat16" in case.text:
        return TOLERANCES["bfloat16"]
    return max((TOLERANCES.get(str(value.dtype)[6:], 0) for value in case.inputs.values()), default=0) or TOLERANCES["float32"]


def is_refused(case):
    """Whether the program of torch itself does not take longer inputs."""
    if not case.free:
        return False
    try:
        program = exported([case])
        if any(each.upper < 1 << 20 for each in program.range_constraints.values()):
            return True
        program.module()([given(case, longer(case) or case.inputs)])
    except Exception:  # whatever torch says of it
        return True
    return False


def run(cases, level):
    """What is wrong with each, at its own extents and at longer ones; how many outputs there are."""
    program = exported(cases)
    runs = [[case.inputs for case in cases]]
    if any(case.free for case in cases):
        runs.append([(longer(case) if case.free else None) or case.inputs for case in cases])
    names, outputs = program.graph_signature.user_inputs, program.graph_signature.user_outputs
    whys, count = [[] for _ in cases], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.export.save(program, folder / "model.pt2")
        why = said(folder, "compile", "model.pt2", "-O", str(level), "-o", "model.tar")
        for turn, inputs in enumerate(runs):
            flat = [value for case, each in zip(cases, inputs) for value in given(case, each).values()]
            np.savez(folder / f"in{turn}.npz", **{key: value.numpy() for key, value in zip(names, flat)})
            why = why or said(folder, "run", "model.tar", "-i", f"in{turn}.npz", "-o", f"out{turn}.npz")
        if why is not None:
            raise Refused(why)
        for turn, inputs in enumerate(runs):
            with np.load(folder / f"out{turn}.npz") as archive:
                count += compare(cases, inputs, outputs, archive, whys, "of longer ones, " if turn else "")
    return whys, count


def compare(cases, inputs, outputs, archive, whys, when):
    """Adds what is wrong with each case; how many outputs there are."""
    place = 0
    for case, each, found in zip(cases, inputs, whys):
        with torch.no_grad():
            results = case.results({name: value.clone() for name, value in each.items()})
        for index, want in enumerate(results):
            key = outputs[place]
            place += 1
            if want.dtype == torch.int64 and not case.is_ordered(each):
                continue
            got = archive[key] if key in archive else np.empty(0)
            if want.dtype == torch.uint8 and "upsample" in case.text and got.shape == want.shape:
                # Bytes are interpolated with weights of 16 bits.
                got = np.where(np.abs(got.astype(int) - want.numpy()) <= 1, want.numpy(), got)
            why = difference(got, want.numpy(), tolerance_of(case)) if key in archive else "it is not there"
            found += [f"{when}result {index}: {why}"] if why else []
    return place


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", default=",".join(torch_variations.torch_cases.FAMILIES))
    parser.add_argument("--pairs", action="store_true", help="all pairs of types instead")
    parser.add_argument("--operators", default=" ".join(dict.fromkeys((*PAIRED, *NUMBERED))))
    parser.add_argument("--count", type=int, default=6, help="variations of each case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--level", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.pairs:
        groups = [(operator, pairs(operator)) for operator in arguments.operators.split()]
    else:
        groups = [(family, variations(family, arguments.seed, arguments.count)) for family in arguments.families.split(",")]
    return judge_groups(groups, Count(), 120 if arguments.pairs else CASES_A_MODEL, lambda cases: run(cases, arguments.level), is_refused)


if __name__ == "__main__":
    sys.exit(main())
