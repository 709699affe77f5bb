"""An attribute of an MXNet operator that no converter reads is refused by the import (NodeContext::check_read), or named in
unread_options.def with the reason: the tables name what is there, and each converter reads what its operators have."""

import re
import unittest
from pathlib import Path

ROOM = Path(__file__).resolve().parents[2] / "compiler/frontend/mxnet"


def rows(name, macro):
    text = (ROOM / name).read_text(encoding="utf-8")
    return [re.findall(r'"[^"]*"|\w+', row) for row in re.findall(rf"^{macro}\(([^)]*)\)$", text, flags=re.MULTILINE)]


def converters():
    """Bodies by name."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOM / "converters").glob("*.cc")))
    return re.findall(r"^void (convert_\w+)\(NodeContext& node\) \{", text, flags=re.MULTILINE)


class MxnetAttributes(unittest.TestCase):
    def test_tables_name_what_is_there(self):
        made, named = converters(), [row[0] for row in rows("converters/converters.def", "MXNET_CONVERTER")]
        self.assertEqual(sorted(made), sorted(set(made)))
        self.assertEqual(sorted(made), named)
        self.assertEqual(set(named), {convert for _, convert in rows("ops.def", "MXNET_OP")})

    def test_operators_stand_in_order_and_once(self):
        types = [kind for kind, _ in rows("ops.def", "MXNET_OP")]
        self.assertGreater(len(types), 100)
        self.assertEqual(types, sorted(set(types)))

    def test_what_may_stay_unread_is_of_an_operator(self):
        types = {kind for kind, _ in rows("ops.def", "MXNET_OP")} | {'"*"'}
        for row in rows("unread_options.def", "MXNET_UNREAD"):
            self.assertIn(row[0], types)
            self.assertGreater(len(row[2]), 8, row)


if __name__ == "__main__":
    unittest.main()
