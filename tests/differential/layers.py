"""Layers of networks: products, convolutions, pools, reductions, normalizations, resizing, recurrence, attention."""

import numpy as np
from builder import FLOATS, WIDE, Skip
from registry import spec

REDUCTIONS = {"ReduceSum": FLOATS + ["i4", "i8"], "ReduceMean": FLOATS + ["i4"], "ReduceMax": FLOATS + ["i4", "i8"],
              "ReduceMin": FLOATS + ["i4", "i8"], "ReduceProd": WIDE + ["i4", "i8"], "ReduceL1": FLOATS + ["i4"], "ReduceL2": FLOATS,
              "ReduceSumSquare": FLOATS + ["i4"], "ReduceLogSum": FLOATS, "ReduceLogSumExp": FLOATS}


def draw_reduction(name, types):
    def draw(b):
        shape = b.shape(0, 4)
        dtype = b.dtype(types)
        if name in ("ReduceMax", "ReduceMin") and b.opset >= 12 and b.chance(0.2):
            dtype = np.dtype(b.pick(["u1", "i1"] + (["b1"] if b.opset >= 20 else [])))
        options = b.some(keepdims=b.int(0, 1))
        low, high = (0.1, 2) if name in ("ReduceLogSum", "ReduceProd") and dtype.kind == "f" else (-1, 1) if name == "ReduceProd" else (None, None)
        x = b.x(shape, dtype, low=low, high=high, hard=0.1 if name == "ReduceSum" and dtype.kind == "f" else 0)
        with_input = b.opset >= (13 if name == "ReduceSum" else 18)
        if with_input:
            options.update(b.some(noop_with_empty_axes=b.int(0, 1)))
        if b.chance(0.25) or not shape:
            b.node(name, [x], **options)
            return
        axes = b.axes(len(shape), 0 if with_input and b.chance(0.1) else 1)
        # Of what is empty the peer forgets axes that are counted from the end.
        if b.opset < 11 or 0 in shape:
            axes = [a % len(shape) for a in axes]
        b.node(name, [x, b.ints(axes)], **options) if with_input else b.node(name, [x], axes=axes, **options)

    return draw


for _name, _types in REDUCTIONS.items():
    spec(_name)(draw_reduction(_name, _types))


def draw_arg(name):
    def draw(b):
        shape = b.shape(1, 4, empty=0)
        dtype = b.dtype(["f4", "f4", "f8", "i4", "i1", "u1"])
        x = b.x(shape, dtype, low=0, high=4) if dtype.kind != "f" else b.given(np.round(b.values(shape, dtype)))
        b.node(name, [x], **b.some(axis=b.axis(len(shape)) if b.opset >= 11 else b.int(0, len(shape) - 1), keepdims=b.int(0, 1)),
               **(b.some(select_last_index=b.int(0, 1)) if b.opset >= 12 else {}))

    return draw


spec("ArgMax")(draw_arg("ArgMax"))
spec("ArgMin")(draw_arg("ArgMin"))


def draw_softmax(name):
    def draw(b):
        shape = b.shape(1, 4)
        b.atol = 1e-6
        b.elementwise()
        b.node(name, [b.x(shape, b.dtype(FLOATS), hard=0 if name == "Hardmax" else 0.05)],
               **b.some(axis=b.axis(len(shape)) if b.opset >= 11 else b.int(0, len(shape) - 1)))

    return draw


for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    spec(_name)(draw_softmax(_name))


@spec("CumSum", 11)
def cumsum(b):
    shape = b.shape(1, 3)
    b.node("CumSum", [b.x(shape, b.dtype(["f4", "f8", "i4", "i8"])), b.given(np.array(b.axis(len(shape)), b.pick(["i4", "i8"])), 0.8)],
           **b.some(exclusive=b.int(0, 1), reverse=b.int(0, 1)))


@spec("TopK", 10)
def top_k(b):
    shape = b.shape(1, 3, empty=0)
    if b.chance(0.2):
        shape[-1] = 300
    written = b.some(axis=b.axis(len(shape)) if b.opset >= 11 else b.int(0, len(shape) - 1))
    extent = shape[written.get("axis", -1)]
    dtype = b.dtype(["f4", "f4", "f8"] + (["i4", "i8"] if b.opset >= 11 else []))
    x = b.given(np.round(b.values(shape, dtype) * 4)) if dtype.kind == "f" else b.x(shape, dtype)
    b.node("TopK", [x, b.ints([b.int(0 if b.chance(0.1) else 1, extent)])], 2, **written, **(b.some(largest=b.int(0, 1)) if b.opset >= 11 else {}))


def matmul_shapes(b, empty=0.0):
    m, k, n = (b.pick([1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65]) for _ in range(3))
    if b.chance(empty):
        k = 0
    lead = [b.int(1, 3) for _ in range(b.int(0, 2))]
    left, right = b.broadcast(lead) + [m, k], b.broadcast(lead) + [k, n]
    if b.chance(0.1):
        left = [k]
    elif b.chance(0.1):
        right = [k]
    return left, right


@spec("MatMul")
def matmul(b):
    dtype = b.dtype(FLOATS + (["i4", "u4", "i8"] if b.opset >= 9 else []))
    left, right = matmul_shapes(b, empty=0.05)
    b.sums_nothing = left[-1] == 0
    b.rtol = 1e-4
    b.node("MatMul", [b.x(left, dtype), b.x(right, dtype, constant=0.5)])


@spec("Gemm", 7)
def gemm(b):
    m, k, n = (b.pick([1, 2, 3, 7, 8, 16, 17, 33, 64]) for _ in range(3))
    ta, tb = b.int(0, 1), b.int(0, 1)
    dtype = b.dtype(FLOATS)
    parts = [b.x([k, m] if ta else [m, k], dtype), b.x([n, k] if tb else [k, n], dtype, constant=0.5)]
    if b.opset < 11 or b.chance(0.7):
        parts.append(b.x(b.broadcast([m, n]), dtype, constant=0.5))
    options = {} if not (ta or tb) and b.chance(0.5) else {"transA": ta, "transB": tb}
    b.node("Gemm", parts, **options, **b.some(alpha=float(b.rng.normal()), beta=b.pick([0.0, 0.5, 1.0])))


EINSUMS = ["ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "ii", "ij,ij->", "i,j->ij", "...ij,...jk->...ik", "bhqd,bhkd->bhqk", "ij,jk,kl->il",
           "bij->bj", "ij", "abc,cd->abd", "...i->...", "bqhd,bkhd->bhqk", "ij,kj->ik", "i,i", "iij->ij", "ab,ab->ab", "ab,b->a", "abc,ac->bc",
           "b...i,b...i->b...", " i j , j k -> i k "]


@spec("Einsum", 12)
def einsum(b):
    text = b.pick(EINSUMS)
    sizes = {letter: b.extent(9) for letter in "abcdhijklq"}
    dots = [b.int(1, 3) for _ in range(b.int(0, 2))]
    shapes = []
    for term in text.split("->")[0].replace(" ", "").split(","):
        before, _, after = term.partition("...")
        shapes.append([sizes[c] for c in before] + (dots if "..." in term else []) + [sizes[c] for c in after])
    dtype = b.dtype(["f4", "f4", "f8", "i4", "i8"])
    b.node("Einsum", [b.x(shape, dtype) for shape in shapes], equation=text)


def windows(b, rank, largest=3):
    """Input extents and the attributes of a window that fits them."""
    kernel = [b.int(1, largest) for _ in range(rank)]
    if b.chance(0.1):
        kernel = [b.int(1, 7) for _ in range(rank)]
    strides = [b.int(1, 3) if b.chance(0.4) else 1 for _ in range(rank)]
    dilations = [b.int(1, 3) if b.chance(0.25) else 1 for _ in range(rank)]
    extents = [(k - 1) * d + b.int(1, [40, 17, 7][rank - 1] + s) for k, d, s in zip(kernel, dilations, strides)]
    options = b.some(strides=strides)
    if b.chance(0.3):
        options["dilations"] = dilations
    if b.chance(0.25):
        options["auto_pad"] = b.pick(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
        if options["auto_pad"].startswith("SAME") and any(k < s for k, s in zip(kernel, strides)):
            raise Skip  # pads would be less than none, and the peer takes them so
    if options.get("auto_pad", "NOTSET") == "NOTSET" and b.chance(0.6):
        options["pads"] = [b.int(0, max(k - 1, 0)) for k in kernel * 2] if b.chance(0.5) else [k // 2 for k in kernel] * 2
    return extents, kernel, options


CHANNELS = [1, 2, 3, 4, 8, 8, 16, 16, 17, 24, 32, 33]


def conv_operands(b, rank, group=None):
    extents, kernel, options = windows(b, rank)
    group = group or b.pick([1, 1, 1, 2, 4])
    per_in, per_out = b.pick(CHANNELS[:8] if group > 1 else CHANNELS), b.pick(CHANNELS[:8] if group > 1 else CHANNELS)
    if b.chance(0.15):
        group, per_in, per_out = b.pick([3, 8, 16, 17, 32]), 1, b.pick([1, 1, 2])
    if group > 1:
        options["group"] = group
    batch = b.pick([1, 1, 1, 2, 3]) if not b.chance(0.03) else 0
    return [batch, group * per_in] + extents, [group * per_out, per_in] + kernel, options, kernel


@spec("Conv", 7)
def conv(b):
    rank = b.pick([1, 2, 2, 2, 2, 3])
    x, w, options, kernel = conv_operands(b, rank)
    dtype = b.dtype(["f4"] * 5 + ["f2", "f8"])
    bias = [b.x([w[0]], dtype, constant=0.8)] if b.chance(0.6) else []
    b.node("Conv", [b.x(x, dtype), b.x(w, dtype, constant=0.8)] + bias, kernel_shape=kernel if b.chance(0.7) else None, **options)


@spec("ConvTranspose", 7)
def conv_transpose(b):
    rank = b.pick([1, 2, 2, 2, 3])
    x, w, options, kernel = conv_operands(b, rank)
    group = options.get("group", 1)
    w = [x[1], b.pick([1, 2, 3, 8])] + kernel
    strides = options.get("strides", [1] * rank)
    dilations = options.get("dilations", [1] * rank)
    out = [(e - 1) * s + (k - 1) * d + 1 for e, s, k, d in zip(x[2:], strides, kernel, dilations)]
    if "pads" in options and any(o <= p + q for o, p, q in zip(out, options["pads"], options["pads"][rank:])):
        raise Skip
    if options.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER") and any(o < e * s for o, e, s in zip(out, x[2:], strides)):
        raise Skip
    if b.chance(0.3):
        options["output_padding"] = [b.int(0, max(s - 1, 0)) for s in strides]
    bias = [b.x([w[1] * group])] if b.chance(0.5) else []
    b.node("ConvTranspose", [b.x(x), b.x(w, constant=0.8)] + bias, kernel_shape=kernel if b.chance(0.7) else None, **options)


def pads_as_the_standard(options):
    """Of SAME the standard says the extents of the result; the peer pads for a window without dilations."""
    if options.get("auto_pad", "").startswith("SAME") and max(options.get("dilations", [1])) > 1:
        raise Skip


def pool_input(b, channels=None):
    rank = b.pick([1, 2, 2, 2, 3])
    extents, kernel, options = windows(b, rank)
    return [b.pick([1, 2]), channels or b.pick(CHANNELS)] + extents, kernel, options


@spec("MaxPool", 8)
def max_pool(b):
    shape, kernel, options = pool_input(b)
    if b.opset < 10:
        options.pop("dilations", None)
    elif "auto_pad" not in options:
        options.update(b.some(ceil_mode=b.int(0, 1)))
    pads_as_the_standard(options)
    dtype = b.dtype(["f4", "f4", "f8"] + (["i1", "u1"] if b.opset >= 12 else []))
    many = b.chance(0.25)
    b.exact()
    b.node("MaxPool", [b.x(shape, dtype)], 2 if many else 1, kernel_shape=kernel, **options, **(b.some(storage_order=b.int(0, 1)) if many else {}))


@spec("AveragePool", 7)
def average_pool(b):
    shape, kernel, options = pool_input(b)
    if b.opset < 19:
        options.pop("dilations", None)
    if b.opset >= 10 and "auto_pad" not in options:
        options.update(b.some(ceil_mode=b.int(0, 1)))
    b.node("AveragePool", [b.x(shape, b.dtype(["f4", "f4", "f4", "f2"]))], kernel_shape=kernel, **options, **b.some(count_include_pad=b.int(0, 1)))


@spec("LpPool", 7)
def lp_pool(b):
    shape, kernel, options = pool_input(b)
    if b.opset < 18:
        options.pop("dilations", None)
    pads_as_the_standard(options)
    b.node("LpPool", [b.x(shape)], kernel_shape=kernel, **options, **b.some(p=b.int(1, 3)))


@spec("GlobalPool", 7)
def global_pool(b):
    kind = b.pick(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    b.node(kind, [b.x([b.int(1, 3), b.pick(CHANNELS)] + [b.extent(17) for _ in range(b.int(1, 3))], b.dtype(["f4", "f4", "f2"]))],
           **(b.some(p=b.int(1, 3)) if kind == "GlobalLpPool" else {}))


@spec("MaxUnpool", 11)
def max_unpool(b):
    shape = [1, b.int(1, 3), 2 * b.int(1, 5), 2 * b.int(1, 5)]
    values, places = b.node("MaxPool", [b.x(shape)], 2, kernel_shape=[2, 2], strides=[2, 2])
    b.node("MaxUnpool", [values, places], kernel_shape=[2, 2], strides=[2, 2])


@spec("BatchNormalization", 9)
def batch_norm(b):
    shape = [b.int(1, 3), b.pick(CHANNELS)] + [b.extent(9) for _ in range(b.int(0, 3))]
    c = [shape[1]]
    dtype = b.dtype(["f4", "f4", "f4", "f8"])
    b.node("BatchNormalization", [b.x(shape, dtype)] + [b.x(c, dtype, constant=0.8) for _ in range(3)] + [b.x(c, dtype, constant=0.8, low=0.1, high=2)],
           **b.some(epsilon=1e-3, momentum=0.5))


@spec("InstanceNormalization", 7)
def instance_norm(b):
    shape = [b.int(1, 3), b.pick(CHANNELS)] + [b.extent(17) for _ in range(b.int(1, 3))]
    b.atol = 1e-4
    b.node("InstanceNormalization", [b.x(shape), b.x(shape[1:2], constant=0.8), b.x(shape[1:2], constant=0.8)], **b.some(epsilon=1e-2))


@spec("GroupNormalization", 21)
def group_norm(b):
    groups = b.int(1, 4)
    shape = [b.int(1, 3), groups * b.int(1, 5)] + [b.extent(9) for _ in range(b.int(1, 3))]
    x = b.x(shape)
    rows = b.array(x).reshape(shape[0] * groups, -1).astype(np.float64)
    # The peer's variance is the mean of squares less the square of the mean: of values that are nearly equal few of its digits are left.
    b.atol = max(1e-4, 1e-6 * np.max(np.mean(rows * rows, 1) / (np.var(rows, 1) + 1e-5), initial=0))
    b.node("GroupNormalization", [x, b.x(shape[1:2], constant=0.8), b.x(shape[1:2], constant=0.8)], num_groups=groups, **b.some(epsilon=1e-2))


def normalized_shape(b):
    shape = b.shape(1, 4, empty=0.02)
    axis = b.axis(len(shape))
    return shape, axis, shape[axis:]


@spec("LayerNormalization", 17)
def layer_norm(b):
    shape, axis, scale = normalized_shape(b)
    if axis in (-1, len(shape) - 1) and b.chance(0.3):
        axis = None
        scale = shape[-1:]
    dtype = b.dtype(["f4"] * 4 + ["f2", "f8"])
    b.atol = 1e-4
    parts = [b.x(shape, dtype), b.x(scale, dtype, constant=0.7)] + ([b.x(scale, dtype, constant=0.7)] if b.chance(0.6) else [])
    b.node("LayerNormalization", parts, b.pick([1, 1, 1, 3]), axis=axis, **b.some(epsilon=1e-2))


@spec("RMSNormalization", 23)
def rms_norm(b):
    shape, axis, scale = normalized_shape(b)
    dtype = b.dtype(["f4"] * 4 + ["f2", "f8"])
    b.node("RMSNormalization", [b.x(shape, dtype), b.x(scale, dtype, constant=0.7)], axis=axis, **b.some(epsilon=1e-2))


@spec("LpNormalization")
def lp_norm(b):
    shape = b.shape(1, 3, empty=0)
    b.node("LpNormalization", [b.x(shape, b.dtype(WIDE))], **b.some(axis=b.axis(len(shape)), p=b.int(1, 2)))


@spec("MeanVarianceNormalization", 9)
def mvn(b):
    shape = [b.int(2, 3), b.int(2, 9), b.int(2, 9), b.int(2, 9)]
    b.atol = 1e-4
    b.node("MeanVarianceNormalization", [b.x(shape)], **b.some(axes=[int(a) for a in b.rng.permutation(4)[:b.int(1, 4)]]))


@spec("LRN")
def lrn(b):
    shape = [b.int(1, 2), b.pick(CHANNELS), b.extent(9), b.extent(9)]
    b.node("LRN", [b.x(shape)], size=b.pick([1, 3, 5]), **b.some(alpha=0.5, beta=0.6, bias=2.0))


# Without those whose parameters the standard gives no default, or the peer another one.
ACTIVATIONS = ["Relu", "Tanh", "Sigmoid", "Softsign", "LeakyRelu", "HardSigmoid", "Elu"]


def draw_recurrent(name, gates, states, free=False):
    """`free`: over sequences of any length, beside buckets of other lengths, mostly in batches of any size."""
    def draw(b):
        steps, batch = (b.pick([1, 3, 17, 40]), b.int(1, 5)) if free else (b.int(1, 5), b.int(1, 3))
        size, hidden = b.int(1, 9), b.pick([1, 3, 5, 8, 16, 17])
        direction = b.pick(["forward", "reverse", "bidirectional"])
        d = 2 if direction == "bidirectional" else 1
        batchwise = b.opset >= 14 and not free and b.chance(0.1)
        shape = [batch, steps, size] if batchwise else [steps, batch, size]
        state = [batch, d, hidden] if batchwise else [d, batch, hidden]
        # Long sequences need weights that forget and bounded gates, or rounding grows from step to step.
        fixed, weights = (0, {"low": -0.3, "high": 0.3}) if free else (0.1, {})
        functions = ["Tanh", "Sigmoid", "Softsign", "HardSigmoid"] if free else ACTIVATIONS
        parts = [b.x(shape, constant=fixed), b.x([d, gates * hidden, size], constant=0.8), b.x([d, gates * hidden, hidden], constant=0.8, **weights),
                 b.x([d, 2 * gates * hidden], constant=0.8) if b.chance(0.6) else "",
                 b.given(b.rng.integers(1, steps + 1, batch).astype(np.int32), 0 if free else 0.3) if b.chance(0.3) else ""]
        parts += [b.x(state, constant=fixed) if b.chance(0.4) else "" for _ in range(states)]
        if name == "LSTM" and b.chance(0.3):
            parts.append(b.x([d, 3 * hidden], constant=0.8))
        options = b.some(clip=1.0) if b.chance(0.3) else {}
        if name == "GRU":
            options.update(b.some(linear_before_reset=b.int(0, 1)))
        if b.chance(0.2):
            options["activations"] = [b.pick(functions) for _ in range({"RNN": 1, "GRU": 2, "LSTM": 3}[name] * d)]
        if batchwise:
            options["layout"] = 1
        if free:
            free_axes(b, parts, states)
        b.rtol, b.atol = 2e-4, 1e-5
        outputs = [f"y{i}" if b.chance(0.8) else "" for i in range(states + 1)]
        if not any(outputs):
            raise Skip
        while outputs[-1] == "":
            outputs.pop()
        b.node(name, parts, outputs, hidden_size=hidden, direction=direction if d == 2 or b.chance(0.6) or direction == "reverse" else None, **options)

    return draw


def free_axes(b, parts, states):
    """The axis of steps, and mostly that of the batch."""
    given = [name for name in parts if name]
    if b.is_constant or len(set(given)) != len(given):
        raise Skip
    b.free, b.buckets = {parts[0]: {0: "T"}}, b.pick(["T=8,32", "T=8", "T=2"])
    if b.chance(0.6):
        b.buckets += ";N=2"
        for name, axis in [(parts[0], 1), (parts[4], 0)] + [(state, 1) for state in parts[5:5 + states]]:
            b.free.setdefault(name, {})[axis] = "N"


for layer, gate_count, state_count in (("RNN", 1, 1), ("GRU", 3, 1), ("LSTM", 4, 2)):
    spec(layer, 7)(draw_recurrent(layer, gate_count, state_count))
    spec(f"free.{layer}", 7)(draw_recurrent(layer, gate_count, state_count, free=True))


@spec("Attention", 23)
def attention(b):
    batch, kv, times, d, v = b.int(1, 2), b.int(1, 3), b.int(1, 3), b.pick([2, 4, 8, 16]), b.pick([2, 4, 8])
    heads, q, s = kv * times, b.pick([1, 2, 5, 9]), b.pick([1, 3, 7, 9])
    flat = b.chance(0.4)
    dtype = b.dtype(["f4", "f4", "f4", "f2"])
    past = b.int(1, 4) if b.chance(0.25) else 0
    parts = [b.x([batch, q, heads * d] if flat else [batch, heads, q, d], dtype), b.x([batch, s, kv * d] if flat else [batch, kv, s, d], dtype),
             b.x([batch, s, kv * v] if flat else [batch, kv, s, v], dtype)]
    mask = ""
    if b.chance(0.4):
        lead = b.pick([[], [1, 1], [batch, 1], [batch, heads]])
        mask = b.x(lead + [q, s + past], "b1" if b.chance(0.4) else dtype)
    parts.append(mask)
    if past:
        parts += [b.x([batch, kv, past, d], dtype), b.x([batch, kv, past, v], dtype)]
    options = b.some(is_causal=b.int(0, 1), scale=0.3)
    if past and q == 1 and s > 1:
        # The peer lets one query behind a cache see all of several new keys, the standard's reference the first.
        options.pop("is_causal", None)
    if b.chance(0.2):
        options["softcap"] = 2.0
    if flat:
        options.update(q_num_heads=heads, kv_num_heads=kv)
    outputs = 3 if past else 1
    if b.chance(0.15):
        outputs = 4 if past else ["y", "", "", "qk"]
        options.update(b.some(qk_matmul_output_mode=b.int(0, 3)))
    b.atol = 1e-4
    b.node("Attention", parts, outputs, **options)


@spec("RotaryEmbedding", 23)
def rotary(b):
    batch, heads, q, d = b.int(1, 2), b.int(1, 3), b.int(1, 5), 2 * b.int(2, 8)
    part = 2 * b.int(1, d // 2) if b.chance(0.3) else d
    flat = b.chance(0.4)
    positions = b.chance(0.6)
    caches = [b.x([q + 4, part // 2] if positions else [batch, q, part // 2]) for _ in range(2)]
    b.node("RotaryEmbedding", [b.x([batch, q, heads * d] if flat else [batch, heads, q, d])] + caches +
           ([b.given(b.rng.integers(0, q + 4, (batch, q)))] if positions else []),
           **({"num_heads": heads} if flat or part != d else {}), **({"rotary_embedding_dim": part} if part != d else {}), **b.some(interleaved=b.int(0, 1)))
