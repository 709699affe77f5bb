"""Every overload that has a case in tests/fixtures/pytorch_ops/torch_cases.py, varied: other types of its tensors, other extents, among them
0 and 1, tensors without dims, other whole numbers in its arguments, and dims that are free; and operands of all pairs of types.
Eager torch says which variations mean something.
"""

import random
import re
import sys
from pathlib import Path

import torch
import torchvision  # noqa: F401  its operators

from variations import cases_of, rows_of, with_other_extents, with_other_numbers, with_other_types

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures/pytorch_ops"))
import torch_cases  # noqa: E402

try:
    import torch.ao.quantization.fx._decomposed  # noqa: F401  the operators of quantized programs
except ImportError:
    pass

aten = torch.ops.aten
# What is made of memory as it is, or drawn, has no numbers to compare, not a number has any sign, and places behind the end of an axis
# of 1 are not looked at.
UNDETERMINED = re.compile(r"\.(empty|new_empty|rand|randn|bernoulli|empty_like|resize)|signbit.default\(x /|take_along_dim")
# Kernels that look at types, or shapes, only where there are elements.
UNCHECKED = re.compile(r"_softmax.default|_log_softmax.default|pixel_|native_dropout|rnn_|lstm|gru|grid_sampler")
# They look at no lengths of scales and weights.
UNMATCHED = re.compile(r"per_channel|native_batch_norm|_weight_norm")
# One of their numbers names a reduction, of which there are three.
REDUCED = re.compile(r"_loss|kl_div|binary_cross_entropy")
# Of equal elements any comes first.
UNORDERED = re.compile(r"\.(topk|sort.default|argsort.default|median|kthvalue|mode)")

# Of a number below 0 that is stored among unsigned ones each processor makes something else.
STORING = re.compile(r"copy|scatter|index_put|_to\b|\.to\.")


class Case:
    """A text over inputs; `free`: the extent whose axes are free, of each input's axes."""

    def __init__(self, text, inputs, free=None):
        self.text, self.inputs, self.free = text, inputs, free
        self.code = compile(text, text, "eval")

    def is_ordered(self, inputs):
        """Whether it says which of equal elements comes first, or there are none."""
        return not UNORDERED.search(self.text) or all(value.unique().numel() == value.numel() for value in inputs.values())

    def label(self):
        types = ", ".join(f"{name}: {str(value.dtype)[6:]}{list(value.shape)}" for name, value in self.inputs.items())
        return f"{self.text} | {types}" + (f" | {self.free} is free" if self.free else "")

    def results(self, inputs=None):
        """Tensors; an exception where torch does not take it."""
        made = eval(self.code, {"aten": aten, "torch": torch} | (inputs or self.inputs))
        made = made if isinstance(made, (tuple, list)) else [made]
        return [readable(each).clone() for each in made if isinstance(each, torch.Tensor) and not each.dtype.is_complex]


def readable(value):
    """numpy has no bfloat16, and none of a file's tensors may have."""
    return value.float() if value.dtype == torch.bfloat16 else value


def drawn(generator, name, dtype, shape, low, high):
    kind = getattr(torch, dtype)
    if name == "edges":
        return torch.tensor([-1.5, 0.5, 0.7, 0.9]).to(kind)
    if kind == torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    if kind.is_floating_point:
        return (torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low).to(kind)
    low, high = int(low), int(high)
    if kind == torch.uint8:
        low = max(low, 0)
    return torch.randint(low, max(high, low + 1), shape, generator=generator).to(kind)


def varied(text, seed):
    """The case with some of the changes."""
    draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    if draw.random() < 0.35 and not UNMATCHED.search(text) and not REDUCED.search(text):
        text = with_other_numbers(draw, text)
    rows = rows_of(text, torch_cases.INPUTS)
    if draw.random() < 0.6:
        with_other_types(draw, rows)
    kind = draw.choice(("same", "same", "extent", "extent", "scalars", "ones", "free", "free", "free"))
    if STORING.search(text) and any(dtype.startswith("uint") for dtype, *_ in rows.values()):
        rows = {name: [dtype, shape, max(low, 0), max(high, 0)] for name, (dtype, shape, low, high) in rows.items()}
    free = with_other_extents(draw, rows, "same" if UNMATCHED.search(text) else kind)
    return Case(text, {name: drawn(generator, name, *row) for name, row in rows.items()}, free)


def is_taken(case):
    if "matrix_exp" in case.text and any(value.dtype == torch.bfloat16 for value in case.inputs.values()):
        return False  # torch makes nothing but what is no number
    if UNCHECKED.search(case.text) and not all(value.numel() and value.is_floating_point() for value in case.inputs.values()):
        return False
    try:
        return len(case.results({name: value.clone() for name, value in case.inputs.items()})) > 0
    except Exception:  # whatever torch says of it
        return False


def variations(family, seed, count):
    """Cases of a family, `count` of each text, that torch takes."""
    texts = [text for text in torch_cases.FAMILIES[family]() if not UNDETERMINED.search(text)]
    return cases_of(texts, seed, count, lambda text, own, _: varied(text, own), is_taken)


PAIRED = ("aten.add.Tensor aten.sub.Tensor aten.mul.Tensor aten.div.Tensor aten.floor_divide.default aten.remainder.Tensor aten.fmod.Tensor "
          "aten.pow.Tensor_Tensor aten.maximum.default aten.minimum.default aten.fmax.default aten.fmin.default aten.eq.Tensor aten.ne.Tensor "
          "aten.lt.Tensor aten.le.Tensor aten.gt.Tensor aten.ge.Tensor aten.logical_and.default aten.logical_or.default aten.logical_xor.default "
          "aten.bitwise_and.Tensor aten.bitwise_or.Tensor aten.bitwise_xor.Tensor aten.bitwise_left_shift.Tensor aten.bitwise_right_shift.Tensor "
          "aten.atan2.default aten.hypot.default aten.logaddexp.default aten.copysign.Tensor aten.xlogy.Tensor aten.heaviside.default "
          "aten.rsub.Tensor aten.true_divide.Tensor aten.gcd.default aten.lcm.default aten.logaddexp2.default aten.float_power.Tensor_Tensor "
          "aten.ldexp.Tensor aten.special_xlog1py.default aten.special_zeta.default aten.isclose.default").split()
NUMBERED = ("aten.add.Tensor aten.sub.Tensor aten.mul.Tensor aten.div.Tensor aten.floor_divide.default aten.remainder.Scalar aten.fmod.Scalar "
            "aten.pow.Tensor_Scalar aten.eq.Scalar aten.ne.Scalar aten.lt.Scalar aten.le.Scalar aten.gt.Scalar aten.ge.Scalar aten.bitwise_and.Scalar "
            "aten.bitwise_or.Scalar aten.bitwise_xor.Scalar aten.xlogy.Scalar_Other aten.rsub.Scalar aten.pow.Scalar aten.masked_fill.Scalar "
            "aten.clamp.default aten.clamp_min.default aten.clamp_max.default aten.fill.Scalar aten.full_like.default").split()
TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "uint16", "uint32", "uint64")


def pairs(operator):
    """The operator on all pairs of types and kinds of operands, that torch takes."""
    tensors = {dtype: torch.tensor([1, 2, 3, 5, 0 if dtype == "bool" else 4]).to(getattr(torch, dtype)) for dtype in TYPES}
    tensors |= {f"{dtype}_0": torch.tensor(2).to(getattr(torch, dtype)) for dtype in TYPES}
    texts = []
    if operator in PAIRED:
        texts += [(f"{operator}({{}}, {{}})", (a, b)) for a in tensors for b in tensors]
    if operator in NUMBERED:
        for number in ("True", "2", "2.5"):
            for a in tensors:
                if operator == "aten.pow.Tensor_Scalar" and a.startswith("bool") and number == "True":
                    continue  # exported as another type than it has when it runs
                if operator == "aten.pow.Scalar":
                    texts.append((f"{operator}({number}, {{}})", (a,)))
                elif operator == "aten.masked_fill.Scalar":
                    texts.append((f"{operator}({{}}, {{}}, {number})", (a, "bool")))
                else:
                    texts.append((f"{operator}({{}}, {number})", (a,)))
    for text, operands in texts:
        if operator == "aten.ldexp.Tensor" and "float" not in operands[0] and operands[1] in ("float16_0", "bfloat16_0"):
            continue  # exported as another type than it has when it runs
        names = [f"t_{each}" for each in operands]
        case = Case(text.format(*names), {name: tensors[each] for name, each in zip(names, operands)})
        if is_taken(case):
            yield case
