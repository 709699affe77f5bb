"""An attribute of an MXNet operator that no converter reads is refused by the import (NodeContext::check_read), or named in
unread_options.def with the reason: the tables name what is there, and each converter reads what its operators have."""

import unittest

from converter_tables import ConverterTables


class MxnetAttributes(ConverterTables, unittest.TestCase):
    ROOM, PREFIX = "mxnet", "MXNET"


if __name__ == "__main__":
    unittest.main()
