"""The tables of a format whose operators' settings are refused when no converter reads them (NodeContext::check_read), and what is
the same in the tests of each: the tables name what is there."""

import re
from pathlib import Path

FRONTEND = Path(__file__).resolve().parents[2] / "compiler/frontend"


class ConverterTables:
    """Mixed into a TestCase that says the folder in compiler/frontend, ROOM, and what its macros begin with, PREFIX."""

    ROOM, PREFIX = "", ""
    LEAST_OPERATORS = 100

    def rows(self, name, macro):
        """The columns of the rows of a .def file, strings in their quotes."""
        text = (FRONTEND / self.ROOM / name).read_text(encoding="utf-8")
        found = re.findall(rf"^{self.PREFIX}_{macro}\(([^)]*)\)$", text, flags=re.MULTILINE)
        return [re.findall(r'"[^"]*"|\w+', row) for row in found]

    def types(self):
        return [row[0] for row in self.rows("ops.def", "OP")]

    def converters(self):
        """Names of bodies."""
        paths = sorted((FRONTEND / self.ROOM / "converters").glob("*.cc"))
        text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
        return re.findall(r"^void (convert_\w+)\(NodeContext& node\) \{", text, flags=re.MULTILINE)

    def other_converters(self):
        """What the rows of other tables than ops.def name."""
        return set()

    def test_tables_name_what_is_there(self):
        made, named = self.converters(), [row[0] for row in self.rows("converters/converters.def", "CONVERTER")]
        self.assertEqual(sorted(made), sorted(set(made)))
        self.assertEqual(sorted(made), named)
        self.assertEqual(set(named), {convert for _, convert in self.rows("ops.def", "OP")} | self.other_converters())

    def test_operators_stand_in_order_and_once(self):
        self.assertGreater(len(self.types()), self.LEAST_OPERATORS)
        self.assertEqual(self.types(), sorted(set(self.types())))

    def test_what_may_stay_unread_is_of_an_operator(self):
        for row in self.rows("unread_options.def", "UNREAD"):
            self.assertIn(row[0], {*self.types(), '"*"'})
            self.assertGreater(len(row[2]), 8, row)

    def test_what_is_refused_has_no_converter_and_stands_in_order(self):
        refused = [row[0] for row in self.rows("refused_ops.def", "REFUSED")] if (FRONTEND / self.ROOM / "refused_ops.def").is_file() else []
        self.assertEqual(refused, sorted(set(refused)))
        self.assertFalse(set(refused) & set(self.types()))
