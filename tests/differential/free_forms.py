"""Models whose dims stay free, each of one kind of dependence on them, and the shapes at which they are asked for: none of
them is the one that has kernels of its own."""

import numpy as np
from builder import Builder

MODELS = {}


def form(dims, shapes, opset=17, **values):
    """`dims`: name -> the extent with kernels of its own, or a text of names, of which no extent has any; `shapes`: extents in
    their order; `values`: of inputs that are drawn by hand, from a generator and the input's shape."""

    def add(make):
        MODELS[make.__name__] = (make, dims, shapes, opset, values)
        return make

    return add


class FreeBuilder(Builder):
    """Inputs have names of free dims in their shapes."""

    def __init__(self, opset, extents, values):
        super().__init__(np.random.default_rng(3), opset)
        self.extents, self.drawn = extents, values
        self.is_constant = False

    def input(self, name, shape, dtype="f4"):
        concrete = tuple(self.extents.get(e, e) for e in shape)
        draw = self.drawn.get(name)
        self.feed[name] = np.asarray(draw(self.rng, concrete) if draw else self.values(concrete, dtype), dtype)
        self.shapes = {**getattr(self, "shapes", {}), name: shape}
        return name

    def weights(self, *shape):
        return self.const(np.random.default_rng(len(self.constants)).standard_normal(shape) * 0.3, "f4")

    def i(self, *values):
        return self.const(values, np.int64)

    def dim(self, x, axis):
        return self.node("Gather", [self.node("Shape", [x]), self.i(axis)], axis=0)

    def one(self, x, axis):
        return self.node("Squeeze", [self.dim(x, axis)])

    def range(self, limit, start=0, delta=1):
        return self.node("Range", [self.const(start, np.int64) if isinstance(start, int) else start, limit, self.const(delta, np.int64)])

    def free_model(self):
        model = self.model()
        for info in model.graph.input:
            for dim, extent in zip(info.type.tensor_type.shape.dim, self.shapes.get(info.name, ())):
                if isinstance(extent, str):
                    dim.dim_param = extent
        return model


def missing(b, extent, to):
    """What an extent lacks to a multiple."""
    return b.node("Mod", [b.node("Sub", [b.i(to), b.node("Mod", [extent, b.i(to)])]), b.i(to)])


@form({"H": 8, "W": 8}, [(8, 15), (23, 12), (1, 4)])
def windows_of_a_padded_map(b):
    x = b.input("x", [1, "H", "W", 4])
    pads = [missing(b, b.dim(x, axis), 4) for axis in (1, 2)]
    y = b.node("Pad", [x, b.node("Concat", [b.i(0, 0, 0, 0, 0), *pads, b.i(0)], axis=0)])
    h, w = (b.node("Div", [b.dim(y, axis), b.i(4)]) for axis in (1, 2))
    parts = b.node("Reshape", [y, b.node("Concat", [b.i(1), h, b.i(4), w, b.i(4, 4)], axis=0)])
    tokens = b.node("Reshape", [b.node("Transpose", [parts], perm=[0, 1, 3, 2, 4, 5]), b.i(-1, 16, 4)])
    scores = b.node("Softmax", [b.node("MatMul", [tokens, b.node("Transpose", [tokens], perm=[0, 2, 1])])], axis=-1)
    mixed = b.node("Reshape", [b.node("MatMul", [scores, tokens]), b.node("Concat", [b.i(1), h, w, b.i(4, 4, 4)], axis=0)])
    whole = b.node("Reshape", [b.node("Transpose", [mixed], perm=[0, 1, 3, 2, 4, 5]), b.node("Shape", [y])])
    b.node("Slice", [whole, b.i(0, 0), b.node("Concat", [b.dim(x, 1), b.dim(x, 2)], axis=0), b.i(1, 2)])


@form({"T": 7}, [(1,), (7,), (18,)])
def codes_of_two_depths(b):
    x = b.input("x", ["T"], "i8")
    values = b.const([0, 1], "f4")
    b.node("OneHot", [x, b.const(7, np.int64), values])
    b.node("OneHot", [x, b.one(x, 0), values])


@form({"N": 6, "M": 4}, [(1, 5), (17, 3), (3, 17)])
def diagonals(b):
    x = b.input("x", ["N", "M"])
    for k in (0, 2, -3):
        b.node("EyeLike", [x], k=k)
    b.node("Trilu", [x, b.const(-2, np.int64)], upper=0)


@form({"T": 6}, [(1,), (5,), (18,)])
def ranges(b):
    x = b.input("x", ["T", 2])
    t = b.one(x, 0)
    b.node("Range", [b.const(0, "f4"), b.node("Cast", [t], to=1), b.const(0.5, "f4")])
    b.range(t, b.node("Neg", [t]))
    b.range(b.const(-1, np.int64), b.node("Sub", [t, b.const(1, np.int64)]), -1)


def draw_hops(hop, length):
    def hops(b):
        x = b.input("x", [1, 1, "S"])
        b.node("Conv", [x, b.weights(2, 1, length)], strides=[hop])

    hops.__name__ = f"hops_of_{hop}"
    return hops


for _hop, _length in ((441, 1024), (512, 2048), (1024, 2048)):
    form({"S": 4096}, [(2049,), (9001,)])(draw_hops(_hop, _length))
for _hop in (4410, 16000, 48000):
    form({"S": 2 * _hop}, [(_hop,), (4 * _hop - 1,), (8 * _hop + 5,)])(draw_hops(_hop, _hop))


@form({"S": 16000}, [(31999,), (48000,)])
def chunks_of_a_second(b):
    x = b.input("x", ["S"])
    y = b.node("Pad", [x, b.node("Concat", [b.i(0), missing(b, b.dim(x, 0), 16000)], axis=0)])
    b.node("Reshape", [y, b.i(-1, 16000)])


@form({"N": 2, "P": 6, "T": 1}, [(1, 0, 1), (3, 0, 5), (2, 40, 1), (1, 3, 2)])
def caches_of_keys(b):
    """The first step of a decoder has none: what is there comes from its own tokens."""
    b.atol = 1e-4
    x = b.input("x", ["N", "T", 8])
    past = [b.input(name, ["N", 2, "P", 4]) for name in ("k", "v")]

    def heads():
        parts = b.node("Reshape", [b.node("MatMul", [x, b.weights(8, 8)]), b.i(0, 0, 2, 4)])
        return b.node("Transpose", [parts], perm=[0, 2, 1, 3])

    q, (k, v) = heads(), (b.node("Concat", [p, heads()], axis=2) for p in past)
    positions = b.node("Unsqueeze", [b.range(b.one(k, 2), b.one(past[0], 2)), b.i(1)])
    later = b.node("Greater", [b.range(b.one(k, 2)), positions])
    scores = b.node("MatMul", [q, b.node("Transpose", [k], perm=[0, 1, 3, 2])])
    scores = b.node("Softmax", [b.node("Where", [later, b.const(-1e9, "f4"), scores])], axis=-1)
    mixed = b.node("Transpose", [b.node("MatMul", [scores, v])], perm=[0, 2, 1, 3])
    b.node("MatMul", [b.node("Reshape", [mixed, b.i(0, 0, 8)]), b.weights(8, 5)])
    b.outputs = [b.nodes[-1].output[0], k, v]


@form({"N": 4, "H": 16, "W": 16}, [(0, 9, 9), (2, 4, 4), (1, 3, 30)], 18)
def results_without_elements(b):
    b.atol = 1e-4
    x = b.input("x", ["N", 3, "H", "W"])
    b.node("Resize", [x, "", b.const([1, 1, 0.5, 0.5], "f4")], mode="nearest")
    y = b.node("Conv", [x, b.weights(4, 3, 3, 3)], strides=[2, 2], pads=[1] * 4)
    z = b.node("Slice", [b.node("Relu", [y]), b.i(2), b.const([2**62], np.int64), b.i(2)])
    b.node("Concat", [z, y], axis=2)
    b.node("ReduceSum", [z, b.i(2, 3)], keepdims=0)


@form({"S": 1024}, [(512,), (1033,)])
def spectrograms(b):
    x = b.input("x", [1, "S"])
    b.atol = 1e-4
    b.node("STFT", [x, b.const(100, np.int64), b.const(np.hanning(256), "f4")])
    b.node("STFT", [b.node("Unsqueeze", [x, b.i(2)]), b.const(128, np.int64), "", b.const(256, np.int64)], onesided=0)


@form({"S": 16}, [(31,), (1,)])
def transforms_of_any_length(b):
    b.atol = 1e-5
    real, both = b.input("x", [2, "S", 1]), b.input("z", [2, "S", 2])
    b.node("DFT", [real], axis=1)
    b.node("DFT", [real], axis=1, onesided=1)
    b.node("DFT", [both], axis=1, inverse=1)


@form({"N": 2, "S": 6, "D": 8}, [(1, 1, 4), (3, 5, 15)], 23)
def attention_of_free_heads(b):
    """The products are divided by the root of the heads' size."""
    b.atol = 1e-4
    x, y, z = (b.input(name, ["N", 2, "S", "D"]) for name in "xyz")
    b.node("Attention", [x, y, z])
    b.node("Attention", [x, y, z], is_causal=1, softcap=2.0)


@form({"H": 8, "W": 8}, [(17, 9), (1, 3)], 20, g=lambda rng, shape: rng.uniform(-1.3, 1.3, shape))
def sampled_maps(b):
    x, g = b.input("x", [1, 2, "H", "W"]), b.input("g", [1, "H", "W", 2])
    for mode, padding, align in (("nearest", "border", 1), ("linear", "reflection", 0), ("linear", "zeros", 1)):
        b.node("GridSample", [x, g], mode=mode, padding_mode=padding, align_corners=align)


@form({"H": 8, "W": 8}, [(5, 4), (17, 9)], 20)
def grids(b):
    x, theta = b.input("x", [1, 2, "H", "W"]), b.input("t", [1, 2, 3])
    for align in (0, 1):
        b.node("AffineGrid", [theta, b.node("Shape", [x])], align_corners=align)


@form({"H": 32, "W": 32}, [(41, 17)], r=lambda rng, shape: [[0, 0, 8, 8], [1, 2, 15, 30], [-3, -2, 50, 70]])
def boxes_of_maps(b):
    x, boxes, places = b.input("x", [1, 2, "H", "W"]), b.input("r", [3, 4]), b.i(0, 0, 0)
    b.node("RoiAlign", [x, boxes, places], output_height=3, output_width=3, sampling_ratio=2, spatial_scale=0.5)


@form({"H": 8, "W": 8}, [(13, 7)], 19)
def deformed_convolutions(b):
    b.atol = 1e-4
    x = b.input("x", [1, 4, "H", "W"])
    offsets = b.node("Conv", [x, b.weights(18, 4, 3, 3)], pads=[1, 1, 1, 1])
    b.node("DeformConv", [x, b.weights(3, 4, 3, 3), offsets], pads=[1, 1, 1, 1])


@form({"H": 15, "W": 14}, [(13, 12)])
def maps_transposed_to_one_shape(b):
    """What the strides make of the map is less than that, or more."""
    x = b.input("x", (1, 4, "H", "W"))
    for n, auto_pad in enumerate(("NOTSET", "SAME_UPPER", "SAME_LOWER")):
        bias = [b.weights(3)] if n else []
        b.node("ConvTranspose", [x, b.weights(4, 3, 3, 4), *bias], auto_pad=auto_pad, strides=[3, 2], output_shape=[40 - n, 26 - n])


@form({"H": 16, "W": 16}, [(21, 10), (5, 16), (16, 33)])
def maps_upsampled_between_convolutions(b):
    """A network of the form of an hourglass: what is moved between convolutions are the pixels of blocked channels."""
    b.atol = 1e-4
    x = b.input("x", [1, 3, "H", "W"])
    pads = [missing(b, b.dim(x, axis), 4) for axis in (2, 3)]
    padded = b.node("Pad", [x, b.node("Concat", [b.i(0, 0, 0, 0, 0, 0), *pads], axis=0)])

    def conv(y, channels, inputs, stride=1):
        return b.node("Relu", [b.node("Conv", [y, b.weights(channels, inputs, 3, 3)], pads=[1] * 4, strides=[stride] * 2)])

    half = conv(conv(padded, 20, 3), 32, 20, 2)
    quarter = conv(half, 32, 32, 2)
    doubled = b.node("ConvTranspose", [quarter, b.weights(32, 24, 2, 2), b.weights(24)], strides=[2, 2])
    resized = b.node("Resize", [quarter, "", b.const([1, 1, 2, 2], "f4")], mode="linear")
    joined = conv(b.node("Concat", [doubled, resized, half], axis=1), 24, 88)
    odd = b.node("ConvTranspose", [joined, b.weights(24, 16, 3, 3)], strides=[2, 2], pads=[1, 1, 1, 1])
    framed = b.node("Pad", [odd, b.i(0, 0, 1, 2, 0, 0, 2, 1)], mode="reflect")
    inner = b.node("Slice", [framed, b.i(1, 1), b.i(-1, -1), b.i(2, 3)])
    out = b.node("ConvTranspose", [conv(inner, 16, 16), b.weights(16, 1, 4, 4)], strides=[2, 2], pads=[1, 1, 1, 1])
    b.node("Slice", [out, b.i(0, 0), b.node("Concat", [b.dim(x, 2), b.dim(x, 3)], axis=0), b.i(2, 3)])


@form({"H": 8, "W": 8}, [(5, 9), (18, 7)])
def places_of_the_largest(b):
    """A pool that says where its elements were, and one that is undone."""
    x = b.input("x", [2, 3, "H", "W"])
    for options in ({"pads": [1, 0, 0, 1], "strides": [2, 1]}, {"dilations": [1, 2], "pads": [1, 1, 1, 1], "storage_order": 1}):
        b.node("MaxPool", [x], 2, kernel_shape=[2, 2], **options)
    y = b.node("Concat", [x, x], axis=2)
    wide = b.node("Concat", [y, y], axis=3)
    b.node("MaxUnpool", b.node("MaxPool", [wide], 2, kernel_shape=[2, 2], strides=[2, 2]), kernel_shape=[2, 2], strides=[2, 2])


@form({"H": 8, "W": 8}, [(7, 5), (6, 9), (5, 12)])
def places_undone_in_odd_maps(b):
    x = b.input("x", [2, 3, "H", "W"])
    windows = {"kernel_shape": [2, 2], "strides": [2, 2]}
    b.node("MaxUnpool", [*b.node("MaxPool", [x], 2, **windows), b.node("Shape", [x])], **windows)


@form({"H": 16, "W": 16}, [(10, 21), (100, 33), (7, 250)], 18)
def maps_resized_by_factors(b):
    """The product is one of float32: 0.29 of 100 are 29, and 0.7 of 50 are 35."""
    b.atol = 1e-4
    x = b.input("x", [1, 2, "H", "W"])
    for factor, mode, coordinates, options in (
        (0.29, "nearest", "asymmetric", {"nearest_mode": "floor"}),
        (0.333, "linear", "half_pixel", {}),
        (0.37, "linear", "half_pixel", {"antialias": 1}),
        (0.7, "cubic", "pytorch_half_pixel", {}),
        (1.3, "cubic", "half_pixel", {}),
        (2.5, "linear", "asymmetric", {}),
    ):
        b.node("Resize", [x, "", b.const([1, 1, factor, factor], "f4")], mode=mode, coordinate_transformation_mode=coordinates, **options)


@form({"H": 16, "W": 16}, [(10, 21), (101, 34)])
def maps_resized_to_parts_of_shapes(b):
    """What a convolution leaves is multiplied, rounded down and asked for as sizes; what follows halves it."""
    b.atol = 1e-4
    x = b.input("x", [1, 2, "H", "W"])
    y = b.node("Conv", [x, b.weights(2, 2, 3, 3)], pads=[1] * 4, strides=[2, 2])
    parts = [b.node("Floor", [b.node("Mul", [b.node("Cast", [b.dim(y, axis)], to=1), b.const(1.37, "f4")])]) for axis in (2, 3)]
    sizes = b.node("Concat", [b.i(1, 2), *(b.node("Cast", [part], to=7) for part in parts)], axis=0)
    for mode, coordinates in (("linear", "align_corners"), ("cubic", "pytorch_half_pixel")):
        z = b.node("Resize", [y, "", "", sizes], mode=mode, coordinate_transformation_mode=coordinates)
        z = b.node("Relu", [b.node("Conv", [z, b.weights(3, 2, 3, 3)], pads=[1] * 4, strides=[2, 2])])
        b.node("MaxPool", [z], kernel_shape=[2, 2], strides=[2, 2])


@form({"H": 32, "W": 32}, [(50, 70), (100, 33)])
def pyramids(b):
    b.atol = 1e-4
    x = b.input("x", [1, 3, "H", "W"])
    levels = []
    for factor in (0.7, 0.5):
        small = b.node("Resize", [x, "", b.const([1, 1, factor, factor], "f4")], mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
        levels.append(b.node("Relu", [b.node("Conv", [small, b.weights(4, 3, 3, 3)], pads=[1] * 4, strides=[2, 2])]))
    b.node("Concat", [levels[0], b.node("Resize", [levels[1], "", "", b.node("Shape", [levels[0]])], mode="linear")], axis=1)


@form({"T": 6}, [(9,), (12,), (13,), (70,)])
def texts_cut_to_a_length(b):
    x = b.input("x", ["T", 4])
    y = b.node("Relu", [b.node("Slice", [x, b.i(0), b.i(12), b.i(0)])])
    b.node("Concat", [y, y, x], axis=0)
    b.node("Slice", [b.node("Concat", [x, x], axis=0), b.i(3), b.i(40), b.i(0)])


@form({"T": 16}, [(1,), (5,), (12,), (40,)])
def texts_cut_below_the_bucket(b):
    """The bucket is longer than the cut: what is shorter than it is not seen there."""
    y = b.node("Slice", [b.input("x", ["T", 4]), b.i(0), b.i(12), b.i(0)])
    b.node("ReduceSum", [y, b.i(0)], keepdims=0)
    b.node("Relu", [y])


@form({"T": 6}, [(1,), (2,), (4,), (5,), (13,)])
def middles_that_may_be_empty(b):
    x = b.input("x", ["T", 4])
    y = b.node("Slice", [x, b.i(3), b.i(-2), b.i(0)])
    b.node("Concat", [b.node("Relu", [y]), x, y], axis=0)
    b.node("ReduceSum", [y, b.i(0)], keepdims=0)
    b.node("MatMul", [b.node("Relu", [y]), b.weights(4, 3)])


@form({"T": 6}, [(1,), (2,), (3,), (13,)])
def second_differences(b):
    """Of one step, and of two, nothing is left: there the three parts are one."""
    x, end = b.input("x", ["T", 4]), b.const([2**62], np.int64)
    after, own, before = (b.node("Slice", [x, b.i(start), stop, b.i(0)]) for start, stop in ((2, end), (1, b.i(-1)), (0, b.i(-2))))
    b.node("Add", [b.node("Sub", [after, b.node("Mul", [own, b.const(2, "f4")])]), before])


@form({"T": 6}, [(1,), (2,), (3,), (13,)])
def ends_of_texts(b):
    x = b.input("x", ["T", 4])
    y = b.node("Slice", [x, b.i(-3), b.const([2**62], np.int64), b.i(0)])
    b.node("Concat", [x, y], axis=0)
    b.node("Softmax", [b.node("Add", [y, b.weights(1, 4)])], axis=0)
    b.node("Relu", [b.node("Slice", [x, b.i(-2), b.const([-(2**62)], np.int64), b.i(0), b.i(-1)])])


@form({"T": 32}, [(1,), (7,), (16,), (90,)])
def heads_and_tails(b):
    x = b.input("x", [2, "T"])
    head = b.node("Slice", [x, b.i(0), b.i(16), b.i(1)])
    tail = b.node("Slice", [x, b.i(16), b.const([2**62], np.int64), b.i(1)])
    b.node("Concat", [tail, head], axis=1)
    b.node("Neg", [tail])


def sized_like(b, x, y):
    """The scales by which x gets the size of y: quotients of float32, of which products may be rounded down."""
    sizes, own = (b.node("Concat", [b.dim(each, 2), b.dim(each, 3)], axis=0) for each in (y, x))
    parts = b.node("Div", [b.node("Cast", [sizes], to=1), b.node("Cast", [own], to=1)])
    return b.node("Concat", [b.const([1, 1], "f4"), parts], axis=0)


for _opset, _op in ((9, "Upsample"), (10, "Resize")):

    def _draw(op=_op):
        def maps(b):
            x, y = b.input("x", [1, 2, "H", "W"]), b.input("y", [1, 3, "K", "L"])
            b.atol = 1e-4
            for mode in ("nearest", "linear"):
                b.node("Relu", [b.node(op, [x, sized_like(b, x, y)], mode=mode)])

        maps.__name__ = f"maps_sized_by_{op.lower()}"
        return maps

    form({"H": 8, "W": 8, "K": 16, "L": 16}, [(7, 9, 14, 17), (5, 5, 5, 10), (1, 2, 3, 7), (16, 41, 109, 93)], _opset)(_draw())


@form({"H": 8, "W": 8, "K": 5}, [(5, 9, 7), (9, 20, 5), (13, 3, 20)], 10)
def maps_halved_by_the_first_resize(b):
    """What makes an axis shorter rounds up; so it is where the run says which it does."""
    x, y = b.input("x", [1, 2, "H", "W"]), b.input("y", [1, 2, "K", 6])
    b.node("Resize", [x, b.const([1, 1, 0.6, 1.5], "f4")], mode="nearest")
    b.node("Resize", [x, sized_like(b, x, y)], mode="nearest")


@form({"H": 16, "W": 16}, [(17, 9), (100, 33), (5, 7)], 10)
def maps_upsampled_to_others(b):
    b.atol = 1e-4
    x = b.input("x", [1, 3, "H", "W"])
    large = b.node("Relu", [b.node("Conv", [x, b.weights(4, 3, 3, 3)], pads=[1] * 4, strides=[2, 2])])
    small = b.node("Relu", [b.node("Conv", [large, b.weights(4, 4, 3, 3)], pads=[1] * 4, strides=[2, 2])])
    b.node("Add", [b.node("Resize", [small, sized_like(b, small, large)], mode="linear"), large])


@form({"N": 1, "T": 6}, [(2, 9), (1, 700)])
def tokens_cut_to_a_length(b):
    """A table of positions is as long as the longest text."""
    b.atol = 1e-4
    tokens = b.node("Slice", [b.input("ids", ["N", "T"], "i8"), b.i(0), b.i(64), b.i(1)])
    positions = b.node("Slice", [b.weights(64, 8), b.i(0), b.dim(tokens, 1), b.i(0)])
    rows = b.node("Add", [b.node("Gather", [b.weights(50, 8), b.node("Abs", [tokens])]), positions])
    b.node("Softmax", [b.node("MatMul", [rows, b.node("Transpose", [rows], perm=[0, 2, 1])])])


@form({"H": 9, "W": 6}, [(5, 9), (18, 7), (7, 7)], 18)
def middles(b):
    x, y = b.input("x", [3, "H", 2]), b.input("y", ["W"])
    b.node("CenterCropPad", [x, b.i(8)], axes=[1])
    b.node("CenterCropPad", [x, b.node("Concat", [b.dim(y, 0), b.i(5)], axis=0)], axes=[1, -1])


@form({"H": 8, "W": 8}, [(5, 9), (18, 7)], 18)
def maps_of_columns(b):
    b.atol = 1e-5
    x = b.input("x", [2, 3, "H", "W"])
    columns = b.node("Conv", [x, b.weights(24, 3, 2, 2)], pads=[0, 1, 1, 0], dilations=[2, 1])
    b.node("Col2Im", [b.node("Reshape", [columns, b.i(2, 24, -1)]), b.node("Concat", [b.dim(x, 2), b.dim(x, 3)], axis=0), b.i(2, 2)],
           pads=[0, 1, 1, 0], dilations=[2, 1])


@form({"T": 6, "N": 2}, [(1, 1), (40, 2)])
def recurrent_layers(b):
    x = b.input("x", ["T", "N", 4])
    b.node("LSTM", [x, b.weights(2, 12, 4), b.weights(2, 12, 3), b.weights(2, 24), "", "", "", b.weights(2, 9)], 3, hidden_size=3,
           direction="bidirectional", clip=0.9)
    b.node("LSTM", [x, b.weights(1, 12, 4), b.weights(1, 12, 3)], 3, hidden_size=3, direction="reverse", input_forget=1,
           activations=["HardSigmoid", "Softsign", "Relu"])
    for before in (0, 1):
        b.node("GRU", [x, b.weights(1, 9, 4), b.weights(1, 9, 3), b.weights(1, 18)], 2, hidden_size=3, linear_before_reset=before)
    b.node("RNN", [x, b.weights(1, 3, 4), b.weights(1, 3, 3), b.weights(1, 6)], 2, hidden_size=3, activations=["Affine"],
           activation_alpha=[0.5], activation_beta=[0.1])


@form({"T": 6}, [(9,)], l=lambda rng, shape: [2, 3, 1])
def rows_of_own_lengths(b):
    x, lengths, first = b.input("x", ["T", 3, 4]), b.input("l", [3], "i4"), b.input("h", [1, 3, 5])
    b.node("LSTM", [x, b.weights(1, 20, 4), b.weights(1, 20, 5), "", lengths, first, b.input("c", [1, 3, 5])], 3, hidden_size=5)
    b.node("GRU", [x, b.weights(1, 15, 4), b.weights(1, 15, 5), "", lengths, first], 2, hidden_size=5)


@form({"W": 50}, [(101,)])
def lines_of_text(b):
    """A recognizer: a convolution's columns are the steps of a recurrent layer."""
    x = b.input("x", [1, 1, 16, "W"])
    y = b.node("Relu", [b.node("Conv", [x, b.weights(4, 1, 3, 3)], strides=[2, 2], pads=[1, 1, 1, 1])])
    steps = b.node("Transpose", [b.node("Reshape", [y, b.i(1, 32, -1)])], perm=[2, 0, 1])
    states = b.node("LSTM", [steps, b.weights(2, 32, 32), b.weights(2, 32, 8), b.weights(2, 64)], ["s"], hidden_size=8, direction="bidirectional")
    rows = b.node("Reshape", [b.node("Transpose", [states], perm=[0, 2, 1, 3]), b.i(0, 0, -1)])
    b.node("Softmax", [b.node("MatMul", [rows, b.weights(16, 10)])], axis=2)


@form({"T": 12}, [(7,), (13,), (40,)], 19, x=lambda rng, shape: rng.uniform(0, 1, shape) + np.arange(shape[0]) % 3 - 1)
def borders_of_what_is_kept(b):
    """Rows that data chooses go on beside their first and their last, wherever that is."""
    x = b.input("x", ["T"])
    rows = b.node("Concat", [b.node("Unsqueeze", [x, b.i(1)])] * 2, axis=1)
    kept = b.node("Compress", [rows, b.node("Greater", [x, b.const(0.3, "f4")])], axis=0)
    for mode in ("reflect", "edge", "wrap", "constant"):
        b.node("Pad", [kept, b.i(2, 1, 1, 0)], mode=mode)


@form({"T": 6}, [(1,), (5,), (13,)], d=lambda rng, shape: rng.uniform(0.1, 4, shape))
def steps_of_durations(b):
    """A length regulator: durations of floats, rounded up, and a path of as many steps as their sum, held between two numbers."""
    x, d = b.input("x", [1, "T", 4]), b.input("d", [1, "T"])
    whole = b.node("Ceil", [d])
    total = b.node("Clip", [b.node("ReduceSum", [whole, b.i(1)], keepdims=0), b.const(1, "f4"), b.const(80, "f4")])
    steps = b.range(b.node("ReduceMax", [b.node("Cast", [total], to=7)], keepdims=0))
    at = b.node("Unsqueeze", [b.node("Cast", [steps], to=1), b.i(0, 1)])
    ends = b.node("Unsqueeze", [b.node("CumSum", [whole, b.const(1, np.int64)]), b.i(2)])
    before_end = b.node("Cast", [b.node("Less", [at, ends])], to=1)
    path = b.node("Sub", [before_end, b.node("Pad", [before_end, b.i(0, 1, 0, 0, -1, 0)])])
    b.node("MatMul", [b.node("Transpose", [path], perm=[0, 2, 1]), x])
