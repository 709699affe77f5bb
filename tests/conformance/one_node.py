"""Models of one node, compared with values that a test works out: what the tests of operators' forms share."""

import tempfile
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, mapping, numpy_helper

import cases
from program_case import ProgramCase

RANDOM = np.random.default_rng(5)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def element_type(array):
    return TensorProto.STRING if array.dtype.kind in "SU" else mapping.NP_TYPE_TO_TENSOR_TYPE[array.dtype]


class OneNode(ProgramCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def run_model(self, graph, opset, feed, expect, domains=(), buckets=""):
        """Calls expect(answer, outputs) with the program's answer and its outputs by position. `buckets`: those of the dims
        that the graph names, which stay free."""
        imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(name, version) for name, version in domains]
        answer = self.answer(helper.make_model(graph, opset_imports=imports), feed, buckets)
        outputs = Path(self.folder.name) / "out.npz"
        if not outputs.exists():
            return expect(answer, {})
        with np.load(outputs) as archive:
            return expect(answer, {name: archive[name] for name in archive.files})

    def answer(self, model, feed, buckets=""):
        """What the program says of the model; its outputs, if any, are in out.npz."""
        folder = Path(self.folder.name)
        path, outputs = folder / "model.onnx", folder / "out.npz"
        outputs.unlink(missing_ok=True)
        path.write_bytes(model.SerializeToString())
        cases.save(folder / "in.npz", feed)
        return self.program.ask(f"{path} {folder}/in.npz {outputs}" + (f" 3 {buckets}" if buckets else ""))

    def answer_to(self, op, opset, inputs, dtype=TensorProto.FLOAT, **attributes):
        """What the program says of a node with these operands, all of them a run's, and an output of the type."""
        names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
        feed = {name: array for name, array in zip(names, inputs) if name}
        graph = helper.make_graph(
            [helper.make_node(op, names, ["y"], **attributes)], "one",
            [helper.make_tensor_value_info(name, element_type(array), array.shape) for name, array in feed.items()],
            [helper.make_tensor_value_info("y", dtype, None)])
        return self.answer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), feed)

    def check(self, op, opset, inputs, expected, /, domains=(), digits=5, free=None, buckets="", constants=(), **attributes):
        """`inputs`: arrays or None; `expected`: arrays, or None for an output that the node does not name. Values that
        agree in so many digits behind the point are equal. `free`: by input, the names of axes that stay free, with
        their `buckets`. `constants`: inputs whose values are the model's."""
        names = [f"x{i}" if array is not None else "" for i, array in enumerate(inputs)]
        given = {name: array for name, array in zip(names, inputs) if name}
        feed = {name: array for name, array in given.items() if int(name[1:]) not in constants}
        shapes = {name: [(free or {}).get(int(name[1:]), {}).get(d, extent) for d, extent in enumerate(array.shape)]
                  for name, array in feed.items()}
        outputs = [f"y{i}" if array is not None else "" for i, array in enumerate(expected)]
        graph = helper.make_graph(
            [helper.make_node(op, names, outputs, domain=domains[0][0] if domains else None, **attributes)], "one",
            [helper.make_tensor_value_info(name, element_type(array), shapes[name]) for name, array in feed.items()],
            [helper.make_tensor_value_info(name, element_type(array), None)
             for name, array in zip(outputs, expected) if name],
            [numpy_helper.from_array(array, name) for name, array in given.items() if name not in feed])
        wanted = [array for array in expected if array is not None]

        def expect(answer, actual):
            self.assertTrue(answer.startswith("ok "), f"{op} {attributes}: {answer}")
            for i, right in enumerate(wanted):
                found = actual[str(i)]
                if right.dtype.kind == "f" and found.shape == right.shape and found.dtype == right.dtype:
                    with np.errstate(invalid="ignore"):
                        found = np.where(np.abs(found - right) <= 10.0**-digits, right, found)
                self.assertEqual(cases.difference(found, right), "", f"{op} {attributes}, output {i}")

        self.run_model(graph, opset, feed, expect, domains, buckets)
