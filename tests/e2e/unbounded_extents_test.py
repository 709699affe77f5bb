"""Extents that data decides and nothing bounds: a run that finds no room for one begins again with more of it."""

import unittest

import mill
import numpy as np
from nested_extents_test import ModelChecks
from onnx import TensorProto, helper, mapping, numpy_helper


class Net:
    def __init__(self, **inputs):
        """By name: an array of the type and shape, or (type, shape)."""
        self.inputs, self.nodes, self.constants = [], [], []
        for name, like in inputs.items():
            kind, shape = like if isinstance(like, tuple) else (mapping.NP_TYPE_TO_TENSOR_TYPE[np.asarray(like).dtype], np.shape(like))
            self.inputs.append(helper.make_tensor_value_info(name, kind, shape))

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op, *operands, outputs=1, **attributes):
        names = [x if isinstance(x, str) else self.constant(x) for x in operands]
        made = [f"{op.lower()}{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, names, made, name=made[0], **attributes))
        return made[0] if outputs == 1 else made

    def ints(self, *values):
        return self.constant(np.asarray(values, np.int64))

    def model(self, *outputs, opset=15):
        made = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "g", self.inputs, made, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 8
        return model.SerializeToString()


INT64, FLOAT = TensorProto.INT64, TensorProto.FLOAT


def scalar(value, dtype=np.int64):
    return np.asarray(value, dtype)


def ranges():
    net = Net(n=scalar(0), a=scalar(0), d=scalar(0), x=scalar(0, np.float32))
    plain = net.add("Range", scalar(0), "n", scalar(1))
    shifted = net.add("Range", "a", "n", scalar(1))
    stepped = net.add("Range", "a", "n", "d")
    halves = net.add("Range", scalar(0.5, np.float32), "x", scalar(0.5, np.float32))
    total = net.add("ReduceSum", plain, net.ints(0), keepdims=0)
    return net.model(plain, shifted, stepped, halves, total, net.add("Shape", stepped))


def regulated(rows=5, width=4):
    """The length regulator of FastSpeech: each row as often as its duration says."""
    net = Net(x=(FLOAT, [rows, width]), duration=(FLOAT, [rows]))
    whole = net.add("Cast", net.add("Round", net.add("Relu", "duration")), to=INT64)
    ends = net.add("CumSum", whole, scalar(0))
    length = net.add("ReduceSum", whole, net.ints(0), keepdims=0)
    frames = net.add("Range", scalar(0), length, scalar(1))
    passed = net.add("Cast", net.add("LessOrEqual", net.add("Unsqueeze", ends, net.ints(0)), net.add("Unsqueeze", frames, net.ints(1))), to=INT64)
    row = net.add("ReduceSum", passed, net.ints(1), keepdims=0)
    spread = net.add("Gather", "x", row, axis=0)
    weights = np.random.default_rng(3).standard_normal((6, width, 5)).astype(np.float32)
    image = net.add("Transpose", net.add("Unsqueeze", spread, net.ints(0)), perm=[0, 2, 1])
    mel = net.add("Conv", image, weights, pads=[2, 2])
    # Of the same shape that says how long it is, the channels are known.
    channels = net.add("Gather", net.add("Shape", mel), net.ints(1), axis=0)
    upper = net.add("Slice", mel, net.add("Div", channels, net.ints(2)), channels, net.ints(1))
    return net.model(spread, net.add("Tanh", mel), net.add("Softmax", mel, axis=2), upper)


def masks():
    """sequence_mask of the longest of a batch, and what is multiplied by it."""
    net = Net(lengths=(INT64, [3]), x=(FLOAT, [3, 1]))
    most = net.add("ReduceMax", "lengths", axes=[0], keepdims=0)
    places = net.add("Unsqueeze", net.add("Range", scalar(0), most, scalar(1)), net.ints(0))
    mask = net.add("Cast", net.add("Less", places, net.add("Unsqueeze", "lengths", net.ints(1))), to=FLOAT)
    shape = net.add("Concat", net.ints(3), net.add("Unsqueeze", most, net.ints(0)), axis=0)
    wide = net.add("Expand", "x", shape)
    ones = net.add("ConstantOfShape", net.add("Concat", net.add("Unsqueeze", most, net.ints(0)), net.ints(2), axis=0))
    return net.model(mask, net.add("Mul", wide, mask), ones, net.add("MatMul", mask, net.add("Add", ones, np.float32(1))))


def shapes():
    """Shapes that are inputs themselves."""
    net = Net(shape=(INT64, [3]), x=(FLOAT, [1, 3, 1]), n=(INT64, [1]))
    filled = net.add("ConstantOfShape", "shape", value=numpy_helper.from_array(np.asarray([2], np.int32)))
    wide = net.add("Expand", "x", "shape")
    last = net.add("Expand", "x", net.add("Concat", net.ints(3), "n", axis=0))
    twice = net.add("Mul", "n", net.ints(2))
    longer = net.add("ConstantOfShape", twice)
    doubled = net.add("Concat", net.add("ConstantOfShape", "n"), net.add("ConstantOfShape", "n"), axis=0)
    return net.model(filled, wide, net.add("Add", longer, doubled), last)


def parts(rows=6):
    """Slices of which the run says where they start and end, in either direction, and the best of each column."""
    net = Net(x=(FLOAT, [rows, 7]), a=(INT64, [1]), b=(INT64, [1]), both=(INT64, [2]), k=(INT64, [1]))
    outputs = [net.add("Slice", "x", "a", "b", net.ints(0)), net.add("Slice", "x", net.ints(1), "b", net.ints(1)),
               net.add("Slice", "x", "a", net.ints(1 << 62), net.ints(1), net.ints(2)),
               net.add("Slice", "x", "b", "a", net.ints(1), net.ints(-2)),
               net.add("Slice", "x", net.ints(0, 1), "both", net.ints(0, 1))]
    outputs += net.add("TopK", "x", "k", outputs=2, axis=1)
    return net.model(*outputs)


def copies(rows=3):
    """Tiled, padded, one-hot: by numbers of the run."""
    net = Net(x=(FLOAT, [rows, 2]), n=(INT64, [1]), pads=(INT64, [4]), index=(INT64, [4]))
    repeats = net.add("Concat", net.ints(2), "n", axis=0)
    wide = net.add("Tile", "x", repeats)
    padded = net.add("Pad", "x", "pads", np.float32(0.5))
    hot = net.add("OneHot", "index", "n", np.array([-1, 2], np.float32), axis=1)
    return net.model(wide, padded, hot, net.add("ReduceSum", hot, net.ints(1), keepdims=0), net.add("Pad", wide, net.ints(0, 1, 0, 2)))


def waves(channels=3):
    """Convolutions, pools and transposed convolutions along what a run is long."""
    rng = np.random.default_rng(9)

    def weights(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    net = Net(n=scalar(0), x=(FLOAT, [1, channels, 1]))
    frames = net.add("Unsqueeze", net.add("Cast", net.add("Range", scalar(0), "n", scalar(1)), to=FLOAT), net.ints(0, 1))
    wave = net.add("Sin", net.add("Add", net.add("Mul", frames, np.float32(0.3)), "x"))
    strided = net.add("Conv", wave, weights(4, channels, 3), weights(4), pads=[1, 1], strides=[2])
    dilated = net.add("Conv", wave, weights(channels, 1, 3), group=channels, pads=[2, 2], dilations=[2])
    longer = net.add("ConvTranspose", wave, weights(channels, 2, 4), weights(2), strides=[2], pads=[1, 1])
    again = net.add("ConvTranspose", longer, weights(2, 2, 3), strides=[3], output_padding=[1])
    outputs = [strided, dilated, longer, net.add("Tanh", net.add("Conv", net.add("LeakyRelu", again), weights(1, 2, 7), pads=[3, 3]))]
    outputs.append(net.add("MaxPool", wave, kernel_shape=[3], strides=[2], pads=[1, 1]))
    for include in (0, 1):
        outputs.append(net.add("AveragePool", wave, kernel_shape=[3], pads=[1, 1], count_include_pad=include))
    outputs.append(net.add("GlobalAveragePool", dilated))
    outputs.append(net.add("InstanceNormalization", dilated, weights(channels), weights(channels)))
    return net.model(*outputs)


def of_one(op, numbers, *shape):
    """One node of a tensor and so many numbers of the run, or of the numbers alone."""
    net = Net(**({"x": (FLOAT, list(shape))} if shape else {}), numbers=(INT64, [numbers]))
    return net.model(net.add(op, *(["x"] if shape else []), "numbers"))


def rounds():
    """A loop that data alone ends, of rows as long as the run says, each as wide as its number."""
    body = Net(round=(INT64, []), goes_on=(TensorProto.BOOL, []), total=(INT64, []))
    row = body.add("Mul", body.add("ConstantOfShape", "width", value=numpy_helper.from_array(np.asarray([1], np.int64))), "round")
    total = body.add("Add", "total", body.add("ReduceSum", row, keepdims=0))
    outputs = [helper.make_tensor_value_info(body.add("Less", total, "most"), TensorProto.BOOL, []),
               helper.make_tensor_value_info(total, INT64, []), helper.make_tensor_value_info(row, INT64, [None])]
    net = Net(width=(INT64, [1]), most=scalar(0), numbers=(INT64, [2]))
    graph = helper.make_graph(body.nodes, "rounds", body.inputs, outputs, body.constants)
    total, rows = net.add("Loop", "", "", net.constant(scalar(0)), outputs=2, body=graph)
    return net.model(total, rows, net.add("Expand", net.add("Unsqueeze", total, net.ints(0)), "numbers"))


def meeting():
    """Numbers of a run that have to be the same, of which the larger or the less counts, and that follow each other."""
    net = Net(n=scalar(0), m=scalar(0), same=scalar(0))
    first, second, third = (net.add("Range", scalar(0), number, scalar(1)) for number in ("n", "m", "same"))
    outer = net.add("Add", net.add("Unsqueeze", first, net.ints(1)), net.add("Unsqueeze", second, net.ints(0)))
    return net.model(net.add("Add", first, third), net.add("Concat", second, first, second, axis=0), outer,
                     net.add("Reshape", outer, net.ints(-1)), net.add("Range", scalar(0), net.add("Max", "n", "m"), scalar(1)),
                     net.add("Tile", second, net.add("Unsqueeze", "n", net.ints(0))))


def sums():
    """Extents that are sums and products of numbers of the run, of which no value is as long as one of them."""
    net = Net(n=scalar(0), m=scalar(0))

    def shape(*numbers):
        rows = [net.add("Unsqueeze", number, net.ints(0)) for number in numbers]
        return net.add("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]

    both, more = net.add("Add", "n", "m"), net.add("Add", "n", scalar(2))
    half = net.add("Div", "n", scalar(2))
    row = net.add("Range", scalar(0), both, scalar(1))
    box = net.add("ConstantOfShape", shape(both, more), value=numpy_helper.from_array(np.asarray([3], np.int64)))
    flat = net.add("Reshape", box, net.ints(-1))
    # Where one extent is half a small number it is 1, or nothing.
    thin = net.add("Reshape", net.add("ConstantOfShape", shape("m", half)), net.ints(-1))
    return net.model(net.add("Pad", flat, shape(both, "m"), scalar(7)), net.add("Tile", row, shape(more)), net.add("Slice", flat, net.ints(0), shape(more), net.ints(0)),
                     thin, net.add("Range", scalar(0), net.add("Add", half, "m"), scalar(1)))


class UnboundedExtents(ModelChecks):
    def test_sums_and_products_of_numbers(self):
        feeds = {f"{n}.{m}": {"n": scalar(n), "m": scalar(m)} for n, m in ((3, 5), (70, 2), (2, 70), (1, 1), (100, 90))}
        self.check(sums(), feeds, "sums")

    def test_each_extent_is_as_the_run_says(self):
        rng = np.random.default_rng(10)
        cases = {"Tile": ((2, 3, 4, 5), ([1, 300, 1, 1], [2, 3, 4, 5], [1, 1, 1, 1], [0, 2, 1, 1])),
                 "ConstantOfShape": ((), ([1, 2, 3, 4, 5], [90, 2, 3, 1, 50], [1, 1, 1, 1, 70_000], [0, 9, 9, 9, 9])),
                 "Expand": ((3, 1), ([1, 2, 2, 3, 5], [70, 2, 1, 3, 50], [2, 300, 2, 1, 9])),
                 "Pad": ((1, 2, 3, 2, 1), ([0] * 10, [1, 2, 0, 1, 0, 1, 0, 2, 0, 1], [0, 0, 100, 0, 0, 9, 0, 300, 0, 0], [0, -1, 0, 0, 70, 0, 0, 0, 1, 0]))}
        for op, (shape, numbers) in cases.items():
            feeds = {}
            for i, some in enumerate(numbers):
                feeds[str(i)] = {"numbers": np.asarray(some, np.int64)}
                if shape:
                    feeds[str(i)]["x"] = rng.standard_normal(shape).astype(np.float32)
            self.check(of_one(op, len(numbers[0]), *shape), feeds, f"one.{op}")
        free = [{"x": rng.standard_normal((rows, 3)).astype(np.float32), "numbers": np.asarray(some)}
                for rows, some in ((2, [3, 4]), (7, [1, 100]), (100, [70, 1]))]
        self.check_free(of_one("Tile", 2, "R", 3), "x:[R,3]", free, "one.free")

    def test_what_meets_is_of_one_extent(self):
        feeds = {f"{n}.{m}": {"n": scalar(n), "m": scalar(m), "same": scalar(n)} for n, m in ((3, 5), (300, 2), (2, 300), (70, 500))}
        self.check(meeting(), feeds, "meeting")

    def test_loops_beside_extents(self):
        feeds = {str(i): {"width": np.asarray([width]), "most": scalar(most), "numbers": np.asarray(numbers)}
                 for i, (width, most, numbers) in enumerate(((3, 10, (2, 2)), (100, 10, (1, 300)), (1, 10_000, (70, 1)), (70, 900_000, (3, 3))))}
        self.check(rounds(), feeds, "rounds")

    def test_memory_that_there_is_not(self):
        self.path.write_bytes(of_one("ConstantOfShape", 2))
        mill.check_program(self, "compile", self.path, "-o", self.package)
        for numbers, said in (((100_000, 1_000_000), "the run needs 400000000"), ((2, 1 << 40), "1099511627776|the run needs 879609302")):
            np.savez(self.folder / "in.npz", numbers=np.asarray(numbers))
            done = mill.run_program("run", self.package, "-i", self.folder / "in.npz", "-o", self.folder / "out.npz")
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stderr, f'node "constantofshape0.0": .*({said})')

    def test_parts_where_the_run_says(self):
        rng = np.random.default_rng(7)
        feeds = {}
        for i, (a, b, k) in enumerate(((1, 4, 3), (0, 7, 7), (-3, -1, 1), (5, 2, 2), (-9, 99, 5))):
            feeds[str(i)] = {"x": rng.standard_normal((6, 7)).astype(np.float32), "a": np.asarray([a]), "b": np.asarray([b]),
                             "both": np.asarray([b, a]), "k": np.asarray([k])}
        self.check(parts(), feeds, "parts")
        free = [dict(feed, x=rng.standard_normal((rows, 7)).astype(np.float32)) for rows, feed in zip((2, 9, 40), feeds.values())]
        self.check_free(parts("R"), "x:[R,7]", free, "parts")

    def test_as_many_copies_as_the_run_says(self):
        rng = np.random.default_rng(8)
        feeds = {str(n): {"x": rng.standard_normal((3, 2)).astype(np.float32), "n": np.asarray([n]), "pads": np.asarray([n % 4, 0, n // 2, 3]),
                          "index": np.asarray([0, n - 1, -n, n // 2])} for n in (1, 5, 64, 65, 333)}
        self.check(copies(), feeds, "copies")
        free = [dict(feed, x=rng.standard_normal((rows, 2)).astype(np.float32)) for rows, feed in zip((2, 9, 40), feeds.values())]
        self.check_free(copies("R"), "x:[R,2]", free, "copies")

    def test_windows_along_what_the_run_is_long(self):
        rng = np.random.default_rng(9)
        feeds = {str(n): {"n": scalar(n), "x": rng.standard_normal((1, 3, 1)).astype(np.float32)} for n in (3, 64, 50, 130, 700)}
        self.check(waves(), feeds, "waves", 1e-4)

    def test_ranges(self):
        feeds = {}
        for i, (n, a, d, x) in enumerate(((5, 2, 2, 3.0), (0, 1, 1, 0.0), (700, -3, 7, 200.25), (-4, 9, -3, 1.0), (70, 0, 1, 0.75))):
            feeds[str(i)] = {"n": scalar(n), "a": scalar(a), "d": scalar(d), "x": scalar(x, np.float32)}
        self.check(ranges(), feeds, "ranges")

    def test_length_regulators(self):
        rng = np.random.default_rng(5)
        feeds = {}
        for most in (3, 40, 300):
            feeds[str(most)] = {"x": rng.standard_normal((5, 4)).astype(np.float32),
                                "duration": rng.uniform(-1, most, 5).astype(np.float32)}
        self.check(regulated(), feeds, "regulated", 1e-5)
        self.check_free(regulated("T"), "x:[T,4] duration:[T]",
                        [{"x": rng.standard_normal((t, 4)).astype(np.float32), "duration": rng.uniform(0, 9, t).astype(np.float32)}
                         for t in (3, 30, 71)], "regulated", 1e-5)

    def test_masks_of_lengths(self):
        rng = np.random.default_rng(6)
        feeds = {str(i): {"lengths": np.asarray(lengths, np.int64), "x": rng.standard_normal((3, 1)).astype(np.float32)}
                 for i, lengths in enumerate(((1, 2, 3), (64, 65, 2), (9, 1000, 4)))}
        self.check(masks(), feeds, "masks", 1e-5)

    def test_shapes_of_the_run(self):
        feeds = {str(i): {"shape": np.asarray(shape, np.int64), "n": np.asarray([n], np.int64), "x": np.arange(3, dtype=np.float32).reshape(1, 3, 1)}
                 for i, (shape, n) in enumerate((((2, 3, 4), 3), ((1, 3, 1), 64), ((70, 3, 2), 99)))}
        self.check(shapes(), feeds, "shapes")


if __name__ == "__main__":
    unittest.main()
