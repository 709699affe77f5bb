"""What the parts of the soak share: the server that the end-to-end tests use, and a small trained model."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

import made_models  # noqa: E402,F401  (found through the line above)
import mill  # noqa: E402,F401
import serving  # noqa: E402,F401

LOAD = str(ROOT / "build/bin/bench_load")
DIGITS = ROOT / "tests/models/digits.onnx"
SHAPES = {"image": [1, 1, 28, 28]}
