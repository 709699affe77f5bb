#!/usr/bin/env python3
"""Writes the benchmark models: generate.py OUTDIR [NAME...] [--external] [--list]

Without names the full-size architectures are written, each as OUTDIR/NAME.onnx; a name `probe_opsetN` (or `probes` for
all) asks for the small opset probes. With --external the weights stand in OUTDIR/NAME.onnx.data. Same bytes every time.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import onnx  # noqa: E402
from onnx.external_data_helper import convert_model_to_external_data  # noqa: E402

import minilm  # noqa: E402
import mlp  # noqa: E402
import mobilenet  # noqa: E402
import probes  # noqa: E402
import resnet  # noqa: E402
import shufflenet  # noqa: E402
import squeezenet  # noqa: E402

ARCHITECTURES = {
    "resnet18": resnet.resnet18,
    "resnet50": resnet.resnet50,
    "resnet50v2": resnet.resnet50v2,
    "squeezenet11": squeezenet.squeezenet11,
    "mobilenetv2": mobilenet.mobilenetv2,
    "shufflenetv2": shufflenet.shufflenetv2,
    "mlp": mlp.mlp,
    "minilm6": minilm.minilm6,
}


def build(name):
    """Builds one model by name and returns its ModelProto."""
    if name in ARCHITECTURES:
        return ARCHITECTURES[name]().model()
    if name in probes.PROBES:
        return probes.PROBES[name]().model()
    raise KeyError(f"no such model: {name} (known: {', '.join([*ARCHITECTURES, *probes.PROBES])})")


def write(model, path, external=False):
    """Saves `model` whole or not at all: an interrupted run leaves no half-written file under the final name."""
    if external:
        convert_model_to_external_data(model, all_tensors_to_one_file=True, location=os.path.basename(path) + ".data",
                                       size_threshold=1024)
        # The helper appends to a data file that is already there.
        if os.path.exists(path + ".data"):
            os.remove(path + ".data")
        onnx.save(model, path)
        return
    with open(path + ".part", "wb") as out:
        out.write(model.SerializeToString())
    os.replace(path + ".part", path)


def main(argv=None):
    parser = argparse.ArgumentParser(description="write the benchmark models")
    parser.add_argument("outdir", nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--external", action="store_true", help="store the weights in a file beside the model")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    args = parser.parse_intermixed_args(argv)
    if args.list or not args.outdir:
        print("\n".join([*ARCHITECTURES, *probes.PROBES]))
        return 0 if args.list else 2
    os.makedirs(args.outdir, exist_ok=True)
    names = args.names or list(ARCHITECTURES)
    if "probes" in names:
        names = [n for n in names if n != "probes"] + list(probes.PROBES)
    for name in names:
        try:
            model = build(name)
        except KeyError as error:
            print(f"error: {error.args[0]}", file=sys.stderr)
            return 2
        path = os.path.join(args.outdir, f"{name}.onnx")
        write(model, path, args.external)
        print(f"{path}: opset {model.opset_import[0].version}, {len(model.graph.node)} nodes, "
              f"{os.path.getsize(path)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
