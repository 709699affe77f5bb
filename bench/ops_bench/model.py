"""Models of one node, or of a few, with the values of their inputs."""

import numpy as np
from onnx import TensorProto, helper, mapping, numpy_helper

IR_VERSION = 10


class Const:
    """An operand that is a constant of the model."""

    def __init__(self, array):
        self.array = np.asarray(array)


class Model:
    """Nodes are added one by one; what no node reads is an output."""

    def __init__(self, opset=21):
        self.opset, self.nodes, self.feed, self.constants = opset, [], {}, []
        self.random = np.random.default_rng(1)

    def operand(self, value):
        """The name of an input (an array), of a constant, of a value (a string), or of an operand left out (None)."""
        if value is None or isinstance(value, str):
            return value or ""
        if isinstance(value, Const):
            name = f"c{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(value.array, name))
        else:
            name = f"x{len(self.feed)}"
            self.feed[name] = np.asarray(value)
        return name

    def node(self, kind, *operands, outputs=1, domain="", **attributes):
        """The name of the node's output, or the names of several."""
        names = [f"y{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, [self.operand(o) for o in operands], names, domain=domain,
                                           name=f"{kind}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def proto(self):
        read = {name for node in self.nodes for name in node.input}
        results = [name for node in self.nodes for name in node.output if name not in read]
        inputs = [helper.make_tensor_value_info(name, element_type(a.dtype), list(a.shape)) for name, a in self.feed.items()]
        graph = helper.make_graph(self.nodes, "op", inputs, [helper.make_empty_tensor_value_info(r) for r in results], self.constants)
        domains = sorted({node.domain for node in self.nodes if node.domain})
        imports = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 3 if d == "ai.onnx.ml" else 1) for d in domains]
        made = helper.make_model(graph, opset_imports=imports)
        made.ir_version = IR_VERSION
        return made


def element_type(dtype):
    if np.dtype(dtype).kind == "U":
        return TensorProto.STRING
    return TensorProto.BOOL if dtype == np.bool_ else mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(dtype)]


class Cases:
    """name -> function that makes the model."""

    def __init__(self):
        self.table = {}

    def add(self, name, make):
        assert name not in self.table, name
        self.table[name] = make

    def op(self, name, kind, *operands, opset=21, outputs=1, domain="", **attributes):
        """A model of one node. Operands are as Model.operand has them, or functions of the generator that give them."""

        def make():
            model = Model(opset)
            given = [o(model.random) if callable(o) else o for o in operands]
            model.node(kind, *given, outputs=outputs, domain=domain, **attributes)
            return model

        self.add(name, make)


def normal(*shape, dtype=np.float32):
    return lambda random: random.standard_normal(shape).astype(dtype)


def uniform(low, high, *shape, dtype=np.float32):
    return lambda random: random.uniform(low, high, shape).astype(dtype)


def whole(low, high, *shape, dtype=np.int64):
    """Integers from low to below high."""
    return lambda random: random.integers(low, high, shape).astype(dtype)


def bools(*shape, share=0.5):
    return lambda random: random.random(shape) < share


def const(value):
    """A constant of an array, or of a function of the generator."""
    return (lambda random: Const(value(random))) if callable(value) else Const(value)


def longs(*values):
    return Const(np.array(values, np.int64))
