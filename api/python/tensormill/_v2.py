"""KServe v2 inference: requests in JSON or with binary tensors behind it, and their answers; the tensors are gRPC's too."""

from __future__ import annotations

import json
import struct
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._dtypes import Array
from ._errors import TensorMillError

_TYPES = {"BOOL": "?", "INT8": "i1", "INT16": "<i2", "INT32": "<i4", "INT64": "<i8", "UINT8": "u1", "UINT16": "<u2",
          "UINT32": "<u4", "UINT64": "<u8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8", "BF16": "<u2"}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items() if name != "BF16"}

LENGTH = "Inference-Header-Content-Length"


def datatype(array: Array) -> str:
    """The protocol's name for the elements of an array.

    >>> datatype(np.zeros(1, np.float32)), datatype(np.array(["a"]))
    ('FP32', 'BYTES')
    """
    if array.dtype.kind in "USO":
        return "BYTES"
    if array.dtype.name == "bfloat16":  # of ml_dtypes: numpy has no such type
        return "BF16"
    name = _NAMES.get(array.dtype.newbyteorder("=" if array.dtype.byteorder == "|" else "<"))
    if name is None:
        raise TypeError(f"the protocol has no type for an array of {array.dtype}")
    return name


def pack_texts(array: Array) -> bytes:
    """Each string behind its length in four bytes."""
    parts: List[bytes] = []
    for one in array.ravel():
        text = one if isinstance(one, bytes) else str(one).encode()
        parts += [struct.pack("<I", len(text)), text]
    return b"".join(parts)


def unpack_texts(data: memoryview, shape: Sequence[int]) -> Array:
    """What `pack_texts` wrote, as texts."""
    texts, at = [], 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        texts.append(bytes(data[at + 4:at + 4 + size]).decode("utf-8", "replace"))
        at += 4 + size
    return np.array(texts if texts else [], dtype=None if texts else "<U1").reshape(shape)


def to_bytes(array: Array) -> Tuple[str, bytes]:
    """The protocol's name for the elements, and all of them as they stand in a binary tensor.

    >>> to_bytes(np.array([1, 2], np.int16))
    ('INT16', b'\\x01\\x00\\x02\\x00')
    """
    kind = datatype(array)
    if kind == "BYTES":
        return kind, pack_texts(array)
    return kind, (array.view(_TYPES[kind]) if kind == "BF16" else array.astype(_TYPES[kind], copy=False)).tobytes()


def from_bytes(part: memoryview, kind: str, shape: Sequence[int]) -> Array:
    """The tensor that `to_bytes` gave, as a view of ``part``; texts are new, bfloat16 is its raw bits."""
    return unpack_texts(part, shape) if kind == "BYTES" else np.frombuffer(part, _TYPES[kind]).reshape(shape)


def request_body(inputs: Mapping[str, Array], outputs: Optional[Sequence[str]], binary: bool,
                 parameters: Optional[Mapping[str, Any]]) -> Tuple[bytes, Dict[str, str]]:
    """Body and header fields of an inference."""
    blobs: List[bytes] = []
    items: List[Dict[str, Any]] = []
    for name, array in inputs.items():
        item: Dict[str, Any] = {"name": name, "shape": list(array.shape), "datatype": datatype(array)}
        if binary:
            _, blob = to_bytes(array)
            item["parameters"] = {"binary_data_size": len(blob)}
            blobs.append(blob)
        else:
            item["data"] = [one.decode() if isinstance(one, bytes) else one for one in array.ravel().tolist()]
        items.append(item)
    head: Dict[str, Any] = {"inputs": items}
    if outputs is not None:
        head["outputs"] = [{"name": name, "parameters": {"binary_data": binary}} for name in outputs]
    if parameters or binary:
        head["parameters"] = {**({"binary_data_output": True} if binary else {}), **(parameters or {})}
    text = json.dumps(head).encode()
    if not binary:
        return text, {"Content-Type": "application/json"}
    return b"".join([text, *blobs]), {"Content-Type": "application/octet-stream", LENGTH: str(len(text))}


def read_answer(body: bytes, headers: Mapping[str, str]) -> Dict[str, Array]:
    """Outputs by name."""
    size = headers.get(LENGTH.lower())
    at = len(body) if size is None else int(size)
    head = json.loads(body[:at])
    view = memoryview(body)
    outputs: Dict[str, Array] = {}
    for item in head["outputs"]:
        kind, shape = item["datatype"], item["shape"]
        count = (item.get("parameters") or {}).get("binary_data_size")
        if count is None:
            data = np.array(item["data"], dtype="U" if kind == "BYTES" else _TYPES[kind])
            outputs[item["name"]] = data.reshape(shape)
            continue
        part, at = view[at:at + count], at + count
        if len(part) != count:
            raise TensorMillError("invalid_json", f"output {item['name']!r}: the answer ends before its {count} bytes")
        outputs[item["name"]] = from_bytes(part, kind, shape)
    return outputs
