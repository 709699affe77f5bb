"""Networks as exporters write them, with free batches, sizes and lengths: what free_forms.py has one by one, together."""

import numpy as np
from free_forms import form, missing
from onnx import numpy_helper



def conv(b, x, o, i, k=3, s=1, p=None, act="Relu", **kw):
    p = k // 2 if p is None else p
    y = b.node("Conv", [x, b.weights(o, i, k, k), b.weights(o)], pads=[p] * 4, strides=[s] * 2, **kw)
    return b.node(act, [y]) if act else y


def cat(b, *parts, axis=0):
    return b.node("Concat", [p if isinstance(p, str) else b.i(*([p] if isinstance(p, int) else p)) for p in parts], axis=axis)


@form({"H": 64, "W": 64}, [(40, 56), (33, 101)], 16)
def largest_of_each_level(b):
    """RetinaNet-like: anchors of several levels concatenated, TopK per level bounded by min(n, k)."""
    b.atol = 1e-3
    x = b.input("x", [1, 3, "H", "W"])
    c1 = conv(b, conv(b, x, 8, 3, s=2), 8, 8, s=2)
    c2 = conv(b, c1, 8, 8, s=2)
    outs = []
    for c in (c1, c2):
        sc = b.node("Reshape", [b.node("Transpose", [conv(b, c, 2, 8, act=None)], perm=[0, 2, 3, 1]), b.i(1, -1)])
        box = b.node("Reshape", [b.node("Transpose", [conv(b, c, 8, 8, act=None)], perm=[0, 2, 3, 1]), b.i(1, -1, 4)])
        n = b.dim(sc, 1)
        k = b.node("ReduceMin", [cat(b, n, 100)], keepdims=1)
        v, i = b.node("TopK", [sc, k], 2, axis=1)
        g = b.node("GatherElements", [box, b.node("Expand", [b.node("Unsqueeze", [i, b.i(2)]), b.i(1, 1, 4)])], axis=1)
        outs.append((v, g))
    b.node("Concat", [o[0] for o in outs], axis=1)
    b.node("Concat", [o[1] for o in outs], axis=1)


@form({"H": 64, "W": 64}, [(97, 61)], 13)
def pyramids_of_features(b):
    b.atol = 1e-3
    x = b.input("x", [1, 3, "H", "W"])
    cs = [conv(b, x, 8, 3, s=2)]
    for _ in range(3):
        cs.append(conv(b, cs[-1], 8, 8, s=2))
    p = conv(b, cs[-1], 8, 8, k=1, act=None)
    for c in cs[-2::-1]:
        sizes = cat(b, (1, 8), b.dim(c, 2), b.dim(c, 3))
        up = b.node("Resize", [p, "", "", sizes], mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        p = b.node("Add", [conv(b, c, 8, 8, k=1, act=None), up])
    conv(b, p, 4, 8)


@form({"H": 64, "W": 64}, [(32, 80), (50, 113)], 17)
def positions_resized_by_scales(b):
    """DINOv2: scale_factor = (h + 0.1) / sqrt(N) as a number of the run; the export computes scales."""
    b.atol = 1e-3
    x = b.input("x", [1, 3, "H", "W"])
    y = b.node("Conv", [x, b.weights(8, 3, 14, 14)], strides=[14, 14])
    h, w = b.dim(y, 2), b.dim(y, 3)
    sc = [b.node("Div", [b.node("Add", [b.node("Cast", [d], to=1), b.const([0.1], "f4")]), b.const([4.0], "f4")]) for d in (h, w)]
    pp = b.node("Resize", [b.weights(1, 8, 4, 4), "", b.node("Concat", [b.const([1, 1], "f4"), *sc], axis=0)], mode="cubic", coordinate_transformation_mode="pytorch_half_pixel", cubic_coeff_a=-0.75)
    b.node("Add", [y, pp])


def window_attention(b, tokens, d, mask=None, n=None):
    q, k, v = (b.node("MatMul", [tokens, b.weights(d, d)]) for _ in range(3))
    s = b.node("MatMul", [q, b.node("Transpose", [k], perm=[0, 2, 1])])
    s = b.node("Add", [s, b.weights(1, 16, 16)])
    if mask:
        s = b.node("Add", [s, mask])
    return b.node("MatMul", [b.node("Softmax", [s], axis=-1), v])


def roll(b, x, axis, shift):
    if shift < 0:
        a = b.node("Slice", [x, b.i(-shift), b.const([2**62], np.int64), b.i(axis)])
        c = b.node("Slice", [x, b.i(0), b.i(-shift), b.i(axis)])
    else:
        a = b.node("Slice", [x, b.i(-shift), b.const([2**62], np.int64), b.i(axis)])
        c = b.node("Slice", [x, b.i(0), b.i(-shift), b.i(axis)])
    return b.node("Concat", [a, c], axis=axis)


@form({"H": 32, "W": 32}, [(23, 37)], 17)
def shifted_windows(b):
    b.atol = 1e-3
    x = b.input("x", [1, 3, "H", "W"])
    y = b.node("Transpose", [b.node("Conv", [x, b.weights(8, 3, 2, 2)], strides=[2, 2])], perm=[0, 2, 3, 1])
    h0, w0 = b.dim(y, 1), b.dim(y, 2)
    pads = [missing(b, b.dim(y, axis), 4) for axis in (1, 2)]
    y = b.node("Pad", [y, cat(b, (0, 0, 0, 0, 0), *pads, 0)])
    h, w = b.dim(y, 1), b.dim(y, 2)
    # mask by region ids
    one = b.node("ConstantOfShape", [cat(b, h, w)], value=None)
    ry = b.range(b.node("Squeeze", [h]))
    rx = b.range(b.node("Squeeze", [w]))
    def region(r, e):
        a = b.node("Cast", [b.node("GreaterOrEqual", [r, b.node("Sub", [b.node("Squeeze", [e]), b.const(4, np.int64)])])], to=7)
        c = b.node("Cast", [b.node("GreaterOrEqual", [r, b.node("Sub", [b.node("Squeeze", [e]), b.const(2, np.int64)])])], to=7)
        return b.node("Add", [a, c])
    ids = b.node("Add", [b.node("Mul", [b.node("Unsqueeze", [region(ry, h), b.i(1)]), b.const(3, np.int64)]), b.node("Unsqueeze", [region(rx, w), b.i(0)])])
    ids = b.node("Cast", [ids], to=1)
    hn, wn = b.node("Div", [h, b.i(4)]), b.node("Div", [w, b.i(4)])
    m = b.node("Reshape", [b.node("Transpose", [b.node("Reshape", [ids, cat(b, hn, 4, wn, 4)])], perm=[0, 2, 1, 3]), b.i(-1, 16)])
    d = b.node("Sub", [b.node("Unsqueeze", [m, b.i(1)]), b.node("Unsqueeze", [m, b.i(2)])])
    mask = b.node("Where", [b.node("Equal", [d, b.const(0, "f4")]), b.const(0, "f4"), b.const(-100, "f4")])
    s = roll(b, roll(b, y, 1, -2), 2, -2)
    win = b.node("Reshape", [b.node("Transpose", [b.node("Reshape", [s, cat(b, 1, hn, 4, wn, 4, 8)])], perm=[0, 1, 3, 2, 4, 5]), b.i(-1, 16, 8)])
    o = window_attention(b, win, 8, mask)
    o = b.node("Reshape", [b.node("Transpose", [b.node("Reshape", [o, cat(b, 1, hn, wn, (4, 4, 8))])], perm=[0, 1, 3, 2, 4, 5]), cat(b, 1, h, w, 8)])
    o = roll(b, roll(b, o, 1, 2), 2, 2)
    o = b.node("Slice", [o, b.i(0, 0), cat(b, h0, w0), b.i(1, 2)])
    # patch merging
    p = missing(b, b.dim(o, 1), 2), missing(b, b.dim(o, 2), 2)
    o = b.node("Pad", [o, cat(b, (0, 0, 0, 0, 0), *p, 0)])
    parts = []
    for j in (0, 1):
        for i in (0, 1):
            parts.append(b.node("Slice", [o, b.i(i, j), b.const([2**62] * 2, np.int64), b.i(1, 2), b.i(2, 2)]))
    b.node("MatMul", [b.node("Concat", parts, axis=-1), b.weights(32, 16)])
    b.outputs = [b.nodes[-1].output[0]]


@form({"N": 2, "S": 8000}, [(3, 8017)], 17, l=lambda rng, s: rng.integers(3000, 4000, s))
def encoders_of_speech(b):
    b.atol = 1e-3
    x, l = b.input("x", ["N", "S"]), b.input("l", ["N"], "i8")
    y = b.node("Unsqueeze", [x, b.i(1)])
    c = 1
    lens = l
    for k, s in ((10, 5), (3, 2), (3, 2), (2, 2)):
        y = b.node("Conv", [y, b.weights(8, c, k)], strides=[s])
        c = 8
        y = b.node("Mul", [y, b.node("Sigmoid", [y])])
        lens = b.node("Add", [b.node("Div", [b.node("Sub", [lens, b.const(k, np.int64)]), b.const(s, np.int64)]), b.const(1, np.int64)])
    t = b.node("Transpose", [y], perm=[0, 2, 1])
    T = b.one(t, 1)
    mask = b.node("Less", [b.node("Unsqueeze", [b.range(T), b.i(0)]), b.node("Unsqueeze", [lens, b.i(1)])])
    t = b.node("Where", [b.node("Unsqueeze", [mask, b.i(2)]), t, b.const(0, "f4")])
    # positional conv with same pads, even kernel, drop last
    p = b.node("Conv", [b.node("Transpose", [t], perm=[0, 2, 1]), b.weights(8, 2, 16)], pads=[8, 8], group=4)
    p = b.node("Slice", [p, b.i(0), b.i(-1), b.i(2)])
    t = b.node("Add", [t, b.node("Transpose", [p], perm=[0, 2, 1])])
    att = b.node("Where", [b.node("Unsqueeze", [mask, b.i(1)]), b.const(0, "f4"), b.const(-1e9, "f4")])
    s = b.node("Add", [b.node("MatMul", [t, b.node("Transpose", [t], perm=[0, 2, 1])]), att])
    o = b.node("MatMul", [b.node("Softmax", [s], axis=-1), t])
    b.node("ArgMax", [b.node("MatMul", [o, b.weights(8, 12)])], axis=-1, keepdims=0)
    b.outputs = [b.nodes[-1].output[0], o]


@form({"T": 50}, [(1,), (97,)], 17)
def relative_shifts(b):
    """Transformer-XL relative shift: pad, reshape, slice."""
    b.atol = 1e-3
    x = b.input("x", [1, "T", 8])
    T = b.dim(x, 1)
    t1 = b.one(x, 1)
    q = b.node("MatMul", [x, b.weights(8, 8)])
    k = b.node("MatMul", [x, b.weights(8, 8)])
    n = b.node("Sub", [b.node("Mul", [t1, b.const(2, np.int64)]), b.const(1, np.int64)])
    pos = b.node("Cast", [b.range(b.node("Neg", [t1]), b.node("Sub", [t1, b.const(1, np.int64)]), -1)], to=1)
    inv = b.const([1.0, 0.1, 0.01, 0.001], "f4")
    ang = b.node("Mul", [b.node("Unsqueeze", [pos, b.i(1)]), inv])
    pe = b.node("Concat", [b.node("Sin", [ang]), b.node("Cos", [ang])], axis=1)
    r = b.node("MatMul", [pe, b.weights(8, 8)])
    bd = b.node("MatMul", [q, b.node("Transpose", [r], perm=[1, 0])])  # 1,T,2T-1
    bd = b.node("Pad", [bd, b.i(0, 0, 1, 0, 0, 0)])  # 1,T,2T
    bd = b.node("Reshape", [bd, cat(b, 1, b.node("Mul", [T, b.i(2)]), T)])
    bd = b.node("Slice", [bd, b.i(1), b.const([2**62], np.int64), b.i(1)])
    bd = b.node("Reshape", [bd, cat(b, 1, T, b.node("Unsqueeze", [n, b.i(0)]))])
    bd = b.node("Slice", [bd, b.i(0), T, b.i(2)])
    s = b.node("Add", [b.node("MatMul", [q, b.node("Transpose", [k], perm=[0, 2, 1])]), bd])
    o = b.node("MatMul", [b.node("Softmax", [s], axis=-1), x])
    # conv module: GLU, depthwise
    g = b.node("Transpose", [b.node("MatMul", [o, b.weights(8, 16)])], perm=[0, 2, 1])
    a, c = b.node("Split", [g, b.i(8, 8)], 2, axis=1)
    g = b.node("Mul", [a, b.node("Sigmoid", [c])])
    b.node("Conv", [g, b.weights(8, 1, 15)], pads=[7, 7], group=8)


@form({"T": 12, "S": 9}, [(1, 1), (40, 150)], 17)
def buckets_of_distances(b):
    b.atol = 1e-3
    x, y = b.input("x", ["T", 4]), b.input("y", ["S", 4])
    q, k = b.one(x, 0), b.one(y, 0)
    rel = b.node("Sub", [b.node("Unsqueeze", [b.range(k), b.i(0)]), b.node("Unsqueeze", [b.range(q), b.i(1)])])
    buckets = b.node("Mul", [b.node("Cast", [b.node("Greater", [rel, b.const(0, np.int64)])], to=7), b.const(16, np.int64)])
    a = b.node("Abs", [rel])
    small = b.node("Less", [a, b.const(8, np.int64)])
    f = b.node("Cast", [a], to=1)
    big = b.node("Mul", [b.node("Div", [b.node("Log", [b.node("Div", [f, b.const(8, "f4")])]), b.const(np.log(16), "f4")]), b.const(8, "f4")])
    big = b.node("Add", [b.node("Cast", [big], to=7), b.const(8, np.int64)])
    cap = b.node("ConstantOfShape", [b.node("Shape", [big])], value=numpy_helper.from_array(np.array([15], np.int64)))
    big = b.node("Min", [big, cap])
    buckets = b.node("Add", [buckets, b.node("Where", [small, a, big])])
    bias = b.node("Gather", [b.weights(32, 2), buckets])
    bias = b.node("Transpose", [bias], perm=[2, 0, 1])
    s = b.node("Add", [b.node("MatMul", [x, b.node("Transpose", [y], perm=[1, 0])]), bias])
    b.node("MatMul", [b.node("Softmax", [s], axis=-1), y])


@form({"N": 2, "P": 6, "T": 3}, [(1, 0, 5), (3, 5, 2)], 17)
def rotary_decoders(b):
    """HF decoder: position ids by cumsum of the attention mask, rotary tables, causal mask by Trilu."""
    b.atol = 1e-3
    x = b.input("x", ["N", "T", 16])
    pk, pv = b.input("pk", ["N", 1, "P", 8]), b.input("pv", ["N", 1, "P", 8])
    P, T = b.one(pk, 2), b.one(x, 1)
    S = b.node("Add", [P, T])
    pos = b.node("Cast", [b.range(S, P)], to=1)
    ang = b.node("Mul", [b.node("Unsqueeze", [pos, b.i(1)]), b.const([1, .1, .01, .001], "f4")])
    emb = b.node("Concat", [ang, ang], axis=1)
    cos, sin = b.node("Cos", [emb]), b.node("Sin", [emb])
    def head(w):
        return b.node("Transpose", [b.node("Reshape", [b.node("MatMul", [x, b.weights(16, 8 * w)]), b.i(0, 0, w, 8)])], perm=[0, 2, 1, 3])
    def rot(t):
        l = b.node("Slice", [t, b.i(0), b.i(4), b.i(3)])
        r = b.node("Slice", [t, b.i(4), b.const([2**62], np.int64), b.i(3)])
        return b.node("Add", [b.node("Mul", [t, cos]), b.node("Mul", [b.node("Concat", [b.node("Neg", [r]), l], axis=3), sin])])
    q, k, v = rot(head(2)), rot(head(1)), head(1)
    k = b.node("Concat", [pk, k], axis=2)
    v = b.node("Concat", [pv, v], axis=2)
    full = b.node("Expand", [b.const(-1e9, "f4"), cat(b, b.node("Unsqueeze", [T, b.i(0)]), b.node("Unsqueeze", [S, b.i(0)]))])
    tri = b.node("Trilu", [full, b.node("Add", [P, b.const(1, np.int64)])], upper=1)
    sh = b.node("Shape", [k])
    kx = b.node("Reshape", [b.node("Expand", [b.node("Unsqueeze", [k, b.i(2)]), cat(b, b.dim(k, 0), 1, 2, b.dim(k, 2), 8)]), cat(b, b.dim(k, 0), 2, b.dim(k, 2), 8)])
    s = b.node("Add", [b.node("MatMul", [q, b.node("Transpose", [kx], perm=[0, 1, 3, 2])]), tri])
    o = b.node("MatMul", [b.node("Softmax", [s], axis=-1), v])
    o = b.node("Reshape", [b.node("Transpose", [o], perm=[0, 2, 1, 3]), b.i(0, 0, 16)])
    b.node("MatMul", [b.node("Slice", [o, b.i(-1), b.const([2**62], np.int64), b.i(1)]), b.weights(16, 9)])
    b.outputs = [b.nodes[-1].output[0], k, v]


@form({"N": 1, "W": 100}, [(3, 37)], 14)
def recognizers_of_lines(b):
    b.atol = 1e-3
    x = b.input("x", ["N", 1, 32, "W"])
    y = b.node("MaxPool", [conv(b, x, 4, 1)], kernel_shape=[2, 2], strides=[2, 2])
    y = b.node("MaxPool", [conv(b, y, 8, 4)], kernel_shape=[2, 2], strides=[2, 2])
    y = b.node("MaxPool", [conv(b, y, 8, 8)], kernel_shape=[2, 2], strides=[2, 1], pads=[0, 1, 0, 1])
    y = b.node("AveragePool", [y], kernel_shape=[4, 1], strides=[4, 1])
    s = b.node("Transpose", [b.node("Squeeze", [y, b.i(2)])], perm=[2, 0, 1])
    n = b.dim(s, 1)
    h0 = b.node("Expand", [b.const(np.zeros((2, 1, 6)), "f4"), cat(b, 2, n, 6)])
    o, h, c = b.node("LSTM", [s, b.weights(2, 24, 8), b.weights(2, 24, 6), b.weights(2, 48), "", h0, h0], 3, hidden_size=6, direction="bidirectional")
    o = b.node("Reshape", [b.node("Transpose", [o], perm=[0, 2, 1, 3]), b.i(0, 0, -1)])
    T = b.dim(o, 0)
    flat = b.node("Reshape", [o, b.i(-1, 12)])
    g = b.node("Gemm", [flat, b.weights(12, 7), b.weights(7)])
    b.node("LogSoftmax", [b.node("Reshape", [g, cat(b, T, n, 7)])], axis=2)


@form({"H": 64, "W": 64}, [(61, 47)], 13)
def maps_padded_to_match(b):
    b.atol = 1e-3
    x = b.input("x", [1, 3, "H", "W"])
    skips, y, c = [], x, 3
    for _ in range(3):
        y = conv(b, y, 8, c)
        c = 8
        skips.append(y)
        y = b.node("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2])
    for s in skips[::-1]:
        y = b.node("ConvTranspose", [y, b.weights(8, 8, 2, 2)], strides=[2, 2])
        dy = b.node("Sub", [b.dim(s, 2), b.dim(y, 2)])
        dx = b.node("Sub", [b.dim(s, 3), b.dim(y, 3)])
        l, t = b.node("Div", [dx, b.i(2)]), b.node("Div", [dy, b.i(2)])
        pads = cat(b, (0, 0), t, l, (0, 0), b.node("Sub", [dy, t]), b.node("Sub", [dx, l]))
        y = b.node("Pad", [y, pads])
        y = conv(b, b.node("Concat", [s, y], axis=1), 8, 16)
    b.node("ArgMax", [conv(b, y, 3, 8, k=1, act=None)], axis=1, keepdims=0)
    b.outputs = [b.nodes[-1].output[0]]


@form({"H": 96, "W": 96}, [(131, 97)], 13)
def maps_cropped_to_match(b):
    b.atol = 1e-3
    x = b.input("x", [1, 1, "H", "W"])
    a = conv(b, conv(b, x, 4, 1, p=0), 4, 4, p=0)
    d = b.node("MaxPool", [a], kernel_shape=[2, 2], strides=[2, 2])
    d = conv(b, conv(b, d, 4, 4, p=0), 4, 4, p=0)
    u = b.node("ConvTranspose", [d, b.weights(4, 4, 2, 2)], strides=[2, 2])
    st, en = [], []
    for ax in (2, 3):
        t = b.node("Div", [b.node("Sub", [b.dim(a, ax), b.dim(u, ax)]), b.i(2)])
        st.append(t)
        en.append(b.node("Add", [t, b.dim(u, ax)]))
    cr = b.node("Slice", [a, cat(b, *st), cat(b, *en), b.i(2, 3)])
    conv(b, b.node("Concat", [u, cr], axis=1), 4, 8, p=0)


@form({"H": 32, "W": 32}, [(7, 7), (50, 33)], 13)
def pools_to_a_grid(b):
    """AdaptiveAvgPool2d(2) exported as slices of computed bounds and means."""
    b.atol = 1e-4
    x = b.input("x", [1, 4, "H", "W"])
    rows = []
    def bounds(e, i, n):
        s = b.node("Div", [b.node("Mul", [e, b.i(i)]), b.i(n)])
        t = b.node("Div", [b.node("Add", [b.node("Mul", [e, b.i(i + 1)]), b.i(n - 1)]), b.i(n)])
        return s, t
    for i in range(3):
        s, t = bounds(b.dim(x, 2), i, 3)
        r = b.node("Slice", [x, s, t, b.i(2)])
        cols = []
        for j in range(2):
            s, t = bounds(b.dim(x, 3), j, 2)
            cols.append(b.node("ReduceMean", [b.node("Slice", [r, s, t, b.i(3)])], axes=[2, 3], keepdims=1))
        rows.append(b.node("Concat", cols, axis=3))
    b.node("Reshape", [b.node("Concat", rows, axis=2), b.i(1, -1)])


@form({"T": 16, "N": 2}, [(1, 1), (70, 1)], 17)
def means_of_tokens(b):
    b.atol = 1e-3
    ids, mask = b.input("ids", ["N", "T"], "i8"), b.input("mask", ["N", "T"], "i8")
    mask = b.node("Cast", [b.node("GreaterOrEqual", [mask, b.const(-3, np.int64)])], to=7)
    e = b.node("Gather", [b.weights(50, 8), b.node("Abs", [ids])])
    pos = b.node("Slice", [b.const(np.arange(512)[None], np.int64), b.i(0), b.dim(ids, 1), b.i(1)])
    tt = b.node("ConstantOfShape", [b.node("Shape", [ids])], value=numpy_helper.from_array(np.array([0], np.int64)))
    e = b.node("Add", [b.node("Add", [e, b.node("Gather", [b.weights(512, 8), pos])]), b.node("Gather", [b.weights(2, 8), tt])])
    ext = b.node("Expand", [b.node("Unsqueeze", [mask, b.i(1, 2)]), cat(b, b.dim(ids, 0), 1, b.dim(ids, 1), b.dim(ids, 1))])
    ext = b.node("Mul", [b.node("Sub", [b.const(1, "f4"), b.node("Cast", [ext], to=1)]), b.const(-1e4, "f4")])
    q = b.node("Unsqueeze", [e, b.i(1)])
    s = b.node("Softmax", [b.node("Add", [b.node("MatMul", [q, b.node("Transpose", [q], perm=[0, 1, 3, 2])]), ext])], axis=-1)
    y = b.node("Squeeze", [b.node("MatMul", [s, q]), b.i(1)])
    m = b.node("Cast", [b.node("Expand", [b.node("Unsqueeze", [mask, b.i(-1)]), b.node("Shape", [y])])], to=1)
    sm = b.node("Div", [b.node("ReduceSum", [b.node("Mul", [y, m]), b.i(1)], keepdims=0), b.node("Clip", [b.node("ReduceSum", [m, b.i(1)], keepdims=0), b.const(1e-9, "f4")])])
    nrm = b.node("ReduceL2", [sm], axes=[1], keepdims=1)
    b.node("Div", [sm, b.node("Expand", [b.node("Clip", [nrm, b.const(1e-12, "f4")]), b.node("Shape", [sm])])])


@form({"H": 33, "W": 47}, [(31, 97)], 17)
def maps_resized_and_back(b):
    """Depth net: resize to a multiple of 14 by float arithmetic, then back."""
    b.atol = 1e-3
    x = b.input("x", [1, 3, "H", "W"])
    szs = []
    for ax in (2, 3):
        f = b.node("Cast", [b.dim(x, ax)], to=1)
        m = b.node("Mul", [b.node("Ceil", [b.node("Div", [f, b.const([14.0], "f4")])]), b.const([14.0], "f4")])
        szs.append(b.node("Cast", [m], to=7))
    y = b.node("Resize", [x, "", "", cat(b, (1, 3), *szs)], mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    y = b.node("Conv", [y, b.weights(4, 3, 14, 14)], strides=[14, 14])
    b.node("Resize", [y, "", "", cat(b, (1, 4), b.dim(x, 2), b.dim(x, 3))], mode="linear", coordinate_transformation_mode="align_corners")


@form({"S": 4000}, [(1600,), (5003,)], 17)
def frames_of_sound(b):
    """torch.stft by unfold: frames as Gather of indices, then logmel with per-utterance normalization."""
    b.atol = 1e-3
    x = b.input("x", [1, "S"])
    p = b.node("Squeeze", [b.node("Pad", [b.node("Unsqueeze", [x, b.i(1)]), b.i(0, 0, 128, 0, 0, 128)], mode="reflect"), b.i(1)])
    n = b.node("Add", [b.node("Div", [b.node("Sub", [b.one(p, 1), b.const(256, np.int64)]), b.const(160, np.int64)]), b.const(1, np.int64)])
    idx = b.node("Add", [b.node("Unsqueeze", [b.node("Mul", [b.range(n), b.const(160, np.int64)]), b.i(1)]), b.const(np.arange(256)[None], np.int64)])
    fr = b.node("Mul", [b.node("Gather", [p, idx], axis=1), b.const(np.hanning(256), "f4")])
    re, im = b.node("MatMul", [fr, b.weights(256, 20)]), b.node("MatMul", [fr, b.weights(256, 20)])
    pw = b.node("Add", [b.node("Mul", [re, re]), b.node("Mul", [im, im])])
    lm = b.node("Log", [b.node("Max", [pw, b.const(1e-5, "f4")])])
    mu = b.node("ReduceMean", [lm], axes=[1], keepdims=1)
    df = b.node("Sub", [lm, mu])
    n1 = b.node("Cast", [b.node("Sub", [b.one(lm, 1), b.const(1, np.int64)])], to=1)
    var = b.node("Div", [b.node("ReduceSum", [b.node("Mul", [df, df]), b.i(1)], keepdims=1), n1])
    b.node("Div", [df, b.node("Add", [b.node("Sqrt", [var]), b.const(1e-5, "f4")])])


@form({"T": 40}, [(33,), (7,)], 17)
def attention_by_chunks(b):
    """Longformer-like chunks: pad to multiple of 8, reshape, overlap by slices."""
    b.atol = 1e-3
    x = b.input("x", [1, "T", 4])
    y = b.node("Pad", [x, cat(b, (0, 0, 0, 0), missing(b, b.dim(x, 1), 8), 0)])
    ch = b.node("Reshape", [y, b.i(1, -1, 8, 4)])
    prev = b.node("Pad", [b.node("Slice", [ch, b.i(0), b.i(-1), b.i(1)]), b.i(0, 1, 0, 0, 0, 0, 0, 0)])
    k = b.node("Concat", [prev, ch], axis=2)
    s = b.node("Softmax", [b.node("MatMul", [ch, b.node("Transpose", [k], perm=[0, 1, 3, 2])])], axis=-1)
    o = b.node("Reshape", [b.node("MatMul", [s, k]), b.i(1, -1, 4)])
    b.node("Slice", [o, b.i(0), b.dim(x, 1), b.i(1)])


@form({"N": 1, "P": 7, "T": 1, "S": 8}, [(2, 3, 1, 4), (3, 11, 7, 18)], 17,
      m=lambda rng, shape: np.arange(shape[1])[None] >= np.arange(shape[0])[:, None])
def decoders_of_padded_rows(b):
    """GPT-2: the mask is as long as past and new tokens; positions are its running sum."""
    b.atol = 1e-3
    ids, m = b.input("ids", ["N", "T"], "i8"), b.input("m", ["N", "S"], "i8")
    pk, pv = b.input("pk", ["N", 1, "P", 8]), b.input("pv", ["N", 1, "P", 8])
    end = b.const([2**62], np.int64)
    pos = b.node("Sub", [b.node("CumSum", [m, b.const(1, np.int64)]), b.const(1, np.int64)])
    pos = b.node("Where", [b.node("Equal", [m, b.const(0, np.int64)]), b.const(1, np.int64), pos])
    pos = b.node("Slice", [pos, b.node("Neg", [b.dim(ids, 1)]), end, b.i(1)])
    x = b.node("Add", [b.node("Gather", [b.weights(30, 8), b.node("Abs", [ids])]), b.node("Gather", [b.weights(64, 8), pos])])
    parts = b.node("Split", [b.node("MatMul", [x, b.weights(8, 24)]), b.i(8, 8, 8)], 3, axis=2)
    q, k, v = (b.node("Unsqueeze", [part, b.i(1)]) for part in parts)
    k, v = b.node("Concat", [pk, k], axis=2), b.node("Concat", [pv, v], axis=2)
    total = b.dim(k, 2)
    seen = b.const(np.tril(np.ones((1, 1, 64, 64), bool)))
    seen = b.node("Slice", [seen, b.node("Sub", [total, b.dim(q, 2)]), total, b.i(2)])
    seen = b.node("Slice", [seen, b.i(0), total, b.i(3)])
    s = b.node("Where", [seen, b.node("MatMul", [q, b.node("Transpose", [k], perm=[0, 1, 3, 2])]), b.const(-3e38, "f4")])
    hidden = b.node("Sub", [b.const(1, "f4"), b.node("Cast", [b.node("Unsqueeze", [m, b.i(1, 2)])], to=1)])
    s = b.node("Add", [s, b.node("Mul", [hidden, b.const(-1e9, "f4")])])
    b.outputs = [b.node("MatMul", [b.node("Softmax", [s], axis=-1), v]), k, v]


@form({"S": 3000}, [(4096,), (701,)], 17)
def waves_encoded_and_back(b):
    """Demucs: strided convolutions with gates, a recurrent layer, what each made cut in the middle and added on the way back."""
    b.atol = 1e-3
    x = b.input("x", [1, 2, "S"])
    mean = b.node("ReduceMean", [x], axes=[1, 2], keepdims=1)
    y, made = b.node("Sub", [x, mean]), []
    for inputs, channels in ((2, 8), (8, 16)):
        y = b.node("Relu", [b.node("Conv", [y, b.weights(channels, inputs, 8), b.weights(channels)], strides=[4])])
        y = b.node("Conv", [y, b.weights(2 * channels, channels, 1)])
        own, gate = b.node("Split", [y, b.i(channels, channels)], 2, axis=1)
        y = b.node("Mul", [own, b.node("Sigmoid", [gate])])
        made.append(y)
    steps = b.node("Transpose", [y], perm=[2, 0, 1])
    steps = b.node("LSTM", [steps, b.weights(2, 32, 16), b.weights(2, 32, 8), b.weights(2, 64)], ["states"], hidden_size=8,
                   direction="bidirectional")
    steps = b.node("Reshape", [b.node("Transpose", [steps], perm=[0, 2, 1, 3]), b.i(0, 0, -1)])
    y = b.node("Transpose", [steps], perm=[1, 2, 0])
    for part, inputs, channels in ((made[1], 16, 8), (made[0], 8, 2)):
        start = b.node("Div", [b.node("Sub", [b.dim(part, 2), b.dim(y, 2)]), b.i(2)])
        part = b.node("Slice", [part, start, b.node("Add", [start, b.dim(y, 2)]), b.i(2)])
        y = b.node("ConvTranspose", [b.node("Add", [y, part]), b.weights(inputs, channels, 8), b.weights(channels)], strides=[4])
        y = b.node("Relu", [y]) if channels == 8 else y
    b.node("Add", [y, mean])


@form({"H": 128, "W": 128}, [(131, 97), (33, 200)], 13)
def levels_mixed_both_ways(b):
    """EfficientDet: maps resized to each other's sizes, and what all levels give side by side."""
    b.atol = 1e-3
    levels = []
    y = conv(b, conv(b, b.input("x", [1, 3, "H", "W"]), 8, 3, s=2), 8, 8, s=2)
    for _ in range(3):
        y = conv(b, y, 8, 8, s=2)
        levels.append(y)

    def sized(x, like):
        sizes = [b.node("Slice", [b.node("Shape", [each]), *ends]) for each, ends in ((x, (b.i(0), b.i(2))), (like, (b.i(2), b.i(4))))]
        return b.node("Resize", [x, "", "", b.node("Concat", sizes, axis=0)], mode="nearest",
                      coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    def mixed(*parts):
        total = parts[0]
        for part in parts[1:]:
            total = b.node("Add", [total, b.node("Mul", [part, b.const(0.7, "f4")])])
        return b.node("Conv", [b.node("Mul", [total, b.node("Sigmoid", [total])]), b.weights(8, 1, 3, 3)], pads=[1] * 4, group=8)

    def halved(x):
        return b.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")

    p3, p4, p5 = levels
    middle = mixed(p4, sized(p5, p4))
    out3 = mixed(p3, sized(middle, p3))
    out4 = mixed(p4, middle, sized(halved(out3), p4))
    outs = [out3, out4, mixed(p5, sized(halved(out4), p5))]
    rows = [b.node("Transpose", [conv(b, out, 9, 8, act=None)], perm=[0, 2, 3, 1]) for out in outs]
    b.node("Concat", [b.node("Reshape", [row, cat(b, 1, -1, 3)]) for row in rows], axis=1)
