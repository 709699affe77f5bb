"""Random TFLite models of single operators and of chains of maps, for tflite_sweep.py: seeded, with the values of their inputs.

The shapes of results are left to the runtime, which works them out itself, but where a chain goes on from them.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures/tflite_ops"))

from op_files import OpFile  # noqa: E402

SAME, VALID = 0, 1
ACTS = [0, 0, 1, 2, 3]
UNARY = ["ABS", "NEG", "SIN", "COS", "FLOOR", "CEIL", "ROUND", "SQUARE", "EXP", "RELU", "RELU6", "RELU_N1_TO_1", "LOGISTIC", "TANH",
         "ELU", "HARD_SWISH", "RELU_0_TO_1", "SIGN"]
ACT_TABLES = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}


class Model:
    """A file while it is made."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.file = OpFile()
        self.inputs = {}
        self.cases = []  # what each output is

    # -- pieces

    def pick(self, choices):
        return choices[int(self.random.integers(len(choices)))]

    def extent(self, low=1, high=9):
        return int(self.random.integers(low, high))

    def shape(self, rank):
        return tuple(self.extent(1, 6) for _ in range(rank))

    def coin(self):
        return bool(self.random.integers(2))

    def input(self, shape, dtype=np.float32, low=-3.0, high=3.0):
        name = f"x{len(self.inputs)}"
        if np.issubdtype(dtype, np.floating):
            self.inputs[name] = self.random.uniform(low, high, shape).astype(dtype)
        elif dtype == np.bool_:
            self.inputs[name] = self.random.integers(0, 2, shape).astype(dtype)
        else:
            self.inputs[name] = self.random.integers(int(low), int(high), shape).astype(dtype)
        return self.file.input(name, shape, dtype)

    def weights(self, *shape):
        return self.file.constant(self.random.uniform(-1, 1, shape), np.float32)

    def ints(self, values):
        return self.file.constant(np.array(values), np.int32)

    def op(self, code, inputs, options=None, count=1, dtypes=None, version=1, says=""):
        names = [f"y{len(self.cases) + i}" for i in range(count)]
        outputs = [self.file.output(name, (), dtype) for name, dtype in zip(names, dtypes or [np.float32] * count)]
        self.file.op(code, inputs, outputs, options, version)
        self.cases += [(name, f"{code} {says or options}") for name in names]

    # -- single operators

    def binary(self):
        code = self.pick(list(ACT_TABLES) + ["MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_MOD"])
        shape = self.shape(self.extent(1, 5))
        other = list(shape[self.extent(0, len(shape)):]) or [1]
        for d in range(len(other)):
            if self.extent(0, 3) == 0:
                other[d] = 1
        operands = [self.input(shape), self.input(other, low=0.5, high=3)]
        if code in ("ADD", "MUL", "MAXIMUM") and self.coin():
            operands.reverse()
        table = ACT_TABLES.get(code)
        fields = {"fusedActivationFunction": self.pick(ACTS)} if table else {}
        plain = {"MAXIMUM": "MaximumMinimumOptions", "MINIMUM": "MaximumMinimumOptions",
                 "SQUARED_DIFFERENCE": "SquaredDifferenceOptions", "FLOOR_MOD": "FloorModOptions"}
        self.op(code, operands, (table or plain[code], fields), says=f"{shape} {other} {fields}")

    def unary(self):
        self.op(self.pick(UNARY), [self.input(self.shape(self.extent(1, 5)))])

    def reduction(self):
        rank = self.extent(1, 5)
        axes = [int(a) for a in self.random.permutation(rank)[:self.extent(1, rank + 1)]]
        axes = [a - rank if self.coin() else a for a in axes]
        keep = self.coin()
        code = self.pick(["MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"])
        self.op(code, [self.input(self.shape(rank)), self.ints(axes)], ("ReducerOptions", {"keepDims": keep}), says=f"{axes} {keep}")

    def moved(self):
        rank = self.extent(1, 5)
        shape = self.shape(rank)
        kind = self.pick(["TRANSPOSE", "PAD", "MIRROR_PAD", "SLICE", "STRIDED_SLICE", "TILE", "REVERSE_V2", "SPLIT_V", "PACK", "UNPACK",
                          "CONCATENATION", "GATHER", "CUMSUM", "EXPAND_DIMS"])
        getattr(self, "_" + kind.lower())(shape)

    def _transpose(self, shape):
        perm = [int(a) for a in self.random.permutation(len(shape))]
        self.op("TRANSPOSE", [self.input(shape), self.ints(perm)], ("TransposeOptions", {}), says=f"{shape} {perm}")

    def _pad(self, shape):
        pads = [[self.extent(0, 3), self.extent(0, 3)] for _ in shape]
        if self.coin():
            self.op("PAD", [self.input(shape), self.ints(pads)], ("PadOptions", {}), says=f"{shape} {pads}")
        else:
            self.op("PADV2", [self.input(shape), self.ints(pads), self.file.constant(np.float32(1.5))], ("PadV2Options", {}), says=f"{pads}")

    def _mirror_pad(self, shape):
        mode = self.extent(0, 2)
        pads = [[int(self.random.integers(0, n + mode)), int(self.random.integers(0, n + mode))] for n in shape]
        self.op("MIRROR_PAD", [self.input(shape), self.ints(pads)], ("MirrorPadOptions", {"mode": mode}), says=f"{shape} {pads} {mode}")

    def _slice(self, shape):
        begin = [int(self.random.integers(0, n)) for n in shape]
        size = [-1 if self.coin() else int(self.random.integers(1, n - b + 1)) for n, b in zip(shape, begin)]
        self.op("SLICE", [self.input(shape), self.ints(begin), self.ints(size)], ("SliceOptions", {}), says=f"{shape} {begin} {size}")

    def _strided_slice(self, shape):
        begin, end, strides, shrink = [], [], [], 0
        masks = {name: 0 for name in ("beginMask", "endMask", "newAxisMask", "shrinkAxisMask")}
        entry = 0
        for n in shape[:self.extent(1, len(shape) + 1)]:
            kind = self.extent(0, 6)
            if kind == 0:
                begin.append(0), end.append(0), strides.append(1)
                masks["newAxisMask"] |= 1 << entry
                entry += 1
            if kind == 1:
                at = int(self.random.integers(-n, n))
                begin.append(at), end.append(at + 1), strides.append(1)
                masks["shrinkAxisMask"] |= 1 << entry
            else:
                step = self.pick([1, 1, 2, -1, -2])
                # At least one element is there.
                low, high = sorted(int(v) for v in self.random.integers(0, n, 2))
                first, last = (low, high + 1) if step > 0 else (high, low - 1)
                begin.append(first if self.coin() else first - n)
                end.append(last - n if last > 0 and last < n and self.coin() else last if last >= 0 else -n - 1)
                strides.append(step)
                masks["beginMask"] |= int(self.coin()) << entry
                masks["endMask"] |= int(self.coin()) << entry
            entry += 1
        self.op("STRIDED_SLICE", [self.input(shape), self.ints(begin), self.ints(end), self.ints(strides)],
                ("StridedSliceOptions", masks), says=f"{shape} {begin} {end} {strides} {masks}")

    def _tile(self, shape):
        self.op("TILE", [self.input(shape), self.ints([self.extent(1, 4) for _ in shape])], ("TileOptions", {}))

    def _reverse_v2(self, shape):
        self.op("REVERSE_V2", [self.input(shape), self.ints([self.extent(0, len(shape))])], ("ReverseV2Options", {}))

    def _split_v(self, shape):
        axis = self.extent(0, len(shape))
        first = int(self.random.integers(0, shape[axis] + 1))
        sizes = [first, shape[axis] - first if self.coin() else -1]
        if 0 in (first, shape[axis] - first):
            return
        self.op("SPLIT_V", [self.input(shape), self.ints(sizes), self.file.constant(np.int32(axis))], ("SplitVOptions", {"numSplits": 2}), 2)

    def _pack(self, shape):
        axis = self.extent(0, len(shape) + 1)
        self.op("PACK", [self.input(shape), self.input(shape)], ("PackOptions", {"valuesCount": 2, "axis": axis}))

    def _unpack(self, shape):
        axis = self.extent(0, len(shape))
        self.op("UNPACK", [self.input(shape)], ("UnpackOptions", {"num": shape[axis], "axis": axis}), shape[axis])

    def _concatenation(self, shape):
        axis = self.extent(0, len(shape))
        other = list(shape)
        other[axis] = self.extent(1, 5)
        self.op("CONCATENATION", [self.input(shape), self.input(other)], ("ConcatenationOptions", {"axis": axis}))

    def _gather(self, shape):
        axis = self.extent(0, len(shape))
        indices = self.shape(self.extent(1, 3))
        self.op("GATHER", [self.input(shape), self.input(indices, np.int32, 0, shape[axis])], ("GatherOptions", {"axis": axis}),
                says=f"{shape} {indices} {axis}")

    def _cumsum(self, shape):
        fields = {"exclusive": self.coin(), "reverse": self.coin()}
        self.op("CUMSUM", [self.input(shape), self.ints(self.extent(0, len(shape)))], ("CumsumOptions", fields))

    def _expand_dims(self, shape):
        self.op("EXPAND_DIMS", [self.input(shape), self.ints([self.extent(-1, len(shape) + 1)])], ("ExpandDimsOptions", {}))

    def product(self):
        batch, rows, depth, columns = self.extent(1, 4), self.extent(), self.extent(1, 20), self.extent(1, 20)
        if self.coin():
            bias = self.weights(columns) if self.coin() else None
            keep = self.coin()
            self.op("FULLY_CONNECTED", [self.input((batch, rows, depth)), self.weights(columns, depth), bias],
                    ("FullyConnectedOptions", {"keepNumDims": keep, "fusedActivationFunction": self.pick(ACTS)}), version=6)
            return
        adj_x, adj_y = self.coin(), self.coin()
        x = (batch, depth, rows) if adj_x else (batch, rows, depth)
        y = (batch, columns, depth) if adj_y else (batch, depth, columns)
        self.op("BATCH_MATMUL", [self.input(x), self.input(y)], ("BatchMatMulOptions", {"adjX": adj_x, "adjY": adj_y}))

    def normalized(self):
        shape = self.shape(self.extent(1, 5))
        code, table, fields = self.pick([("SOFTMAX", "SoftmaxOptions", {"beta": float(self.random.uniform(0.3, 2))}),
                                         ("LOG_SOFTMAX", "LogSoftmaxOptions", {})])
        self.op(code, [self.input(shape)], (table, fields), says=f"{shape}")

    def sorted(self):
        shape = self.shape(self.extent(1, 4))
        if self.coin():
            axis = self.extent(0, len(shape))
            code = self.pick(["ARG_MAX", "ARG_MIN"])
            table = "ArgMaxOptions" if code == "ARG_MAX" else "ArgMinOptions"
            self.op(code, [self.input(shape), self.file.constant(np.int32(axis))], (table, {"outputType": 2}), dtypes=[np.int32])
        else:
            k = self.extent(1, shape[-1] + 1)
            self.op("TOPK_V2", [self.input(shape), self.file.constant(np.int32(k))], ("TopKV2Options", {}), 2, [np.float32, np.int32])

    def blocks(self):
        b, h, w, c = self.extent(1, 3), self.extent(1, 4), self.extent(1, 4), self.extent(1, 4)
        block = self.extent(1, 4)
        code = self.pick(["SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"])
        if code == "SPACE_TO_DEPTH":
            self.op(code, [self.input((b, h * block, w * block, c))], ("SpaceToDepthOptions", {"blockSize": block}))
        elif code == "DEPTH_TO_SPACE":
            self.op(code, [self.input((b, h, w, c * block * block))], ("DepthToSpaceOptions", {"blockSize": block}))
        elif code == "SPACE_TO_BATCH_ND":
            pads = [[1, block * h - 1 - h % block if h % block == 0 and False else (-(h + 1)) % block], [0, (-w) % block]]
            self.op(code, [self.input((b, h, w, c)), self.ints([block, block]), self.ints(pads)], ("SpaceToBatchNDOptions", {}), says=f"{pads}")
        else:
            crops = [[self.extent(0, min(2, h * block)), 0], [0, 0]]
            self.op(code, [self.input((b * block * block, h, w, c)), self.ints([block, block]), self.ints(crops)], ("BatchToSpaceNDOptions", {}))

    # -- maps

    def windows(self):
        """Padding, kernel, strides, dilations."""
        dilated = self.extent(0, 4) == 0
        stride = (1, 1) if dilated else (self.extent(1, 4), self.extent(1, 4))
        dilation = (self.extent(1, 4), self.extent(1, 4)) if dilated else (1, 1)
        return self.pick([SAME, VALID]), (self.extent(1, 4), self.extent(1, 4)), stride, dilation

    @staticmethod
    def after(shape, padding, kernel, stride, dilation, channels):
        """The result's shape; nothing where it has no elements."""
        sides = []
        for n, k, s, d in zip(shape[1:3], kernel, stride, dilation):
            reach = (k - 1) * d + 1
            sides.append(-(-n // s) if padding == SAME else (n - reach) // s + 1 if n >= reach else 0)
        return (shape[0], *sides, channels) if min(sides) > 0 else None

    def conv_fields(self, padding, stride, dilation):
        return {"padding": padding, "strideH": stride[0], "strideW": stride[1], "dilationHFactor": dilation[0],
                "dilationWFactor": dilation[1], "fusedActivationFunction": self.pick(ACTS)}

    def next_map(self, tensor, shape):
        """Another operator behind a map: its code, operands, options and shape, or nothing."""
        kind = self.pick(["conv", "conv", "depthwise", "max", "average", "unary", "scale", "bias", "pad", "resize", "transpose_conv", "self"])
        padding, kernel, stride, dilation = self.windows()
        channels = self.extent(1, 18)
        if kind == "conv":
            to = self.after(shape, padding, kernel, stride, dilation, channels)
            return to and ("CONV_2D", [tensor, self.weights(channels, *kernel, shape[3]), self.weights(channels)],
                           ("Conv2DOptions", self.conv_fields(padding, stride, dilation)), to)
        if kind == "depthwise":
            times = self.extent(1, 3)
            stride = (stride[0], stride[0])
            to = self.after(shape, padding, kernel, stride, dilation, shape[3] * times)
            fields = {**self.conv_fields(padding, stride, dilation), "depthMultiplier": times}
            return to and ("DEPTHWISE_CONV_2D", [tensor, self.weights(1, *kernel, shape[3] * times), self.weights(shape[3] * times)],
                           ("DepthwiseConv2DOptions", fields), to)
        if kind in ("max", "average"):
            to = self.after(shape, padding, kernel, stride, (1, 1), shape[3])
            fields = {"padding": padding, "strideH": stride[0], "strideW": stride[1], "filterHeight": kernel[0],
                      "filterWidth": kernel[1], "fusedActivationFunction": self.pick(ACTS)}
            return to and ("MAX_POOL_2D" if kind == "max" else "AVERAGE_POOL_2D", [tensor], ("Pool2DOptions", fields), to)
        if kind == "unary":
            return self.pick(["RELU", "LOGISTIC", "TANH", "HARD_SWISH", "ABS"]), [tensor], None, shape
        if kind in ("scale", "bias"):
            code = "MUL" if kind == "scale" else "ADD"
            return code, [tensor, self.weights(shape[3])], (ACT_TABLES[code], {"fusedActivationFunction": self.pick(ACTS)}), shape
        if kind == "self":
            return "ADD", [tensor, tensor], ("AddOptions", {}), shape
        if kind == "pad":
            pads = [[0, 0], [self.extent(0, 3), self.extent(0, 3)], [self.extent(0, 3), 1], [0, self.extent(0, 2)]]
            return ("PAD", [tensor, self.ints(pads)], ("PadOptions", {}), tuple(n + sum(p) for n, p in zip(shape, pads)))
        if kind == "resize":
            size = (self.extent(1, 12), self.extent(1, 12))
            code = self.pick(["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
            table = "ResizeBilinearOptions" if code == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
            fields = self.pick([{}, {"halfPixelCenters": True}, {"alignCorners": True}])
            return code, [tensor, self.ints(size)], (table, fields), (shape[0], *size, shape[3])
        sides = [n * s if padding == SAME else (n - 1) * s + max(k, s) for n, s, k in zip(shape[1:3], stride, kernel)]
        to = (shape[0], *sides, channels)
        return ("TRANSPOSE_CONV", [self.ints(to), self.weights(channels, *kernel, shape[3]), tensor],
                ("TransposeConvOptions", {"padding": padding, "strideH": stride[0], "strideW": stride[1]}), to)

    def chain(self):
        shape = (self.extent(1, 3), self.extent(3, 12), self.extent(3, 12), self.extent(1, 10))
        tensor = self.input(shape, low=-1, high=1)
        says = []
        for _ in range(self.extent(2, 7)):
            made = self.next_map(tensor, shape)
            if not made or np.prod(made[3]) > 50_000:
                continue
            code, operands, options, shape = made
            tensor = self.file.tensor(f"map{len(self.file.graph.tensors)}", shape, np.float32)
            version = {"RESIZE_BILINEAR": 3, "RESIZE_NEAREST_NEIGHBOR": 3}.get(code, 1)
            self.file.op(code, operands, [tensor], options, version)
            says.append(f"{code} {options} -> {shape}")
        end = self.pick(["MEAN", "RESHAPE", "NEG"])
        if end == "MEAN":
            self.op("MEAN", [tensor, self.ints([1, 2])], ("ReducerOptions", {"keepDims": self.coin()}), says="; ".join(says))
        elif end == "RESHAPE":
            self.op("RESHAPE", [tensor, self.ints([shape[0], -1])], ("ReshapeOptions", {}), says="; ".join(says))
        else:
            self.op("NEG", [tensor], says="; ".join(says))


KINDS = [Model.binary, Model.unary, Model.reduction, Model.moved, Model.moved, Model.product, Model.normalized, Model.sorted, Model.blocks,
         Model.chain, Model.chain, Model.chain]


def random_model(seed, count):
    """A model of at least `count` outputs."""
    model = Model(seed)
    while len(model.cases) < count:
        model.pick(KINDS)(model)
    return model
