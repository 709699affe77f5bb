"""What the doctests of the package find by name."""

from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def names(doctest_namespace, tmp_path):
    doctest_namespace.update(np=numpy, DIGITS=ROOT / "tests/models/digits.onnx", WORK=tmp_path)
