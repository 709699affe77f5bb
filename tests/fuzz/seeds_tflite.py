"""Seeds of TFLite models: what converters write seldom. flatc makes them of the reader's own schema."""

import json
import subprocess
import tempfile
from pathlib import Path

SCHEMA = Path(__file__).resolve().parents[2] / "compiler/frontend/tflite/schema.fbs"


def file_of(model):
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "seed.json"
        text.write_text(json.dumps(model))
        subprocess.run(["flatc", "--binary", "--unknown-json", "-o", folder, SCHEMA, text], check=True)
        return next(path for path in Path(folder).iterdir() if path != text).read_bytes()


def model_of(tensors, buffers, **more):
    """Of tensors that are all outputs; tensor i has buffer i + 1."""
    tensors = [{"buffer": i + 1, "name": f"t{i}", **tensor} for i, tensor in enumerate(tensors)]
    graph = {"tensors": tensors, "inputs": [], "outputs": list(range(len(tensors))), "operators": []}
    return {"version": 3, "subgraphs": [graph], "buffers": [{}] + [{"data": list(data)} for data in buffers], **more}


def dense(extent):
    return {"format": "DENSE", "dense_size": extent}


def csr(kind, segments, indices):
    return {"format": "SPARSE_CSR", "array_segments_type": kind, "array_segments": {"values": segments},
            "array_indices_type": kind, "array_indices": {"values": indices}}


def sparse(shape, order, blocks, dims, kind="INT8"):
    return {"shape": shape, "type": kind, "sparsity": {"traversal_order": order, "block_map": blocks, "dim_metadata": dims}}


ROWS = csr("Uint8Vector", [0, 2, 3], [0, 2, 1])


def sparse_seeds():
    yield "sparse", [sparse([2, 3], [0, 1], [], [dense(2), csr(kind, [0, 2, 3], [0, 2, 1])])
                     for kind in ("Int32Vector", "Uint16Vector", "Uint8Vector")], [b"abc"] * 3
    blocks = [dense(2), csr("Uint8Vector", [0, 1, 2], [1, 0]), dense(2), dense(2)]
    yield "sparse_blocks", [sparse([4, 4], [0, 1, 2, 3], [0, 1], blocks)], [b"abcdefgh"]
    for name, tensor in (
            ("order", sparse([2, 3], [0, 0], [], [dense(2), ROWS])), ("rank", sparse([2, 3], [0], [], [dense(2)])),
            ("extent", sparse([2, 3], [0, 1], [], [dense(3), ROWS])), ("below", sparse([2, 3], [0, 1], [], [dense(-1), ROWS])),
            ("segments", sparse([2, 3], [0, 1], [], [dense(2), csr("Uint8Vector", [0, 3], [0, 2, 1])])),
            ("sorted", sparse([2, 3], [0, 1], [], [dense(2), csr("Uint8Vector", [0, 4, 3], [0, 2, 1])])),
            ("index", sparse([2, 3], [0, 1], [], [dense(2), csr("Uint8Vector", [0, 2, 3], [0, 3, 1])])),
            ("lists", sparse([2, 3], [0, 1], [], [dense(2), {"format": "SPARSE_CSR"}])),
            ("block", sparse([4, 4], [0, 1, 2, 3], [0, 0], blocks)), ("odd_block", sparse([3, 4], [0, 1, 2, 3], [0, 1], blocks)),
            ("free", sparse([2, -1], [0, 1], [], [dense(2), ROWS])), ("type", sparse([2, 3], [0, 1], [], [dense(2), ROWS], "VARIANT"))):
        yield f"sparse_{name}", [tensor], [b"abc"]


def strings(*texts):
    offsets = [8 + 4 * len(texts)]
    for text in texts:
        offsets.append(offsets[-1] + len(text))
    return b"".join(number.to_bytes(4, "little") for number in (len(texts), *offsets)) + b"".join(texts)


def seeds():
    for name, tensors, buffers in sparse_seeds():
        yield name, file_of(model_of(tensors, buffers))
    text, bits = {"shape": [2], "type": "STRING"}, [{"shape": [5], "type": kind} for kind in ("INT4", "UINT4", "INT2")]
    yield "strings", file_of(model_of([text], [strings(b"one", b"")]))
    yield "strings_short", file_of(model_of([text], [strings(b"one", b"")[:9]]))
    yield "strings_past", file_of(model_of([text], [strings(b"one", b"two")[:-1]]))
    yield "strings_below", file_of(model_of([text], [(1).to_bytes(4, "little") + b"\xff" * 8]))
    yield "bits", file_of(model_of(bits, [b"\x1f\xf2\x03"] * 3))
    scales = [{"shape": [1], "type": "FLOAT32"}, {"shape": [1], "type": "INT32"}]
    for name, kind, details in (
            ("blocks", "BlockwiseQuantization", {"scales": 0, "zero_points": 1, "block_size": 2}),
            ("axes", "MultiAxisQuantization", {"scales": 0, "zero_points": -1, "block_size": 0, "quantized_dimensions": [0]}),
            ("axes_wrong", "MultiAxisQuantization", {"scales": 0, "zero_points": -1, "block_size": 0, "quantized_dimensions": [3]}),
            ("blocks_wrong", "BlockwiseQuantization", {"scales": 9, "zero_points": 1, "block_size": 2}),
            ("blocks_below", "BlockwiseQuantization", {"scales": 0, "zero_points": 1, "block_size": -2})):
        quantized = {"shape": [4], "type": "INT8", "quantization": {"scale": [0.5, 1], "details_type": kind, "details": details}}
        yield name, file_of(model_of([*scales, quantized], [b"\0\0\x80?", b"\0\0\0\0", b"abcd"]))
    outside = {"shape": [4], "type": "INT8", "buffer": 0, "external_buffer": 7}
    for name, entries in (("external", [(7, 0)]), ("external_group", [(7, 3)]), ("external_none", [(0, 0)]),
                          ("external_twice", [(7, 0), (7, 0)]), ("external_missing", [(8, 0)])):
        listed = [{"id": number, "group": group, "offset": 0, "length": 4, "packing": "none"} for number, group in entries]
        yield name, file_of(model_of([outside], [], external_buffer_groups=[{"name": "beside.bin"}], external_buffers=listed))
    late = model_of([{"shape": [1], "type": "INT8"}], [b"a"])
    late["buffers"][1] = {"offset": 1 << 40, "size": 8}
    yield "late", file_of(late)
