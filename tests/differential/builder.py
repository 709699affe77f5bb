"""What the operator specifications draw from: random shapes, values and constants, and the model that they make."""

import zlib

import numpy as np
from onnx import TensorProto, helper, mapping, numpy_helper

FLOATS, WIDE = ["f4"] * 6 + ["f2", "f8"], ["f4", "f8"]
SIGNED, UNSIGNED = ["i1", "i2", "i4", "i8"], ["u1", "u2", "u4", "u8"]
INTS = SIGNED + UNSIGNED
NUMBERS = ["f4"] * 4 + ["f2", "f8"] + INTS
ALL = NUMBERS + ["b1"]
# Extents: of nothing, of one, below, at and behind the width of vectors, and some that are no multiple of anything.
EXTENTS = [1, 1, 2, 3, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33]
HARD = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-40, -1e-40, 1e-38, 3e38, -3e38, 0.5, -0.5, 1.5, 2.5, -2.5, 1.0, -1.0, 88.0, -104.0])


class Skip(Exception):
    """The drawn case is none of the operator's."""


class Builder:
    """One random model: nodes, the values of its inputs, and how its outputs are compared."""

    def __init__(self, rng, opset):
        self.rng, self.opset = rng, opset
        self.nodes, self.feed, self.constants, self.outputs = [], {}, {}, []
        self.free, self.buckets = {}, ""  # by input: axis -> name of a dim that stays free; and the dims' buckets
        self.rtol, self.atol, self.units = 1e-4, 1e-6, 0
        self.relative_to_largest = True
        self.sums_nothing = False  # all outputs are sums of no products, which are 0; the peer leaves them unset
        self.allow_hard = True
        self.is_constant = self.chance(0.03)  # nothing is an input

    # Choices.
    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def chance(self, probability):
        return self.rng.random() < probability

    def int(self, low, high):
        """Both inclusive."""
        return int(self.rng.integers(low, high + 1))

    def dtype(self, kinds):
        return np.dtype(self.pick(kinds) if isinstance(kinds, list) else kinds)

    def extent(self, largest=33):
        return self.pick([e for e in EXTENTS if e <= largest])

    def shape(self, low=0, high=4, empty=0.03, largest=33):
        rank = self.int(low, high)
        shape = [self.extent(largest if rank < 4 else min(9, largest)) for _ in range(rank)]
        if rank and self.chance(empty):
            shape[self.int(0, rank - 1)] = 0
        return shape

    def broadcast(self, shape):
        """A shape that spreads to `shape`."""
        result = [1 if self.chance(0.3) else e for e in shape]
        return result[self.int(0, len(result)):] if self.chance(0.5) else result

    def axis(self, rank, low=0):
        """From low to rank-1, as it may be written: counted from the end, too."""
        if rank <= low:
            raise Skip
        axis = self.int(low, rank - 1)
        return axis - rank if self.chance(0.4) else axis

    def axes(self, rank, at_least=0):
        count = self.int(min(at_least, rank), rank)
        chosen = self.rng.permutation(rank)[:count]
        return [int(a) - rank if self.chance(0.3) else int(a) for a in chosen]

    def some(self, **options):
        """Each attribute is given or left to its default; None is never given."""
        return {name: value for name, value in options.items() if value is not None and self.chance(0.6)}

    # Values.
    def values(self, shape, dtype="f4", low=None, high=None, hard=0.0):
        dtype, shape = np.dtype(dtype), tuple(shape)
        if dtype.kind == "b":
            return self.rng.random(shape) < 0.5
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            if low is None and self.chance(hard):
                ends = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1], dtype)
                return ends[self.rng.integers(len(ends), size=shape)]
            low = max(info.min, -10) if low is None else low
            return self.rng.integers(low, (min(info.max, 20) if high is None else high) + 1, size=shape).astype(dtype)
        array = self.rng.standard_normal(shape) * self.pick([1, 1, 3]) if low is None else self.rng.uniform(low, high, shape)
        if self.chance(hard) and self.allow_hard:
            with np.errstate(over="ignore"):
                array = np.where(self.rng.random(shape) < 0.3, HARD[self.rng.integers(len(HARD), size=shape)], array)
        with np.errstate(over="ignore"):
            return array.astype(dtype)

    def given(self, array, constant=0.2):
        """The name of an operand that is an input of the model or one of its constants."""
        name = f"x{len(self.feed) + len(self.constants)}"
        (self.constants if self.is_constant or self.chance(constant) else self.feed)[name] = np.asarray(array)
        return name

    def x(self, shape, dtype="f4", constant=0.1, **options):
        """An operand of random values; now and then one that is there already."""
        if self.chance(0.05):
            same = [name for values in (self.feed, self.constants) for name, array in values.items()
                    if array.shape == tuple(shape) and array.dtype == dtype and array.dtype.kind == "f" and array.size and not options]
            if same:
                return self.pick(same)
        return self.given(self.values(shape, dtype, **options), constant)

    def array(self, name):
        """The values of an operand."""
        return self.feed[name] if name in self.feed else self.constants[name]

    def const(self, array, dtype=None):
        return self.given(np.asarray(array, dtype), 1.0)

    def ints(self, values, constant=0.9, dtype=np.int64):
        """An operand that decides about shapes: nearly always a constant."""
        return self.given(np.asarray(values, dtype), constant)

    # Nodes.
    def node(self, op, inputs, outputs=1, domain="", **attributes):
        """Returns the output's name, or the names of several; `outputs` may be a list with "" for unnamed ones."""
        count = len(self.nodes)
        if isinstance(outputs, int):
            outputs = [f"v{count}_{i}" for i in range(outputs)]
        inputs = list(inputs)
        while inputs and inputs[-1] == "":
            inputs.pop()
        attributes = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(op, inputs, outputs, name=f"{op}_{count}", domain=domain, **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def exact(self):
        self.rtol = self.atol = 0.0

    def elementwise(self):
        """Each element is as near as its own size demands."""
        self.relative_to_largest = False

    def model(self, dims=None):
        """The model with all unread values as outputs; `dims`: extent -> name of the dims that stay free."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output if name]
        names = self.outputs or [name for name in made if name not in read] or made[-1:]
        infos = [helper.make_tensor_value_info(name, element_type(array.dtype),
                                               [self.free.get(name, {}).get(axis, (dims or {}).get(e, e)) for axis, e in enumerate(array.shape)])
                 for name, array in self.feed.items()]
        written, initializers = [], []
        for name, array in self.constants.items():
            self.write_constant(name, array, written, initializers, infos)
        graph = helper.make_graph(written + self.nodes, "sweep", infos, [helper.make_empty_tensor_value_info(name) for name in names], initializers)
        domains = {node.domain for node in self.nodes if node.domain}
        imports = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 3 if d == "ai.onnx.ml" else 1) for d in sorted(domains)]
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = 10 if self.opset > 20 else 9
        return model


    def write_constant(self, name, array, nodes, initializers, inputs):
        """In one of the ways that models have: raw bytes, typed fields, a node, or listed among the inputs."""
        how = zlib.crc32(f"{name} {array.shape} {self.opset} {len(self.nodes)}".encode()) % 10
        tensor = numpy_helper.from_array(array.astype(object) if array.dtype.kind == "U" else array, name)
        if how == 0 and array.dtype.kind in "fiu" and array.dtype.itemsize >= 4 or how == 0 and array.dtype.kind == "i":
            tensor = helper.make_tensor(name, element_type(array.dtype), array.shape, array.ravel().tolist())
        if how in (1, 2):
            nodes.append(helper.make_node("Constant", [], [name], value=tensor))
            return
        if how == 3 and not self.is_constant:
            inputs.append(helper.make_tensor_value_info(name, element_type(array.dtype), array.shape))
        initializers.append(tensor)


def element_type(dtype):
    if np.dtype(dtype).kind == "U":
        return TensorProto.STRING
    return TensorProto.BOOL if dtype == np.bool_ else mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(dtype)]
