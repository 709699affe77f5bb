"""Maps among a model's inputs, which are two tensors, `NAME.keys` and `NAME.values`: DictVectorizer and CastMap."""

import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import cases
from one_node import OneNode

ML = "ai.onnx.ml"


def map_input(key_type, value_type):
    value = onnx.ValueInfoProto(name="m")
    value.type.map_type.key_type = key_type
    value.type.map_type.value_type.tensor_type.elem_type = value_type
    return value


class Maps(OneNode):
    def check_map(self, op, keys, values, expected, key_type=TensorProto.INT64, value_type=TensorProto.FLOAT, free=False, **attributes):
        graph = helper.make_graph([helper.make_node(op, ["m"], ["y"], domain=ML, **attributes)], "maps",
                                  [map_input(key_type, value_type)], [helper.make_empty_tensor_value_info("y")])

        def expect(answer, outputs):
            self.assertTrue(answer.startswith("ok "), answer)
            self.assertEqual(cases.difference(outputs["0"], expected), "")

        self.run_model(graph, 17, {"m.keys": keys, "m.values": values}, expect, [(ML, 1)], "m.entries=1,4" if free else "")

    def test_dict_vectorizer(self):
        words = np.array(["sun", "rain", "hail"])
        row = np.array([[0.0, 7.5, 2.0]], np.float32)
        for free in (False, True):
            self.check_map("DictVectorizer", words, np.array([2, 7.5, 1], np.float32), row, TensorProto.STRING,
                           string_vocabulary=["snow", "rain", "sun"], free=free)
            self.check_map("DictVectorizer", np.array([30, 5, 10, 99], np.int64), np.array([1, 2, 3, 4], np.int64),
                           np.array([[3, 0, 1]], np.int64), value_type=TensorProto.INT64, int64_vocabulary=[10, 20, 30], free=free)

    def test_empty_map(self):
        self.check_map("DictVectorizer", np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros((1, 2), np.float32),
                       int64_vocabulary=[1, 2])

    def test_dense(self):
        keys = np.array([5, -1, 9, 0], np.int64)
        self.check_map("CastMap", keys, np.array([1.5, 2, 3, -4], np.float32), np.array([[2, -4, 1.5, 3]], np.float32))
        self.check_map("CastMap", keys, np.array([1.5, 2, 3, -4], np.float32), np.array([[2, -4, 1, 3]], np.int64), cast_to="TO_INT64")
        texts = np.array(["1.5", "2", "3", "-4"])
        self.check_map("CastMap", keys, texts, np.array([[2, -4, 1.5, 3]], np.float32), value_type=TensorProto.STRING)
        self.check_map("CastMap", keys, texts, np.array([["2", "-4", "1.5", "3"]]), value_type=TensorProto.STRING, cast_to="TO_STRING")

    def test_sparse(self):
        keys = np.array([5, 2, 9, 0], np.int64)
        for free in (False, True):
            self.check_map("CastMap", keys, np.array([1.5, 2, 3, -4], np.float32), np.array([[-4, 0, 2, 0, 0, 1.5, 0]], np.float32),
                           map_form="SPARSE", max_map=7, free=free)
        self.check_map("CastMap", keys, np.array(["a", "bc", "d", "e"]), np.array([["e", "", "bc"]]), value_type=TensorProto.STRING,
                       cast_to="TO_STRING", map_form="SPARSE", max_map=3)

    def test_maps_that_others_read_are_named(self):
        graph = helper.make_graph([helper.make_node("Identity", ["m"], ["y"])], "maps",
                                  [map_input(TensorProto.INT64, TensorProto.FLOAT)], [helper.make_empty_tensor_value_info("y")])
        answer = self.answer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), {"m": np.zeros(1)})
        self.assertIn('"m" (input, a map', answer)


if __name__ == "__main__":
    unittest.main()
