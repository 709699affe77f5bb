"""Seeds of the target tfjs: a model.json, a NUL, and the bytes of its files of weights, of which names that begin with "a" are
the first half."""

import base64
import json
import struct

CONSTANT = {"dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "2"}]}}


def text(word):
    return base64.b64encode(word.encode()).decode()


def const(name, **tensor):
    return {"name": name, "op": "Const", "attr": {"value": {"tensor": {**CONSTANT, **tensor}}, "dtype": {"type": tensor.get("dtype", "DT_FLOAT")}}}


def weight(name, dtype="float32", shape=(2,), **quantization):
    return {"name": name, "dtype": dtype, "shape": list(shape), **({"quantization": quantization} if quantization else {})}


def packed():
    """Every way in which weights are kept, in two files."""
    kinds = [weight("plain"), weight("whole", "int32"), weight("flags", "bool"), weight("bytes", "uint8"), weight("words", "uint16"),
             weight("halves", "float16"), weight("longs", "int64"), weight("q8", dtype="float32") | {"quantization": {"dtype": "uint8", "scale": 0.5, "min": -1}},
             weight("q16") | {"quantization": {"dtype": "uint16", "scale": 0.25, "min": 0.5}},
             weight("qi", "int32") | {"quantization": {"dtype": "uint8", "scale": 1.0, "min": 3}},
             weight("half") | {"quantization": {"dtype": "float16"}}]
    types = {"whole": "DT_INT32", "qi": "DT_INT32", "flags": "DT_BOOL", "bytes": "DT_UINT8", "words": "DT_UINT16", "halves": "DT_HALF", "longs": "DT_INT64"}
    data = struct.pack("<2f2i2?2B2H2e2q2B2H2B2e", 1, 2, 3, 4, True, False, 5, 6, 7, 8, 0.5, -2, 9, 10, 11, 12, 13, 14, 15, 16, 1, -1)
    nodes = [const(each["name"], dtype=types.get(each["name"], "DT_FLOAT")) for each in kinds]
    nodes.append({"name": "y", "op": "Add", "input": ["plain", "q8"], "attr": {"T": {"type": 1}}})
    return {"format": "graph-model", "generatedBy": "2.0", "modelTopology": {"node": nodes, "versions": {"producer": 9}},
            "weightsManifest": [{"paths": ["a.bin", "b.bin"], "weights": kinds}],
            "signature": {"inputs": {}, "outputs": {"y": {"name": "y:0", "dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "2"}]}}}}}, data


def attributes():
    """Every kind of attribute and of constant, functions, and the older place of a signature."""
    fun = {"name": "f", "attr": {"T": {"type": "DT_FLOAT"}}}
    every = {"s": {"s": text("word")}, "i": {"i": "-3"}, "g": {"i": 4.0}, "f": {"f": 1.5}, "n": {"f": "NaN"}, "b": {"b": True}, "t": {"type": "DT_FLOAT_REF"},
             "h": {"shape": {"dim": [{"size": "-1"}, {}]}}, "u": {"shape": {"unknownRank": True}}, "c": {"tensor": CONSTANT | {"floatVal": ["Infinity", "-Infinity"]}},
             "func": {"func": fun}, "p": {"placeholder": "T"},
             "l": {"list": {"s": [text("a")], "i": ["1"], "f": [2], "b": [False], "type": ["DT_INT32", 3], "shape": [{}], "tensor": [CONSTANT], "func": [fun]}}}
    values = {"doubleVal": [1, 2], "intVal": [1, 2], "int64Val": ["1", "2"], "uint32Val": [1], "uint64Val": ["5"], "halfVal": [15360], "boolVal": [True, False],
              "stringVal": [text("x")], "tensorContent": base64.b64encode(bytes(8)).decode()}
    nodes = [{"name": "x", "op": "Placeholder", "attr": every}] + [const(f"c{i}", **{key: value}) for i, (key, value) in enumerate(values.items())]
    function = {"signature": {"name": "f", "inputArg": [{"name": "a", "type": "DT_FLOAT"}], "outputArg": [{"name": "r", "typeAttr": "T", "numberAttr": "N"},
                                                                                                       {"name": "s", "typeListAttr": "L"}]},
                "nodeDef": [{"name": "y", "op": "Relu", "input": ["a", "^x"]}], "ret": {"r": "y:activations:0"}, "attr": {"k": {"i": "1"}}}
    signature = {"inputs": {"x": {"name": "x:0"}}, "outputs": {"y": {"name": "c0:0", "dtype": "DT_DOUBLE"}}}
    return {"format": "graph-model", "modelTopology": {"node": nodes, "library": {"function": [function]}}, "weightsManifest": [],
            "userDefinedMetadata": {"signature": signature}}, b""


def broken(change):
    model, data = packed()
    change(model)
    return model, data


def layers(topology=None):
    """A layers model: a model within it, and a weight that is kept as bytes."""
    inner = {"class_name": "Sequential", "config": {"name": "inner", "layers": [
        {"class_name": "Dense", "config": {"name": "dense", "units": 2, "activation": "relu", "use_bias": True, "batch_input_shape": [None, 2]}}]}}
    model = {"class_name": "Sequential", "config": {"name": "net", "layers": [
        inner, {"class_name": "Dense", "config": {"name": "last", "units": 1, "activation": "linear", "use_bias": False}}]}}
    weights = [weight("dense/kernel", shape=(2, 2)), weight("dense/bias"), weight("last/kernel", shape=(2, 1)) | {"quantization": {"dtype": "uint8", "scale": 0.5, "min": -1}}]
    return {"format": "layers-model", "modelTopology": topology or {"keras_version": "2.15.0", "backend": "tensorflow", "model_config": model},
            "weightsManifest": [{"paths": ["a.bin", "b.bin"], "weights": weights}]}, struct.pack("<6f2B", 1, 2, 3, 4, 5, 6, 7, 8)


def tfjs_seeds():
    for name, (model, data) in {"packed": packed(), "attributes": attributes(), "layers": layers(), "no_layers": layers({"class_name": "Sequential", "config": []}),
                                "too_short": broken(lambda m: m["weightsManifest"][0]["weights"][0].update(shape=[1 << 40])),
                                "huge": broken(lambda m: m["weightsManifest"][0]["weights"][0].update(shape=[1 << 62, 1 << 62])),
                                "twice": broken(lambda m: m["weightsManifest"][0]["weights"][1].update(name="plain")),
                                "elsewhere": broken(lambda m: m["weightsManifest"][0].update(paths=["../a.bin"])),
                                "no_such_type": broken(lambda m: m["weightsManifest"][0]["weights"][0].update(dtype="complex64")),
                                "no_int32": broken(lambda m: m["weightsManifest"][0]["weights"][9]["quantization"].update(scale=1e30)),
                                "absent": broken(lambda m: m["weightsManifest"][0].update(paths=["none"]))}.items():
        yield name, json.dumps(model).encode() + b"\0" + data
