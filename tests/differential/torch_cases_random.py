"""Random calls of PyTorch's operators, for torch_sweep.py: seeded, as functions of tensors of random types, shapes and dims, among
them empty ones, those without dims, negative dims, and a first dim that is free.
"""

import random

import torch

FLOATS = (torch.float32, torch.float32, torch.float32, torch.float64)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
aten = torch.ops.aten


class Draw:
    """Draws the inputs of one model, and calls on them."""

    def __init__(self, seed, free=False):
        self.random, self.free = random.Random(seed), free
        self.torch = torch.Generator().manual_seed(seed)
        self.inputs = []
        self.extent = self.random.choice((2, 3, 5)) if free else None

    def pick(self, *items):
        return self.random.choice(items)

    def shape(self, least=0, most=4, empty=True):
        shape = [self.pick(1, 2, 3, 4, 5) for _ in range(self.random.randint(least, most))]
        if empty and shape and self.random.random() < 0.06:
            shape[self.random.randrange(len(shape))] = 0
        return shape

    def tensor(self, shape, dtype=None, low=-3, high=3):
        dtype = dtype or self.pick(*FLOATS, *INTS, torch.bool)
        if self.free and shape and self.random.random() < 0.7:
            shape = [self.extent, *shape[1:]]
        if dtype == torch.bool:
            value = torch.rand(shape, generator=self.torch) > 0.5
        elif dtype.is_floating_point:
            value = (torch.rand(shape, generator=self.torch) * (high - low) + low).to(dtype)
        else:
            value = torch.randint(max(low, 0) if dtype == torch.uint8 else low, high + 1, shape, generator=self.torch).to(dtype)
        self.inputs.append(value)
        index = len(self.inputs) - 1
        return index, value

    def real(self, shape, **options):
        return self.tensor(shape, self.pick(*FLOATS), **options)

    def axis(self, value):
        rank = max(value.dim(), 1)
        return self.random.randrange(-rank, rank)

    def axes(self, value):
        rank = max(value.dim(), 1)
        count = self.random.randint(1, rank)
        return [each - rank if self.random.random() < 0.4 else each for each in self.random.sample(range(rank), count)]


def broadcastable(draw, shape):
    shape = [1 if draw.random.random() < 0.3 else each for each in shape]
    return shape[draw.random.randint(0, len(shape)):] if draw.random.random() < 0.3 else shape


def unary(draw):
    op = draw.pick("abs", "neg", "sign", "relu", "exp", "tanh", "sigmoid", "erf", "sin", "cos", "atan", "square", "floor", "ceil", "trunc",
                   "round", "gelu", "silu", "isnan", "isfinite", "logical_not", "expm1", "log1p", "sqrt", "rsqrt", "reciprocal", "log", "frac")
    low = 0.1 if op in ("sqrt", "rsqrt", "reciprocal", "log", "log1p") else -3
    dtype = draw.pick(*FLOATS) if low > 0 or op in ("gelu", "silu", "frac") else None
    a, value = draw.tensor(draw.shape(), dtype, low=low)
    if value.dtype == torch.bool and op in ("abs", "neg", "sign", "relu", "square", "floor", "ceil", "trunc", "round", "reciprocal"):
        return None
    function = getattr(aten, op).default
    return lambda t: function(t[a])


def binary(draw):
    op = draw.pick("add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "lt", "ge", "remainder", "fmod", "floor_divide", "atan2",
                   "where", "pow", "bitwise_and", "logical_or", "lerp")
    shape = draw.shape()
    a, first = draw.tensor(shape)
    if draw.random.random() < 0.3 and op in ("add", "sub", "mul", "div", "eq", "lt", "remainder"):
        number = draw.pick(2, -3, 0.5, -1.25, True if op == "mul" else 7)
        if first.dtype == torch.bool and op in ("sub", "remainder"):
            return None
        function = getattr(aten, op).Tensor if op != "remainder" else aten.remainder.Scalar
        return lambda t: function(t[a], number)
    low = 1 if op in ("remainder", "fmod", "floor_divide", "div", "pow") else -3
    b, second = draw.tensor(broadcastable(draw, list(first.shape)), None, low=low)
    both_bool = first.dtype == second.dtype == torch.bool
    has_bool = torch.bool in (first.dtype, second.dtype)
    is_real = first.dtype.is_floating_point or second.dtype.is_floating_point
    if (both_bool and op in ("sub", "pow")) or (has_bool and op in ("sub", "remainder", "fmod", "floor_divide", "pow")):
        return None
    if op == "where":
        c, _ = draw.tensor(broadcastable(draw, list(first.shape)), torch.bool)
        return lambda t: aten.where.self(t[c], t[a], t[b])
    if op in ("bitwise_and", "logical_or"):
        if op == "bitwise_and" and is_real:
            return None
        return lambda t: getattr(torch, op)(t[a], t[b])
    if op == "pow" and is_real:
        return lambda t: torch.pow(t[a].abs() + 0.25, t[b])
    if op == "lerp":
        if first.dtype != second.dtype or not is_real:
            return None
        return lambda t: torch.lerp(t[a], t[b], 0.3)
    return lambda t: getattr(torch, op)(t[a], t[b])


def reduction(draw):
    op = draw.pick("sum", "mean", "amax", "amin", "argmax", "argmin", "max", "var", "std", "prod", "any", "all", "logsumexp", "norm", "softmax",
                   "log_softmax", "cumsum", "cumprod", "topk", "sort", "median", "count")
    real = op in ("mean", "var", "std", "logsumexp", "norm", "softmax", "log_softmax")
    dtype = draw.pick(*FLOATS) if real or op in ("topk", "sort", "median") else None
    a, value = draw.tensor(draw.shape(0, 4, empty=op in ("sum", "any", "all", "prod", "softmax", "cumsum")), dtype)
    if value.dtype == torch.bool and op in ("cumprod", "amax", "amin", "argmax", "argmin", "max"):
        return None
    axis, axes, keep = draw.axis(value), draw.axes(value), draw.pick(True, False)
    if op in ("sum", "mean", "amax", "amin"):
        return lambda t: getattr(torch, op)(t[a], axes, keep)
    if op in ("var", "std"):
        return lambda t: getattr(torch, op)(t[a], axes, correction=draw_correction, keepdim=keep) if (draw_correction := 0) == 0 else None
    if op in ("argmax", "argmin", "prod", "any", "all"):
        return lambda t: getattr(torch, op)(t[a], axis, keep)
    if op == "max":
        return lambda t: torch.max(t[a], axis, keep)[0]
    if op == "logsumexp":
        return lambda t: torch.logsumexp(t[a], axes, keep)
    if op == "norm":
        order = draw.pick(1, 2, 3, float("inf"))
        return lambda t: torch.linalg.vector_norm(t[a], order, axes, keep)
    if op in ("softmax", "log_softmax", "cumsum", "cumprod"):
        return lambda t: getattr(torch, op)(t[a], axis)
    if op == "topk":
        k = draw.random.randint(1, value.shape[axis] if value.dim() else 1)
        largest = draw.pick(True, False)
        return lambda t: torch.topk(t[a], k, axis, largest)[0]
    if op == "sort":
        return lambda t: torch.sort(t[a], dim=axis)[0]
    if op == "median":
        return (lambda t: torch.median(t[a], axis, keep)[0]) if not draw.free else None
    return lambda t: torch.count_nonzero(t[a])


def move(draw):
    op = draw.pick("transpose", "permute", "flatten", "unsqueeze", "slice", "select", "narrow", "chunk", "split", "cat", "stack", "flip", "roll", "repeat",
                   "tile", "expand", "pad", "tril", "triu", "unbind", "movedim", "unfold", "repeat_interleave", "diagonal", "masked_fill", "reshape")
    a, value = draw.tensor(draw.shape(1, 4, empty=op in ("transpose", "permute", "slice", "cat", "pad", "expand")))
    axis, other, rank = draw.axis(value), draw.axis(value), value.dim()
    extent = value.shape[axis]
    if op == "transpose":
        return lambda t: t[a].transpose(axis, other)
    if op == "permute":
        order = draw.random.sample(range(rank), rank)
        return lambda t: t[a].permute(order).contiguous()
    if op == "flatten":
        first = draw.random.randrange(rank)
        return lambda t: t[a].flatten(first)
    if op == "unsqueeze":
        at = draw.random.randrange(-rank - 1, rank + 1)
        return lambda t: t[a].unsqueeze(at)
    if op == "slice":
        start, end, step = draw.random.randint(-4, 4), draw.random.randint(-5, 6), draw.pick(1, 1, 2, 3)
        return lambda t: aten.slice.Tensor(t[a], axis, start, end, step)
    if op in ("select", "narrow", "unfold") and (draw.free and axis in (0, -rank)):
        return None
    if op == "select":
        at = draw.random.randrange(-extent, extent)
        return lambda t: t[a].select(axis, at)
    if op == "narrow":
        length = draw.random.randint(0, extent)
        start = draw.random.randint(0, extent - length)
        return lambda t: t[a].narrow(axis, start, length)
    if op in ("chunk", "split", "unbind"):
        if draw.free and axis in (0, -rank):
            return None
        count = draw.random.randint(1, 3)
        if op == "chunk":
            return lambda t: t[a].chunk(count, axis)[-1]
        return (lambda t: t[a].split(count, axis)[0]) if op == "split" else (lambda t: t[a].unbind(axis)[-1])
    if op in ("cat", "stack"):
        b, _ = draw.tensor(list(value.shape))
        if draw.inputs[b].shape != value.shape:
            return None
        return lambda t: getattr(torch, op)([t[a], t[b], t[a]], axis)
    if op in ("flip", "roll"):
        axes = draw.axes(value)
        shifts = [draw.random.randint(-5, 5) for _ in axes]
        return (lambda t: t[a].flip(axes)) if op == "flip" else (lambda t: t[a].roll(shifts, axes))
    if op in ("repeat", "tile"):
        counts = [draw.random.randint(1, 2) for _ in range(rank + draw.random.randint(0, 1))]
        return lambda t: t[a].repeat(counts)
    if op == "expand":
        front = draw.random.randint(1, 3)
        return lambda t: t[a].expand(front, *[-1] * rank)
    if op == "pad":
        pads = [draw.random.randint(0, 2) for _ in range(2 * draw.random.randint(1, min(rank, 3)))]
        return lambda t: torch.nn.functional.pad(t[a], pads, "constant", 1)
    if op in ("tril", "triu"):
        k = draw.random.randint(-2, 2)
        return (lambda t: getattr(torch, op)(t[a], k)) if rank > 1 else None
    if op == "movedim":
        return lambda t: t[a].movedim(axis, other)
    if op == "unfold":
        size = draw.random.randint(1, extent)
        return lambda t: t[a].unfold(axis, size, 1)
    if op == "repeat_interleave":
        count = draw.random.randint(1, 3)
        return lambda t: t[a].repeat_interleave(count, axis)
    if op == "diagonal":
        k = draw.random.randint(-1, 1)
        return (lambda t: torch.diagonal(t[a], k, 0, 1)) if rank > 1 and not draw.free else None
    if op == "masked_fill":
        b, _ = draw.tensor(broadcastable(draw, list(value.shape)), torch.bool)
        return lambda t: t[a].masked_fill(t[b], 1)
    return lambda t: t[a].reshape(-1, value.shape[-1]) if value.numel() else t[a].reshape(t[a].shape)


def write(draw):
    """Several writes through views of one tensor, and what is read then."""
    a, value = draw.tensor(draw.shape(2, 3, empty=False), torch.float32)
    steps = []
    for _ in range(draw.random.randint(1, 4)):
        axis = draw.random.randrange(1 if draw.free else 0, value.dim())
        start, step = draw.random.randrange(value.shape[axis]), draw.pick(1, 1, 2)
        kind, number = draw.pick("add_", "mul_", "fill_"), draw.pick(2.0, -1.5, 0.25)
        steps.append((axis, start, step, kind, number, draw.pick(True, False)))

    def run(t):
        base = t[a].clone()
        seen = base.transpose(0, -1)
        for axis, start, step, kind, number, turns in steps:
            part = aten.slice.Tensor(base, axis, start, 1 << 62, step)
            getattr(part.transpose(0, -1) if turns else part, kind)(number)
        return base + seen.transpose(0, -1)

    return run


def window(draw):
    op = draw.pick("conv1d", "conv2d", "conv_transpose2d", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "interpolate", "unfold", "batch_norm",
                   "group_norm", "layer_norm", "linear", "matmul", "pad")
    fn = torch.nn.functional
    spatial = 1 if op == "conv1d" else 2
    channels = draw.pick(2, 4)
    a, value = draw.tensor([draw.pick(1, 2), channels, *[draw.random.randint(5, 9) for _ in range(spatial)]], torch.float32, low=-1, high=1)
    stride, pad, dilation = draw.pick(1, 2), draw.pick(0, 1), draw.pick(1, 2)
    if op in ("conv1d", "conv2d"):
        groups = draw.pick(1, channels)
        b, _ = draw.tensor([channels * draw.pick(1, 2), channels // groups, *[draw.pick(1, 2, 3) for _ in range(spatial)]], torch.float32, low=-1, high=1)
        if draw.inputs[b].shape[0] % channels:
            return None
        return lambda t: getattr(fn, op)(t[a], t[b], None, stride, pad, dilation, groups)
    if op == "conv_transpose2d":
        b, _ = draw.tensor([1, 3, 3, 2], torch.float32, low=-1, high=1)
        return lambda t: fn.conv_transpose2d(t[a], t[b][:1].expand(channels, 3, 3, 2), None, stride, pad, 0, 1, dilation)
    if op in ("max_pool2d", "avg_pool2d"):
        kernel, ceil = draw.pick(2, 3), draw.pick(True, False)
        if op == "max_pool2d":
            return lambda t: fn.max_pool2d(t[a], kernel, stride, pad, 1, ceil)
        counts = draw.pick(True, False)
        return lambda t: fn.avg_pool2d(t[a], kernel, stride, pad, ceil, counts)
    if op == "adaptive_avg_pool2d":
        size = (draw.random.randint(1, 6), draw.random.randint(1, 6))
        return lambda t: fn.adaptive_avg_pool2d(t[a], size)
    if op == "interpolate":
        mode, size = draw.pick("nearest", "bilinear", "bicubic", "nearest-exact"), (draw.random.randint(2, 12), draw.random.randint(2, 12))
        corners = draw.pick(True, False) if mode in ("bilinear", "bicubic") else None
        return lambda t: fn.interpolate(t[a], size, mode=mode, align_corners=corners)
    if op == "unfold":
        return lambda t: fn.unfold(t[a], (2, 3), dilation, pad, stride)
    if op == "batch_norm":
        b, _ = draw.tensor([channels], torch.float32, low=0.5, high=2)
        return lambda t: fn.batch_norm(t[a], t[b][:1].expand(channels), t[b][:1].expand(channels) + 1, None, None)
    if op == "group_norm":
        return lambda t: fn.group_norm(t[a], draw_groups) if (draw_groups := 2) else None
    if op == "layer_norm":
        return lambda t: fn.layer_norm(t[a], value.shape[-1:])
    if op == "pad":
        mode = draw.pick("reflect", "replicate", "circular", "constant")
        return lambda t: fn.pad(t[a], (1, 2, 2, 1), mode)
    b, _ = draw.tensor([1, value.shape[-1], 3], torch.float32, low=-1, high=1)
    return lambda t: torch.matmul(t[a], t[b][0])


FAMILIES = (unary, unary, binary, binary, binary, reduction, reduction, move, move, move, write, window, window)


def random_model(seed, outputs, free):
    """Inputs and calls on them, each of which eager torch takes."""
    draw, calls = Draw(seed, free), []
    while len(calls) < outputs:
        before = len(draw.inputs)
        family = draw.pick(*FAMILIES)
        call = family(draw)
        inputs = [each.clone() for each in draw.inputs]
        try:
            made = call(inputs) if call else None
        except (RuntimeError, IndexError, TypeError, NotImplementedError, ValueError):
            made = None
        if not isinstance(made, torch.Tensor) or made.dtype.is_complex:
            del draw.inputs[before:]
            continue
        calls.append((family.__name__, call))
    return draw, calls
