"""A six-layer BERT-style encoder (hidden 384, 12 heads, 1536 inner), as tracing exporters write one.

LayerNorm is ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add; GELU goes through Erf; shapes are computed by
Shape, Gather, Unsqueeze and Concat; the mask is cast, expanded and turned into a large negative number by Where.
"""

import math

import numpy as np
from net import Net
from onnx import TensorProto

HIDDEN, HEADS, INNER, LAYERS, VOCABULARY, POSITIONS, LENGTH = 384, 12, 1536, 6, 30522, 512, 128
HEAD = HIDDEN // HEADS


def matrix(net, name, rows, columns, gain=1.0):
    w = net.rng.standard_normal((rows, columns), dtype=np.float32)
    w *= np.float32(gain / math.sqrt(rows))
    return net.weight(name, w)


def vector(net, name, size, base=0.0, spread=0.05):
    return net.weight(name, (base + spread * net.rng.standard_normal(size)).astype(np.float32))


def dense(net, x, rows, columns, name, gain=1.0):
    y = net.node("MatMul", [x, matrix(net, f"{name}.weight", rows, columns, gain)])
    return net.node("Add", [vector(net, f"{name}.bias", columns), y])


def layer_norm(net, x, name):
    centered = net.node("Sub", [x, net.node("ReduceMean", [x], axes=[-1])])
    square = net.node("Pow", [centered, net.constant(np.float32(2))])
    variance = net.node("ReduceMean", [square], axes=[-1])
    deviation = net.node("Sqrt", [net.node("Add", [variance, net.constant(np.float32(1e-12))])])
    scaled = net.node("Mul", [net.node("Div", [centered, deviation]), vector(net, f"{name}.weight", HIDDEN, 1.0)])
    return net.node("Add", [scaled, vector(net, f"{name}.bias", HIDDEN)])


def gelu(net, x):
    erf = net.node("Erf", [net.node("Div", [x, net.constant(np.float32(math.sqrt(2)))])])
    gate = net.node("Add", [erf, net.constant(np.float32(1))])
    return net.node("Mul", [net.node("Mul", [x, gate]), net.constant(np.float32(0.5))])


def dim(net, x, axis):
    """One extent of x as a 1-element tensor."""
    return net.unsqueeze(net.node("Gather", [net.node("Shape", [x]), net.constant(np.int64(axis))], axis=0), [0])


def to_heads(net, x, perm):
    shape = net.node("Concat", [dim(net, x, 0), dim(net, x, 1), net.constant(np.array([HEADS])),
                                net.constant(np.array([HEAD]))], axis=0)
    return net.node("Transpose", [net.node("Reshape", [x, shape])], perm=perm)


def projections(net, x, name, fused):
    """Query, key and value: three layers, or one whose result is split."""
    if not fused:
        return [dense(net, x, HIDDEN, HIDDEN, f"{name}.{part}", 1.3) for part in ("query", "key", "value")]
    joined = dense(net, x, HIDDEN, 3 * HIDDEN, f"{name}.qkv", 1.3)
    return net.node("Split", [joined, net.int64s([HIDDEN] * 3)], outputs=3, axis=2)


def attention(net, x, mask, name, fused):
    query, key, value = projections(net, x, name, fused)
    query, value = to_heads(net, query, [0, 2, 1, 3]), to_heads(net, value, [0, 2, 1, 3])
    scores = net.node("MatMul", [query, to_heads(net, key, [0, 2, 3, 1])])
    scores = net.node("Div", [scores, net.constant(np.float32(math.sqrt(HEAD)))])
    weights = net.node("Softmax", [net.node("Add", [scores, mask])], axis=-1)
    context = net.node("Transpose", [net.node("MatMul", [weights, value])], perm=[0, 2, 1, 3])
    context = net.node("Reshape", [context, net.int64s([0, 0, HIDDEN])])
    context = dense(net, context, HIDDEN, HIDDEN, f"{name}.output")
    return layer_norm(net, net.node("Add", [context, x]), f"{name}.LayerNorm")


def feed_forward(net, x, name):
    y = gelu(net, dense(net, x, HIDDEN, INNER, f"{name}.intermediate"))
    y = dense(net, y, INNER, HIDDEN, f"{name}.output", 1.4)
    return layer_norm(net, net.node("Add", [y, x]), f"{name}.LayerNorm")


def embeddings(net, input_ids, token_type_ids):
    tables = [("word", VOCABULARY, 1.0), ("token_type", 2, 0.3), ("position", POSITIONS, 0.5)]
    word, kind, place = (
        net.weight(f"embeddings.{part}.weight", net.rng.standard_normal((rows, HIDDEN), dtype=np.float32) *
                   np.float32(0.05 * gain)) for part, rows, gain in tables)
    position_ids = net.weight("embeddings.position_ids", np.arange(POSITIONS, dtype=np.int64)[None, :])
    length = dim(net, input_ids, 1)
    positions = net.node("Slice", [position_ids, net.constant(np.array([0])), length, net.constant(np.array([1])),
                                   net.constant(np.array([1]))])
    x = net.node("Add", [net.node("Gather", [word, input_ids]), net.node("Gather", [kind, token_type_ids])])
    x = net.node("Add", [x, net.node("Gather", [place, positions])])
    return layer_norm(net, x, "embeddings.LayerNorm")


def extended_mask(net, attention_mask):
    """[N, L] of 0 and 1 -> [N, 1, L, L], 0 where attention may look and the lowest float where it may not."""
    wide = net.unsqueeze(net.unsqueeze(attention_mask, [1]), [2])
    shape = net.node("Concat", [dim(net, attention_mask, 0), net.constant(np.array([1])), dim(net, attention_mask, 1),
                                dim(net, attention_mask, 1)], axis=0)
    wide = net.node("Cast", [net.node("Expand", [wide, shape])], to=TensorProto.FLOAT)
    inverted = net.node("Sub", [net.constant(np.float32(1)), wide])
    hidden = net.node("Cast", [inverted], to=TensorProto.BOOL)
    return net.node("Where", [hidden, net.constant(np.float32(np.finfo(np.float32).min)), inverted])


def pooler(net, x):
    """tanh of a layer over the first token."""
    first = net.node("Gather", [x, net.constant(np.int64(0))], axis=1)
    w = matrix(net, "pooler.weight", HIDDEN, HIDDEN)
    return net.node("Tanh", [net.node("Gemm", [first, w, vector(net, "pooler.bias", HIDDEN)], alpha=1.0, beta=1.0,
                                      transB=1)])


def minilm6():
    """Opset 14, batch dim free. The last three layers compute query, key and value in one product and split it."""
    net = Net("minilm6", opset=14, seed=384)
    ids, mask, kinds = (net.input(name, ["N", LENGTH], TensorProto.INT64)
                        for name in ("input_ids", "attention_mask", "token_type_ids"))
    masked = extended_mask(net, mask)
    x = embeddings(net, ids, kinds)
    for i in range(LAYERS):
        x = attention(net, x, masked, f"layer.{i}.attention", fused=i >= LAYERS // 2)
        x = feed_forward(net, x, f"layer.{i}")
    pooled = pooler(net, x)
    net.output(x, "last_hidden_state", ["N", LENGTH, HIDDEN])
    net.output(pooled, "pooler_output", ["N", HIDDEN])
    return net
