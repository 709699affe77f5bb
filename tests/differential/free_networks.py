"""Decoders, detectors and synthesizers with several free dims each, and shapes far from those that have kernels: first steps
without a cache, single rows, extents of 1 and 2 and large ones."""

import numpy as np
from free_exports import cat, conv
from free_forms import FreeBuilder, form
from onnx import TensorProto, helper, numpy_helper

END = 2**62


def project(b, x, inputs, outputs):
    return b.node("Add", [b.node("MatMul", [x, b.weights(inputs, outputs)]), b.weights(outputs)])


def heads(b, x, size=8, count=2):
    parts = b.node("Reshape", [project(b, x, size, size), b.i(0, 0, count, size // count)])
    return b.node("Transpose", [parts], perm=[0, 2, 1, 3])


def attend(b, q, k, v, size=8, bias=()):
    scores = b.node("MatMul", [q, b.node("Transpose", [k], perm=[0, 1, 3, 2])])
    for each in bias:
        scores = b.node("Add", [scores, each])
    mixed = b.node("Transpose", [b.node("MatMul", [b.node("Softmax", [scores], axis=-1), v])], perm=[0, 2, 1, 3])
    return project(b, b.node("Reshape", [mixed, b.i(0, 0, size)]), size, size)


def norm(b, x, size=8):
    return b.node("LayerNormalization", [x, b.weights(size), b.weights(size)])


def hidden(b, mask):
    """What is added to scores where the mask is 0."""
    away = b.node("Sub", [b.const(1, "f4"), b.node("Cast", [mask], to=1)])
    return b.node("Unsqueeze", [b.node("Mul", [away, b.const(-1e9, "f4")]), b.i(1, 2)])


def tokens(rng, shape):
    return rng.integers(0, 40, shape)


def ones_and_zeros(rng, shape):
    mask = rng.integers(0, 2, shape)
    mask[..., -1:] = 1
    return mask


@form({"B": 2, "T": 3, "P": 5, "E": 7, "M": 2, "K": 7}, [(1, 1, 0, 1, 1, 1), (3, 2, 40, 300, 3, 300)], 17, ids=tokens, mask=ones_and_zeros)
def decoders_of_two_texts(b):
    """T5: a table of distances' buckets, keys of all tokens before and of the encoder."""
    b.atol = 1e-3
    ids, encoded, mask = b.input("ids", ["B", "T"], "i8"), b.input("encoded", ["B", "E", 8]), b.input("mask", ["M", "K"], "i8")
    pk, pv = (b.input(name, ["B", 2, "P", 4]) for name in ("pk", "pv"))
    x = b.node("Gather", [b.weights(40, 8), ids])
    y = norm(b, x)
    k, v = b.node("Concat", [pk, heads(b, y)], axis=2), b.node("Concat", [pv, heads(b, y)], axis=2)
    total = b.one(k, 2)
    own = b.node("Unsqueeze", [b.range(total), b.i(1)])
    distance = b.node("Sub", [b.node("Unsqueeze", [b.range(total), b.i(0)]), own])
    before = b.node("Neg", [b.node("Min", [distance, b.node("ConstantOfShape", [b.node("Shape", [distance])], value=numpy_helper.from_array(np.zeros(1, np.int64)))])])
    far = b.node("Log", [b.node("Div", [b.node("Cast", [before], to=1), b.const(4, "f4")])])
    far = b.node("Add", [b.node("Cast", [b.node("Mul", [far, b.const(1.7, "f4")])], to=7), b.const(4, np.int64)])
    far = b.node("Min", [far, b.node("ConstantOfShape", [b.node("Shape", [far])], value=numpy_helper.from_array(np.array([7], np.int64)))])
    bucket = b.node("Where", [b.node("Less", [before, b.const(4, np.int64)]), before, far])
    bias = b.node("Unsqueeze", [b.node("Transpose", [b.node("Gather", [b.weights(8, 2), bucket])], perm=[2, 0, 1]), b.i(0)])
    bias = b.node("Slice", [bias, b.node("Neg", [b.dim(ids, 1)]), b.i(END), b.i(2)])
    seen = b.node("LessOrEqual", [b.node("Unsqueeze", [b.range(total), b.i(0)]), own])
    seen = b.node("Slice", [seen, b.node("Neg", [b.dim(ids, 1)]), b.i(END), b.i(0)])
    causal = b.node("Where", [seen, b.const(0, "f4"), b.const(-1e9, "f4")])
    x = b.node("Add", [x, attend(b, heads(b, y), k, v, bias=[bias, causal])])
    ck, cv = heads(b, encoded), heads(b, encoded)
    x = b.node("Add", [x, attend(b, heads(b, norm(b, x)), ck, cv, bias=[hidden(b, mask)])])
    x = b.node("Add", [x, project(b, b.node("Relu", [project(b, norm(b, x), 8, 16)]), 16, 8)])
    b.outputs = [b.node("MatMul", [norm(b, x), b.weights(8, 40)]), k, v, ck, cv]


class Branches(FreeBuilder):
    """Names of values are unlike in all of a model's graphs."""

    made = 0

    def node(self, op, inputs, outputs=1, domain="", **attributes):
        if isinstance(outputs, int):
            outputs = [f"u{self.made}_{i}" for i in range(outputs)]
        self.made += 1
        return super().node(op, inputs, outputs, domain, **attributes)

    def branch(self, name, make):
        kept, self.nodes = self.nodes, []
        outputs = [helper.make_tensor_value_info(each, TensorProto.FLOAT, None) for each in make()]
        nodes, self.nodes = self.nodes, kept
        return helper.make_graph(nodes, name, [], outputs)


def merged(b):
    """An exporter's two decoders in one: with a cache, or without one."""
    b.__class__ = Branches
    b.atol = 1e-3
    ids, use = b.input("ids", ["B", "T"], "i8"), b.input("use", [1], "b1")
    pk, pv = (b.input(name, ["B", 2, "P", 4]) for name in ("pk", "pv"))
    rows = b.weights(40, 8)

    def step(with_past):
        x = b.node("Gather", [rows, ids])
        k, v = heads(b, x), heads(b, x)
        if with_past:
            k, v = b.node("Concat", [pk, k], axis=2), b.node("Concat", [pv, v], axis=2)
        return attend(b, heads(b, x), k, v), k, v

    branches = {name: b.branch(name, lambda past=past: step(past)) for name, past in (("then_branch", True), ("else_branch", False))}
    b.outputs = list(b.node("If", [use], 3, **branches))


@form({"B": 2, "T": 3, "P": 5}, [(1, 1, 1), (3, 1, 40)], 17, ids=tokens, use=lambda rng, shape: np.ones(shape, bool))
def merged_decoders_with_a_cache(b):
    merged(b)


@form({"B": 2, "T": 3, "P": 5}, [(1, 1, 1), (3, 9, 0)], 17, ids=tokens, use=lambda rng, shape: np.zeros(shape, bool))
def merged_decoders_without_a_cache(b):
    merged(b)


@form({"B": 2, "T": 3, "P": 5}, [(1, 4, 0), (3, 1, 40)], 17, ids=tokens)
def decoders_of_sound(b):
    """Whisper: learned positions from where the cache ends, keys of the encoder made once."""
    b.atol = 1e-3
    ids = b.input("ids", ["B", "T"], "i8")
    pk, pv = (b.input(name, ["B", 2, "P", 4]) for name in ("pk", "pv"))
    ek, ev = (b.input(name, ["B", 2, 30, 4]) for name in ("ek", "ev"))
    past = b.dim(pk, 2)
    positions = b.node("Slice", [b.weights(64, 8), past, b.node("Add", [past, b.dim(ids, 1)]), b.i(0)])
    x = b.node("Add", [b.node("Gather", [b.weights(40, 8), ids]), positions])
    y = norm(b, x)
    k, v = b.node("Concat", [pk, heads(b, y)], axis=2), b.node("Concat", [pv, heads(b, y)], axis=2)
    rows = b.const(np.triu(np.full((64, 64), -np.inf), 1), "f4")
    rows = b.node("Slice", [rows, past, b.node("Add", [past, b.dim(ids, 1)]), b.i(0)])
    causal = b.node("Slice", [rows, b.i(0), b.dim(k, 2), b.i(1)])
    x = b.node("Add", [x, attend(b, heads(b, y), k, v, bias=[causal])])
    x = b.node("Add", [x, attend(b, heads(b, norm(b, x)), ek, ev)])
    logits = b.node("MatMul", [b.node("Slice", [norm(b, x), b.i(-1), b.i(END), b.i(1)]), b.weights(8, 40)])
    b.outputs = [b.node("ArgMax", [logits], axis=-1, keepdims=0), k, v]


def scaled_pictures(b, x, short, most, multiple):
    """torchvision's: the short side becomes so long where the long one stays within `most`; zeros up to a multiple of each side."""
    def real(number):
        return b.node("Cast", [number], to=1)

    sides = b.node("Slice", [b.node("Shape", [x]), b.i(2), b.i(4)])
    factors = [b.node("Mul", [b.node("Reciprocal", [real(b.node(op, [sides], keepdims=0))]), b.const(size, "f4")])
               for op, size in (("ReduceMin", short), ("ReduceMax", most))]
    scale = b.node("Min", factors)
    sizes = [b.node("Unsqueeze", [b.node("Floor", [b.node("Mul", [real(b.one(x, axis)), scale])]), b.i(0)]) for axis in (2, 3)]
    sizes = b.node("Concat", [b.i(1, 3), b.node("Cast", [b.node("Concat", sizes, axis=0)], to=7)], axis=0)
    x = b.node("Resize", [x, "", "", sizes], mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    pads = [b.i(0, 0, 0, 0, 0, 0)]
    for axis in (2, 3):
        own = b.dim(x, axis)
        # Of a list of pictures the largest; numbers of floats on the way.
        largest = b.node("Cast", [b.node("ReduceMax", [real(own)], keepdims=0)], to=7)
        whole = b.node("Mul", [b.node("Ceil", [b.node("Div", [real(largest), b.const(multiple, "f4")])]), b.const(multiple, "f4")])
        pads.append(b.node("Sub", [b.node("Unsqueeze", [b.node("Cast", [whole], to=7), b.i(0)]), own]))
    return b.node("Pad", [x, b.node("Concat", pads, axis=0)])


@form({"H": 20, "W": 24}, [(31, 17), (40, 64)], 17)
def detectors_that_scale_pictures(b):
    """Faster R-CNN's proposals: the best of each of five levels, of which the small ones have fewer than are wanted."""
    b.atol = 1e-3
    y = conv(b, scaled_pictures(b, b.input("x", [1, 3, "H", "W"]), 32, 53, 8), 8, 3, s=2)
    scores, boxes, kept, first = [], [], [], b.i(0)
    for _ in range(5):
        y = conv(b, y, 8, 8, s=2)
        own = b.node("Reshape", [b.node("Transpose", [conv(b, y, 3, 8, k=1)], perm=[0, 2, 3, 1]), b.i(1, -1)])
        count = b.dim(own, 1)
        most = b.node("ReduceMin", [b.node("Cast", [b.node("Concat", [b.i(20), count], axis=0)], to=1)])
        kept.append(b.node("Add", [b.node("TopK", [own, b.node("Cast", [most], to=7)], 2)[1], first]))
        scores.append(own)
        boxes.append(b.node("Reshape", [b.node("Transpose", [conv(b, y, 12, 8, k=1)], perm=[0, 2, 3, 1]), b.i(1, -1, 4)]))
        first = b.node("Add", [first, count])
    kept = b.node("Squeeze", [b.node("Concat", kept, axis=1), b.i(0)])
    scores = b.node("Gather", [b.node("Concat", scores, axis=1), kept], axis=1)
    boxes = b.node("Gather", [b.node("Concat", boxes, axis=1), kept], axis=1)
    chosen = b.node("NonMaxSuppression", [boxes, b.node("Unsqueeze", [scores, b.i(1)]), b.i(30), b.const([0.7], "f4")])
    chosen = b.node("Squeeze", [b.node("Slice", [chosen, b.i(2), b.i(3), b.i(1)]), b.i(1)])
    b.outputs = [b.node("Gather", [b.node("Squeeze", [boxes, b.i(0)]), chosen]), b.node("Gather", [b.node("Squeeze", [scores, b.i(0)]), chosen])]


@form({"B": 2, "H": 64, "W": 64}, [(3, 96, 32), (1, 320, 192)], 13)
def detectors_that_suppress(b):
    """YOLO: boxes of three levels on their grids, and the chosen ones of all pictures."""
    b.atol = 1e-3
    x = b.input("x", ["B", 3, "H", "W"])
    y = conv(b, conv(b, x, 8, 3, s=2), 8, 8, s=2)
    parts = []
    for _ in range(3):
        y = conv(b, y, 8, 8, s=2)
        z = conv(b, y, 7, 8, k=1, act="Sigmoid")
        h, w = b.dim(z, 2), b.dim(z, 3)
        rows = b.node("Expand", [b.node("Unsqueeze", [b.range(b.node("Squeeze", [h])), b.i(1)]), cat(b, h, w)])
        columns = b.node("Expand", [b.node("Unsqueeze", [b.range(b.node("Squeeze", [w])), b.i(0)]), cat(b, h, w)])
        grid = b.node("Cast", [b.node("Concat", [b.node("Unsqueeze", [each, b.i(0)]) for each in (columns, rows)], axis=0)], to=1)
        centre, size, scores = b.node("Split", [z, b.i(2, 2, 3)], 3, axis=1)
        centre = b.node("Add", [centre, grid])
        parts.append(b.node("Reshape", [b.node("Concat", [centre, size, scores], axis=1), b.i(0, 7, -1)]))
    boxes, scores = b.node("Split", [b.node("Concat", parts, axis=2), b.i(4, 3)], 2, axis=1)
    boxes = b.node("Transpose", [boxes], perm=[0, 2, 1])
    chosen = b.node("NonMaxSuppression", [boxes, scores, b.const([4], np.int64), b.const([0.5], "f4"), b.const([0.4], "f4")], center_point_box=1)
    picture, box = b.node("Gather", [chosen, b.i(0)], axis=1), b.node("Gather", [chosen, b.i(2)], axis=1)
    b.node("GatherND", [boxes, b.node("Concat", [picture, box], axis=1)])
    b.node("GatherND", [scores, chosen])
    b.outputs = [chosen, b.nodes[-2].output[0], b.nodes[-1].output[0]]


@form({"B": 2, "H": 64, "W": 96}, [(1, 33, 50), (3, 224, 31)], 17, mask=lambda rng, shape: np.ones(shape))
def detectors_by_queries(b):
    """DETR: positions by running sums of the mask at the features' size, queries that are the model's."""
    b.atol = 1e-3
    x, mask = b.input("x", ["B", 3, "H", "W"]), b.input("mask", ["B", "H", "W"], "i8")
    y = conv(b, conv(b, conv(b, x, 8, 3, s=2), 8, 8, s=2), 8, 8, s=4)
    own = b.node("Cast", [b.node("Unsqueeze", [mask, b.i(1)])], to=1)
    sizes = b.node("Concat", [b.node("Slice", [b.node("Shape", [each]), *ends]) for each, ends in ((own, (b.i(0), b.i(2))), (y, (b.i(2), b.i(4))))], axis=0)
    own = b.node("Squeeze", [b.node("Resize", [own, "", "", sizes], mode="nearest"), b.i(1)])
    parts = []
    for axis in (1, 2):
        at = b.node("CumSum", [own, b.const(axis, np.int64)])
        last = b.node("Slice", [at, b.i(-1), b.i(END), b.i(axis)])
        at = b.node("Mul", [b.node("Div", [at, b.node("Add", [last, b.const(1e-6, "f4")])]), b.const(2 * np.pi, "f4")])
        angles = b.node("Div", [b.node("Unsqueeze", [at, b.i(3)]), b.const([1, 10], "f4")])
        parts += [b.node("Sin", [angles]), b.node("Cos", [angles])]
    places = b.node("Concat", parts, axis=3)
    flat = b.node("Transpose", [b.node("Reshape", [y, b.i(0, 8, -1)])], perm=[0, 2, 1])
    places = b.node("Reshape", [places, b.i(0, -1, 8)])
    away = hidden(b, b.node("Reshape", [own, b.i(0, -1)]))
    seen = b.node("Add", [flat, places])
    flat = norm(b, b.node("Add", [flat, attend(b, heads(b, seen), heads(b, seen), heads(b, flat), bias=[away])]))
    queries = b.node("Expand", [b.weights(1, 5, 8), cat(b, b.dim(x, 0), 1, 1)])
    found = norm(b, b.node("Add", [queries, attend(b, heads(b, queries), heads(b, b.node("Add", [flat, places])), heads(b, flat), bias=[away])]))
    b.outputs = [project(b, found, 8, 4), b.node("Sigmoid", [project(b, found, 8, 4)])]


@form({"B": 2, "T": 8, "L": 5}, [(1, 1, 0), (1, 16, 0), (3, 4, 20), (1, 2, 1)], 17)
def encoders_of_streams(b):
    """A conformer by chunks: keys and the convolution's left side come from caches, whose new parts go out."""
    b.atol = 1e-3
    x, cache, left = b.input("x", ["B", "T", 8]), b.input("cache", ["B", "L", 8]), b.input("left", ["B", 8, 6])
    y = norm(b, x)
    keys = b.node("Concat", [cache, y], axis=1)
    total = b.one(keys, 1)
    at = b.node("Sub", [b.node("Unsqueeze", [b.range(total), b.i(0)]), b.node("Unsqueeze", [b.range(total, b.one(cache, 1)), b.i(1)])])
    near = b.node("Where", [b.node("Less", [b.node("Abs", [at]), b.const(12, np.int64)]), b.const(0, "f4"), b.const(-1e9, "f4")])
    x = b.node("Add", [x, attend(b, heads(b, y), heads(b, keys), heads(b, keys), bias=[near])])
    own, gate = b.node("Split", [project(b, norm(b, x), 8, 16), b.i(8, 8)], 2, axis=2)
    z = b.node("Transpose", [b.node("Mul", [own, b.node("Sigmoid", [gate])])], perm=[0, 2, 1])
    z = b.node("Concat", [left, z], axis=2)
    next_left = b.node("Slice", [z, b.i(-6), b.i(END), b.i(2)])
    z = b.node("Conv", [z, b.weights(8, 1, 7)], group=8)
    x = b.node("Add", [x, b.node("Transpose", [z], perm=[0, 2, 1])])
    next_cache = b.node("Slice", [keys, b.i(-16), b.i(END), b.i(1)])
    b.outputs = [norm(b, x), next_cache, next_left]


@form({"B": 1, "T": 4, "P": 6}, [(1, 7, 0), (3, 1, 64)], 17, ids=tokens)
def decoders_with_grouped_queries(b):
    """LLaMA with com.microsoft's attention: new rows behind the cache."""
    b.atol = 1e-3
    ids = b.input("ids", ["B", "T"], "i8")
    pk, pv = (b.input(name, ["B", 1, "P", 16]) for name in ("pk", "pv"))
    total = b.node("Add", [b.dim(pk, 2), b.dim(ids, 1)])
    lengths = b.node("Expand", [b.node("Sub", [total, b.i(1)]), b.node("Unsqueeze", [b.one(ids, 0), b.i(0)])])
    x = b.node("Gather", [b.weights(40, 16), ids])
    y = b.node("SimplifiedLayerNormalization", [x, b.weights(16)], axis=-1, epsilon=1e-5)
    q, k, v = (b.node("MatMul", [y, b.weights(16, size)]) for size in (32, 16, 16))
    angles = np.arange(128)[:, None] * np.array([1, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.01])
    outputs = b.node("GroupQueryAttention",
                     [q, k, v, pk, pv, b.node("Cast", [lengths], to=6), b.node("Cast", [b.node("Squeeze", [total])], to=6),
                      b.const(np.cos(angles), "f4"), b.const(np.sin(angles), "f4")],
                     3, domain="com.microsoft", num_heads=2, kv_num_heads=1, do_rotary=1)
    x = b.node("Add", [x, b.node("MatMul", [outputs[0], b.weights(32, 16)])])
    gate, up = b.node("MatMul", [x, b.weights(16, 24)]), b.node("MatMul", [x, b.weights(16, 24)])
    x = b.node("Add", [x, b.node("MatMul", [b.node("Mul", [b.node("Mul", [gate, b.node("Sigmoid", [gate])]), up]), b.weights(24, 16)])])
    b.outputs = [b.node("MatMul", [x, b.weights(16, 40)]), outputs[1], outputs[2]]


@form({"B": 1, "T": 9}, [(1, 1), (1, 30)], 17, ids=tokens)
def voices_of_texts(b):
    """VITS: durations of the text's encoder, a path of them, and a vocoder."""
    b.atol = 1e-3
    ids = b.input("ids", ["B", "T"], "i8")
    x = b.node("Transpose", [b.node("Gather", [b.weights(40, 8), ids])], perm=[0, 2, 1])
    for _ in range(2):
        x = b.node("Relu", [b.node("Conv", [x, b.weights(8, 8, 3), b.weights(8)], pads=[1, 1])])
    logs = b.node("Conv", [x, b.weights(1, 8, 1), b.weights(1)])
    durations = b.node("Ceil", [b.node("Clip", [b.node("Exp", [logs]), b.const(0.1, "f4"), b.const(6, "f4")])])
    total = b.node("Cast", [b.node("Clip", [b.node("ReduceSum", [durations, b.i(1, 2)], keepdims=0), b.const(1, "f4")])], to=7)
    ends = b.node("Squeeze", [b.node("CumSum", [durations, b.const(2, np.int64)]), b.i(1)])
    steps = b.node("Cast", [b.range(b.node("ReduceMax", [total], keepdims=0))], to=1)
    before = b.node("Cast", [b.node("Less", [b.node("Unsqueeze", [steps, b.i(0, 1)]), b.node("Unsqueeze", [ends, b.i(2)])])], to=1)
    path = b.node("Sub", [before, b.node("Slice", [b.node("Pad", [before, b.i(0, 1, 0, 0, 0, 0)]), b.i(0), b.i(-1), b.i(1)])])
    z = b.node("MatMul", [x, path])
    for _ in range(2):
        z = b.node("LeakyRelu", [z], alpha=0.1)
        z = b.node("ConvTranspose", [z, b.weights(8, 8, 8)], strides=[4], pads=[2, 2])
        z = b.node("Add", [z, b.node("Conv", [b.node("LeakyRelu", [z]), b.weights(8, 8, 3)], dilations=[3], pads=[3, 3])])
    b.outputs = [b.node("Tanh", [b.node("Conv", [z, b.weights(1, 8, 7)], pads=[3, 3])])]


@form({"B": 2, "H": 16, "W": 16, "S": 7}, [(1, 8, 24, 1), (3, 40, 24, 77)], 17)
def networks_of_noise(b):
    """Stable diffusion: groups normalized, maps attended as tokens, a text beside them, steps as sines."""
    b.atol = 1e-3
    x, step, text = b.input("x", ["B", 4, "H", "W"]), b.input("step", ["B"]), b.input("text", ["B", "S", 8])
    angles = b.node("Mul", [b.node("Unsqueeze", [step, b.i(1)]), b.const([[1, 0.1, 0.01, 0.001]], "f4")])
    time = project(b, b.node("Concat", [b.node("Cos", [angles]), b.node("Sin", [angles])], axis=1), 8, 8)
    time = b.node("Unsqueeze", [time, b.i(2, 3)])

    def grouped(y):
        flat = b.node("InstanceNormalization", [b.node("Reshape", [y, b.i(0, 2, -1)]), b.const([1, 1], "f4"), b.const([0, 0], "f4")])
        y = b.node("Add", [b.node("Mul", [b.node("Reshape", [flat, b.node("Shape", [y])]), b.weights(8, 1, 1)]), b.weights(8, 1, 1)])
        return b.node("Mul", [y, b.node("Sigmoid", [y])])

    def block(y):
        z = b.node("Add", [conv(b, grouped(y), 8, 8, act=None), time])
        return b.node("Add", [y, conv(b, grouped(z), 8, 8, act=None)])

    def attended(y):
        n, h, w = (b.dim(y, axis) for axis in (0, 2, 3))
        z = b.node("Reshape", [b.node("Transpose", [grouped(y)], perm=[0, 2, 3, 1]), cat(b, n, b.node("Mul", [h, w]), 8)])
        z = b.node("Add", [z, attend(b, heads(b, z), heads(b, z), heads(b, z))])
        z = b.node("Add", [z, attend(b, heads(b, z), heads(b, text), heads(b, text))])
        return b.node("Add", [y, b.node("Transpose", [b.node("Reshape", [z, cat(b, n, h, w, 8)])], perm=[0, 3, 1, 2])])

    first = block(conv(b, x, 8, 4, act=None))
    low = attended(block(conv(b, first, 8, 8, s=2, act=None)))
    lower = block(conv(b, low, 8, 8, s=2, act=None))
    up = b.node("Resize", [lower, "", b.const([1, 1, 2, 2], "f4")], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    y = attended(block(conv(b, b.node("Concat", [up, low], axis=1), 8, 16, act=None)))
    up = b.node("Resize", [y, "", b.const([1, 1, 2, 2], "f4")], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    conv(b, block(conv(b, b.node("Concat", [up, first], axis=1), 8, 16, act=None)), 4, 8, act=None)


@form({"B": 2, "N": 3}, [(1, 1), (2, 7), (1, 40)], 17, labels=lambda rng, shape: rng.integers(-1, 3, shape), size=lambda rng, shape: [50, 31])
def masks_of_points(b):
    """SAM: points and labels that a user gives, masks as large as the picture was."""
    b.atol = 1e-3
    image, points, labels = b.input("image", [1, 8, 8, 8]), b.input("points", ["B", "N", 2]), b.input("labels", ["B", "N"])
    size = b.input("size", [2])
    at = b.node("MatMul", [b.node("Div", [b.node("Add", [points, b.const(0.5, "f4")]), b.const(32, "f4")]), b.weights(2, 4)])
    rows = b.node("Concat", [b.node("Sin", [at]), b.node("Cos", [at])], axis=-1)
    kinds = b.node("Unsqueeze", [labels, b.i(2)])
    for value in (-1, 0, 1):
        here = b.node("Cast", [b.node("Equal", [kinds, b.const(value, "f4")])], to=1)
        rows = b.node("Add", [rows, b.node("Mul", [here, b.weights(1, 1, 8)])])
    mask_rows = b.node("Expand", [b.weights(1, 2, 8), cat(b, b.dim(points, 0), 1, 1)])
    rows = b.node("Concat", [mask_rows, rows], axis=1)
    flat = b.node("Transpose", [b.node("Reshape", [image, b.i(1, 8, 64)])], perm=[0, 2, 1])
    rows = norm(b, b.node("Add", [rows, attend(b, heads(b, rows), heads(b, flat), heads(b, flat))]))
    first = b.node("Slice", [rows, b.i(0), b.i(2), b.i(1)])
    masks = b.node("Reshape", [b.node("MatMul", [first, b.node("Transpose", [flat], perm=[0, 2, 1])]), b.i(0, 2, 8, 8)])
    masks = b.node("Resize", [masks, "", "", cat(b, b.dim(points, 0), 2, 32, 32)], mode="linear")
    whole = b.node("Cast", [size], to=7)
    b.outputs = [masks, b.node("Resize", [masks, "", "", cat(b, b.dim(points, 0), 2, whole)], mode="linear")]


@form({"B": 2, "T": 5}, [(1, 1), (3, 77)], 17, ids=tokens)
def features_of_texts(b):
    """CLIP: the row of the largest token of each text, and its length."""
    b.atol = 1e-3
    ids = b.input("ids", ["B", "T"], "i8")
    positions = b.node("Slice", [b.weights(77, 8), b.i(0), b.dim(ids, 1), b.i(0)])
    x = b.node("Add", [b.node("Gather", [b.weights(40, 8), ids]), positions])
    t = b.dim(ids, 1)
    full = b.node("Expand", [b.const(-1e9, "f4"), b.node("Concat", [t, t], axis=0)])
    causal = b.node("Trilu", [full, b.const(1, np.int64)], upper=1)
    x = norm(b, b.node("Add", [x, attend(b, heads(b, x), heads(b, x), heads(b, x), bias=[causal])]))
    last = b.node("ArgMax", [ids], axis=1, keepdims=0)
    at = b.node("Concat", [b.node("Unsqueeze", [each, b.i(1)]) for each in (b.range(b.one(ids, 0)), last)], axis=1)
    y = project(b, b.node("GatherND", [x, at]), 8, 6)
    b.outputs = [b.node("Div", [y, b.node("ReduceL2", [y], axes=[1], keepdims=1)]), x]


@form({"B": 2, "S": 512}, [(3, 1000), (1, 16001)], 16)
def voices_found(b):
    """Silero: what the sampling rate decides, framed by a convolution, with a state that goes on."""
    b.atol = 1e-3
    x, h, c = b.input("x", ["B", "S"]), b.input("h", [1, "B", 8]), b.input("c", [1, "B", 8])
    y = b.node("Pad", [b.node("Unsqueeze", [x, b.i(1)]), b.i(0, 0, 64, 0, 0, 64)], mode="reflect")
    y = b.node("Conv", [y, b.weights(34, 1, 128)], strides=[64])
    real, imaginary = b.node("Split", [y, b.i(17, 17)], 2, axis=1)
    y = b.node("Sqrt", [b.node("Add", [b.node("Mul", [real, real]), b.node("Mul", [imaginary, imaginary])])])
    for inputs, stride in ((17, 2), (8, 2)):
        y = b.node("Relu", [b.node("Conv", [y, b.weights(8, inputs, 3), b.weights(8)], strides=[stride], pads=[1, 1])])
    steps = b.node("Transpose", [y], perm=[2, 0, 1])
    all_states, hn, cn = b.node("LSTM", [steps, b.weights(1, 32, 8), b.weights(1, 32, 8), b.weights(1, 64), "", h, c], 3, hidden_size=8)
    rows = b.node("Transpose", [b.node("Squeeze", [all_states, b.i(1)])], perm=[1, 2, 0])
    y = b.node("Sigmoid", [b.node("Conv", [b.node("Relu", [rows]), b.weights(1, 8, 1)])])
    b.outputs = [b.node("ReduceMean", [y], axes=[1, 2], keepdims=1), hn, cn]
