"""python3 bench/soak ARGS"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import soak  # noqa: E402  (found through the line above)

sys.exit(soak.main(sys.argv[1:]))
