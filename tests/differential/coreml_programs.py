"""Random operators of MIL and chains of them, as cases of tests/fixtures/coreml_ops."""

import coremltools as ct
import numpy as np
import torch
from coremltools.converters.mil import Builder as mb
from mil_case import Case, tensor
from torch.nn import functional as F

UNARY = "abs atan ceil cos cosh erf exp floor sign sin sinh square tanh round sigmoid softplus softsign relu relu6".split()
BINARY = "add sub mul maximum minimum real_div floor_div mod".split()
COMPARED = "equal not_equal greater greater_equal less less_equal".split()
# Without the norms of logarithms, which take positive numbers.
REDUCED = "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_l1_norm reduce_l2_norm reduce_sum_square reduce_log_sum_exp".split()
TARGET = ct.target.iOS17
MOST_EXTENT, MOST_STEPS = 6, 5


class Draw:
    """Numbers by chance."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def below(self, count):
        return int(self.random.integers(count))

    def between(self, low, high):
        return int(self.random.integers(low, high + 1))

    def one_of(self, words):
        return words[self.below(len(words))]

    def yes(self):
        return self.below(2) == 1

    def shape(self, low=1, high=4):
        return tuple(self.between(1, MOST_EXTENT) for _ in range(self.between(low, high)))

    def real(self, shape, low=-2.0, high=2.0):
        return self.random.uniform(low, high, shape).astype(np.float32)

    def whole(self, shape, low=-5, high=6):
        return self.random.integers(low, high, shape).astype(np.int32)

    def axes(self, rank):
        """Some of them, at least one, now and then counted from behind."""
        chosen = sorted(self.random.permutation(rank)[: self.between(1, rank)].tolist())
        return [axis - rank if self.yes() else axis for axis in chosen]

    def axis(self, rank):
        axis = self.below(rank)
        return axis - rank if self.yes() else axis

    def spread(self, shape):
        """A shape that broadcasts to this one."""
        made = [1 if self.below(3) == 0 else extent for extent in shape]
        return tuple(made[self.below(len(made)):] if self.below(3) == 0 else made)


# A step makes of a shape a function of one value: what is chained.
def unary_step(draw, shape):
    name = draw.one_of(UNARY)
    # Not so large that the next one overflows.
    return lambda x: getattr(mb, name)(x=mb.clip(x=x, alpha=-3.0, beta=3.0))


def binary_step(draw, shape):
    name, other = draw.one_of(BINARY), draw.real(draw.spread(shape), 0.25, 2)
    first = draw.yes() and name in ("add", "mul", "sub", "maximum", "minimum")
    return lambda x: getattr(mb, name)(x=other, y=x) if first else getattr(mb, name)(x=x, y=other)


def reduce_step(draw, shape):
    name, axes, keeps = draw.one_of(REDUCED), draw.axes(len(shape)), draw.yes()
    return lambda x: getattr(mb, name)(x=x, axes=axes, keep_dims=keeps)


def transpose_step(draw, shape):
    order = [int(axis) for axis in draw.random.permutation(len(shape))]
    return lambda x: mb.transpose(x=x, perm=order)


def reshape_step(draw, shape):
    order = draw.random.permutation(len(shape))
    to = [shape[axis] for axis in order]
    if draw.yes():
        to[draw.below(len(to))] = -1
    return lambda x: mb.reshape(x=x, shape=to)


def slice_step(draw, shape):
    begin, end, strides = [], [], []
    for extent in shape:
        first = draw.below(extent)
        last = draw.between(first + 1, extent)
        begin.append(first - extent if draw.yes() else first)
        end.append(last - extent if draw.yes() and last < extent else last)
        strides.append(draw.between(1, 3))
    begin_mask, end_mask = [draw.below(4) == 0 for _ in shape], [draw.below(4) == 0 for _ in shape]
    return lambda x: mb.slice_by_index(x=x, begin=begin, end=end, stride=strides, begin_mask=begin_mask, end_mask=end_mask)


def slice_back_step(draw, shape):
    axis = draw.below(len(shape))
    strides = [1] * len(shape)
    strides[axis] = -draw.between(1, 2)
    return lambda x: mb.slice_by_index(x=x, begin=[0] * len(shape), end=[0] * len(shape), stride=strides, begin_mask=[True] * len(shape), end_mask=[True] * len(shape))


def sized_step(draw, shape):
    begin = [draw.below(extent) for extent in shape]
    size = [-1 if draw.below(3) == 0 else draw.between(1, extent - first) for extent, first in zip(shape, begin)]
    return lambda x: mb.slice_by_size(x=x, begin=begin, size=size)


def expand_step(draw, shape):
    if len(shape) > 3:
        return lambda x: mb.identity(x=mb.add(x=x, y=0.5))
    axes = [draw.between(0, len(shape))]
    return lambda x: mb.expand_dims(x=x, axes=axes)


def pad_step(draw, shape):
    count = draw.between(1, min(len(shape), 2))
    pads = [draw.below(3) for _ in range(2 * count)]
    mode = draw.one_of(["constant", "reflect", "replicate"]) if all(extent > 2 for extent in shape[-count:]) else "constant"
    return lambda x: mb.pad(x=x, pad=pads, mode=mode, **({"constant_val": 0.5} if mode == "constant" else {}))


def tile_step(draw, shape):
    reps = [draw.between(1, 2) for _ in shape]
    return lambda x: mb.tile(x=x, reps=reps)


def concat_step(draw, shape):
    axis, other = draw.axis(len(shape)), list(shape)
    other[axis] = draw.between(1, 3)
    values = draw.real(other)
    return lambda x: mb.concat(values=(x, values), axis=axis)


def gather_step(draw, shape):
    axis = draw.axis(len(shape))
    indices = draw.whole(draw.shape(1, 2) if len(shape) < 4 else (draw.between(1, 3),), -shape[axis], shape[axis])
    return lambda x: mb.gather(x=x, indices=indices, axis=axis, validate_indices=False)


def cumsum_step(draw, shape):
    # Exclusive ones coremltools infers no value of.
    options = {"axis": draw.below(len(shape)), "reverse": draw.yes()}
    return lambda x: mb.cumsum(x=x, **options)


def band_step(draw, shape):
    if len(shape) < 2:
        return lambda x: mb.mul(x=x, y=2.0)
    lower, upper = draw.between(-1, 2), draw.between(-1, 2)
    return lambda x: mb.band_part(x=x, lower=lower, upper=upper)


def softmax_step(draw, shape):
    axis = draw.axis(len(shape))
    return lambda x: mb.softmax(x=x, axis=axis)


def select_step(draw, shape):
    limit, other = float(draw.real(())), draw.real(shape)
    return lambda x: mb.select(cond=mb.greater(x=x, y=limit), a=x, b=other)


def clip_step(draw, shape):
    low = float(draw.real((), -1, 0))
    return lambda x: mb.clip(x=x, alpha=low, beta=low + 1)


def activation_step(draw, shape):
    name, alpha, beta = draw.one_of("elu leaky_relu thresholded_relu clamped_relu linear_activation scaled_tanh sigmoid_hard".split()), 0.5, 0.75
    options = {"alpha": alpha} if name in ("elu", "leaky_relu", "thresholded_relu") else {"alpha": alpha, "beta": beta}
    return lambda x: getattr(mb, name)(x=mb.clip(x=x, alpha=-4.0, beta=4.0), **options)


def matmul_step(draw, shape):
    if len(shape) < 2:
        return lambda x: mb.sub(x=1.0, y=x)
    turned = draw.yes()
    weight = draw.real((3, shape[-1]) if turned else (shape[-1], 3))
    return lambda x: mb.matmul(x=x, y=weight, transpose_y=turned)


STEPS = [unary_step, binary_step, reduce_step, transpose_step, reshape_step, slice_step, slice_back_step, sized_step, expand_step, pad_step, tile_step, concat_step,
         gather_step, cumsum_step, band_step, softmax_step, select_step, clip_step, activation_step, matmul_step]


def shape_behind(step, shape):
    made = []

    def program():
        out = step(mb.const(val=np.zeros(shape, np.float32)))
        made.append(tuple(int(extent) for extent in out.shape))
        return mb.identity(x=out)

    mb.program(input_specs=[], opset_version=TARGET)(program)
    return made[0]


def chain(draw, name, steps):
    """Steps one behind the other; each is made for the shape that it finds."""
    shape, made = draw.shape(), []
    x = draw.real(shape)
    for _ in range(steps):
        if not shape or len(shape) > 4 or np.prod(shape) > 5000:
            break
        step = draw.one_of(STEPS)
        made.append(step(draw, shape))
        shape = shape_behind(made[-1], shape)

    def build(x):
        for step in made:
            x = step(x)
        return x

    return Case(name, build, {"x": x})


def several(draw, name):
    """Operators of several results, operands or of whole numbers."""
    shape = draw.shape(1, 3)
    kind = draw.below(8)
    if kind == 0:
        axis, parts = draw.below(len(shape)), draw.between(1, 3)
        whole = tuple(extent * parts if at == axis else extent for at, extent in enumerate(shape))
        return Case(name, lambda x: mb.split(x=x, num_splits=parts, axis=axis) if parts > 1 else mb.identity(x=x), {"x": draw.real(whole)})
    if kind == 1:
        axis = draw.axis(len(shape))
        rows = draw.random.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
        options = {"k": draw.between(1, shape[axis]), "axis": axis, "ascending": draw.yes()}
        return Case(name, lambda x: mb.topk(x=x, **options), {"x": rows})
    if kind == 2:
        op = draw.one_of(COMPARED)
        return Case(name, lambda x, y: mb.cast(x=getattr(mb, op)(x=x, y=y), dtype="int32"), {"x": draw.whole(shape), "y": draw.whole(draw.spread(shape))})
    if kind == 3:
        op = draw.one_of("add sub mul maximum minimum floor_div mod".split())
        return Case(name, lambda x, y: getattr(mb, op)(x=x, y=y), {"x": draw.whole(shape), "y": draw.whole(draw.spread(shape), 1, 5) * (1 if draw.yes() else -1)})
    if kind == 4:
        op, axis, keeps = draw.one_of(["reduce_argmax", "reduce_argmin"]), draw.axis(len(shape)), draw.yes()
        rows = draw.random.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
        return Case(name, lambda x: getattr(mb, op)(x=x, axis=axis, keep_dims=keeps), {"x": rows})
    if kind == 5:
        axis = draw.below(len(shape) + 1)
        return Case(name, lambda x, y: mb.stack(values=(x, y), axis=axis), {"x": draw.real(shape), "y": draw.real(shape)})
    if kind == 6:
        size, axis = draw.between(3, 6), draw.between(-1, len(shape))
        return Case(name, lambda x: mb.one_hot(indices=x, one_hot_vector_size=size, axis=axis, on_value=2.0, off_value=-1.0), {"x": draw.whole(shape, 0, size)})
    op = draw.one_of(["logical_and", "logical_or", "logical_xor"])
    return Case(name, lambda x, y: mb.cast(x=getattr(mb, op)(x=mb.greater(x=x, y=0.0), y=mb.less(x=y, y=0.5)), dtype="int32"), {"x": draw.real(shape), "y": draw.real(shape)})


def windows(draw, name):
    """Convolutions and pools, of which torch says what they make."""
    rank = draw.between(1, 2)
    spatial = tuple(draw.between(5, 9) for _ in range(rank))
    kernel, strides = [draw.between(1, 3) for _ in spatial], [draw.between(1, 2) for _ in spatial]
    pads = [[draw.between(0, 1), draw.between(0, 1)] for _ in spatial]
    options = {"strides": strides, "pad_type": "custom", "pad": [each for pair in pads for each in pair]}
    flat = [each for pair in reversed(pads) for each in pair]
    groups = draw.between(1, 2)
    x = draw.real((draw.between(1, 2), 2 * groups, *spatial))
    if draw.yes():
        weight, bias = draw.real((3 * groups, 2, *kernel)), draw.real((3 * groups,))
        dilations = [draw.between(1, 2) for _ in spatial]
        conv = F.conv1d if rank == 1 else F.conv2d
        return Case(name, lambda x: mb.conv(x=x, weight=weight, bias=bias, groups=groups, dilations=dilations, **options), {"x": x},
                    lambda x: conv(F.pad(tensor(x), flat), tensor(weight), tensor(bias), tuple(strides), 0, tuple(dilations), groups))
    if draw.yes():
        pool = F.avg_pool1d if rank == 1 else F.avg_pool2d
        return Case(name, lambda x: mb.avg_pool(x=x, kernel_sizes=kernel, exclude_padding_from_average=False, **options), {"x": x},
                    lambda x: pool(F.pad(tensor(x), flat), tuple(kernel), tuple(strides)))
    pool = F.max_pool1d if rank == 1 else F.max_pool2d
    return Case(name, lambda x: mb.max_pool(x=x, kernel_sizes=kernel, **options), {"x": x},
                lambda x: pool(F.pad(tensor(x), flat, value=-torch.inf), tuple(kernel), tuple(strides)))


def random_cases(seed, count):
    """The same ones of the same seed: single operators, chains, and others."""
    draw = Draw(seed)
    for index in range(count):
        name, kind = f"case{index}", draw.below(4)
        if kind == 0:
            yield chain(draw, name, 1)
        elif kind == 1:
            yield chain(draw, name, draw.between(2, MOST_STEPS))
        elif kind == 2:
            yield several(draw, name)
        else:
            yield windows(draw, name)
