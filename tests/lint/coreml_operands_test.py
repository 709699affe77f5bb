"""An operand of a Core ML operation that no converter reads is refused by the import (NodeContext::check_read), or named in
unread_options.def with the reason: the tables name what is there, and each converter reads what its operations have."""

import unittest

from converter_tables import ConverterTables


class CoremlOperands(ConverterTables, unittest.TestCase):
    ROOM, PREFIX = "coreml", "COREML"


if __name__ == "__main__":
    unittest.main()
