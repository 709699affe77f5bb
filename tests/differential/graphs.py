"""Graphs of several nodes, which fusion, layouts and the choice of algorithms rewrite, and graphs of odd structure."""

import numpy as np
from builder import Skip
from layers import CHANNELS, REDUCTIONS
from onnx import TensorProto, helper
from registry import spec


class Maps:
    """Feature maps of a growing network: (name, shape) pairs."""

    def __init__(self, b):
        self.b = b
        shape = [b.int(1, 2), b.pick(CHANNELS), b.int(5, 20), b.int(5, 20)]
        self.maps = [(b.x(shape, constant=0), shape)]

    def last(self):
        return self.maps[-1]

    def add(self, op, inputs, shape, **attributes):
        self.maps.append((self.b.node(op, inputs, **attributes), list(shape)))

    def conv(self):
        b, (name, (n, c, h, w)) = self.b, self.last()
        kernel = b.pick([1, 1, 3, 3, 5])
        if min(h, w) < kernel:
            raise Skip
        group = b.pick([1, 1, 1, c, 2 if c % 2 == 0 else 1])
        out = c * b.pick([1, 1, 2]) if group == c else group * b.pick([1, 4, 8, 16, 9])
        stride, pad = b.pick([1, 1, 2]), b.pick([0, kernel // 2, kernel // 2])
        parts = [name, b.x([out, c // group, kernel, kernel], constant=1)] + ([b.x([out], constant=1)] if b.chance(0.5) else [])
        size = [(e + 2 * pad - kernel) // stride + 1 for e in (h, w)]
        self.add("Conv", parts, [n, out] + size, group=group, strides=[stride] * 2, pads=[pad] * 4)

    def norm(self):
        b, (name, shape) = self.b, self.last()
        c = [shape[1]]
        self.add("BatchNormalization", [name] + [b.x(c, constant=1) for _ in range(3)] + [b.x(c, constant=1, low=0.5, high=2)], shape)

    def act(self):
        b, (name, shape) = self.b, self.last()
        op = b.pick(["Relu", "Relu", "LeakyRelu", "Sigmoid", "HardSwish" if b.opset >= 14 else "Elu", "Clip", "HardSigmoid", "Tanh", "PRelu"])
        if op == "Clip":
            self.add(op, [name, b.const(np.float32(0)), b.const(np.float32(6))], shape)
        elif op == "PRelu":
            self.add(op, [name, b.x([shape[1], 1, 1], constant=1)], shape)
        else:
            self.add(op, [name], shape)

    def swish(self):
        name, shape = self.last()
        self.add("Mul", [name, self.b.node("Sigmoid", [name])], shape)

    def binary(self):
        b, (name, shape) = self.b, self.last()
        others = [other for other, s in self.maps[:-1] if s == shape]
        if others and b.chance(0.6):
            other = b.pick(others)
        else:
            other = b.x(b.pick([[1, shape[1], 1, 1], [shape[1], 1, 1], [], [1], shape, shape[3:], [shape[0], 1, shape[2], shape[3]]]), constant=0.7)
        self.add(b.pick(["Add", "Add", "Mul", "Sub", "Max"]), [name, other] if b.chance(0.6) else [other, name], shape)

    def concat(self):
        b, (name, shape) = self.b, self.last()
        others = [(o, s) for o, s in self.maps if s[0] == shape[0] and s[2:] == shape[2:]]
        parts = [b.pick(others) for _ in range(b.int(1, 2))] + [(name, shape)]
        self.add("Concat", [o for o, _ in parts], [shape[0], sum(s[1] for _, s in parts)] + shape[2:], axis=b.pick([1, -3]))

    def pool(self):
        b, (name, (n, c, h, w)) = self.b, self.last()
        if min(h, w) < 3:
            raise Skip
        if b.chance(0.3):
            self.add("GlobalAveragePool", [name], [n, c, 1, 1])
            return
        self.add(b.pick(["MaxPool", "AveragePool"]), [name], [n, c, (h - 3) // 2 + 1, (w - 3) // 2 + 1], kernel_shape=[3, 3], strides=[2, 2])

    def pad(self):
        b, (name, (n, c, h, w)) = self.b, self.last()
        mode = b.pick(["constant", "constant", "reflect", "edge"])
        if min(h, w) < 3:
            raise Skip
        p = [b.int(0, 2) for _ in range(4)]
        value = [b.const(np.float32(b.pick([0, 0, 1.5])))] if mode == "constant" and b.chance(0.6) else []
        self.add("Pad", [name, b.ints([0, 0, p[0], p[1], 0, 0, p[2], p[3]])] + value, [n, c, h + p[0] + p[2], w + p[1] + p[3]], mode=mode)

    def resize(self):
        b, (name, (n, c, h, w)) = self.b, self.last()
        if max(h, w) > 20:
            raise Skip
        mode = b.pick(["nearest", "linear"])
        self.add("Resize", [name, "", b.const(np.array([1, 1, 2, 2], np.float32))], [n, c, 2 * h, 2 * w], mode=mode,
                 coordinate_transformation_mode=b.pick(["asymmetric", "half_pixel", "align_corners"]), **({"nearest_mode": "floor"} if mode == "nearest" else {}))

    def turn(self):
        b, (name, shape) = self.b, self.last()
        perm = b.pick([[0, 2, 3, 1], [0, 3, 1, 2], [0, 1, 3, 2]])
        self.add("Transpose", [name], [shape[p] for p in perm], perm=perm)

    def cut(self):
        b, (name, shape) = self.b, self.last()
        axis = b.int(1, 3)
        if shape[axis] < 2:
            raise Skip
        low = b.int(0, shape[axis] // 2)
        cut = list(shape)
        cut[axis] = shape[axis] - low
        self.add("Slice", [name, b.ints([low]), b.ints([2**31]), b.ints([axis])], cut)

    def shuffle(self):
        b, (name, (n, c, h, w)) = self.b, self.last()
        if c % 2:
            raise Skip
        five = b.node("Transpose", [b.node("Reshape", [name, b.ints([n, 2, c // 2, h, w])])], perm=[0, 2, 1, 3, 4])
        self.add("Reshape", [five, b.ints([0, c, h, w] if b.chance(0.5) else [n, -1, h, w])], [n, c, h, w])

    def squeeze_excite(self):
        b, (name, shape) = self.b, self.last()
        n, c = shape[:2]
        mean = b.node("ReduceMean", [name, b.ints([2, 3])] if b.opset >= 18 else [name], **({} if b.opset >= 18 else {"axes": [2, 3]}))
        small = b.node("Relu", [b.node("Conv", [mean, b.x([4, c, 1, 1], constant=1)])])
        self.add("Mul", [name, b.node("Sigmoid", [b.node("Conv", [small, b.x([c, 4, 1, 1], constant=1)])])], shape)


@spec("graph.Convolutions", 13)
def convolutions(b):
    m = Maps(b)
    if b.chance(0.8):
        m.conv()
    for _ in range(b.int(2, 7)):
        step = b.pick(["conv", "conv", "conv", "norm", "act", "act", "swish", "binary", "binary", "concat", "pool", "pad", "resize", "turn", "cut", "shuffle", "squeeze_excite"])
        getattr(m, step)()
        if np.prod(m.last()[1]) > 60000:
            break
    b.rtol = 5e-4
    if b.chance(0.3):
        b.outputs = list(dict.fromkeys([b.pick(m.maps[1:])[0], m.last()[0]]))


def layer_norm_parts(b, x, h):
    """As exporters wrote it before it was an operator."""
    axes = {"axes": [-1]} if b.opset < 18 else {}
    extra = [b.ints([-1])] if b.opset >= 18 else []
    centered = b.node("Sub", [x, b.node("ReduceMean", [x] + extra, **axes)])
    squares = b.node("Pow", [centered, b.const(np.float32(2))]) if b.chance(0.6) else b.node("Mul", [centered, centered])
    deviation = b.node("Sqrt", [b.node("Add", [b.node("ReduceMean", [squares] + extra, **axes), b.const(np.float32(1e-3))])])
    return b.node("Add", [b.node("Mul", [b.node("Div", [centered, deviation]), b.x([h], constant=1)]), b.x([h], constant=1)])


def gelu_parts(b, x):
    if b.chance(0.5):
        inner = b.node("Erf", [b.node("Div", [x, b.const(np.float32(np.sqrt(2)))])])
        half = b.node("Mul", [x, b.const(np.float32(0.5))])
        return b.node("Mul", [half, b.node("Add", [inner, b.const(np.float32(1))])])
    cube = b.node("Mul", [b.node("Pow", [x, b.const(np.float32(3))]), b.const(np.float32(0.044715))])
    inner = b.node("Tanh", [b.node("Mul", [b.node("Add", [x, cube]), b.const(np.float32(0.7978845608))])])
    return b.node("Mul", [b.node("Mul", [x, b.const(np.float32(0.5))]), b.node("Add", [inner, b.const(np.float32(1))])])


def attention_parts(b, x, n, s, heads, d, mask):
    h = heads * d

    def project(perm):
        flat = b.node("Add", [b.node("MatMul", [x, b.x([h, h], constant=1, low=-0.3, high=0.3)]), b.x([h], constant=1)])
        return b.node("Transpose", [b.node("Reshape", [flat, b.ints([n, s, heads, d] if b.chance(0.5) else [0, 0, heads, d])])], perm=perm)

    q, k, v = project([0, 2, 1, 3]), project([0, 2, 3, 1]), project([0, 2, 1, 3])
    scores = b.node("MatMul", [q, k])
    scores = b.node("Div", [scores, b.const(np.float32(np.sqrt(d)))]) if b.chance(0.6) else b.node("Mul", [scores, b.const(np.float32(d**-0.5))])
    if mask:
        scores = b.node("Add", [scores, mask])
    mixed = b.node("Transpose", [b.node("MatMul", [b.node("Softmax", [scores], axis=b.pick([-1, 3])), v])], perm=[0, 2, 1, 3])
    return b.node("MatMul", [b.node("Reshape", [mixed, b.ints([n, s, h])]), b.x([h, h], constant=1)])


@spec("graph.Transformer", 13)
def transformer(b):
    n, s, heads, d = b.int(1, 2), b.pick([1, 3, 8, 17]), b.pick([1, 2, 3]), b.pick([4, 8, 16])
    h = heads * d
    x = b.x([n, s, h], constant=0)
    if b.chance(0.3):
        x = b.node("Gather", [b.x([30, h], constant=1), b.given(b.rng.integers(0, 30, (n, s)), 0)], axis=0)
    mask = ""
    if b.chance(0.4):
        kept = b.given((b.rng.random((n, 1, 1, s)) < 0.7).astype(np.float32), 0)
        mask = b.node("Mul", [b.node("Sub", [b.const(np.float32(1)), kept]), b.const(np.float32(b.pick([-10000, -3.4028235e38])))])
    part = b.pick(["attention", "mlp", "both"])
    if part != "mlp":
        y = b.node("Add", [attention_parts(b, x, n, s, heads, d, mask), x])
        x = layer_norm_parts(b, y, h) if b.chance(0.7) else y
    if part != "attention":
        wide = b.node("Add", [b.node("MatMul", [x, b.x([h, 2 * h], constant=1)]), b.x([2 * h], constant=1)])
        back = b.node("MatMul", [gelu_parts(b, wide), b.x([2 * h, h], constant=1)])
        x = layer_norm_parts(b, b.node("Add", [back, x]), h)
    b.rtol, b.atol = 1e-3, 1e-4


@spec("graph.Products", 13)
def products(b):
    """Products with what stands around them, and weights that several share."""
    m, k, n = b.pick([1, 3, 8, 17, 64]), b.pick([4, 8, 16, 33]), b.pick([1, 8, 16, 17, 64])
    lead = b.pick([[], [], [2], [2, 3]])
    w = b.x([k, n], constant=0.8)
    x = b.x(lead + [m, k], constant=0)
    if b.chance(0.3):
        x = b.node("Transpose", [b.x(lead + [k, m], constant=0)], perm=list(range(len(lead))) + [len(lead) + 1, len(lead)])
    y = b.node("MatMul", [x, w])
    for _ in range(b.int(1, 4)):
        step = b.pick(["bias", "act", "scale", "residual", "reduce", "softmax", "again", "cast", "turn"])
        if step == "bias":
            y = b.node("Add", [y, b.x(b.pick([[n], [1, n], [], [m, 1], [1]]), constant=0.8)])
        elif step == "act":
            y = b.node(b.pick(["Relu", "Sigmoid", "Tanh", "Erf", "Softplus"]), [y])
        elif step == "scale":
            y = b.node(b.pick(["Mul", "Div"]), [y, b.const(np.float32(b.pick([0.5, 3.0])))])
        elif step == "residual":
            y = b.node("Add", [b.x(lead + [m, n], constant=0), y])
        elif step == "softmax":
            y = b.node("Softmax", [y], axis=-1)
        elif step == "again":
            y = b.node("Add", [y, b.node("MatMul", [x, w if b.chance(0.5) else b.x([k, n], constant=1)])])
        elif step == "cast":
            y = b.node("Cast", [b.node("Cast", [y], to=int(TensorProto.DOUBLE))], to=int(TensorProto.FLOAT))
        elif step == "turn" and not lead:
            y, m, n = b.node("Transpose", [y]), n, m
            break
    if b.chance(0.2):
        y = b.node("ReduceSum", [y, b.ints([-1])], keepdims=b.int(0, 1))
    b.rtol = 5e-4


@spec("graph.Structure", 13)
def structure(b):
    """Outputs that are inputs, constants or twice the same; nodes that nobody reads; values with several readers."""
    shape = b.shape(1, 3, empty=0.05)
    x, c = b.x(shape, constant=0), b.x(shape, constant=1)
    y = b.node("Add", [x, c])
    z = b.node(b.pick(["Relu", "Identity", "Neg"]), [y])
    same = b.node("Identity", [z])
    b.node("Exp", [x])  # read by nobody when it is no output
    k = b.node("Constant", [], value=helper.make_tensor("k", TensorProto.FLOAT, [2], [1.0, 2.0]))
    flat = b.node("Reshape", [z, b.ints([-1])])
    choices = [[z, y], [x, z], [c, z], [k, z], [same, z], [flat, z, y], [b.node("Identity", [x])], [b.node("Identity", [c]), z], [b.node("Dropout", [x]), y],
               [b.node("Shape", [x]), z], [b.node("Transpose", [y]), y], [b.node("Squeeze", [b.node("Unsqueeze", [y, b.ints([0])]), b.ints([0])]), y]]
    b.outputs = b.pick(choices)


@spec("graph.ShapeArithmetic", 13)
def shape_arithmetic(b):
    """What exporters write to reshape by a tensor's own extents."""
    shape = b.shape(2, 4, empty=0)
    x = b.x(shape, constant=0)
    dims = b.node("Shape", [x])
    first = b.node("Gather", [dims, b.ints(np.int64(0))], axis=0)
    kind = b.pick(["reshape", "expand", "slice", "range", "constant", "tile", "split"])
    if kind == "reshape":
        target = b.node("Concat", [b.node("Unsqueeze", [first, b.ints([0])]), b.ints([-1])], axis=0)
        b.node("Reshape", [x, target])
    elif kind == "expand":
        b.node("Expand", [b.x([1] * len(shape), constant=0), dims])
    elif kind == "slice":
        half = b.node("Div", [first, b.ints(np.int64(2))])
        b.node("Slice", [x, b.ints([0]), b.node("Unsqueeze", [half, b.ints([0])]), b.ints([0])])
    elif kind == "range":
        steps = b.node("Range", [b.ints(np.int64(0)), first, b.ints(np.int64(1))])
        b.node("Add", [b.node("Cast", [steps], to=int(TensorProto.FLOAT)), b.x([1], constant=1)])
    elif kind == "constant":
        b.node("Add", [b.node("ConstantOfShape", [dims], value=helper.make_tensor("v", TensorProto.FLOAT, [1], [2.5])), x])
    elif kind == "tile":
        b.node("Tile", [b.x([2], constant=0), b.node("Unsqueeze", [first, b.ints([0])])])
    else:
        rest = b.node("ReduceProd", [dims], keepdims=1)
        b.node("Mul", [b.node("Cast", [rest], to=int(TensorProto.FLOAT)), x])


@spec("graph.Reduced", 18)
def reduced(b):
    """A reduction in the middle: what stands before it, behind it, and beside it."""
    shape = b.shape(2, 4, empty=0)
    x = b.x(shape, constant=0)
    y = b.node(b.pick(["Abs", "Sigmoid", "Softplus"]), [x])
    axes = b.axes(len(shape), 1)
    sums = b.node(b.pick(sorted(REDUCTIONS)), [y, b.ints(axes)], keepdims=1)
    out = b.node(b.pick(["Sub", "Mul", "Add"]), [y, sums])
    if b.chance(0.5):
        b.node("Transpose", [out], perm=[int(p) for p in b.rng.permutation(len(shape))])
    b.rtol = 5e-4


@spec("graph.Moves", 13)
def moved(b):
    """Chains of moves: each may be folded into its neighbour."""
    shape = b.shape(2, 4, empty=0)
    y = b.x(shape, constant=0)
    b.exact()
    for _ in range(b.int(2, 5)):
        step = b.pick(["turn", "slice", "pad", "flat", "gather", "concat", "unsqueeze", "neg", "expand"])
        rank = len(shape)
        if step == "turn":
            perm = [int(p) for p in b.rng.permutation(rank)]
            y, shape = b.node("Transpose", [y], perm=perm), [shape[p] for p in perm]
        elif step == "slice" and rank:
            axis, forward = b.int(0, rank - 1), b.chance(0.6)
            low = b.int(0, shape[axis] - 1)
            step_by = b.int(1, 2) * (1 if forward else -1)
            y = b.node("Slice", [y, b.ints([low]), b.ints([2**40 if forward else -2**40]), b.ints([axis]), b.ints([step_by])])
            shape[axis] = len(range(shape[axis])[low::step_by])
        elif step == "pad" and rank:
            amount = [b.int(0, 2) for _ in range(2 * rank)]
            y = b.node("Pad", [y, b.ints(amount), b.const(np.float32(b.pick([0, 2])))])
            shape = [e + p + q for e, p, q in zip(shape, amount, amount[rank:])]
        elif step == "flat" and rank > 1:
            at = b.int(0, rank - 2)
            shape = shape[:at] + [shape[at] * shape[at + 1]] + shape[at + 2:]
            y = b.node("Reshape", [y, b.ints(shape)])
        elif step == "gather" and rank:
            axis = b.int(0, rank - 1)
            at = b.rng.integers(-shape[axis], shape[axis], b.int(1, 4))
            y = b.node("Gather", [y, b.ints(at)], axis=axis)
            shape[axis] = len(at)
        elif step == "concat" and rank:
            axis = b.int(0, rank - 1)
            y = b.node("Concat", [y, y], axis=axis)
            shape[axis] *= 2
        elif step == "unsqueeze":
            at = b.int(0, rank)
            y = b.node("Unsqueeze", [y, b.ints([at])])
            shape.insert(at, 1)
        elif step == "neg":
            y = b.node("Neg", [y])
        elif step == "expand":
            shape = [b.int(2, 3) if e == 1 else e for e in shape]
            y = b.node("Expand", [y, b.ints(shape)])
        if np.prod(shape) > 50000 or len(shape) > 5:
            break
    if not b.nodes:
        raise Skip


def subgraph(name, nodes, inputs, outputs):
    def infos(names):
        return [helper.make_tensor_value_info(n, t, s) for n, t, s in names]

    return helper.make_graph(nodes, name, infos(inputs), infos(outputs))


@spec("graph.Control", 13)
def control(b):
    shape = b.shape(1, 3, empty=0)
    x, f = b.x(shape, constant=0), TensorProto.FLOAT
    kind = b.pick(["if", "loop", "scan"])
    if kind == "if":
        then = subgraph("then", [helper.make_node("Add", [x, x], ["t"])], [], [("t", f, shape)])
        other = subgraph("other", [helper.make_node("Neg", [x], ["e"])], [], [("e", f, shape)])
        b.node("If", [b.given(np.array(b.chance(0.5)), 0.3)], then_branch=then, else_branch=other)
    elif kind == "loop":
        body = subgraph("body", [helper.make_node("Add", ["a", x], ["a2"]), helper.make_node("Identity", ["c"], ["c2"]), helper.make_node("Mul", ["a2", "a2"], ["s"])],
                        [("i", TensorProto.INT64, []), ("c", TensorProto.BOOL, []), ("a", f, shape)], [("c2", TensorProto.BOOL, []), ("a2", f, shape), ("s", f, shape)])
        b.node("Loop", [b.ints(np.int64(b.int(0, 4))), b.const(np.array(True)) if b.chance(0.5) else "", b.x(shape)], 2, body=body)
    else:
        body = subgraph("body", [helper.make_node("Add", ["a", "e"], ["a2"]), helper.make_node("Identity", ["a2"], ["s"])],
                        [("a", f, shape[1:]), ("e", f, shape[1:])], [("a2", f, shape[1:]), ("s", f, shape[1:])])
        b.node("Scan", [b.x(shape[1:]), x], 2, body=body, num_scan_inputs=1, **b.some(scan_input_directions=[b.int(0, 1)], scan_output_directions=[b.int(0, 1)]))
