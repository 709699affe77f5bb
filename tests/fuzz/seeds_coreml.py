"""Seeds of the target coreml: the size of a weight file (four bytes), that file, and the message of model.mlmodel; and one of a manifest."""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures"))

from proto_bytes import message, number, varint  # noqa: E402


def entry(field, key, value):
    return message(field, message(1, key), message(2, value))


def tensor(dtype, *dims):
    return message(1, number(1, dtype), number(2, len(dims)), *(message(3, message(2, number(1, 0)) if dim < 0 else message(1, number(1, dim))) for dim in dims))


def immediate(kind, dtype, dims, data):
    """A tensor whose elements are list `kind` of its message."""
    return message(2, tensor(dtype, *dims)) + message(3, message(1, message(kind, message(1, data))))


def text(word):
    return immediate(4, 2, (), word)


def blob(dtype, dims, offset):
    return message(2, tensor(dtype, *dims)) + message(5, message(1, "@model_path/weights/weight.bin"), number(2, offset))


def const(name, value):
    return message(3, message(1, "const"), message(3, message(1, name), message(2, tensor(11))), entry(5, "name", text(name)), entry(5, "val", value))


def weights():
    """Blobs of float16, float32 and uint4."""
    file = struct.pack("<II", 3, 2).ljust(64, b"\0")
    for dtype, data in ((1, struct.pack("<2e", 1, -2)), (2, struct.pack("<2f", 3, 4)), (11, b"\x21\x03")):
        file += struct.pack("<IIQQQ", 0xDEADBEEF, dtype, len(data), len(file) + 64, 4 if dtype == 11 else 0).ljust(64, b"\0") + data.ljust(64, b"\0")
    return file


def program():
    """Every form of a value, a block within an operation, a state, and two specializations."""
    listed = message(2, message(2, b"")) + message(3, message(3, message(1, text("cat")), message(1, text("dog"))))
    values = [immediate(1, 11, (2,), struct.pack("<2f", 1, 2)), immediate(2, 23, (3,), varint(1) + varint(-1) + varint(7)), immediate(3, 1, (2,), b"\1\0"), text("same"),
              immediate(5, 24, (1,), varint(-5)), immediate(6, 12, (1,), struct.pack("<d", 0.5)), immediate(7, 10, (2,), struct.pack("<2e", 1, 2)),
              immediate(7, 35, (3,), b"\x21\x03"), blob(10, (2,), 64), blob(11, (2,), 192), blob(35, (3,), 320), listed,
              message(2, message(3, b"")) + message(3, message(2, message(1, text("x")))), message(2, message(4, b"")) + message(3, message(4, b""))]
    nodes = [const(f"c{index}", value) for index, value in enumerate(values)]
    inner = message(4, message(1, message(1, "t"), message(2, tensor(11, 2))), message(2, "t"))
    nodes.append(message(3, message(1, "cond"), entry(2, "pred", message(1, message(1, "c2"))), message(3, message(1, "y"), message(2, tensor(11, -1))), inner, inner))
    nodes.append(message(3, message(1, "add"), entry(2, "x", message(1, message(1, "x")) + message(1, message(2, text("in place")))), message(3, message(1, "z"), message(2, tensor(11, 2)))))
    block = b"".join(nodes) + message(2, "y") + entry(4, "a", text("b"))
    inputs = [message(1, message(1, "x"), message(2, tensor(11, -1, 2))), message(1, message(1, "s"), message(2, message(5, message(1, tensor(10, 4)))))]
    function = b"".join(inputs) + message(2, "CoreML7") + entry(3, "CoreML6", message(2, "x")) + entry(3, "CoreML7", block)
    return number(1, 1) + entry(2, "main", function) + entry(2, "other", function) + message(3, "doc")


def description():
    array = message(5, message(1, varint(1)), number(2, 65568), message(21, message(1, message(1, varint(1) + varint(2))), message(1, message(1, varint(4) + varint(2)))))
    ranged = message(5, message(31, message(1, number(1, 1), number(2, -1)), message(1, number(1, 2), number(2, 2))))
    picture = message(4, number(1, 8), number(2, 8), message(31, message(1, number(1, 4), number(2, 16)), message(2, number(1, 4), number(2, -1))), number(3, 30))
    sized = message(4, message(21, message(1, number(1, 8), number(2, 6)), message(1, number(1, 4), number(2, 9))), number(3, 10))
    features = [message(1, message(1, name), message(3, kind, number(1000, 1))) for name, kind in (("x", array), ("r", ranged), ("p", picture), ("q", sized))]
    second = message(20, message(1, "other"), message(2, message(1, "x"), message(3, ranged)), message(3, message(1, "y")))
    return b"".join(features) + message(10, message(1, "y")) + second + message(21, "main") + message(100, message(1, "what it is"), message(2, "1.0"), message(3, "who"))


def model(kind=502, content=None):
    return number(1, 8) + message(2, description()) + message(kind, program() if content is None else content)


def with_weights(data, file):
    return struct.pack("<I", len(file)) + file + data


def changed(at, value):
    file = bytearray(weights())
    struct.pack_into("<Q", file, at, value)
    return bytes(file)


def seeds():
    yield "every", with_weights(model(), weights())
    yield "network", with_weights(model(500, b""), b"")
    yield "newer", with_weights(model(content=entry(2, "main", entry(3, "CoreML77", b""))), b"")
    yield "no_program", with_weights(number(1, 8) + message(2, b""), b"")
    yield "no_block", with_weights(model(content=entry(2, "main", b"")), b"")
    yield "huge_blob", with_weights(model(), changed(72, 1 << 62))
    yield "blob_elsewhere", with_weights(model(), changed(80, (1 << 64) - 1))
    yield "no_weights", with_weights(model(), b"")
    nested = text("x")
    for _ in range(60):
        nested = message(3, message(3, message(1, nested)))
    yield "deep", with_weights(model(content=entry(2, "main", entry(3, "CoreML7", const("c", nested)))), b"")
    yield "manifest", b'{"rootModelIdentifier":"A","itemInfoEntries":{"A":{"path":"com.apple.CoreML/model.mlmodel"}}}'
    yield "manifest_outside", b'{"rootModelIdentifier":"A","itemInfoEntries":{"A":{"path":"../../model.mlmodel"}}}'
