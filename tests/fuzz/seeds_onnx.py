"""Seeds for the ONNX reader: every field of the messages once, every element type, and models broken in one place."""

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model_of(nodes, inputs, outputs, constants=(), opset=18, **more):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*one) for one in inputs],
                              [helper.make_tensor_value_info(*one) for one in outputs], list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **more)


def external_model(location):
    """y = x + w with w's bytes in another file."""
    tensor = helper.make_tensor("w", FLOAT, [4], np.zeros(4, np.float32).tobytes(), raw=True)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", "16")):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return adding([tensor]).SerializeToString(deterministic=True)


def external_attributes(location):
    """As a node's attribute, and in a subgraph."""
    tensor = onnx.load_from_string(external_model(location)).graph.initializer[0]
    constant = helper.make_node("Constant", [], ["w"], value=tensor)
    branch = helper.make_graph([constant], "branch", [], [helper.make_tensor_value_info("w", FLOAT, [4])])
    nodes = [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)]
    return model_of(nodes, [("c", TensorProto.BOOL, ())], [("y", FLOAT, (4,))]).SerializeToString(deterministic=True)


def adding(constants, shape=(4,)):
    names = ["x"] + [tensor.name for tensor in constants]
    nodes = [helper.make_node("Sum", names, ["y"])]
    return model_of(nodes, [("x", FLOAT, shape)], [("y", FLOAT, shape)], constants)


def typed_constants():
    """A constant of each element type, its values where the type keeps them, not as raw bytes."""
    kinds = [FLOAT, TensorProto.DOUBLE, TensorProto.INT32, INT64, TensorProto.UINT64, TensorProto.UINT32, TensorProto.INT8,
             TensorProto.BOOL]
    nodes, constants, outputs = [], [], []
    for kind in kinds:
        constants.append(helper.make_tensor(f"c{kind}", kind, [3], [1, 0, 1]))
        nodes.append(helper.make_node("Identity", [f"c{kind}"], [f"y{kind}"]))
        outputs.append((f"y{kind}", kind, [3]))
    half = TensorProto(name="half", data_type=TensorProto.FLOAT16, dims=[2], int32_data=[0x3C00, 0x4000])
    constants.append(half)
    nodes.append(helper.make_node("Identity", ["half"], ["yhalf"]))
    outputs.append(("yhalf", TensorProto.FLOAT16, [2]))
    return model_of(nodes, [], outputs, constants)


def narrow_constants(raw):
    """Types of 8 and 4 bits, which this onnx package may not know by name; cast to float."""
    nodes, constants, outputs = [], [], []
    for kind in range(17, 24):
        tensor = TensorProto(name=f"c{kind}", data_type=kind, dims=[3])
        count = 2 if kind >= 21 else 3
        if raw:
            tensor.raw_data = bytes([0x12, 0x03, 0x01][:count])
        else:
            tensor.int32_data.extend([0x12, 0x03, 0x01][:count])
        constants.append(tensor)
        nodes.append(helper.make_node("Cast", [f"c{kind}"], [f"y{kind}"], to=FLOAT))
        outputs.append((f"y{kind}", FLOAT, [3]))
    return model_of(nodes, [], outputs, constants, opset=22)


def attributes():
    """Every kind of attribute, a subgraph each, on nodes with names and a domain."""
    branch = helper.make_graph([helper.make_node("Constant", [], ["b"], value_float=1.5)], "b", [],
                               [helper.make_tensor_value_info("b", FLOAT, [])])
    nodes = [helper.make_node("Constant", [], ["s"], name="s", value_floats=[1.0, 2.0]),
             helper.make_node("Constant", [], ["i"], name="i", domain="ai.onnx", value_ints=[1]),
             helper.make_node("Constant", [], ["t"], value=numpy_helper.from_array(np.array(True))),
             helper.make_node("If", ["t"], ["z"], then_branch=branch, else_branch=branch),
             helper.make_node("Constant", [], ["w"], value_strings=["a", "b"]),
             helper.make_node("Constant", [], ["v"], value_string="a"),
             helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.5)]
    model = model_of(nodes, [("x", FLOAT, ["N", 2])], [("y", FLOAT, None), ("z", FLOAT, [])])
    odd = model.graph.node[0].attribute.add(name="graphs", type=10)
    odd.graphs.append(branch)
    return model


def functions():
    """A model function with an attribute that its caller gives and one with a default, in two opsets."""
    body = [helper.make_node("LeakyRelu", ["x"], ["t"]), helper.make_node("Relu", ["t"], ["y"])]
    body[0].attribute.add(name="alpha", type=1, ref_attr_name="slope")
    function = helper.make_function("mine", "Leaky", ["x"], ["y"], body, [helper.make_opsetid("", 17)], ["slope"])
    default = AttributeProto(name="other", type=2, i=1).SerializeToString()
    function.MergeFromString(bytes([11 << 3 | 2, len(default)]) + default)  # attribute_proto, newer than some packages
    model = model_of([helper.make_node("Leaky", ["x"], ["y"], domain="mine", slope=0.25)], [("x", FLOAT, [2])],
                     [("y", FLOAT, [2])])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("mine", 1))
    model.metadata_props.add(key="k", value="v")
    model.doc_string, model.producer_name, model.domain, model.model_version = "d", "p", "d", 3
    return model


def kinds_of_values():
    """Sequences and optional values, nested types, and dims in all their forms."""
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, None)
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
             helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    model = model_of(nodes, [("x", FLOAT, [-1, 3])], [("y", FLOAT, ["M", 3])])
    model.graph.value_info.append(sequence)
    optional = model.graph.input.add(name="o")
    optional.type.optional_type.elem_type.sequence_type.elem_type.tensor_type.elem_type = FLOAT
    other = model.graph.output.add(name="m")
    other.type.map_type.key_type = INT64
    return model


def long_raw_data():
    """Bools, which are always copied, with far more bytes than elements: past any padding."""
    tensor = TensorProto(name="w", data_type=TensorProto.BOOL, dims=[4], raw_data=b"\1" * 2000)
    return model_of([helper.make_node("Identity", ["w"], ["y"])], [], [("y", TensorProto.BOOL, [4])], [tensor])


def sparse_strings():
    """Places in the flat tensor and by axis; strings and numbers; in the graph and in a node."""
    values = helper.make_tensor("words", TensorProto.STRING, [2], [b"pear", "Größe".encode()])
    flat = helper.make_sparse_tensor(values, helper.make_tensor("places", TensorProto.INT64, [2], [1, 5]), [2, 3])
    numbers = helper.make_tensor("numbers", FLOAT, [2], [1, 2])
    paired = helper.make_sparse_tensor(numbers, helper.make_tensor("pairs", TensorProto.INT64, [2, 2], [0, 1, 1, 2]), [2, 3])
    nodes = [helper.make_node("Constant", [], ["k"], sparse_value=paired), helper.make_node("Add", ["x", "k"], ["y"]),
             helper.make_node("Identity", ["words"], ["z"])]
    model = model_of(nodes, [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3]), ("z", TensorProto.STRING, [2, 3])])
    model.graph.sparse_initializer.append(flat)
    return model


def steps():
    """Operators that are loops: a scan, and attention with a state."""
    nodes = [helper.make_node("LinearAttention", ["x", "x", "x", "", "x", "rate"], ["y", "state"], q_num_heads=1, kv_num_heads=1),
             helper.make_node("CausalConvWithState", ["x", "w"], ["c"], activation="silu")]
    model = model_of(nodes, [("x", FLOAT, [1, 2, 3]), ("rate", FLOAT, [1, 2, 1])],
                     [("y", FLOAT, [1, 2, 3]), ("state", FLOAT, [1, 1, 3, 3]), ("c", FLOAT, [1, 2, 3])],
                     [numpy_helper.from_array(np.ones((2, 1, 2), np.float32), "w")])
    model.opset_import[0].version = 27
    return model


def beside_model(**entries):
    """y = x + w with w's bytes in the file that the fuzz program has beside the model."""
    model = adding([helper.make_tensor("w", FLOAT, [4], np.zeros(4, np.float32).tobytes(), raw=True)])
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, str(value)
    return model


def external_seeds():
    yield "beside", beside_model(location="beside.bin", offset=16, length=16)
    yield "beside_no_place", beside_model(offset=16)
    yield "beside_elsewhere", beside_model(location="other.bin")
    yield "beside_outside", beside_model(location="beside.bin", offset=60, length=16)
    yield "beside_no_number", beside_model(location="beside.bin", offset="-4")
    yield "beside_rest", beside_model(location="beside.bin", offset=48)


def refused_values():
    """Inputs and constants of kinds that are not read, all in one model; optional values; a node of each reason."""
    model = adding([numpy_helper.from_array(np.ones(4, np.float32), "w"),
                    helper.make_tensor("complex", TensorProto.COMPLEX64, [1], [1])])
    graph = model.graph
    graph.input.add(name="map").type.map_type.key_type = INT64
    graph.input.add(name="maybe").type.optional_type.elem_type.tensor_type.elem_type = FLOAT
    graph.input.append(helper.make_tensor_value_info("free", FLOAT, [None, "N", 3]))
    graph.node.extend([
        helper.make_node("CastMap", ["map"], ["m"], domain="ai.onnx.ml"),
        helper.make_node("BitCast", ["x"], ["b"], to=INT64),
        helper.make_node("Conv", ["free", "free"], ["c"], auto_pad="NOWHERE"),
        helper.make_node("Constant", [], ["k"], value=helper.make_tensor("k", TensorProto.COMPLEX64, [1], [1])),
        helper.make_node("Split", ["x"], ["s", ""], domain="ai.onnx")])
    return model


def chain(length):
    """Functions that call one another."""
    functions = []
    for i in range(length):
        body = [helper.make_node(f"F{i + 1}", ["a"], ["b"], domain="own") if i + 1 < length else helper.make_node("Relu", ["a"], ["b"])]
        functions.append(helper.make_function("own", f"F{i}", ["a"], ["b"], body, [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]))
    nodes = [helper.make_node("F0", ["x"], ["t"], domain="own"), helper.make_node("F1", ["t"], ["y"], domain="own")]
    model = model_of(nodes, [("x", FLOAT, [2])], [("y", FLOAT, [2])])
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model


def calls_itself():
    body = [helper.make_node("Again", ["a"], ["b"], domain="own")]
    function = helper.make_function("own", "Again", ["a"], ["b"], body, [helper.make_opsetid("own", 1)])
    model = model_of([helper.make_node("Again", ["x"], ["y"], domain="own")], [("x", FLOAT, [2])], [("y", FLOAT, [2])])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("own", 1))
    return model


def broken(name):
    """A model with one thing wrong."""
    weights = numpy_helper.from_array(np.ones(4, np.float32), "w")
    model = adding([weights])
    graph = model.graph
    if name == "cycle":
        graph.node.insert(0, helper.make_node("Relu", ["y"], ["z"]))
    elif name == "made_twice":
        graph.node.append(helper.make_node("Relu", ["x"], ["y"]))
    elif name == "short_raw":
        graph.initializer[0].raw_data = b"123"
    elif name == "short_typed":
        graph.initializer[0].ClearField("raw_data")
        graph.initializer[0].float_data.extend([1, 2, 3])
    elif name == "negative_extent":
        graph.initializer[0].dims[0] = -4
    elif name == "huge_extents":
        graph.initializer[0].dims.extend([1 << 40, 1 << 40])
    elif name == "no_such_type":
        graph.initializer[0].data_type = 99
    elif name == "strings":
        graph.initializer[0].data_type = TensorProto.STRING
        graph.initializer[0].string_data.extend([b"a"] * 4)
    elif name == "sparse":
        sparse = graph.sparse_initializer.add(dims=[2, 3])
        sparse.values.CopyFrom(helper.make_tensor("few", TensorProto.FLOAT, [2], [1, 2]))
        sparse.indices.CopyFrom(helper.make_tensor("places", TensorProto.INT64, [2, 2], [0, 1, 1, 2]))
    elif name == "no_output":
        del graph.output[:]
    elif name == "unknown_output":
        graph.output[0].name = "nothing"
    elif name == "no_operator":
        graph.node[0].op_type = ""
    elif name == "no_node_outputs":
        del graph.node[0].output[:]
    elif name == "no_such_operator":
        graph.node[0].op_type = "NoSuch"
    elif name == "no_such_domain":
        graph.node[0].domain = "no.such"
    elif name == "old_opset":
        model.opset_import[0].version = 1
    elif name == "no_opset":
        del model.opset_import[:]
    elif name == "old_ir":
        model.ir_version = 1
    elif name == "input_twice":
        graph.input.append(graph.input[0])
    elif name == "attribute_twice":
        graph.node[0].attribute.add(name="a", type=2, i=1)
        graph.node[0].attribute.add(name="a", type=2, i=1)
    elif name == "newest_opset":
        model.opset_import[0].version = 99
    elif name == "nameless_input":
        graph.input.add(name="").CopyFrom(helper.make_tensor_value_info("", FLOAT, [1]))
    elif name == "many_axes":
        graph.input.append(helper.make_tensor_value_info("wide", FLOAT, [1] * 33))
    elif name == "no_such_input_type":
        graph.input.append(helper.make_tensor_value_info("odd", 77, [1]))
    elif name == "huge_input":
        graph.input.append(helper.make_tensor_value_info("huge", FLOAT, [1 << 40, 1 << 40]))
    elif name == "nameless_constant":
        graph.initializer[0].name = ""
    elif name == "constant_twice":
        graph.initializer.append(weights)
    elif name == "reads_nothing":
        graph.node[0].input.append("ghost")
    elif name == "no_graph":
        model.ClearField("graph")
    elif name == "complex":
        graph.initializer[0].data_type = TensorProto.COMPLEX128
    elif name in ("sparse_outside", "sparse_other_places", "sparse_huge"):
        sparse = graph.sparse_initializer.add(dims=[1 << 20, 1 << 20] if name == "sparse_huge" else [2, 3])
        sparse.values.CopyFrom(helper.make_tensor("few", FLOAT, [2], [1, 2]))
        places = [1, 2, 3] if name == "sparse_other_places" else [1, 6]
        sparse.indices.CopyFrom(helper.make_tensor("places", INT64, [len(places)], places))
    elif name == "segment":
        graph.initializer[0].segment.begin = 1
    return model


BROKEN = ["cycle", "made_twice", "short_raw", "short_typed", "negative_extent", "huge_extents", "no_such_type", "strings",
          "sparse", "no_output", "unknown_output", "no_operator", "no_node_outputs", "no_such_operator", "no_such_domain",
          "old_opset", "no_opset", "old_ir", "input_twice", "attribute_twice", "segment",
          "newest_opset", "nameless_input", "many_axes", "no_such_input_type", "huge_input", "nameless_constant", "constant_twice",
          "reads_nothing", "no_graph", "complex", "sparse_outside", "sparse_other_places", "sparse_huge"]


def seeds():
    models = {"typed": typed_constants(), "narrow_raw": narrow_constants(True), "narrow": narrow_constants(False),
              "attributes": attributes(), "functions": functions(), "kinds": kinds_of_values(),
              "long_raw": long_raw_data(), "sparse_strings": sparse_strings(), "steps": steps(), "calls_itself": calls_itself(),
              "chain": chain(3), "long_chain": chain(260), "refused_values": refused_values(), **dict(external_seeds())}
    models |= {name: broken(name) for name in BROKEN}
    for name, model in models.items():
        yield f"{name}.onnx", model.SerializeToString(deterministic=True)
    # Fields of every wire type that no message knows, and one of a type that does not exist.
    unknown = b"\xf8\x07\x01" + b"\xf9\x07" + b"8 bytes." + b"\xfa\x07\x02ab" + b"\xfd\x07" + b"four"
    yield "unknown_fields.onnx", models["typed"].SerializeToString(deterministic=True) + unknown
    yield "unknown_wire_type.onnx", unknown + b"\xfb\x07"
