"""Tests that ask the program of the cases."""

import unittest

from conformance_test import PROGRAM
from line_program import LineProgram


class ProgramCase(unittest.TestCase):
    """One program serves all cases of a class."""

    @classmethod
    def setUpClass(cls):
        cls.program = LineProgram([PROGRAM])

    @classmethod
    def tearDownClass(cls):
        cls.program.close()
