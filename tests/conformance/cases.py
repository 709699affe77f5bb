"""The cases of Debian's libonnx-testdata: where they lie, their tensors, and how results are compared."""

import os
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = Path(os.environ.get("TENSORMILL_ONNX_TESTDATA", "/usr/share/libonnx-testdata/data"))
SUITES = ["node", "simple", "pytorch-converted", "pytorch-operator"]
BFLOAT16 = 16
# Element types of newer suites that Debian's onnx module has no names for: the bits of one, and which have a sign bit to
# extend. Arrays of them have a byte an element.
NARROW_BITS = {17: 8, 18: 8, 19: 8, 20: 8, 24: 8, 21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
SIGN_EXTENDED = {22, 26}
# The tolerance of the standard's own runner of these cases.
RTOL, ATOL = 1e-3, 1e-7


class NotATensor(Exception):
    """A value that there is no array for: a map."""


def all_cases():
    """Names "suite/case", sorted."""
    return sorted(f"{suite}/{path.parent.name}" for suite in SUITES for path in (ROOT / suite).glob("*/model.onnx"))


def data_sets(case):
    return sorted((ROOT / case).glob("test_data_set_*"), key=lambda path: int(path.name.rsplit("_", 1)[1]))


def narrow_array(tensor):
    """Its codes, of which the first stands in the lowest bits of a byte."""
    bits = NARROW_BITS[tensor.data_type]
    packed = np.frombuffer(tensor.raw_data, np.uint8) if tensor.raw_data else np.array(tensor.int32_data).astype(np.uint8)
    codes = np.stack([packed >> shift & 2**bits - 1 for shift in range(0, 8, bits)], axis=-1)
    codes = codes.ravel()[: np.prod(tensor.dims, dtype=int)].reshape(tuple(tensor.dims))
    if tensor.data_type in SIGN_EXTENDED:
        codes = np.where(codes >= 2 ** (bits - 1), codes - 2.0**bits, codes).astype(np.int8)
    return codes


def array_of(tensor, elem_type):
    """The array of a TensorProto; bfloat16 as numpy's '|V2'."""
    if tensor.data_type in NARROW_BITS:
        return narrow_array(tensor)
    if tensor.data_type == onnx.TensorProto.STRING:
        return np.array([text.decode("utf-8") for text in tensor.string_data], np.str_).reshape(tuple(tensor.dims))
    if tensor.data_type == BFLOAT16:
        bits = np.frombuffer(tensor.raw_data, np.uint16) if tensor.raw_data else np.array(tensor.int32_data, np.uint16)
        return bits.reshape(tuple(tensor.dims)).view("V2")
    array = numpy_helper.to_array(tensor)
    # The suite stores bfloat16 as uint16; the model says what the bits are.
    return array.view("V2") if elem_type == BFLOAT16 else array


def parsed(message, path):
    message.ParseFromString(path.read_bytes())
    return message


def arrays_of(path, value_info):
    """Name -> array of one .pb file: a tensor has the value's name, elements of a sequence NAME/0, NAME/1 ..."""
    name, kind = value_info.name, value_info.type.WhichOneof("value")
    if kind == "tensor_type":
        return {name: array_of(parsed(onnx.TensorProto(), path), value_info.type.tensor_type.elem_type)}
    if kind == "sequence_type":
        elements = parsed(onnx.SequenceProto(), path).tensor_values
    elif kind == "optional_type":
        optional = parsed(onnx.OptionalProto(), path)
        elements = list(optional.sequence_value.tensor_values)
        if optional.elem_type == onnx.OptionalProto.TENSOR:
            elements = [optional.tensor_value]
    else:
        raise NotATensor(f"{name} is a {kind[:-5]}")
    return {f"{name}/{i}": array_of(element, None) for i, element in enumerate(elements)}


def values(model, folder, kind):
    """Name -> array of the data set's inputs or outputs, in the model's order."""
    infos = model.graph.input if kind == "input" else model.graph.output
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.rsplit("_", 1)[1]))
    if kind == "input" and len(files) != len(infos):
        initializers = {tensor.name for tensor in model.graph.initializer}
        infos = [info for info in infos if info.name not in initializers]
    result = {}
    for info, path in zip(infos, files):
        result.update(arrays_of(path, info))
    return result


def save(path, arrays):
    """Writes {name: array} as .npz: numpy.savez loses arrays whose name is one of its own keywords ("like")."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array)


def widened(array):
    """Floats as float64, bfloat16 included."""
    if array.dtype.kind == "V":
        bits = np.ascontiguousarray(array).view(np.uint16).astype(np.uint32) << 16
        return bits.view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def difference(actual, expected):
    """Empty when equal in dtype, shape and, within the tolerance, value; a NaN or infinity equals only itself."""
    if actual.dtype == "V1":
        actual = actual.view(np.uint8)
    # Strings are of one type, however long the longest is.
    if actual.dtype != expected.dtype and not actual.dtype.kind == expected.dtype.kind == "U":
        return f"dtype {actual.dtype}, expected {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}, expected {list(expected.shape)}"
    if actual.dtype.kind not in "fV":
        wrong = actual != expected
    else:
        wide, wanted = widened(actual), widened(expected)
        with np.errstate(invalid="ignore"):
            close = np.abs(wide - wanted) <= ATOL + RTOL * np.abs(wanted)
        wrong = ~(np.where(np.isfinite(wanted), close, wide == wanted) | (np.isnan(wide) & np.isnan(wanted)))
    if not np.any(wrong):
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if actual.shape else ()
    return f"{int(np.sum(wrong))} of {actual.size} differ: {actual[at]}, expected {expected[at]}, at {list(at)}"
