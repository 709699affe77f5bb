"""An argument of a Caffe2 operator that no converter reads is refused by the import (NodeContext::check_read), or named in
unread_options.def with the reason: the tables name what is there."""

import unittest

from converter_tables import ConverterTables


class Caffe2Arguments(ConverterTables, unittest.TestCase):
    ROOM, PREFIX = "caffe2", "CAFFE2"

    def test_operators_of_int8_stand_in_order_and_are_of_one_of_floats(self):
        int8 = self.rows("int8.def", "INT8")
        self.assertEqual([row[0] for row in int8], sorted({row[0] for row in int8}))
        self.assertFalse({row[0] for row in int8} & set(self.types()))
        self.assertLessEqual({row[1] for row in int8}, set(self.types()))

    def test_fills_have_converters(self):
        self.assertLessEqual({row[0] for row in self.rows("fills.def", "FILL")}, set(self.types()))


if __name__ == "__main__":
    unittest.main()
