"""An attribute of an operator of TensorFlow is read by its converter or by what it shares with others, or marked as meaning nothing; each operator has a case."""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOM = ROOT / "compiler/frontend/tensorflow"
USED = re.compile(r'"compiler/frontend/tensorflow/converters/(\w+)\.h"')
ROW = re.compile(r'^TF_OP\("(\w+)", "([^"]*)", "([^"]*)", (\w+)\)$', re.MULTILINE)
# What stands in networks (tensorflow_nets), and what TensorFlow's own sessions replace or no longer make.
ELSEWHERE = {
    "_FusedConv2D", "_FusedMatMul", "FusedDepthwiseConv2dNative", "_FusedDepthwiseConv2dNative", "_FusedBatchNormEx", "VarHandleOp",
    "VariableV2", "Variable", "ReadVariableOp", "VarIsInitializedOp", "ResourceGather", "ResourceGatherNd", "StatefulPartitionedCall",
    "If", "Case", "While", "RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefNextIteration", "RefIdentity", "Assert", "ControlTrigger",
    "PlaceholderV2", "TopK", "VariableShape", "BatchNormWithGlobalNormalization",
    # Of TensorFlow.js alone (tests/importer/tensorflow_test.cc).
    "Prelu",
    # Of a file in a SavedModel (tensorflow_nets/labels.zip).
    "InitializeTableFromTextFileV2",
    # Of tables in the checkpoint of one (tensorflow_nets/learned.zip).
    "MutableHashTableV2", "MutableHashTableOfTensorsV2", "MutableDenseHashTableV2", "RestoreV2", "LookupTableExportV2",
}


def rows():
    """Operator, attributes that are read, converter."""
    text = (ROOM / "tf_ops.def").read_text(encoding="utf-8")
    return [(name, [word for word in words.split() if not word.startswith("~")], converter)
            for name, _, words, converter in ROW.findall(text)]


def unread(attributes, text):
    return [name for name in attributes if f'"{name}"' not in text]


class TensorflowAttributes(unittest.TestCase):
    def test_every_attribute_is_read_or_marked(self):
        sources = {p.stem: p.read_text(encoding="utf-8") for p in sorted((ROOM / "converters").glob("*.cc"))}
        shared = (ROOM / "node_context.cc").read_text(encoding="utf-8")
        own = dict(sources)
        for name, text in own.items():
            sources[name] += "".join(sources.get(other, "") for other in USED.findall(text) if other != name)
        table = rows()
        self.assertGreaterEqual(len(table), 200)
        for name, attributes, converter in table:
            homes = [sources[name] for name, text in own.items() if f"void {converter}(NodeContext" in text]
            self.assertEqual(len(homes), 1, converter)
            self.assertEqual(unread(attributes, homes[0] + shared), [], f"attributes of {name} that {converter} does not read")

    def test_operators_stand_once(self):
        names = [name for name, _, _ in rows()]
        self.assertEqual(len(names), len(set(names)))

    def test_every_operator_has_a_case(self):
        graphs = b"".join(path.read_bytes() for path in sorted((ROOT / "tests/fixtures").glob("tensorflow_*/*.pb")))
        there = {name for name, _, _ in rows() if bytes([0x12, len(name)]) + name.encode() in graphs}
        self.assertEqual([name for name, _, _ in rows() if name not in there and name not in ELSEWHERE], [])

    def test_finds_what_is_not_read(self):
        self.assertEqual(unread(["axis", "k"], 'node.integer("axis")'), ["k"])


if __name__ == "__main__":
    sys.exit(unittest.main())
