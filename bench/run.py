#!/usr/bin/env python3
"""Side-by-side benchmarks: run.py [models|ops|kernels|server|tuner|catalog] [ARGS...]; see bench/README.md.

`models` is the default. Each benchmark prints its figures and its bars, and stops with 1 when a bar is missed.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench/results"


def run_kernels(args):
    program = ROOT / "build/bin/bench_kernels"
    if not program.exists():
        print("error: build/bin/bench_kernels is not built: cmake --build build --target bench_kernels",
              file=sys.stderr)
        return 2
    RESULTS.mkdir(parents=True, exist_ok=True)
    os.execv(program, [str(program), *args])


def run_tuner(args):
    from models_bench.measure import mill

    RESULTS.mkdir(parents=True, exist_ok=True)
    if "--only" in args and args[args.index("--only") + 1:][:1] == ["models"]:
        from tuner_bench import models

        at = args.index("--only")
        return models.main(args[:at] + args[at + 2:], RESULTS)
    program = ROOT / "build/bin/bench_tuner"
    if not program.exists():
        print("error: build/bin/bench_tuner is not built: cmake --build build --target bench_tuner", file=sys.stderr)
        return 2
    words = [str(program), "--program", str(mill.PROGRAM), "--out", str(RESULTS)]
    for option, name in (("", "resnet18"), ("foreign", "mobilenetv2")):
        inputs = mill.alive.random_inputs(mill.alive.onnx.load(str(mill.generated(name))), seed=1)
        words += [f"--{option or 'model'}", str(mill.generated(name))]
        words += [f"--{option}-shapes" if option else "--shapes", mill.shapes_option(inputs)]
    os.execv(program, words + args)


def main(argv):
    name, args = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("models", argv)
    if name == "kernels":
        return run_kernels(args)
    if name == "models":
        from models_bench import main as models

        return models.main(args)
    if name == "ops":
        from ops_bench import main as ops

        return ops.main(args)
    if name == "server":
        from server_bench import main as server

        return server.main(args)
    if name == "tuner":
        return run_tuner(args)
    if name == "catalog":
        from catalog_bench import main as catalog

        return catalog.main(args, RESULTS)
    print(f"error: no benchmark named {name} (there are: models, ops, kernels, server, tuner, catalog)", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
