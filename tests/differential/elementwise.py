"""Operators that compute each element from its own, and casts."""

import numpy as np
from builder import ALL, FLOATS, INTS, NUMBERS, SIGNED, UNSIGNED, WIDE, Skip, element_type
from onnx import TensorProto
from registry import spec

HALVES = ["f4", "f4", "f2"]
# Operator -> since, types, range of the values that make sense (None: all).
UNARY = {
    "Abs": (7, NUMBERS, None), "Neg": (7, FLOATS + SIGNED, None), "Ceil": (7, FLOATS, None), "Floor": (7, FLOATS, None),
    "Round": (11, FLOATS, None), "Sign": (9, NUMBERS, None), "Sqrt": (7, FLOATS, (0, 9)), "Exp": (7, FLOATS, None),
    "Log": (7, FLOATS, (0, 9)), "Reciprocal": (7, FLOATS, None), "Relu": (7, FLOATS + SIGNED, None), "Sigmoid": (7, FLOATS, None),
    "Tanh": (7, FLOATS, None), "Softplus": (7, FLOATS, None), "Softsign": (7, FLOATS, None), "Erf": (9, FLOATS, None),
    "Sin": (7, WIDE, None), "Cos": (7, WIDE, None), "Tan": (7, WIDE, (-1.4, 1.4)), "Asin": (7, WIDE, (-1, 1)),
    "Acos": (7, WIDE, (-1, 1)), "Atan": (7, WIDE, None), "Sinh": (9, WIDE, (-5, 5)), "Cosh": (9, WIDE, (-5, 5)),
    "Asinh": (9, WIDE, None), "Acosh": (9, WIDE, (1, 9)), "Atanh": (9, WIDE, (-0.99, 0.99)), "Not": (7, ["b1"], None),
    "IsNaN": (9, FLOATS, None), "Identity": (7, ALL, None), "HardSwish": (14, FLOATS, None), "Mish": (18, FLOATS, None),
    "BitwiseNot": (18, INTS, None),
}
EXACT = {"Abs", "Neg", "Ceil", "Floor", "Round", "Sign", "Relu", "Not", "IsNaN", "Identity", "BitwiseNot"}


def draw_unary(name, types, limits):
    def draw(b):
        low, high = limits if limits and b.chance(0.7) else (None, None)
        b.elementwise()
        if name in EXACT:
            b.exact()
        # Of huge angles nobody knows the sine.
        b.node(name, [b.x(b.shape(), b.dtype(types), low=low, high=high, hard=0 if name in ("Sin", "Cos", "Tan") else 0.3)])

    return draw


for _name, (_since, _types, _limits) in UNARY.items():
    spec(_name, _since)(draw_unary(_name, _types, _limits))

# Operator -> since, attributes as functions of the builder, types.
PARAMETRIC = {
    "Elu": (7, FLOATS, lambda b: b.some(alpha=float(b.rng.normal()))),
    "Selu": (7, FLOATS, lambda b: b.some(alpha=float(b.rng.normal()), gamma=float(b.rng.uniform(0.1, 3)))),
    "Celu": (12, ["f4"], lambda b: b.some(alpha=float(b.rng.uniform(0.1, 3)))),
    "LeakyRelu": (7, FLOATS, lambda b: b.some(alpha=float(b.rng.normal()))),
    "HardSigmoid": (7, FLOATS, lambda b: b.some(alpha=float(b.rng.normal()), beta=float(b.rng.normal()))),
    "ThresholdedRelu": (10, WIDE, lambda b: b.some(alpha=float(b.rng.uniform(-1, 2)))),
    "Shrink": (9, ["f4"] + INTS, lambda b: b.some(bias=float(b.int(-1, 2)), lambd=float(b.int(0, 3)))),
    "Gelu": (20, FLOATS, lambda b: b.some(approximate=b.pick(["none", "tanh"]))),
    "IsInf": (10, WIDE, lambda b: b.some(detect_negative=b.int(0, 1), detect_positive=b.int(0, 1))),
    "Swish": (24, FLOATS, lambda b: b.some(alpha=float(b.rng.normal()))),
}


def draw_parametric(name, types, attributes):
    def draw(b):
        b.elementwise()
        b.atol = 1e-5 if name == "Swish" else b.atol  # the peer's sigmoid is coarse where it is small
        dtype = b.dtype(types)
        b.node(name, [b.x(b.shape(), dtype, hard=0.3 if dtype.kind == "f" else 0)], **attributes(b))

    return draw


for _name, (_since, _types, _attributes) in PARAMETRIC.items():
    spec(_name, _since)(draw_parametric(_name, _types, _attributes))

BINARY = {
    "Add": (7, NUMBERS), "Sub": (7, NUMBERS), "Mul": (7, NUMBERS), "Div": (7, NUMBERS), "And": (7, ["b1"]), "Or": (7, ["b1"]),
    "Xor": (7, ["b1"]), "Equal": (7, ALL), "Greater": (7, NUMBERS), "Less": (7, NUMBERS), "GreaterOrEqual": (12, NUMBERS),
    "LessOrEqual": (12, NUMBERS), "BitwiseAnd": (18, INTS), "BitwiseOr": (18, INTS), "BitwiseXor": (18, INTS),
}


def operands(b, count, dtype, **options):
    """Shapes that broadcast to one another, in every direction."""
    shape = b.shape()
    shapes = [shape] + [b.broadcast(shape) if b.chance(0.7) else shape for _ in range(count - 1)]
    order = b.rng.permutation(count)
    return [b.x(shapes[i], dtype, constant=0.25, **options) for i in order]


def draw_binary(name, types):
    def draw(b):
        dtype = b.dtype(types)
        b.elementwise()
        if dtype.kind != "f":
            b.exact()
        if name == "Div" and dtype.kind in "iu":
            shape = b.shape()
            divisor = b.values(b.broadcast(shape), dtype)
            divisor = np.where(divisor == 0, np.array(3, dtype), divisor)
            b.node(name, [b.x(shape, dtype, hard=0.3), b.given(divisor)])
            return
        b.node(name, operands(b, 2, dtype, hard=0.25))

    return draw


for _name, (_since, _types) in BINARY.items():
    spec(_name, _since)(draw_binary(_name, _types))


@spec("BitShift", 11)
def bit_shift(b):
    dtype = b.dtype(UNSIGNED)
    shape = b.shape()
    b.exact()
    b.node("BitShift", [b.x(shape, dtype, hard=0.3), b.x(b.broadcast(shape), dtype, low=0, high=dtype.itemsize * 8 - 1)],
           direction=b.pick(["LEFT", "RIGHT"]))


@spec("Mod", 10)
def mod(b):
    dtype = b.dtype(NUMBERS)
    shape = b.shape()
    divisor = b.values(b.broadcast(shape), dtype)
    divisor = np.where(divisor == 0, np.array(3, dtype), divisor)
    b.elementwise()
    b.node("Mod", [b.x(shape, dtype), b.given(divisor)], **({"fmod": 1} if dtype.kind == "f" else b.some(fmod=b.int(0, 1))))


@spec("Pow")
def power(b):
    dtype = b.dtype(["f4", "f4", "f8", "i4", "i8"])
    other = b.dtype(["f4", "f8", "i4", "i8"]) if b.opset >= 12 and b.chance(0.4) else dtype
    shape = b.shape()
    b.elementwise()
    if b.chance(0.5):
        exponent = np.array(b.pick([2, 3, 0, 1] + ([0.5, -1, -0.5, -2, 1.5] if other.kind == "f" else [])), other)
    else:
        exponent = b.values(b.broadcast(shape), other, low=0, high=4)
    b.node("Pow", [b.x(shape, dtype, hard=0.15) if dtype.kind == "f" else b.x(shape, dtype, low=0, high=20), b.given(exponent, 0.5)])


def draw_variadic(name):
    def draw(b):
        picks = name in ("Max", "Min")
        types = NUMBERS if picks and b.opset >= 12 else FLOATS
        if picks:
            b.elementwise()
        b.node(name, operands(b, b.int(1, 4), b.dtype(types), hard=0.25 if picks else 0))

    return draw


for _name in ("Max", "Min", "Mean", "Sum"):
    spec(_name, 8)(draw_variadic(_name))


@spec("PRelu")
def prelu(b):
    shape = b.shape()
    b.elementwise()
    dtype = b.dtype(FLOATS + ["i4"] if b.opset >= 9 else FLOATS)
    b.node("PRelu", [b.x(shape, dtype, hard=0.15), b.x(b.broadcast(shape), dtype, constant=0.6)])


@spec("Clip")
def clip(b):
    b.elementwise()
    if b.opset < 11:
        low = float(b.rng.normal())
        b.node("Clip", [b.x(b.shape(), b.dtype(FLOATS), hard=0.2)], **b.some(min=low, max=low + 1))
        return
    dtype = b.dtype(NUMBERS if b.opset >= 12 else FLOATS)
    bounds = [b.given(b.values([], dtype), 0.7) if b.chance(0.7) else "" for _ in range(2)]
    b.node("Clip", [b.x(b.shape(), dtype, hard=0.2)] + bounds)


@spec("Where", 9)
def where(b):
    dtype = b.dtype(ALL)
    shape = b.shape()
    b.exact()
    parts = [b.broadcast(shape) if b.chance(0.6) else shape for _ in range(3)]
    b.node("Where", [b.x(parts[0], "b1"), b.x(parts[1], dtype, constant=0.3, hard=0.2), b.x(parts[2], dtype, constant=0.3, hard=0.2)])


@spec("Cast")
def cast(b):
    source, target = b.dtype(ALL), b.dtype(ALL)
    shape = b.shape()
    b.elementwise()
    b.exact()
    if source.kind == "f" and target.kind in "iu":
        # What is outside of the target's range is for each implementation to say.
        info = np.iinfo(target)
        value = b.values(shape, source, low=max(float(info.min), -1000.0), high=min(float(info.max), 1000.0))
        name = b.given(value)
    else:
        name = b.x(shape, source, hard=0.3)
    b.node("Cast", [name], to=int(element_type(target)))


@spec("CastLike", 15)
def cast_like(b):
    b.exact()
    b.node("CastLike", [b.x(b.shape(), b.dtype(INTS), low=0, high=100), b.x([1], b.dtype(ALL))])


@spec("CastNarrow", 19)
def cast_narrow(b):
    """To a narrow type and back: what other runtimes hold of it is only seen as floats."""
    kinds = ["BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"]
    codes = {"BFLOAT16": 16, "FLOAT8E4M3FN": 17, "FLOAT8E4M3FNUZ": 18, "FLOAT8E5M2": 19, "FLOAT8E5M2FNUZ": 20}
    kind = b.pick(kinds)
    b.exact()
    options = b.some(saturate=b.int(0, 1)) if kind != "BFLOAT16" else {}
    narrow = b.node("Cast", [b.x(b.shape(), b.dtype(["f4", "f4", "f2"]), hard=0.3)], to=codes[kind], **options)
    b.node("Cast", [narrow], to=int(TensorProto.FLOAT))


@spec("Dropout", 7)
def dropout(b):
    extra = []
    if b.opset >= 12 and b.chance(0.5):
        extra = [b.const(np.float32(0.3)) if b.chance(0.5) else "", b.const(np.array(False)) if b.chance(0.5) else ""]
    shape, many = b.shape(), b.chance(0.4)
    if b.opset < 12 and many:
        raise Skip
    b.node("Dropout", [b.x(shape, b.dtype(FLOATS))] + extra, 2 if many else 1, **(b.some(ratio=0.3) if b.opset < 12 else {}))


@spec("Chain", 13)
def chain(b):
    """Up to five elementwise operators in a row, with values that several read."""
    shape = b.shape()
    names = [b.x(shape), b.x(b.broadcast(shape), constant=0.5)]
    for _ in range(b.int(2, 5)):
        op = b.pick(["Add", "Sub", "Mul", "Max", "Min", "Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Erf", "Softplus", "Where"])
        if op == "Where":
            mask = b.node(b.pick(["Less", "Greater", "Equal"]), [b.pick(names), b.pick(names)])
            names.append(b.node("Where", [mask, b.pick(names), b.pick(names)]))
        elif op in ("Add", "Sub", "Mul", "Max", "Min"):
            names.append(b.node(op, [b.pick(names), b.pick(names)]))
        else:
            names.append(b.node(op, [b.pick(names)]))
    if b.chance(0.3):
        b.outputs = [n for n in dict.fromkeys([b.pick(names[2:]), names[-1]])]
