"""reference/operators.md and reference/targets.md of the compiler's tables."""

from itertools import groupby

from generate.tables import cell, code, rows, table

OPERATORS = """# Operators

Operators of models that compile: those of ONNX, with the opsets in which their meaning is the standard's: made of the importer's
tables. Those of TFLite are behind them, with the highest
version that is implemented, those of TensorFlow's graphs, of PyTorch's exported programs, of Core ML's ML Programs, of MXNet, of Caffe2's networks and of CNTK, and the layers of Keras. `tensormill show MODEL --ops` says which of a model's operators are among them; a model with others is refused
with all of their names.
"""
TABLES = "compiler/frontend/onnx/operators"
TARGETS = """# Targets

A target is a string like `llvm -mcpu=skylake-avx512`; `-mcpu=native` is the machine that compiles. The processors below are
known by name, with their features and caches; `-mattr=+avx512vnni,-avx2` changes single features, `-mtriple=aarch64-linux-gnu`
names another architecture, `-num-cores=N` the cores to plan for. A package names the features that it needs, and a machine
without one of them refuses it by that name.
"""


def operators():
    """(domain, name, from opset, to opset), one for each reading of an operator; other domains' have no opsets of their own."""
    found = [("", *row[:3]) for row in rows(f"{TABLES}/onnx_ops.def", "TM_ONNX_OP")]
    found += [tuple(row[:4]) for row in rows(f"{TABLES}/structure_ops.def", "TM_STRUCTURE_OP")]
    found += [(*row[:2], "", "") for row in rows(f"{TABLES}/domain_ops.def", "TM_DOMAIN_OP")]
    return sorted(found, key=lambda row: (row[0], row[1], int(row[2] or 0)))


def texts():
    """(domain, name) of operators that take strings."""
    return {tuple(row[:2]) for row in rows(f"{TABLES}/text_ops.def", "TM_TEXT_OP")}


def tflite_operators():
    """(builtin operator, highest version)."""
    return sorted((row[0], row[1]) for row in rows("compiler/frontend/tflite/import_ops.def", "TFL_OP"))


def tensorflow_operators():
    return sorted(row[0] for row in rows("compiler/frontend/tensorflow/tf_ops.def", "TF_OP"))


def pytorch_operators():
    """Operator and its overloads, which are written with dots; those in place beside the others."""
    found = {}
    for target, *_ in rows("compiler/frontend/pytorch/aten_ops.def", "PT_OP"):
        # Functions on numbers have no overloads.
        name, overload = target.rsplit(".", 1) if target.count(".") > 1 else (target, "")
        found.setdefault(name, []).append(overload)
    return sorted((name, ", ".join(code(each) for each in overloads if each)) for name, overloads in found.items())


def caffe2_operators():
    return sorted(row[0] for row in rows("compiler/frontend/caffe2/ops.def", "CAFFE2_OP") + rows("compiler/frontend/caffe2/int8.def", "CAFFE2_INT8"))


def cntk_operators():
    return sorted(row[0] for row in rows("compiler/frontend/cntk/ops.def", "CNTK_OP"))


def coreml_operations():
    return sorted(row[0] for row in rows("compiler/frontend/coreml/ops.def", "COREML_OP"))


def mxnet_operators():
    return sorted(row[0] for row in rows("compiler/frontend/mxnet/ops.def", "MXNET_OP"))


def keras_layers():
    """Classes of layers, and of operators."""
    room = "compiler/frontend/keras"
    return [[row[0] for row in rows(f"{room}/{table}.def", macro)]
            for table, macro in (("layers", "KERAS_LAYER"), ("operations", "KERAS_OPERATION"))]


def operators_page():
    lines, strings = [OPERATORS], texts()
    for domain, of_domain in groupby(operators(), key=lambda row: row[0]):
        lines += [f"## {domain or 'ai.onnx'}\n"]
        spans = []
        for name, group in groupby(of_domain, key=lambda row: row[1]):
            spans.append([code(name), ", ".join(f"{first} to {last}" for _, _, first, last in group if first) or "all",
                          "yes" if (domain, name) in strings else ""])
        lines += table(["operator", "opsets", "also on strings"], spans)
    lines += ["## TFLite\n", *table(["operator", "versions to"], ([code(name), version] for name, version in tflite_operators()))]
    lines += ["## TensorFlow\n", ", ".join(code(name) for name in tensorflow_operators()) + ".\n"]
    lines += ["## PyTorch\n", *table(["operator", "overloads"], ([code(name), overloads] for name, overloads in pytorch_operators()))]
    lines += ["", "## Core ML\n", ", ".join(code(name) for name in coreml_operations()) + "."]
    lines += ["", "## MXNet\n", ", ".join(code(name) for name in mxnet_operators()) + "."]
    lines += ["", "## Caffe2\n", ", ".join(code(name) for name in caffe2_operators()) + "."]
    lines += ["", "## CNTK\n", ", ".join(code(name) for name in cntk_operators()) + ". Blocks are the operators within them."]

    layers, operations = keras_layers()
    lines += ["", "## Keras\n", "Layers: " + ", ".join(code(name) for name in layers) + ".\n",
              "Operators between layers: " + ", ".join(code(f"keras.ops: {name}") for name in operations) + "."]
    return "\n".join(lines)


def processors():
    return rows("config/cpus.def", "TM_CPU")


def targets_page():
    lines = [TARGETS]
    for architecture in dict.fromkeys(row[1] for row in processors()):
        lines += [f"## {architecture}\n"]
        lines += table(["`-mcpu=`", "maker", "like", "and", "L1d", "L2"],
                       ([code(row[0]), cell(row[2]), code(row[3]), cell(row[4]), f"{row[5]} KiB", f"{row[6]} KiB"]
                        for row in processors() if row[1] == architecture))
    return "\n".join(lines)
