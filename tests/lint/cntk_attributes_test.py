"""An attribute of a CNTK function that no converter reads is refused by the import (NodeContext::check_read), or named in
unread_options.def with the reason: the tables name what is there."""

import unittest

from converter_tables import ConverterTables


class CntkAttributes(ConverterTables, unittest.TestCase):
    ROOM, PREFIX = "cntk", "CNTK"
    LEAST_OPERATORS = 60

    def other_converters(self):
        return {row[2] for row in self.rows("blocks.def", "BLOCK")}

    def names(self):
        return {row[1] for row in self.rows("op_types.def", "OP_TYPE")}

    def test_operators_have_numbers(self):
        numbers = [int(row[0]) for row in self.rows("op_types.def", "OP_TYPE")]
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertEqual(len(self.names()), len(numbers))
        self.assertLessEqual(set(self.types()), self.names())

    def test_what_is_missing_has_no_converter(self):
        missing = [row[0] for row in self.rows("missing.def", "MISSING")]
        self.assertEqual(missing, sorted(set(missing)))
        self.assertFalse(set(missing) & set(self.types()))
        self.assertLessEqual(set(missing) - {'"UserDefinedFunction"'}, self.names())

    def test_blocks_stand_in_order(self):
        blocks = [row[0] for row in self.rows("blocks.def", "BLOCK")]
        self.assertEqual(blocks, sorted(set(blocks)))


if __name__ == "__main__":
    unittest.main()
