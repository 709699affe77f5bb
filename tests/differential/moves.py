"""Operators that move elements: shapes, slices, gathers, scatters, pads."""

import numpy as np
from builder import ALL, FLOATS, NUMBERS, Skip
from registry import spec


@spec("Transpose")
def transpose(b):
    shape = b.shape(0, 5)
    b.exact()
    b.node("Transpose", [b.x(shape, b.dtype(ALL))], **b.some(perm=[int(i) for i in b.rng.permutation(len(shape))] if shape else None))


@spec("Reshape")
def reshape(b):
    shape = b.shape(0, 4)
    size = int(np.prod(shape))
    b.exact()
    target, left = [], size
    if size:
        for _ in range(b.int(0, 3)):
            factor = b.pick([f for f in range(1, left + 1) if left % f == 0])
            target.append(factor)
            left //= factor
        target.append(left) if b.chance(0.8) or left != 1 else None
        if target and b.chance(0.4):
            target[b.int(0, len(target) - 1)] = -1
    else:
        target = [0, b.int(1, 4)] if shape and shape[0] == 0 else list(shape)
    if shape and b.chance(0.3) and size:
        target = [0] * b.int(1, len(shape)) + [-1]
    allow = {"allowzero": 1} if b.opset >= 14 and 0 not in target and b.chance(0.2) else {}
    b.node("Reshape", [b.x(shape, b.dtype(ALL)), b.ints(target)], **allow)


@spec("Flatten")
def flatten(b):
    shape = b.shape(0, 4)
    b.exact()
    rank = len(shape)
    b.node("Flatten", [b.x(shape, b.dtype(ALL if b.opset >= 9 else FLOATS))], **b.some(axis=b.int(-rank if b.opset >= 11 else 0, rank)))


@spec("Squeeze")
def squeeze(b):
    shape = b.shape(1, 4)
    ones = [i for i, e in enumerate(shape) if e == 1]
    b.exact()
    x = b.x(shape, b.dtype(ALL))
    if b.chance(0.3):
        b.node("Squeeze", [x])
        return
    if not ones:
        raise Skip
    axes = [a - len(shape) if b.opset >= 11 and b.chance(0.3) else a for a in ones if b.chance(0.7)] or [ones[0]]
    b.node("Squeeze", [x, b.ints(axes)]) if b.opset >= 13 else b.node("Squeeze", [x], axes=axes)


@spec("Unsqueeze")
def unsqueeze(b):
    shape = b.shape(0, 3)
    rank = len(shape) + b.int(1, 2)
    axes = [int(a) for a in b.rng.permutation(rank)[:rank - len(shape)]]
    if b.opset >= 11:
        axes = [a - rank if b.chance(0.3) else a for a in axes]
    b.exact()
    x = b.x(shape, b.dtype(ALL))
    b.node("Unsqueeze", [x, b.ints(axes)]) if b.opset >= 13 else b.node("Unsqueeze", [x], axes=axes)


@spec("Concat")
def concat(b):
    shape = b.shape(1, 4)
    axis = b.axis(len(shape)) if b.opset >= 11 else b.int(0, len(shape) - 1)
    dtype = b.dtype(ALL)
    b.exact()
    parts = []
    for _ in range(b.int(1, 4)):
        part = list(shape)
        part[axis] = b.pick([0, 1, 2, 3, 8, 16]) if b.chance(0.8) else part[axis]
        parts.append(b.x(part, dtype, constant=0.2))
    if b.chance(0.2):
        parts.append(parts[0])
    b.node("Concat", parts, axis=axis)


@spec("Split")
def split(b):
    shape = b.shape(1, 4)
    axis = b.axis(len(shape)) if b.opset >= 11 else b.int(0, len(shape) - 1)
    b.exact()
    count = b.int(1, 4)
    written = b.some(axis=axis)
    at = written.get("axis", 0)
    x_type = b.dtype(ALL)
    if b.chance(0.5):
        sizes = [b.pick([0, 1, 2, 3, 5]) for _ in range(count)]
        shape[at] = sum(sizes)
        x = b.x(shape, x_type)
        if b.opset >= 13:
            b.node("Split", [x, b.ints(sizes)], count, **written)
        else:
            b.node("Split", [x], count, split=sizes, **written)
        return
    shape[at] = count * b.int(1, 4) if b.opset < 18 or b.chance(0.5) else count * 4 - b.int(0, 2)
    x = b.x(shape, x_type)
    b.node("Split", [x], count, **written, **({"num_outputs": count} if b.opset >= 18 else {}))


@spec("Slice")
def slice_(b):
    shape = b.shape(1, 4)
    b.exact()
    x = b.x(shape, b.dtype(ALL))
    count = b.int(1, len(shape))
    axes = [int(a) for a in b.rng.permutation(len(shape))[:count]]
    steps = [1] * count
    if b.opset >= 10:
        steps = [b.pick([1, 1, 1, 2, 3, -1, -2, 100, -100]) for _ in range(count)]
    far = [-(2**63), 2**63 - 1, -(2**31), 2**31 - 1]
    starts, ends = [], []
    for a, s in zip(axes, steps):
        e = shape[a]
        low, high = sorted((b.int(-e - 2, e + 2), b.int(-e - 2, e + 2)))
        starts.append(low if s > 0 else high)
        ends.append(high if s > 0 else low)
        if b.chance(0.2):
            ends[-1] = far[1] if s > 0 else far[0]
    if b.opset < 10:
        b.node("Slice", [x], starts=starts, ends=ends, **({"axes": axes} if count < len(shape) or b.chance(0.5) or axes != sorted(axes) else {}))
        return
    plain = axes == list(range(count))
    written = [a - len(shape) if b.chance(0.3) else a for a in axes]
    dtype = b.pick([np.int64, np.int64, np.int32])
    if dtype == np.int32:
        ends = [max(min(e, far[3]), far[2]) for e in ends]
    extra = []
    if not plain or b.chance(0.6) or set(steps) != {1}:
        extra = ["" if plain and b.chance(0.3) else b.ints(written, dtype=dtype)]
        if set(steps) != {1} or b.chance(0.4):
            extra.append(b.ints(steps, dtype=dtype))
    b.node("Slice", [x, b.ints(starts, dtype=dtype), b.ints(ends, dtype=dtype)] + extra)


def indices(b, shape, extent, negative=True):
    if extent == 0 and np.prod(shape):
        raise Skip
    low = -extent if negative and b.opset >= 11 and b.chance(0.4) else 0
    return b.rng.integers(low, max(extent, low + 1), size=tuple(shape)).astype(b.pick([np.int64, np.int64, np.int32]))


@spec("Gather")
def gather(b):
    shape = b.shape(1, 4)
    axis = b.axis(len(shape)) if b.opset >= 11 else b.int(0, len(shape) - 1)
    b.exact()
    written = b.some(axis=axis)
    at = written.get("axis", 0)
    picked = indices(b, b.shape(0, 3, largest=9), shape[at])
    b.node("Gather", [b.x(shape, b.dtype(ALL), constant=0.3), b.given(picked, 0.4)], **written)


@spec("GatherElements", 11)
def gather_elements(b):
    shape = b.shape(1, 4)
    axis = b.axis(len(shape))
    b.exact()
    written = b.some(axis=axis)
    at = written.get("axis", 0)
    target = [b.int(0 if b.chance(0.05) else min(1, e), e) for e in shape]
    target[at] = b.pick([1, 2, 5, 17])
    b.node("GatherElements", [b.x(shape, b.dtype(ALL)), b.given(indices(b, target, shape[at]))], **written)


def nd_indices(b, shape, batch=0, unique=False):
    depth = b.int(1, len(shape) - batch)
    lead = shape[:batch] + b.shape(0 if batch else 1, 2, largest=5)
    parts = [indices(b, lead, shape[batch + d]).astype(np.int64) for d in range(depth)]
    picked = np.stack(parts, -1)
    if unique:
        flat = (picked % np.array(shape[batch:batch + depth])).reshape(-1, depth)
        if len({tuple(row) for row in flat.tolist()}) != len(flat):
            raise Skip
    return picked, depth


@spec("GatherND", 11)
def gather_nd(b):
    shape = b.shape(1, 4, largest=9)
    batch = b.int(0, len(shape) - 1) if b.opset >= 12 else 0
    b.exact()
    picked, _ = nd_indices(b, shape, batch)
    b.node("GatherND", [b.x(shape, b.dtype(ALL)), b.given(picked)], **({"batch_dims": batch} if batch or b.chance(0.2) and b.opset >= 12 else {}))


def reduction(b, since_add=16, since_max=18):
    choices = ["none"]
    if b.opset >= since_add:
        choices += ["add", "mul"]
    if b.opset >= since_max:
        choices += ["max", "min"]
    return b.pick(choices)


@spec("ScatterND", 11)
def scatter_nd(b):
    shape = b.shape(1, 4, largest=9, empty=0)
    how = reduction(b)
    picked, depth = nd_indices(b, shape, unique=how == "none")
    dtype = b.dtype(ALL if how == "none" else NUMBERS)
    b.rtol = 1e-3
    b.node("ScatterND", [b.x(shape, dtype), b.given(picked), b.x(list(picked.shape[:-1]) + shape[depth:], dtype)],
           reduction=how if b.opset >= 16 and (how != "none" or b.chance(0.3)) else None)


@spec("ScatterElements", 9)
def scatter_elements(b):
    shape = b.shape(1, 4, empty=0)
    axis = b.axis(len(shape)) if b.opset >= 11 else b.int(0, len(shape) - 1)
    written = b.some(axis=axis)
    at = written.get("axis", 0)
    target = [b.int(1, e) for e in shape]
    how = reduction(b)
    if how == "none":
        order = np.argsort(b.rng.random(target[:at] + [shape[at]] + target[at:][1:]), axis=at)
        picked = np.take(order, range(target[at]), axis=at).astype(np.int64)
        if b.opset >= 11 and b.chance(0.4):
            picked = np.where(b.rng.random(picked.shape) < 0.5, picked - shape[at], picked)
    else:
        target[at] = b.pick([1, 3, 9])
        picked = indices(b, target, shape[at])
    dtype = b.dtype(ALL if how == "none" else NUMBERS)
    b.rtol = 1e-3
    b.node("ScatterElements" if b.opset >= 11 else "Scatter",
           [b.x(shape, dtype), b.given(picked, 0.4), b.x(picked.shape, dtype)],
           **written, **({"reduction": how} if b.opset >= 16 and (how != "none" or b.chance(0.3)) else {}))


@spec("Pad")
def pad(b):
    shape = b.shape(1, 4, empty=0.02)
    rank = len(shape)
    mode = b.pick(["constant", "constant", "reflect", "edge"] + (["wrap"] if b.opset >= 19 else []))
    b.exact()
    dtype = b.dtype(ALL if b.opset >= 13 else NUMBERS if b.opset >= 11 else FLOATS)
    amount = [b.pick([0, 0, 1, 2, 5]) for _ in range(2 * rank)]
    for i in range(2 * rank):
        extent = shape[i % rank]
        if mode in ("reflect", "wrap"):
            amount[i] = min(amount[i], max(extent - 1, 0))
        if mode == "edge" and extent == 0:
            amount[i] = 0
        if mode == "constant" and b.chance(0.1):
            amount[i] = -min(b.int(0, 1), extent)
    if b.opset < 11:
        b.node("Pad", [b.x(shape, dtype)], pads=amount, **b.some(mode=mode if mode != "constant" else "constant",
                                                              value=float(b.rng.normal()))) if mode == "constant" else \
            b.node("Pad", [b.x(shape, dtype)], pads=amount, mode=mode)
        return
    extra = [b.given(b.values([], dtype), 0.6)] if mode == "constant" and b.chance(0.6) else []
    if b.opset >= 18 and b.chance(0.3):
        axes = [int(a) for a in b.rng.permutation(rank)[:b.int(1, rank)]]
        amount = [amount[a] for a in axes] + [amount[a + rank] for a in axes]
        extra = (extra or [""]) + [b.ints([a - rank if b.chance(0.3) else a for a in axes])]
    b.node("Pad", [b.x(shape, dtype), b.ints(amount)] + extra, mode=mode if mode != "constant" or b.chance(0.3) else None)


@spec("Expand", 8)
def expand(b):
    shape = b.shape(0, 4, empty=0)
    target = [b.int(1, 4) if e == 1 and b.chance(0.7) else (1 if b.chance(0.3) else e) for e in shape]
    target = [b.int(1, 3) for _ in range(b.int(0, 2))] + target if b.chance(0.7) else target[b.int(0, len(target)):]
    if b.chance(0.05) and 1 in shape[-len(target):]:
        target = [0 if e == 1 else e for e in shape]
    b.exact()
    b.node("Expand", [b.x(shape, b.dtype(ALL)), b.ints(target)])


@spec("Tile")
def tile(b):
    shape = b.shape(0, 4, largest=9)
    b.exact()
    b.node("Tile", [b.x(shape, b.dtype(ALL)), b.ints([b.pick([1, 1, 2, 3, 0] if b.chance(0.1) else [1, 2, 3]) for _ in shape])])


@spec("Shape")
def shape_(b):
    shape = b.shape(0, 5)
    rank = len(shape)
    b.node("Shape", [b.x(shape, b.dtype(ALL))], **(b.some(start=b.int(-rank - 1, rank + 1), end=b.int(-rank - 1, rank + 1)) if b.opset >= 15 else {}))


@spec("Size")
def size(b):
    b.node("Size", [b.x(b.shape(), b.dtype(ALL))])


@spec("ConstantOfShape", 9)
def constant_of_shape(b):
    from onnx import numpy_helper
    value = numpy_helper.from_array(b.values([1], b.dtype(ALL)), "value")
    b.node("ConstantOfShape", [b.ints(b.shape(), constant=0.5)], **b.some(value=value))


@spec("EyeLike", 9)
def eye_like(b):
    from builder import element_type
    b.exact()
    b.node("EyeLike", [b.x(b.shape(2, 2), b.dtype(["f4", "f8", "i4", "i8"]))],
           **b.some(k=b.int(-5, 5), dtype=int(element_type(b.dtype(["f4", "f8", "i4", "i8"])))))


@spec("DepthToSpace", 7)
def depth_to_space(b):
    block = b.int(1, 3)
    b.exact()
    b.node("DepthToSpace", [b.x([b.int(0 if b.chance(0.05) else 1, 2), block * block * b.int(1, 3), b.extent(8), b.extent(8)], b.dtype(FLOATS))], blocksize=block,
           **(b.some(mode=b.pick(["DCR", "CRD"])) if b.opset >= 11 else {}))


@spec("SpaceToDepth", 7)
def space_to_depth(b):
    block = b.int(1, 3)
    b.exact()
    b.node("SpaceToDepth", [b.x([b.int(1, 2), b.int(1, 3), block * b.int(1, 5), block * b.int(1, 5)], b.dtype(FLOATS))], blocksize=block)


@spec("Trilu", 14)
def trilu(b):
    b.exact()
    k = [b.ints(np.int64(b.int(-6, 6)), constant=0.6)] if b.chance(0.6) else []
    b.node("Trilu", [b.x(b.shape(2, 4), b.dtype(ALL), hard=0.2)] + k, **b.some(upper=b.int(0, 1)))


@spec("ReverseSequence", 10)
def reverse_sequence(b):
    shape = b.shape(2, 4, empty=0)
    time = b.int(0, 1)
    b.exact()
    lens = b.rng.integers(0 if b.chance(0.2) else 1, shape[time] + 1, size=shape[1 - time])
    b.node("ReverseSequence", [b.x(shape, b.dtype(ALL)), b.given(lens.astype(np.int64))], time_axis=time, batch_axis=1 - time)


@spec("OneHot", 9)
def one_hot(b):
    shape = b.shape(0, 3, largest=9)
    depth = b.int(1, 9)
    kind = b.pick(["i8", "i4", "f4"])
    values = b.values([2], b.dtype(["f4", "i8", "i4"]))
    at = b.rng.integers(-depth - (1 if b.chance(0.2) else 0), depth + (2 if b.chance(0.2) else 0), size=tuple(shape)).astype(kind)
    b.exact()
    b.node("OneHot", [b.given(at), b.given(np.array(depth, b.pick(["i8", "i4", "f4"])), 1.0), b.given(values, 0.7)],
           **b.some(axis=b.axis(len(shape) + 1)))


@spec("CenterCropPad", 18)
def center_crop_pad(b):
    shape = b.shape(1, 3, empty=0)
    axes = [int(a) for a in b.rng.permutation(len(shape))[:b.int(1, len(shape))]] if b.chance(0.5) else None
    b.exact()
    b.node("CenterCropPad", [b.x(shape, b.dtype(["f4", "i4"])), b.ints([b.int(1, 20) for _ in (axes or shape)])], axes=axes)


@spec("Range", 11)
def range_(b):
    dtype = b.dtype(["f4", "f8", "i2", "i4", "i8"])
    start, step = b.int(-5, 5), b.pick([1, 2, -1, 3, 0.5 if dtype.kind == "f" else 5])
    stop = start + step * b.int(-1, 9) + (0.25 if dtype.kind == "f" and b.chance(0.5) else 0)
    b.node("Range", [b.const(start, dtype), b.const(stop, dtype), b.const(step, dtype)])


@spec("NonZero", 9)
def non_zero(b):
    b.node("NonZero", [b.given(b.values(b.shape(0, 3), "b1").astype(b.dtype(["b1", "f4", "i4", "i8", "u1"])))])


@spec("Compress", 9)
def compress(b):
    shape = b.shape(1, 3, empty=0)
    written = b.some(axis=b.axis(len(shape)) if b.opset >= 11 else b.int(0, len(shape) - 1))
    extent = shape[written["axis"]] if written else int(np.prod(shape))
    b.node("Compress", [b.x(shape, b.dtype(ALL)), b.x([b.int(1, max(extent, 1))], "b1", constant=0.4)], **written)


@spec("Unique", 11)
def unique(b):
    shape = b.shape(1, 3, largest=9, empty=0)
    b.node("Unique", [b.x(shape, b.dtype(["f4", "i8", "f8", "i1"]), low=0, high=4) if b.chance(0.5) else b.x(shape, "i8", low=-2, high=3)], 4,
           **b.some(axis=b.axis(len(shape)), sorted=b.int(0, 1)))
