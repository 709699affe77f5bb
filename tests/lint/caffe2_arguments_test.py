"""An argument of a Caffe2 operator that no converter reads is refused by the import (NodeContext::check_read), or named in
unread_options.def with the reason: the tables name what is there."""

import re
import unittest
from pathlib import Path

ROOM = Path(__file__).resolve().parents[2] / "compiler/frontend/caffe2"


def rows(name, macro):
    text = (ROOM / name).read_text(encoding="utf-8")
    return [re.findall(r'"[^"]*"|\w+', row) for row in re.findall(rf"^{macro}\(([^)]*)\)$", text, flags=re.MULTILINE)]


def converters():
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOM / "converters").glob("*.cc")))
    return re.findall(r"^void (convert_\w+)\(NodeContext& node\) \{", text, flags=re.MULTILINE)


class Caffe2Arguments(unittest.TestCase):
    def test_tables_name_what_is_there(self):
        made, named = converters(), [row[0] for row in rows("converters/converters.def", "CAFFE2_CONVERTER")]
        self.assertEqual(sorted(made), sorted(set(made)))
        self.assertEqual(sorted(made), named)
        self.assertEqual(set(named), {convert for _, convert in rows("ops.def", "CAFFE2_OP")})

    def test_operators_stand_in_order_and_once(self):
        types, int8 = [row[0] for row in rows("ops.def", "CAFFE2_OP")], rows("int8.def", "CAFFE2_INT8")
        self.assertGreater(len(types), 100)
        self.assertEqual(types, sorted(set(types)))
        self.assertEqual([row[0] for row in int8], sorted({row[0] for row in int8}))
        self.assertFalse({row[0] for row in int8} & set(types))
        self.assertLessEqual({row[1] for row in int8}, set(types))

    def test_fills_have_converters_unless_they_are_random(self):
        types = {row[0] for row in rows("ops.def", "CAFFE2_OP")}
        self.assertLessEqual({row[0] for row in rows("fills.def", "CAFFE2_FILL")}, types)
        self.assertFalse({row[0] for row in rows("random_fills.def", "CAFFE2_RANDOM")} & types)

    def test_what_may_stay_unread_is_of_an_operator(self):
        types = {row[0] for row in rows("ops.def", "CAFFE2_OP")} | {'"*"'}
        for row in rows("unread_options.def", "CAFFE2_UNREAD"):
            self.assertIn(row[0], types)
            self.assertGreater(len(row[2]), 8, row)


if __name__ == "__main__":
    unittest.main()
