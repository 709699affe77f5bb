"""Core ML's ML Programs beside what they were made from: python coreml_sweep.py [--programs 150] [--seed 1] | --modules.

Programs of random operators and chains of them, beside the values that coremltools itself infers where all operands are constant; with
--modules small torch modules that coremltools converts, traced and exported, in float32 and float16, beside eager torch, and with packed
weights beside the same ones unpacked. Core ML itself runs on Apple's systems alone. --only: one group of the modules.

Needs coremltools and torch (tests/fixtures/requirements-coreml.txt) and the built program. Prints each output that differs, with what made
it, and ends with their number.
"""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/fixtures/coreml_ops"))

import coremltools.optimize.coreml as compress  # noqa: E402
import make_coreml_ops  # noqa: E402
import mil_package  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from mil_package import ct  # noqa: E402

import coreml_modules  # noqa: E402
from comparison import TOLERANCES, Count, LeftOut, Refused, difference, judge_groups, said  # noqa: E402
from coreml_programs import TARGET, random_cases  # noqa: E402

# Halves are rounded between all operations of a module.
TOLERANCE_OF_HALVES = 1e-2
CASES_IN_A_PROGRAM = 12
PACKINGS = ("bytes", "blocks", "palettes", "zeros left out")


def numbers_of(package, inputs, level):
    """What the program makes of a package; throws Refused."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "in.npz", **inputs)
        for arguments in (["compile", str(package), "-O", str(level), "-o", "model.tar"], ["run", "model.tar", "-i", "in.npz", "-o", "out.npz"]):
            why = said(folder, *arguments)
            if why is not None:
                raise Refused(why)
        with np.load(folder / "out.npz") as archive:
            return {key: archive[key] for key in archive.files}


def fitting(array, like):
    """Types that Core ML has no equals of are given as others: bools as numbers, wide integers as narrow ones."""
    return array.astype(like) if array.dtype.kind in "bi" or array.dtype.kind == np.dtype(like).kind == "f" else array


class Program:
    """A case of a random program."""

    def __init__(self, case):
        self.case = case

    def label(self):
        return self.case.name


def run_programs(programs, level):
    cases = [program.case for program in programs]
    with tempfile.TemporaryDirectory() as scratch:
        try:
            wanted = [make_coreml_ops.wanted(case, TARGET) for case in cases]
            program, outputs = make_coreml_ops.program_of(cases, {}, TARGET)
            path = Path(scratch) / "program.zip"
            dtypes = mil_package.output_types(mil_package.write(mil_package.convert(program, TARGET), path))
        except (AssertionError, ValueError, TypeError, RuntimeError, NotImplementedError, IndexError, KeyError) as error:
            raise LeftOut(str(error)) from error
        got = numbers_of(path, {f"{case.name}_{name}": value for case in cases for name, value in case.given.items()}, level)
    whys, count = [], 0
    for case, values in zip(cases, wanted):
        names = outputs[case.name]
        count += len(names)
        found = [difference(got[name], np.asarray(value).astype(dtypes[name]), TOLERANCES["float32"]) for name, value in zip(names, values)]
        whys.append([why for why in found if why])
    return whys, count


class Converted:
    """A module in a precision, by way of torch.jit.trace or torch.export, its weights packed or not."""

    def __init__(self, module, precision, is_exported=False, packing=None):
        self.module, self.precision, self.is_exported, self.packing = module, precision, is_exported, packing

    def label(self):
        return " ".join([self.module.name, "in", self.precision, *(["exported"] if self.is_exported else []), *([self.packing] if self.packing else [])])


def packed(model, packing):
    """The model with its weights packed, and what coremltools unpacks of that."""
    if packing == "bytes":
        setting = compress.OptimizationConfig(global_config=compress.OpLinearQuantizerConfig(mode="linear", weight_threshold=8))
        made = compress.linear_quantize_weights(model, setting)
    elif packing == "blocks":
        config = compress.OpLinearQuantizerConfig(mode="linear_symmetric", dtype="int4", granularity="per_block", block_size=2, weight_threshold=8)
        made = compress.linear_quantize_weights(model, compress.OptimizationConfig(global_config=config))
    elif packing == "palettes":
        setting = compress.OptimizationConfig(global_config=compress.OpPalettizerConfig(mode="uniform", nbits=4, weight_threshold=8))
        made = compress.palettize_weights(model, setting)
    else:
        setting = compress.OptimizationConfig(global_config=compress.OpMagnitudePrunerConfig(target_sparsity=0.5, weight_threshold=8))
        made = compress.prune_weights(model, setting)
    return made, compress.decompress_weights(made)


def convert(converted, path):
    """Names of the outputs of the package at `path`, and what eager torch makes of them."""
    module = converted.module
    inputs = []
    for index, value in enumerate(module.inputs):
        shape = [ct.RangeDim(1, 64, default=extent) if axis in module.free.get(index, []) else extent for axis, extent in enumerate(value.shape)]
        inputs.append(ct.TensorType(name=f"x{index}", shape=shape, dtype=np.int32 if value.dtype == torch.int32 else np.float32))
    outputs = module.module(*module.inputs)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    if converted.is_exported:
        made = torch.export.export(module.module, tuple(module.inputs)).run_decompositions({})
    else:
        made = torch.jit.trace(module.module, tuple(module.inputs), check_trace=False)
    compute = ct.precision.FLOAT16 if converted.precision == "float16" else ct.precision.FLOAT32
    model = ct.convert(made, inputs=inputs, convert_to="mlprogram", compute_precision=compute, minimum_deployment_target=ct.target.iOS18, skip_model_load=True)
    names = [each.name for each in model.get_spec().description.output]
    if converted.packing:
        model, unpacked = packed(model, converted.packing)
        unpacked.save(str(path.with_name("unpacked.mlpackage")))
    model.save(str(path))
    return names, [each.numpy() for each in outputs]


def run_modules(converted, level):
    """One module a call. One with packed weights is compared with what the program makes of the unpacked ones."""
    module, precision, packing = converted[0].module, converted[0].precision, converted[0].packing
    inputs = {f"x{index}": value.numpy() for index, value in enumerate(module.inputs)}
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        path = Path(scratch) / "module.mlpackage"
        try:
            names, wanted = convert(converted[0], path)
        except Exception as error:  # noqa: BLE001: coremltools' converters fail in all ways
            raise LeftOut(str(error)) from error
        got = numbers_of(path, inputs, level)
        if packing:
            unpacked = numbers_of(path.with_name("unpacked.mlpackage"), inputs, level)
            wanted = [unpacked[name] for name in names]
    tolerance = TOLERANCES["float32"] if precision == "float32" else TOLERANCE_OF_HALVES
    whys = [difference(got[name], fitting(want, got[name].dtype), tolerance) for name, want in zip(names, wanted)]
    return [[why for why in whys if why]], len(names)


def module_groups(seed, only):
    for group in [only] if only else coreml_modules.GROUPS:
        cases = []
        for module in coreml_modules.modules(group, seed):
            cases.append(Converted(module, "float32"))
            if group in ("blocks", "layers", "recurrent"):
                cases.append(Converted(module, "float16"))
            if group in ("blocks", "moves", "recurrent"):
                cases.append(Converted(module, "float32", is_exported=True))
            if group == "blocks":
                cases += [Converted(module, "float32", is_exported=True, packing=packing) for packing in PACKINGS]
        yield group, cases


def program_groups(programs, seed):
    for index in range(programs):
        number = seed * 100_000 + index
        yield f"seed {number}", [Program(case) for case in random_cases(number, CASES_IN_A_PROGRAM)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--modules", action="store_true")
    parser.add_argument("--only", choices=coreml_modules.GROUPS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    count = Count()
    if arguments.modules:
        return judge_groups(module_groups(arguments.seed, arguments.only), count, 1, lambda cases: run_modules(cases, arguments.level))
    return judge_groups(program_groups(arguments.programs, arguments.seed), count, CASES_IN_A_PROGRAM, lambda cases: run_programs(cases, arguments.level))


if __name__ == "__main__":
    sys.exit(main())
