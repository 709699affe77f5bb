"""Models that are small enough to try on many CPUs, and slow emulated ones: real operators, few pixels."""

import mill

SIDE = 64
# Their flatten does not name the extents, so fewer pixels go through.
RESIZABLE = ("resnet18", "resnet50v2", "mobilenetv2")
PROBES = ("probe_opset9", "probe_opset13", "probe_opset18")


def resized(name, side=SIDE):
    """The path of a generated picture network whose input is side × side."""
    path = mill.CACHE / f"small/{name}.{side}.onnx"
    source = mill.generated(name)
    with mill.kept_files(f"small-{name}.{side}"):
        if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
            model = mill.alive.onnx.load(str(source))
            del model.graph.value_info[:]
            shape = next(v for v in model.graph.input if v.name == picture_input(model)).type.tensor_type.shape
            for dim in shape.dim[2:]:
                dim.dim_value = side
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(model.SerializeToString())
    return path


def picture_input(model):
    weights = {t.name for t in model.graph.initializer}
    return next(v.name for v in model.graph.input if v.name not in weights)


def small_models():
    """Name -> path."""
    models = {"digits": mill.ROOT / "tests/models/digits.onnx", "mlp": mill.generated("mlp")}
    models |= {name: mill.generated(name) for name in PROBES}
    models |= {name: resized(name) for name in RESIZABLE}
    return models


def inputs_of(path):
    return mill.alive.random_inputs(mill.alive.onnx.load(str(path)), seed=3)


def expected(name, path, inputs):
    """ONNX Runtime's answer: (NPZ file of the inputs, outputs)."""
    return mill.reference(path, inputs, f"small.{name}")
