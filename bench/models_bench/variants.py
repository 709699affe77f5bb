"""Models made from a model: with another batch, as a chain of copies, or doing nothing between the same shapes."""

import copy

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def graph_inputs(model):
    """The inputs that a caller gives: initializers may be listed as inputs too."""
    weights = {t.name for t in model.graph.initializer}
    return [v for v in model.graph.input if v.name not in weights]


def weight_bytes(model):
    """Bytes of all initializers."""
    return sum(numpy_helper.to_array(t).nbytes for t in model.graph.initializer)


def with_batch(model, batch):
    """`model` with `batch` as the first extent of every input and output.

    Exporters write the batch into the target shapes of some Reshape nodes; a leading 1 there becomes `batch`.
    """
    made = copy.deepcopy(model)
    del made.graph.value_info[:]
    for value in [*graph_inputs(made), *made.graph.output]:
        value.type.tensor_type.shape.dim[0].Clear()
        value.type.tensor_type.shape.dim[0].dim_value = batch
    targets = {n.input[1] for n in made.graph.node if n.op_type == "Reshape" and len(n.input) > 1}
    tensors = [t for t in made.graph.initializer if t.name in targets]
    tensors += [n.attribute[0].t for n in made.graph.node if n.op_type == "Constant" and n.output[0] in targets]
    for tensor in tensors:
        shape = numpy_helper.to_array(tensor)
        if shape.size > 2 and shape[0] == 1:
            shape = shape.copy()
            shape[0] = batch
            tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))
    return made


def identity(inputs, outputs):
    """A model with these inputs and outputs (name -> array) and next to no work: one element of the first input, spread."""
    first = next(iter(inputs))
    nodes = [helper.make_node("Reshape", [first, "flat"], ["line"]),
             helper.make_node("Slice", ["line", "zero", "one"], ["element"]),
             helper.make_node("Cast", ["element"], ["number"], to=TensorProto.FLOAT)]
    constants = [numpy_helper.from_array(np.array([v], np.int64), n) for n, v in
                 (("flat", -1), ("zero", 0), ("one", 1))]
    for name, array in outputs.items():
        constants.append(numpy_helper.from_array(np.array(array.shape, np.int64), f"{name}.shape"))
        nodes.append(helper.make_node("Expand", ["number", f"{name}.shape"], [name]))

    def infos(arrays):
        return [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype)
                                              if hasattr(helper, "np_dtype_to_tensor_dtype")
                                              else onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[a.dtype], list(a.shape))
                for n, a in arrays.items()]

    graph = helper.make_graph(nodes, "identity", infos(inputs), infos(outputs), constants)
    model = onnx.ModelProto(ir_version=7, graph=graph)
    model.opset_import.add(domain="", version=13)
    return model


def chain(model, copies):
    """`copies` of a model of one input and one output behind each other, each with weights of its own.

    Between two copies the output is padded with zeros to the extent of the input (one node: Flatten drops the rest of
    the shape), so no copy can start before the one before it is done.
    """
    (source,), (result,) = graph_inputs(model), model.graph.output
    in_features = int(np.prod([d.dim_value for d in source.type.tensor_type.shape.dim[1:]]))
    out_features = int(np.prod([d.dim_value for d in result.type.tensor_type.shape.dim[1:]]))
    made = copy.deepcopy(model)
    del made.graph.node[:], made.graph.initializer[:], made.graph.value_info[:]
    pads = np.array([0, 0, 0, in_features - out_features], np.int64)
    made.graph.initializer.append(numpy_helper.from_array(pads, "chain.pads"))
    entry = source.name
    for index in range(copies):
        last = index + 1 == copies
        names = {source.name: entry, "": "", result.name: result.name if last else f"c{index}.{result.name}"}

        def renamed(name, names=names, index=index):
            return names.get(name, f"c{index}.{name}")

        for tensor in model.graph.initializer:
            array = numpy_helper.to_array(tensor)
            if array.dtype == np.float32 and array.ndim > 1:
                array = np.roll(array, index, axis=1)
            made.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array), renamed(tensor.name)))
        for node in model.graph.node:
            twin = copy.deepcopy(node)
            twin.name = f"c{index}.{node.name}"
            twin.input[:] = [renamed(n) for n in node.input]
            twin.output[:] = [renamed(n) for n in node.output]
            made.graph.node.append(twin)
        if not last:
            entry = f"c{index}.padded"
            made.graph.node.append(helper.make_node("Pad", [renamed(result.name), "chain.pads"], [entry]))
    return made
