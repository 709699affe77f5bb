"""Rarer forms of operators: optional operands and outputs, attributes that few exporters write."""

import numpy as np
from builder import Skip
from contrib import MICROSOFT
from onnx import TensorProto, helper
from registry import spec


@spec("forms.Attention", 24)
def attention(b):
    """Grouped heads, counts of valid keys, masks of every rank, all outputs."""
    n, kv, times, d = b.int(1, 3), b.int(1, 3), b.int(1, 3), b.pick([4, 8])
    heads, q, s = kv * times, b.int(1, 5), b.int(2, 9)
    parts = [b.x([n, heads, q, d]), b.x([n, kv, s, d]), b.x([n, kv, s, d])]
    mask = b.pick([None, [q, s], [1, q, s], [n, 1, q, s], [heads, q, s], [n, heads, q, s]])
    parts.append(b.x(mask) if mask else "")
    if b.chance(0.4):
        parts += ["", "", b.given(b.rng.integers(1, s + 1, n))]
    b.atol = 1e-4
    b.node("Attention", parts, **b.some(is_causal=b.int(0, 1), scale=0.2, softcap=1.5, softmax_precision=1))


@spec("forms.MultiHeadAttention", 13, 22)
def multi_head(b):
    n, heads, d, q = b.int(1, 2), b.int(1, 3), b.pick([4, 8]), b.int(1, 5)
    past = b.int(1, 4) if b.chance(0.5) else 0
    s = q if past else b.int(1, 6)
    h = heads * d
    parts = [b.x([n, q, h]), b.x([n, s, h]), b.x([n, s, h]), b.x([3 * h], constant=0.7) if b.chance(0.4) else ""]
    valid = b.rng.random((n, s + past)) < 0.7
    masked = b.chance(0.4) and not past
    # Where no key is valid all scores lie about -10000, where floats are 1e-3 apart.
    b.atol = 1e-2 if masked and not valid.any(1).all() else 1e-4
    parts.append(b.given(valid.astype(np.int32)) if masked else "")
    parts.append(b.x([n, heads, q, s + past]) if b.chance(0.3) else "")
    if past:
        parts += [b.x([n, heads, past, d]), b.x([n, heads, past, d])]
    b.node("MultiHeadAttention", parts, 3 if past else 1, domain=MICROSOFT, num_heads=heads)


@spec("forms.PackedAttention", 13, 22)
def packed(b):
    n, heads, s, wide = b.int(1, 2), b.int(1, 3), b.int(1, 5), b.pick([4, 9])
    d, v = b.pick([4, 8]), b.pick([4, 8])
    sizes = [heads * d, heads * d, heads * v]
    parts = [b.x([n, s, wide]), b.x([wide, sum(sizes)], constant=1), b.x([sum(sizes)], constant=1)]
    options = {"qkv_hidden_sizes": sizes} if v != d or b.chance(0.3) else {}
    past = b.int(1, 3) if v == d and b.chance(0.3) else 0
    if past:
        parts += ["", b.x([2, n, heads, past, d])]
        if b.chance(0.5):
            options["unidirectional"] = 1
    elif b.chance(0.4):
        lengths = b.rng.integers(1, s + 1, n).astype(np.int32)
        parts.append(b.given(b.pick([lengths, np.concatenate([lengths, np.zeros(n, np.int32)]), (b.rng.random((n, s, s)) < 0.7).astype(np.int32)])))
    b.atol = 1e-4
    b.node("Attention", parts, 2 if past else 1, domain=MICROSOFT, num_heads=heads, **options, **b.some(scale=0.3))


@spec("forms.GroupQueryAttention", 13, 22)
def group_query(b):
    """Prompts and single steps with a cache, rotary or not, with a window."""
    n, kv, times, d = b.int(1, 2), b.int(1, 2), b.int(1, 3), b.pick([8, 16])
    heads, prompt = kv * times, b.chance(0.5)
    q, past = (b.int(1, 5), 0) if prompt else (1, b.int(1, 6))
    flat = b.chance(0.3)
    if flat:
        parts = [b.x([n, q, (heads + 2 * kv) * d]), "", ""]
    else:
        parts = [b.x([n, q, heads * d]), b.x([n, q, kv * d]), b.x([n, q, kv * d])]
    parts += [b.x([n, kv, past, d]), b.x([n, kv, past, d]), b.const(np.full(n, past + q - 1, np.int32)), b.const(np.array(past + q, np.int32))]
    options = b.some(local_window_size=b.int(1, 5), softcap=b.pick([1.5, 0.0]), scale=0.3)
    if b.chance(0.5):
        parts += [b.x([past + q + 3, d // 2], constant=1), b.x([past + q + 3, d // 2], constant=1)]
        options.update(do_rotary=1, **b.some(rotary_interleaved=b.int(0, 1)))
    b.atol = 1e-4
    b.node("GroupQueryAttention", parts, 3, domain=MICROSOFT, num_heads=heads, kv_num_heads=kv, **options)


@spec("forms.FusedMatMul", 13, 22)
def fused_matmul(b):
    """transBatchA and transBatchB swap the batch with the rows."""
    n, m, k, c = b.int(1, 3), b.int(1, 5), b.int(1, 9), b.int(1, 9)
    left, right = [n, m, k], [n, k, c]
    options = {}
    for shape, letter in ((left, "A"), (right, "B")):
        if b.chance(0.4):
            options[f"transBatch{letter}"] = 1
            shape[0], shape[1] = shape[1], shape[0]
        elif b.chance(0.3):
            options[f"trans{letter}"] = 1
            shape[1], shape[2] = shape[2], shape[1]
    b.node("FusedMatMul", [b.x(left), b.x(right)], domain=MICROSOFT, **options, **b.some(alpha=0.4))


@spec("forms.Outputs", 13)
def outputs(b):
    """Only some outputs of operators that have several."""
    op = b.pick(["TopK", "LSTM", "GRU", "MaxPool", "Unique", "Split", "LayerNormalization", "Dropout", "BatchNormalization"])
    if op == "TopK":
        b.node(op, [b.x([3, 9]), b.ints([4])], b.pick([["a"], ["", "b"]]))
    elif op in ("LSTM", "GRU"):
        g = 4 if op == "LSTM" else 3
        b.node(op, [b.x([4, 2, 3]), b.x([1, g * 5, 3], constant=1), b.x([1, g * 5, 5], constant=1)], b.pick([["", "h"], ["y"], ["y", "h"]] + ([["", "", "c"]] if g == 4 else [])), hidden_size=5)
    elif op == "MaxPool":
        b.node(op, [b.x([1, 2, 9] if b.chance(0.5) else [1, 2, 5, 6, 4])], b.pick([["", "i"], ["y", "i"]]), kernel_shape=[2] * (1 if b.feed and len(next(iter(b.feed.values())).shape) == 3 else 3))
    elif op == "Unique":
        b.node(op, [b.x([12], "i8", low=0, high=5)], b.pick([["y", "", "", "n"], ["y", "", "v"], ["y", "f"]]))
    elif op == "Split":
        sizes = b.node(op, [b.x([6, 3]), b.ints([1, 2, 3])], 3, axis=0)
        b.node("Relu", [sizes[1]])
        b.outputs = [sizes[2]]
    elif op == "LayerNormalization":
        if b.opset < 17:
            raise Skip
        b.node(op, [b.x([3, 9]), b.x([9])], b.pick([["", "", "i"], ["y", "m"], ["y", "", "i"]]))
    elif op == "Dropout":
        b.node(op, [b.x([3, 9])], ["y", "m"])
    else:
        if b.opset < 14:
            raise Skip
        b.node(op, [b.x([3, 4, 5])] + [b.x([4]) for _ in range(3)] + [b.x([4], low=0.2, high=2)], 3, training_mode=1, **b.some(momentum=0.7))


@spec("forms.Windows", 10)
def windows(b):
    """Pools and convolutions whose windows barely fit, with pads as long as they may be, on short axes."""
    rank = b.int(1, 3)
    kernel = [b.int(1, 4) for _ in range(rank)]
    pads = [b.int(0, k - 1) for k in kernel * 2]
    extents = [max(k - p - q, 1) + b.int(0, 2) for k, p, q in zip(kernel, pads, pads[rank:])]
    strides = [b.int(1, 4) for _ in range(rank)]
    op = b.pick(["Conv", "MaxPool", "AveragePool", "LpPool", "ConvTranspose"])
    x = b.x([b.int(1, 2), b.pick([1, 4, 8, 16])] + extents)
    c = b.feed[x].shape[1] if x in b.feed else b.constants[x].shape[1]
    if op in ("Conv", "ConvTranspose"):
        if op == "ConvTranspose":
            pads = [0] * len(pads)
        b.node(op, [x, b.x([b.pick([1, 8, 16]), c] + kernel if op == "Conv" else [c, b.pick([1, 8, 16])] + kernel, constant=0.9)], strides=strides, pads=pads)
        return
    ceil = {} if op == "LpPool" and b.opset < 18 else b.some(ceil_mode=b.int(0, 1))
    b.node(op, [x], kernel_shape=kernel, strides=strides, pads=pads, **ceil, **(b.some(count_include_pad=1) if op == "AveragePool" else {}))


@spec("forms.Control", 16)
def control(b):
    """Branches of other shapes, loops that end early, scans along other axes."""
    f, i64, boolean = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    kind = b.pick(["while", "scan axes", "nested", "captured"])
    info = helper.make_tensor_value_info
    x = b.x([3, 4], constant=0)
    if kind == "while":
        body = helper.make_graph([helper.make_node("Add", ["a", "one"], ["a2"]), helper.make_node("Less", ["a2", "limit"], ["c2"])], "body",
                                 [info("i", i64, []), info("c", boolean, []), info("a", f, [])], [info("c2", boolean, []), info("a2", f, [])],
                                 [helper.make_tensor("one", f, [], [1.0]), helper.make_tensor("limit", f, [], [float(b.int(0, 6))])])
        b.node("Loop", [b.ints(np.int64(b.int(3, 9))), b.const(np.array(True)), b.const(np.float32(0))], 1, body=body)
    elif kind == "scan axes":
        body = helper.make_graph([helper.make_node("Add", ["a", "e"], ["a2"]), helper.make_node("Mul", ["a2", "e"], ["s"])], "body",
                                 [info("a", f, [3]), info("e", f, [3])], [info("a2", f, [3]), info("s", f, [3])])
        b.node("Scan", [b.x([3]), x], 2, body=body, num_scan_inputs=1, scan_input_axes=[b.pick([1, -1])], **b.some(scan_output_axes=[b.pick([0, 1, -1])]))
    elif kind == "nested":
        inner = helper.make_graph([helper.make_node("Neg", [x], ["n"])], "inner", [], [info("n", f, [3, 4])])
        outer = helper.make_graph([helper.make_node("Abs", [x], ["m"])], "other", [], [info("m", f, [3, 4])])
        both = helper.make_graph([helper.make_node("If", ["k"], ["t"], then_branch=inner, else_branch=outer)], "then", [], [info("t", f, [3, 4])])
        last = helper.make_graph([helper.make_node("Relu", [x], ["r"])], "else", [], [info("r", f, [3, 4])])
        b.constants["k"] = np.array(b.chance(0.5))
        b.node("If", [b.given(np.array(b.chance(0.7)), 0.4)], then_branch=both, else_branch=last)
    else:
        body = helper.make_graph([helper.make_node("Gather", [x, "i"], ["row"], axis=0), helper.make_node("Identity", ["c"], ["c2"])], "body",
                                 [info("i", i64, []), info("c", boolean, [])], [info("c2", boolean, []), info("row", f, [4])])
        b.node("Loop", [b.ints(np.int64(3)), ""], 1, body=body)
