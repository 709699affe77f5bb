#!/usr/bin/env python3
"""Quantizes a float32 model to 8 bits in the QDQ form: weights of int8 with a scale a channel, data of uint8 or int8.

    quantize.py expose MODEL.onnx OUT.onnx              every value that is to be quantized becomes an output
    quantize.py write MODEL.onnx VALUES.npz OUT.onnx [--signed] [--products-only]

VALUES.npz holds what the exposed model gave for one input, the input itself among it; scales come from its ranges.
Batch normalization is folded into the convolutions. With --products-only the results of products stay in float32 (as
transformers are quantized), else each result that a quantized node reads goes through QuantizeLinear.
"""

import argparse

import numpy as np
import onnx
from onnx import helper, numpy_helper

QUANTIZED = ("Conv", "Gemm", "MatMul", "Add", "MaxPool", "GlobalAveragePool")
PRODUCTS = ("Conv", "Gemm", "MatMul")


class Model:
    """A graph with its initializers as arrays, by name."""

    def __init__(self, path):
        self.proto = onnx.load(path)
        self.nodes = list(self.proto.graph.node)
        self.arrays = {i.name: numpy_helper.to_array(i) for i in self.proto.graph.initializer}
        for node in self.nodes:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.arrays[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        self.nodes = [n for n in self.nodes if n.output[0] not in self.arrays]
        self.fold_batch_norm()
        self.raise_opset()

    def raise_opset(self):
        """Scales a channel exist from opset 13 on, where Unsqueeze takes its axes as an input."""
        for node in self.nodes:
            if node.op_type == "Unsqueeze" and node.attribute:
                axes = np.array(node.attribute[0].ints, np.int64)
                self.arrays[node.output[0] + ".axes"] = axes
                node.input.append(node.output[0] + ".axes")
                del node.attribute[:]

    def readers(self, value):
        return [n for n in self.nodes if value in n.input]

    def fold_batch_norm(self):
        """w * scale / sqrt(variance + epsilon), where the normalization alone reads a convolution."""
        for conv in [n for n in self.nodes if n.op_type == "Conv"]:
            readers = self.readers(conv.output[0])
            if len(readers) != 1 or readers[0].op_type != "BatchNormalization":
                continue
            norm = readers[0]
            scale, shift, mean, variance = (self.arrays[name].astype(np.float64) for name in norm.input[1:5])
            epsilon = next((a.f for a in norm.attribute if a.name == "epsilon"), 1e-5)
            factor = scale / np.sqrt(variance + epsilon)
            w = self.arrays[conv.input[1]]
            bias = self.arrays[conv.input[2]] if len(conv.input) > 2 else 0
            name = conv.output[0]
            self.arrays[name + ".w"] = (w * factor[:, None, None, None]).astype(np.float32)
            self.arrays[name + ".b"] = ((bias - mean) * factor + shift).astype(np.float32)
            del conv.input[1:]
            conv.input.extend([name + ".w", name + ".b"])
            conv.output[0] = norm.output[0]
            self.nodes.remove(norm)

    def constant_product(self, node):
        return node.op_type in PRODUCTS and node.input[1] in self.arrays and node.input[0] not in self.arrays

    def quantized_values(self, products_only):
        """Data that products (and pools and sums) read."""
        values = []
        for node in self.nodes:
            wanted = self.constant_product(node) if products_only or node.op_type in PRODUCTS \
                else node.op_type in QUANTIZED
            if wanted:
                values += [v for v in node.input if v and v not in self.arrays and v not in values]
        return values

    def save(self, path, outputs=None):
        graph = self.proto.graph
        used = {v for n in self.nodes for v in n.input}
        result = helper.make_graph(
            self.nodes, graph.name, [i for i in graph.input if i.name not in self.arrays],
            outputs or list(graph.output),
            [numpy_helper.from_array(np.array(a, order="C"), name) for name, a in self.arrays.items() if name in used])
        opset = max(13, next(o.version for o in self.proto.opset_import if o.domain in ("", "ai.onnx")))
        model = helper.make_model(result, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 8
        onnx.save(model, path)


class Quantizer:
    def __init__(self, model, values, signed, products_only):
        self.model, self.values, self.signed, self.products_only = model, values, signed, products_only
        self.quantized = {}
        self.nodes = []

    def constant(self, name, array):
        self.model.arrays[name] = array
        return name

    def scale_of(self, value):
        low, high = min(float(self.values[value].min()), 0.0), max(float(self.values[value].max()), 0.0)
        scale = np.float32(max(high - low, 1e-6) / 255)
        zero = int(np.clip(np.rint(-low / scale), 0, 255))
        return scale, np.array(zero - 128, np.int8) if self.signed else np.array(zero, np.uint8)

    def data(self, value):
        """The value after QuantizeLinear and DequantizeLinear."""
        if value not in self.quantized:
            scale, zero = self.scale_of(value)
            names = [self.constant(value + ".scale", scale), self.constant(value + ".zero", zero)]
            self.nodes.append(helper.make_node("QuantizeLinear", [value] + names, [value + ".q"]))
            self.nodes.append(helper.make_node("DequantizeLinear", [value + ".q"] + names, [value + ".dq"]))
            self.quantized[value] = value + ".dq", scale
        return self.quantized[value]

    def weights(self, node, axis):
        w = self.model.arrays[node.input[1]]
        others = tuple(d for d in range(w.ndim) if d != axis)
        scale = (np.maximum(np.abs(w).max(axis=others), 1e-8) / 127).astype(np.float32)
        shape = [-1 if d == axis else 1 for d in range(w.ndim)]
        name = node.output[0]
        q = np.clip(np.rint(w / scale.reshape(shape)), -127, 127).astype(np.int8)
        inputs = [self.constant(name + ".wq", q), self.constant(name + ".ws", scale),
                  self.constant(name + ".wz", np.zeros(len(scale), np.int8))]
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [name + ".wdq"], axis=axis))
        return name + ".wdq", scale

    def bias(self, node, scale):
        q = np.rint(self.model.arrays[node.input[2]] / scale.astype(np.float64)).astype(np.int32)
        name = node.output[0]
        inputs = [self.constant(name + ".bq", q), self.constant(name + ".bs", scale),
                  self.constant(name + ".bz", np.zeros(len(scale), np.int32))]
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [name + ".bdq"], axis=0))
        return name + ".bdq"

    def run(self):
        for node in self.model.nodes:
            if self.model.constant_product(node):
                transposed = any(a.name == "transB" and a.i == 1 for a in node.attribute)
                axis = 0 if node.op_type == "Conv" or transposed else 1
                data, scale = self.data(node.input[0])
                w, w_scale = self.weights(node, axis)
                inputs = [data, w]
                if len(node.input) > 2:
                    inputs.append(self.bias(node, (scale * w_scale).astype(np.float32)))
                del node.input[:]
                node.input.extend(inputs)
            elif not self.products_only and node.op_type in QUANTIZED:
                inputs = [v if v in self.model.arrays else self.data(v)[0] for v in node.input]
                del node.input[:]
                node.input.extend(inputs)
            self.nodes.append(node)
        self.model.nodes = self.nodes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("expose", "write"))
    parser.add_argument("files", nargs="+")
    parser.add_argument("--signed", action="store_true")
    parser.add_argument("--products-only", action="store_true")
    options = parser.parse_args()
    model = Model(options.files[0])
    if options.action == "expose":
        given = {i.name for i in model.proto.graph.input}
        values = [v for v in model.quantized_values(options.products_only) if v not in given]
        model.save(options.files[1], [helper.make_tensor_value_info(v, onnx.TensorProto.FLOAT, None) for v in values])
        return
    with np.load(options.files[1]) as values:
        Quantizer(model, values, options.signed, options.products_only).run()
    model.save(options.files[2])


if __name__ == "__main__":
    main()
