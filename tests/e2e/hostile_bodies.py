"""Bodies that mean harm, made from a seed: small to send, large to read."""

import ctypes
import ctypes.util
import functools
import io
import random
import struct
import zipfile
import zlib

MIB = 1 << 20


def repeated(pattern, count, head=b"", tail=b""):
    """Pieces of head, pattern × count and tail, so that no body is whole in memory here."""
    yield head
    piece = pattern * max(1, MIB // len(pattern))
    whole, rest = divmod(count, max(1, MIB // len(pattern)))
    for _ in range(whole):
        yield piece
    yield pattern * rest
    yield tail


def zlib_coded(pieces, bits):
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    return b"".join([packer.compress(piece) for piece in pieces] + [packer.flush()])


def gzip_coded(pieces):
    return zlib_coded(pieces, 31)


def deflate_coded(pieces):
    return zlib_coded(pieces, 15)


def zstd_coded(data):
    library = ctypes.CDLL(ctypes.util.find_library("zstd"))
    library.ZSTD_compressBound.restype = library.ZSTD_compress.restype = ctypes.c_size_t
    library.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    library.ZSTD_compress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    room = library.ZSTD_compressBound(len(data))
    out = ctypes.create_string_buffer(room)
    return out.raw[:library.ZSTD_compress(out, room, data, len(data), 1)]


def zstd_of_one_byte(byte, size):
    """A frame of run-length blocks: 128 KiB of one byte in four."""
    block = 1 << 17
    frame = b"\x28\xb5\x2f\xfd\x00\x38"
    while size > 0:
        now = min(size, block)
        size -= now
        frame += struct.pack("<I", now << 3 | 1 << 1 | (size == 0))[:3] + byte
    return frame


def npy(descr, shape, data=b"", fortran=False, header=None):
    head = repr({"descr": descr, "fortran_order": fortran, "shape": shape}).encode()
    head += b" " * ((header or 118) - len(head) - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def zipped(members, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method, compresslevel=1) as packed:
        for name, data in members:
            packed.writestr(name, data)
    return buffer.getvalue()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, color=2, interlaced=0, rows=None, extra=b""):
    """Zeros of that size; `rows` fewer than there are is a lie."""
    channels = {0: 1, 2: 3, 6: 4}[color]
    row = bytes(1 + width * channels)
    data = deflate_coded(repeated(row, height if rows is None else rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, interlaced)) + extra +
            chunk(b"IDAT", data) + chunk(b"IEND", b""))


def picture(kind, width, height, **options):
    from PIL import Image  # pylint: disable=import-outside-toplevel
    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, kind, **options)
    return buffer.getvalue()


def many_scans(count, side):
    """A gray baseline JPEG whose only scan stands `count` times."""
    from PIL import Image  # pylint: disable=import-outside-toplevel
    buffer = io.BytesIO()
    Image.new("L", (side, side)).save(buffer, "JPEG")
    data = buffer.getvalue()
    scan = data.index(b"\xff\xda")
    return data[:-2] + data[scan:-2] * (count - 1) + b"\xff\xd9"


def scalar(rng):
    return rng.choice([b"0", b"1", b"null", b"true", b"\"x\"", b"1e5", b"-0.0", b"[]", b"{}"])


# name: (content type, content coding or None, bytes). JSON ones stand inside what v2, jobs and deployments begin with.
JSON, NPZ, ANY = "application/json", "application/x-npz", "application/octet-stream"


def json_bodies(rng, scale):
    n = int(scale * MIB)
    inputs = b'{"inputs":[{"name":"image","datatype":"FP32","shape":[1,1,28,28],"data":'
    yield "empty objects", JSON, "gzip", lambda: gzip_coded(repeated(b"{},", 60 * n, b'{"inputs":[', b"{}]}"))
    yield "empty objects in zstd", JSON, "zstd", lambda: zstd_coded(b'{"inputs":[' + b"{}," * (20 * n) + b"{}]}")
    yield "empty arrays", JSON, "deflate", lambda: deflate_coded(repeated(b"[],", 20 * n, b"[", b"[]]"))
    yield "a million empty objects in the clear", JSON, None, lambda: b'{"inputs":[' + b"{}," * (n // 3) + b"{}]}"
    yield "deep arrays", JSON, None, lambda: b"[" * n
    yield "deep arrays in data", JSON, None, lambda: inputs + b"[" * (n // 2) + b"]" * (n // 2) + b"}]}"
    yield "deep objects", JSON, "gzip", lambda: gzip_coded(repeated(b'{"a":', 10 * n))
    yield "a wide tensor", JSON, "gzip", lambda: gzip_coded(repeated(b"1,", 60 * n, inputs + b"[", b"1]}]}"))
    yield "a wide tensor of mixed things", JSON, "gzip", lambda: gzip_coded(
        repeated(b",".join(scalar(rng) for _ in range(16)) + b",", n, inputs + b"[", b"1]}]}"))
    yield "a long string", JSON, "gzip", lambda: gzip_coded(repeated(b"x", 60 * n, b'{"model_name":"', b'"}'))
    yield "a string of escapes", JSON, "gzip", lambda: gzip_coded(repeated(b"\\u0041", 10 * n, b'{"id":"', b'"}'))
    yield "a number of a megabyte", JSON, None, lambda: b'{"priority":' + b"7" * n + b"}"
    yield "a number of a megabyte in a tensor", JSON, None, lambda: inputs + b"[0." + b"3" * n + b"]}]}"
    yield "an exponent of a megabyte", JSON, None, lambda: inputs + b"[1e" + b"9" * n + b"]}]}"
    yield "many keys", JSON, "gzip", lambda: gzip_coded([b'{"a":0'] + [b',"%x":0' % i for i in range(2 * n)] + [b"}"])
    yield "one key many times", JSON, "gzip", lambda: gzip_coded(repeated(b'"kind":0,', 10 * n, b"{", b'"kind":0}'))
    yield "many inputs", JSON, "gzip", lambda: gzip_coded(
        [b'{"inputs":['] + [b'{"name":"i%d","datatype":"INT8","shape":[1],"data":[1]},' % i for i in range(n // 4)] + [b"{}]}"])
    yield "a shape that is no memory", JSON, None, lambda: inputs.replace(b"[1,1,28,28]", b"[2000000000,2000000000]") + b"[1]}]}"
    yield "a rank of a million", JSON, None, lambda: inputs.replace(b"[1,1,28,28]", b"[" + b"1," * (n // 2) + b"1]") + b"[1]}]}"
    yield "blanks", JSON, "gzip", lambda: gzip_coded(repeated(b" ", 100 * n, b"{", b"}"))
    yield "no UTF-8", JSON, None, lambda: b'{"' + bytes(rng.randrange(128, 256) for _ in range(1000)) + b'":0}'
    yield "bytes behind the end", JSON, "gzip", lambda: gzip_coded(repeated(b"}", 10 * n, b"{"))
    yield "lines", JSON, "gzip", lambda: gzip_coded(repeated(b"\n", 60 * n))
    yield "lines of empty objects", JSON, "gzip", lambda: gzip_coded(repeated(b"{}\n", 20 * n))


def npz_bodies(rng, scale):
    n = int(scale * MIB)
    yield "65,000 members", NPZ, None, lambda: zipped(((f"{i}.npy", npy("|u1", (), b"x")) for i in range(int(65000 * scale))),
                                                   zipfile.ZIP_STORED)
    yield "members with headers of 64 KiB", NPZ, None, lambda: zipped(
        (f"{i}.npy", npy("|u1", (), b"x", header=65000)) for i in range(int(4000 * scale)))
    yield "members with headers of 9 KiB", NPZ, None, lambda: zipped(
        (f"{i}.npy", npy("|u1", (), b"x", header=9000)) for i in range(int(8000 * scale)))
    yield "a zip bomb", NPZ, None, lambda: zipped([("image.npy", npy("<f4", (60 * n,), bytes(240 * n)))])
    yield "a zip bomb of strings", NPZ, None, lambda: zipped([("image.npy", npy("<U1", (20 * n,), bytes(80 * n)))])
    yield "a Fortran bomb", NPZ, None, lambda: zipped(
        [("image.npy", npy("<f4", (1024, 30 * n // 1024), bytes(4 * 1024 * (30 * n // 1024)), True))])
    yield "a header of 10^18 elements", NPZ, None, lambda: zipped([("image.npy", npy("<f4", (10**9, 10**9)))])
    yield "a zip in a coding", NPZ, "gzip", lambda: gzip_coded([zipped([("image.npy", npy("|u1", (240 * n,), bytes(240 * n)))])])
    yield "a directory that lies", NPZ, None, lambda: zipped([("image.npy", npy("<f4", (1,), b"1234"))])[:-12] + b"\xff" * 12
    yield "long names", NPZ, None, lambda: zipped(((chr(97 + i) * 60000 + ".npy", b"") for i in range(20)), zipfile.ZIP_STORED)
    yield "noise", NPZ, None, lambda: rng.randbytes(n)


def coded_bodies(rng, scale):
    n = int(scale * MIB)
    yield "a gzip bomb", ANY, "gzip", lambda: gzip_coded(repeated(b"\0", 1000 * n))
    yield "a deflate bomb", ANY, "deflate", lambda: deflate_coded(repeated(b"\0", 1000 * n))
    yield "a zstd bomb", ANY, "zstd", lambda: zstd_of_one_byte(b"\0", 16000 * n)
    yield "gzip in gzip", ANY, "gzip", lambda: gzip_coded([gzip_coded(repeated(b"\0", 1000 * n))])
    yield "layered codings", ANY, "gzip, gzip", lambda: gzip_coded([gzip_coded(repeated(b"\0", 100 * n))])
    yield "100,000 gzip members", ANY, "gzip", lambda: gzip_coded([b""]) * int(100_000 * scale)
    yield "zlib's format named gzip", ANY, "gzip", lambda: deflate_coded([b"hello"])
    yield "gzip that is cut off", ANY, "gzip", lambda: gzip_coded(repeated(b"\0", 10 * n))[:-5]
    yield "a zstd window of 1 GiB", ANY, "zstd", lambda: b"\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00"
    yield "zstd frames of nothing", ANY, "zstd", lambda: b"\x50\x2a\x4d\x18\0\0\0\0" * (n // 2)
    yield "an unknown coding", ANY, "br", lambda: b"x"


def picture_bodies(_rng, scale):
    side = int(7000 * min(scale, 1) ** 0.5)
    yield "a PNG of 50 Mpixels", "image/png", None, lambda: png(side, side)
    yield "a gray PNG of 50 Mpixels", "image/png", None, lambda: png(side, side, 0)
    yield "an interlaced PNG of 50 Mpixels", "image/png", None, lambda: png(side, side, 6, 1)
    yield "a thin PNG", "image/png", None, lambda: png(60000, 3)
    yield "a PNG of 4 Gpixels", "image/png", None, lambda: png(65535, 65535, rows=2)
    yield "a PNG with a text bomb", "image/png", None, lambda: png(
        8, 8, extra=chunk(b"zTXt", b"a\0\0" + deflate_coded(repeated(b"\0", int(100 * MIB * scale)))))
    yield "a JPEG of 50 Mpixels", "image/jpeg", None, lambda: picture("JPEG", side, side)
    yield "a progressive JPEG of 50 Mpixels", "image/jpeg", None, lambda: picture("JPEG", side, side, progressive=True)
    yield "a JPEG of 40 scans of 50 Mpixels", "image/jpeg", None, lambda: many_scans(40, side)
    yield "a WebP of 16 Mpixels", "image/webp", None, lambda: picture("WEBP", 4000, 4000, quality=1, method=0)
    yield "a TIFF of 50 Mpixels", "image/tiff", None, lambda: picture("TIFF", side, side, compression="tiff_lzw")
    yield "a JPEG 2000", "image/jp2", None, lambda: picture("JPEG2000", 1000, 1000)


class Attack:
    """One body and how it is sent: "whole", "chunked" (in large chunks), "bytes" (chunks of one byte), "drip" (a beginning,
    then nothing more, then the client goes)."""

    def __init__(self, name, media, coding, make, framing="whole"):
        self.name, self.media, self.coding, self.framing = name, media, coding, framing
        self.body = functools.lru_cache(1)(make)


def attacks(seed, scale=1.0):
    """All of them; `scale` makes the large ones smaller."""
    rng = random.Random(seed)
    made = [Attack(*row) for bodies in (json_bodies, npz_bodies, coded_bodies, picture_bodies) for row in bodies(rng, scale)]
    made.append(Attack("one byte a chunk", JSON, None, lambda: b" " * 20_000 + b"{}", "bytes"))
    made.append(Attack("a chunked megabyte of noise", ANY, None, lambda: rng.randbytes(MIB), "chunked"))
    made.append(Attack("a beginning and no end", ANY, None, lambda: b"x" * 1000, "drip"))
    made.append(Attack("a length of 200 MiB and no bytes", ANY, None, lambda: b"", "announced"))
    return made
