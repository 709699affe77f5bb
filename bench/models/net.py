"""Writes ONNX graphs node by node, with seeded weights whose activations stay sane.

Random weights alone make a deep net useless for comparing compilers: after some layers every input gives the same
output, or everything is zero or infinite. So each value carries a small batch of calibration data through the layers,
and batch-norm statistics and biases are set from what really arrives there.

The bytes of a model must not depend on the BLAS library or the CPU, so calibration rounds the operands of every product
to small integers times a power of two: all sums are then exact in float32, in whatever order they are made.
"""

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# The IR version that exporters wrote beside each opset.
IR_OF_OPSET = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10,
               22: 10}

CALIBRATION_BATCH = 4

# Scale of what ends a residual branch: its normalization, or its weights. Training starts it at 0 (Goyal et al., "Accurate, Large Minibatch
# SGD", 2017, section 5.1) and leaves it small, so that blocks stay near the identity (De and Smith, "Batch Normalization
# Biases Residual Blocks Towards the Identity Function", 2020). With noise at full scale in every branch, a change of the
# input, or a rounding error, grows by a fifth a layer (Yang et al., "A Mean Field Theory of Batch Normalization", 2019).
RESIDUAL_GAIN = 0.25


def quantized(values, bits):
    """(integers as float32, power-of-two scale): values to `bits` bits of the largest magnitude."""
    largest = float(np.abs(values).max(initial=0.0))
    exponent = math.frexp(largest)[1] - bits if largest > 0 else 0
    return np.rint(np.ldexp(values, -exponent)).astype(np.float32), math.ldexp(1.0, exponent)


def exact_product(a, b):
    """a @ b with both rounded to 6 bits: at 4,608 terms the sums stay below 2^24."""
    (qa, sa), (qb, sb) = quantized(a, 6), quantized(b, 6)
    return (qa @ qb) * np.float32(sa * sb)


def exact_conv(x, w, stride, pad, group):
    """Convolution of [B, C, H, W] by [O, C/group, k, k]; group is 1 or the number of channels."""
    batch, _, rows, columns = x.shape
    channels, _, kernel, _ = w.shape
    out_rows, out_columns = ((extent + 2 * pad - kernel) // stride + 1 for extent in (rows, columns))
    (qx, sx), (qw, sw) = quantized(x, 6), quantized(w, 6)
    qx = np.pad(qx, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    y = np.zeros((batch, channels, out_rows, out_columns), np.float32)
    for i in range(kernel):
        for j in range(kernel):
            tap = qx[:, :, i:i + stride * out_rows:stride, j:j + stride * out_columns:stride]
            tap = tap[:, :, :out_rows, :out_columns]
            if group > 1:
                y += tap * qw[:, 0, i, j][None, :, None, None]
            else:
                y += (qw[:, :, i, j] @ tap.reshape(batch, x.shape[1], -1)).reshape(y.shape)
    return y * np.float32(sx * sw)


def moments(values):
    """Mean and variance of each channel (axis 1), from exact sums."""
    q, scale = quantized(values, 12)
    axes = (0, *range(2, values.ndim))
    count = values.size // values.shape[1]
    mean = q.sum(axis=axes, dtype=np.float64) / count
    square = (q.astype(np.float64) ** 2).sum(axis=axes) / count
    return mean * scale, np.maximum(square - mean * mean, 1e-3) * scale * scale


def rounded(values, bits=12):
    """Rounds to `bits` significant bits."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    return np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits).astype(np.float32)


def per_channel(vector, rank):
    return np.asarray(vector, np.float32).reshape((1, -1) + (1,) * (rank - 2))


class Value:
    """A tensor of the graph: its name, its shape (dim 0 may be a string), and its values on the calibration batch."""

    def __init__(self, name, shape, data=None):
        self.name, self.shape, self.data = name, list(shape), data

    def __repr__(self):
        return f"Value({self.name}, {self.shape})"


class Net:
    """One model in the making. Methods add nodes and return the Value of the result."""

    def __init__(self, name, opset, seed, producer=("tensormill-bench", "1")):
        self.name, self.opset, self.producer = name, opset, producer
        self.rng = np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        self.counter = 0

    # --- graph -----------------------------------------------------------------------------------------------------

    def fresh(self, stem):
        self.counter += 1
        return f"{stem}_{self.counter}"

    def input(self, name, shape, dtype=TensorProto.FLOAT):
        """A graph input. Float inputs are calibrated on noise: half of it even over [-1, 1), half normal."""
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        if dtype != TensorProto.FLOAT:
            return Value(name, shape)
        half = (CALIBRATION_BATCH // 2, *shape[1:])
        even = self.rng.random(half, dtype=np.float32) * 2 - 1
        return Value(name, shape, np.concatenate([even, self.rng.standard_normal(half, dtype=np.float32)]))

    def weight(self, name, array):
        """Adds an initializer and returns its name."""
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def int64s(self, values, stem="const"):
        return self.weight(self.fresh(stem), np.asarray(values, dtype=np.int64))

    def constant(self, array, stem="Constant"):
        """A Constant node, as tracing exporters write small constants."""
        return self.node("Constant", [], value=numpy_helper.from_array(np.asarray(array)), stem=stem)

    def node(self, op, inputs, outputs=1, stem=None, **attributes):
        """Adds a node; returns its output name, or a list of them for outputs > 1."""
        base = self.fresh(stem or op)
        names = [base] if outputs == 1 else [f"{base}_{i}" for i in range(outputs)]
        inputs = [i.name if isinstance(i, Value) else i for i in inputs]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"node_{base}", **attributes))
        return names[0] if outputs == 1 else names

    def output(self, value, name, shape, dtype=TensorProto.FLOAT):
        """Gives the last node's output its public name."""
        old = value.name if isinstance(value, Value) else value
        for node in self.nodes:
            node.output[:] = [name if o == old else o for o in node.output]
            node.input[:] = [name if i == old else i for i in node.input]
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def model(self):
        ir_version = IR_OF_OPSET[self.opset]
        inputs = list(self.inputs)
        if ir_version < 4:  # initializers had to be graph inputs then
            inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in self.initializers]
        graph = helper.make_graph(self.nodes, self.name, inputs, self.outputs, self.initializers)
        # The checker of an older onnx package refuses newer opsets, so none is run: the numbers are set by hand.
        made = onnx.ModelProto()
        made.ir_version = ir_version
        made.producer_name, made.producer_version = self.producer
        made.graph.CopyFrom(graph)
        opset = made.opset_import.add()
        opset.domain, opset.version = "", self.opset
        return made

    # --- layers ----------------------------------------------------------------------------------------------------

    def conv(self, x, channels, kernel, stride=1, pad=None, group=1, bias=False, gain=2.0, scale=1.0, name=None):
        """A convolution; with `bias` the result is centred and its variance is `gain` (a folded batch norm).

        `scale` multiplies the weights of He et al. ("Delving Deep into Rectifiers", 2015) where nothing normalizes them.
        """
        in_channels = x.shape[1]
        pad = kernel // 2 if pad is None else pad
        name = name or self.fresh("conv")
        w = self.rng.standard_normal((channels, in_channels // group, kernel, kernel), dtype=np.float32)
        w *= np.float32(scale * math.sqrt(2.0 / (in_channels // group * kernel * kernel)))
        data = exact_conv(x.data, w, stride, pad, group)
        inputs = [x, self.weight(f"{name}.weight", w)]
        if bias:
            mean, var = moments(data)
            scale = rounded(np.sqrt(gain / var) * self.rng.uniform(0.9, 1.1, channels))
            b = rounded(0.25 * math.sqrt(gain) * self.rng.standard_normal(channels) - mean * scale)
            w *= scale[:, None, None, None]  # the initializer is made anew: it holds a copy
            self.initializers[-1] = numpy_helper.from_array(w, f"{name}.weight")
            inputs.append(self.weight(f"{name}.bias", b))
            data = data * per_channel(scale, 4) + per_channel(b, 4)
        out = self.node("Conv", inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
                        dilations=[1, 1], group=group)
        return Value(out, [x.shape[0], *data.shape[1:]], data)

    def batch_norm(self, x, gain=1.0, epsilon=1e-5, name=None, **attributes):
        """Batch normalization whose statistics are a little off, as trained ones are."""
        channels = x.shape[1]
        name = name or self.fresh("bn")
        gamma = (gain * self.rng.uniform(0.8, 1.2, channels)).astype(np.float32)
        beta = (gain * 0.25 * self.rng.standard_normal(channels)).astype(np.float32)
        data_mean, data_var = moments(x.data)
        mean = rounded(data_mean + 0.05 * np.sqrt(data_var) * self.rng.standard_normal(channels))
        var = rounded(data_var * self.rng.uniform(0.9, 1.1, channels))
        inputs = [x] + [self.weight(f"{name}.{part}", array) for part, array in
                        (("weight", gamma), ("bias", beta), ("running_mean", mean), ("running_var", var))]
        out = self.node("BatchNormalization", inputs, epsilon=epsilon, momentum=0.9, **attributes)
        scale = gamma / np.sqrt(var.astype(np.float64) + epsilon)
        rank = x.data.ndim
        return Value(out, x.shape, (x.data - per_channel(mean, rank)) * per_channel(scale, rank) + per_channel(beta, rank))

    def relu(self, x):
        return Value(self.node("Relu", [x]), x.shape, np.maximum(x.data, 0))

    def relu6(self, x):
        """Clip to [0, 6]: attributes before opset 11, inputs since."""
        if self.opset < 11:
            out = self.node("Clip", [x], min=0.0, max=6.0)
        else:
            bounds = [self.constant(np.float32(0)), self.constant(np.float32(6))]
            out = self.node("Clip", [x, *bounds])
        return Value(out, x.shape, np.clip(x.data, 0, 6))

    def add(self, a, b):
        return Value(self.node("Add", [a, b]), a.shape, a.data + b.data)

    def max_pool(self, x, kernel, stride, pads, **attributes):
        out = self.node("MaxPool", [x], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, **attributes)
        padded = np.pad(x.data, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])), constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))
        data = windows[:, :, ::stride, ::stride].max(axis=(4, 5))
        return Value(out, [x.shape[0], *data.shape[1:]], data)

    def pooled(self, x):
        """Calibration data averaged over the pixels, from exact sums."""
        q, scale = quantized(x.data, 12)
        return (q.sum(axis=(2, 3), dtype=np.float64) * (scale / (q.shape[2] * q.shape[3]))).astype(np.float32)

    def global_average_pool(self, x):
        return Value(self.node("GlobalAveragePool", [x]), [*x.shape[:2], 1, 1], self.pooled(x)[:, :, None, None])

    def concat(self, parts):
        data = np.concatenate([p.data for p in parts], axis=1)
        return Value(self.node("Concat", parts, axis=1), [parts[0].shape[0], *data.shape[1:]], data)

    def dense(self, x, features, gain=1.0, name="fc"):
        """Gemm with transposed weights, as exporters write a linear layer; the results' variance is `gain`.

        Each output's weights sum to 0, so that what all features have in common (they come from a ReLU: most of it is
        their mean) does not drown what tells two inputs apart. A large bias in its place would subtract two numbers
        that are three to five times the result, and their rounding errors with them, which no trained classifier does.
        """
        w = self.rng.standard_normal((features, x.shape[1]), dtype=np.float32)
        w = w - rounded(moments(w.T)[0])[:, None]
        scale = rounded(math.sqrt(gain / float(moments(exact_product(x.data, w.T).reshape(1, 1, -1))[1][0])))
        w *= scale
        bias = rounded(0.1 * math.sqrt(gain) * self.rng.standard_normal(features))
        out = self.node("Gemm", [x, self.weight(f"{name}.weight", w), self.weight(f"{name}.bias", bias)], alpha=1.0,
                        beta=1.0, transB=1)
        return Value(out, [x.shape[0], features], exact_product(x.data, w.T) + bias)

    def flatten_traced(self, x):
        """`x.reshape(x.size(0), -1)` as tracing exporters wrote it: the batch is read from the shape."""
        batch = self.node("Gather", [self.node("Shape", [x]), self.constant(np.int64(0))], axis=0)
        parts = [self.unsqueeze(batch, [0]), self.unsqueeze(self.constant(np.int64(-1)), [0])]
        shape = self.node("Concat", parts, axis=0)
        return self.flattened(self.node("Reshape", [x, shape]), x)

    def flattened(self, name, x):
        """The Value called `name` that is x with all but the batch in one dimension."""
        data = x.data.reshape(x.data.shape[0], -1)
        return Value(name, [x.shape[0], data.shape[1]], data)

    def unsqueeze(self, name, axes):
        """Unsqueeze: axes are an attribute before opset 13, an input since."""
        if self.opset < 13:
            return self.node("Unsqueeze", [name], axes=axes)
        return self.node("Unsqueeze", [name, self.int64s(axes)])
