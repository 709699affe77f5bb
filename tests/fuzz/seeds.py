"""Writes structured seeds into corpus/: seeds.py. What a search over bytes would hardly come upon by itself: every field of
a format once, and files that are broken in one place behind several checks. The same files each time."""

import io
import struct
import tarfile
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

import seeds_caffe2
import seeds_cntk
import seeds_coreml
import seeds_mxnet
import seeds_onnx
import seeds_text
import seeds_tfjs
import seeds_tflite

CORPUS = Path(__file__).resolve().parent / "corpus"


def npy(array, version=1, descr=None, order="False", shape=None):
    shape = array.shape if shape is None else shape
    text = f"{{'descr': '{descr or array.dtype.str}', 'fortran_order': {order}, 'shape': {shape}}}\n".encode()
    size = struct.pack("<H", len(text)) if version == 1 else struct.pack("<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + array.tobytes()


def npz_seeds():
    ramp = np.arange(6, dtype=np.float32).reshape(2, 3)
    yield "version2.npy", npy(ramp, 2)
    yield "fortran.npy", npy(ramp, order="True")
    yield "big_endian.npy", npy(ramp.astype(">f4"))
    yield "bools.npy", npy(np.array([0, 1, 2], np.uint8), descr="|b1")
    yield "too_many_bytes.npy", npy(ramp) + b"x"
    yield "huge.npy", npy(ramp, shape=(1 << 40,))
    yield "no_such_extent.npy", npy(ramp, shape="(99999999999999999999,)")
    yield "no_such_order.npy", npy(ramp, order="Maybe")
    yield "no_such_type.npy", npy(ramp, descr="<c8")
    yield "version9.npy", npy(ramp, 9)
    yield "aligned.npz", zip_of([("a.npy", npy_padded(ramp, 35))])
    yield "twice.npz", zip_of([("a.npy", npy(ramp)), ("a.npy", npy(ramp))])
    yield "other_member.npz", zip_of([("a.txt", npy(ramp))])
    yield "other_size.npz", zip_of([("a.npy", npy(ramp, shape=(3, 3)))])
    yield "wrong_crc.npz", zip_of([("a.npy", npy(ramp))]).replace(struct.pack("<I", zlib.crc32(npy(ramp))), b"\0\1\2\3")
    yield "wrong_crc_aligned.npz", zip_of([("a.npy", npy_padded(ramp, 35))]).replace(
        struct.pack("<I", zlib.crc32(npy_padded(ramp, 35))), b"\0\1\2\3")
    yield "zip64.npz", zip64(npy(ramp))


def npy_padded(array, before):
    """A .npy whose data is at a multiple of 64 when `before` bytes precede it."""
    text = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {array.shape}}}".encode()
    text += b" " * (-(before + 10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + array.tobytes()


def zip_of(members, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", method) as archive:
        warnings.simplefilter("ignore")  # of two members with one name
        for name, data in members:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            archive.writestr(info, data)
    return buffer.getvalue()


def zip64(data):
    """One stored member, its sizes and the directory's place in the records of zip64, behind another extra field."""
    crc, name = zlib.crc32(data), b"a.npy"
    local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, 0, 0, 33, crc, len(data), len(data), len(name), 0) + name + data
    extra = struct.pack("<HHI", 0x5455, 4, 0) + struct.pack("<HHQQQ", 1, 24, len(data), len(data), 0)
    central = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0, 0, 0, 33, crc, 0xFFFFFFFF, 0xFFFFFFFF, len(name),
                          len(extra), 0, 0, 0, 0, 0xFFFFFFFF) + name + extra
    end64 = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, 1, 1, len(central), len(local))
    locator = struct.pack("<IIQI", 0x07064B50, 0, len(local) + len(central), 1)
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return local + central + end64 + locator + end


def tar_of(members, kinds=()):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, kind, target in kinds:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, target
            archive.addfile(info)
    return buffer.getvalue().rstrip(b"\0") + b"\0" * 1536


def package_members():
    with tarfile.open(CORPUS / "package/moves.tar") as archive:
        return [(member.name, archive.extractfile(member).read()) for member in archive if member.name in
                ("metadata.json", "mod.json", "mod.so", "mod.params")]


def package_seeds():
    members = dict(package_members())
    yield "unaligned.tar", tar_of(members.items())
    yield "no_code.tar", tar_of((name, data) for name, data in members.items() if name != "mod.so")
    yield "renamed_code.tar", tar_of((name.replace("mod.so", "mod.sx"), data) for name, data in members.items())
    yield "more_members.tar", tar_of([*members.items(), ("more", b"")])
    yield "other_abi.tar", tar_of({**members, "metadata.json": members["metadata.json"].replace(
        b'"abi_version":1', b'"abi_version":2')}.items())
    yield "fewer_params.tar", tar_of({**members, "mod.params": b"0123"}.items())
    yield "other_machine.tar", tar_of({**members, "metadata.json": members["metadata.json"].replace(
        b'"triple":"x86_64-', b'"triple":"aarch64-')}.items())
    yield "other_cpu.tar", tar_of({**members, "metadata.json": members["metadata.json"].replace(
        b'"sse3",', b'"amx-fp16",')}.items())
    yield "link.tar", tar_of([], [("mod.so", tarfile.SYMTYPE, "/etc/passwd")])
    yield "folder.tar", tar_of([("a/mod.so", b"")])
    yield "twice.tar", tar_of([("mod.so", b""), ("mod.so", b"")])


def archive_seeds():
    model = (CORPUS / "onnx/moves.onnx").read_bytes()
    external = seeds_onnx.external_model("data/weights.bin")
    weights = np.arange(4, dtype=np.float32).tobytes()
    yield "external.tar", tar_of([("./m.onnx", external), ("data/weights.bin", weights)])
    yield "external.zip", zip_of([("m.onnx", external), ("data/weights.bin", weights)], zipfile.ZIP_DEFLATED)
    yield "external_attribute.tar", tar_of([("m.onnx", seeds_onnx.external_attributes("weights.bin")), ("weights.bin", weights)])
    yield "external_missing.tar", tar_of([("m.onnx", external)])
    yield "external_outside.tar", tar_of([("m.onnx", seeds_onnx.external_model("../weights.bin"))])
    yield "two_models.tar", tar_of([("a.onnx", model), ("b.onnx", model)])
    yield "no_model.tar", tar_of([("a.txt", b"x")])
    yield "twice.tar", tar_of([("a.txt", b"x"), ("a.txt", b"x")])
    yield "absolute.zip", zip_of([("/a.onnx", model)])
    yield "bomb.zip", zip_of([("a.onnx", b"\0" * (3 << 20))], zipfile.ZIP_DEFLATED)


def format_seeds():
    model = CORPUS / "tfjs/layers"
    yield "torchscript.zip", zip_of([("net/data.pkl", b"\x80\x02."), ("net/code/a.py", b"def"), ("net/constants.pkl", b"\x80\x02.")])
    yield "exported.zip", zip_of([("net/archive_format", b"pt2"), ("net/models/model.json", b"{}")])
    yield "mlpackage.zip", zip_of([("m/Manifest.json", b"{}"), ("m/Data/com.apple.CoreML/model.mlmodel", b"x")])
    yield "program.zip", zip_of([("m/Manifest.json", dict(seeds_coreml.seeds())["manifest"]), ("m/Data/com.apple.CoreML/model.mlmodel", seeds_coreml.model())])
    yield "program.mlmodel", seeds_coreml.model()
    yield "nets.zip", zip_of([("m/init_net.pb", seeds_caffe2.init()), ("m/predict_net.pb", seeds_caffe2.predict())])
    yield "predict_net.pb", seeds_caffe2.predict()
    yield "cntk.model", seeds_cntk.small()
    yield "saved_model.zip", zip_of([("m/saved_model.pb", (CORPUS / "graph_def/saved_model").read_bytes())])
    yield "saved_model.tar", tar_of([("m/saved_model.pb", (CORPUS / "graph_def/saved_model").read_bytes())])
    yield "tensors.npz", zip_of([("a.npy", npy(np.arange(2)))])
    yield "bundle.zip", zip_of([("a.tflite", b"x"), ("b.tflite", b"x")])
    yield "onnx.zip", zip_of([("a.onnx", b"x")])
    yield "tfjs.zip", zip_of([("m/model.json", model.read_bytes().split(b"\0")[0])])
    yield "tfjs.tar", tar_of([("m/model.json", model.read_bytes().split(b"\0")[0])])
    yield "unknown.zip", zip_of([("a.txt", b"x")])
    yield "graph.pbtxt", b'node { name: "a" }'


def jpeg_claiming(width, height):
    """The committed JPEG with another size in its frame header."""
    data = (CORPUS / "picture/rgb.jpg").read_bytes()
    at = next(data.index(mark) for mark in (b"\xff\xc0", b"\xff\xc2") if mark in data)
    return data[:at + 5] + struct.pack(">HH", height, width) + data[at + 9:]


def picture_seeds():
    jpeg, png = ((CORPUS / f"picture/rgb.{kind}").read_bytes() for kind in ("jpg", "png"))
    yield "large.jpg", jpeg_claiming(2000, 2000)
    yield "largest.jpg", jpeg_claiming(65500, 65500)
    yield "cut.jpg", jpeg[:len(jpeg) * 3 // 4]
    yield "no_frame.jpg", b"\xff\xd8\xff\xd9"
    yield "cut.png", png[:len(png) * 3 // 4]
    yield "no_header.png", png[:16]
    yield "plain.pbm", b"P1 5 2\n10110 01101"
    yield "bits.pbm", b"P4 9 2\n\x5a\x80\xa5\x00"
    yield "plain.pgm", b"P2 # levels\n2 2 9\n0 9 3 1"
    yield "deep.ppm", b"P6 1 1 700\n" + struct.pack(">HHH", 0, 700, 350)
    yield "plain.ppm", b"P3 1 1 7 0 7 8"
    yield from compressed_picture_seeds()
    yield from tiff_seeds()


def compressed_picture_seeds():
    """WebP and JPEG 2000 by Pillow, and JPEG 2000 whose first marker says something else."""
    picture = Image.frombytes("RGB", (12, 9), bytes(i * 7 % 256 for i in range(12 * 9 * 3)))
    gray = picture.convert("L")

    def written(image, kind, **options):
        out = io.BytesIO()
        image.save(out, kind, **options)
        return out.getvalue()

    yield "lossy.webp", written(picture, "WEBP")
    yield "lossless.webp", written(picture, "WEBP", lossless=True)
    yield "clear.webp", written(gray.convert("LA").convert("RGBA"), "WEBP")
    yield "animated.webp", written(picture, "WEBP", save_all=True, append_images=[gray.convert("RGB")])
    yield "colour.jp2", written(picture, "JPEG2000")
    yield "ycc.jp2", written(picture, "JPEG2000").replace(struct.pack(">I", 16), struct.pack(">I", 18), 1)
    yield "gray.jp2", written(gray, "JPEG2000", irreversible=True)
    tiles = written(picture, "JPEG2000", no_jp2=True, tile_size=(8, 8))
    yield "tiles.j2k", tiles
    for name, at, value in (("large", 8, 60000), ("no_tiles", 24, 0), ("outside", 16, 99), ("components", 40, 99 << 16)):
        yield f"{name}.j2k", tiles[:at] + struct.pack(">I", value) + tiles[at + 4:]
    yield "cut.j2k", tiles[:len(tiles) * 2 // 3]
    entries = Image.frombytes("L", (5, 4), bytes(i % 3 for i in range(20)))
    file = written(entries, "JPEG2000")
    at = file.index(b"jp2h") - 4
    length = struct.unpack_from(">I", file, at)[0]
    palette = struct.pack(">HB", 3, 3) + b"\7\7\x0b" + b"".join(struct.pack(">BBH", 80 * i, 255 - i, 999 * i) for i in range(3))
    mapping = b"".join(struct.pack(">HBB", 0, 1, column) for column in range(3))
    boxes = b"".join(struct.pack(">I", 8 + len(data)) + kind + data for kind, data in ((b"pclr", palette), (b"cmap", mapping)))
    yield "palette.jp2", file[:at] + struct.pack(">I", length + len(boxes)) + file[at + 4:at + length] + boxes + file[at + length:]


def tiff_of(parts, fields, order="<"):
    """The parts of a 4 x 3 picture, then the fields, each of 16-bit numbers; `fields` by tag."""
    starts = [8 + sum(map(len, parts[:i])) for i in range(len(parts))]
    tiled = 322 in fields
    fields = {256: [4], 257: [3], **fields, 324 if tiled else 273: starts, 325 if tiled else 279: [len(part) for part in parts]}
    end, lists, rows = starts[-1] + len(parts[-1]), b"", b""
    for tag in sorted(fields):
        data = struct.pack(f"{order}{len(fields[tag])}H", *fields[tag])
        if len(data) > 4:
            lists += data
            data = struct.pack(order + "I", end + len(lists) - len(data))
        rows += struct.pack(order + "HHI", tag, 3, len(fields[tag])) + data.ljust(4, b"\0")
    return (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", end + len(lists)) + b"".join(parts) + lists + struct.pack(
        order + "H", len(fields)) + rows + bytes(4)


def codes(values):
    """Codes of LZW: a clear, nine bits each, the end."""
    bits = "".join(f"{value:09b}" for value in [256, *values, 257])
    return int(bits.ljust(-(-len(bits) // 8) * 8, "0"), 2).to_bytes(-(-len(bits) // 8), "big")


def tiff_seeds():
    """A form of TIFF each."""
    rgb, gray = {258: [8, 8, 8], 262: [2], 277: [3]}, {258: [8], 262: [1]}
    ramp = bytes(range(0, 252, 7))
    yield "lzw.tiff", tiff_of([codes([7, 258, 259, 9, 260, 9])], {**gray, 259: [5]})
    yield "lzw_differences.tiff", tiff_of([codes(range(1, 37))], {**rgb, 259: [5], 317: [2]}, ">")
    yield "lzw_no_code.tiff", tiff_of([codes([7, 300])], {**gray, 259: [5]})
    yield "packbits.tiff", tiff_of([b"\xfd\x05\x80\x07" + ramp[:8]], {**gray, 259: [32773]})
    yield "deflate.tiff", tiff_of([zlib.compress(ramp[:24]), zlib.compress(ramp[:12])], {**rgb, 259: [8], 278: [2]})
    yield "tiles.tiff", tiff_of([zlib.compress(bytes(range(12)))] * 4, {**rgb, 259: [32946], 322: [2], 323: [2]})
    yield "tiles_over.tiff", tiff_of([bytes(range(27))] * 2, {**rgb, 322: [3], 323: [3]})
    yield "short_palette.tiff", tiff_of([b"\xff\xff" * 3], {258: [4], 262: [3], 320: list(range(5))})
    yield "large_tiles.tiff", tiff_of([ramp], {**rgb, 322: [60000], 323: [60000]})
    yield "planes.tiff", tiff_of([ramp[:12], ramp[12:24], ramp[24:]], {**rgb, 284: [2]}, ">")
    yield "entries.tiff", tiff_of([b"\x01\x23" * 3], {258: [4], 262: [3], 320: list(range(0, 48000, 1000))})
    yield "bits.tiff", tiff_of([b"\x50\xa0\x90"], {258: [1], 262: [0]})
    yield "deep.tiff", tiff_of([zlib.compress(bytes(range(24)))], {258: [16], 259: [8], 262: [1], 317: [2]}, ">")
    yield "deep_tiles.tiff", tiff_of([bytes(range(224)) + bytes(32)], {258: [16], 262: [0], 322: [8], 323: [16]})
    yield "inks.tiff", tiff_of([bytes(range(48))], {258: [8] * 4, 262: [5], 277: [4]})
    yield "unassociated.tiff", tiff_of([bytes(range(48))], {258: [8] * 4, 262: [2], 277: [4], 338: [2]})
    page = Image.frombytes("L", (12, 9), bytes(255 * (i % 5 < 2) for i in range(12 * 9)))
    for kind in ("group3", "group4", "tiff_ccitt", "jpeg"):
        out = io.BytesIO()
        (page if kind == "jpeg" else page.convert("1")).save(out, "TIFF", compression=kind)
        yield f"{kind}.tiff", out.getvalue()
    out = io.BytesIO()
    page.convert("RGB").save(out, "TIFF", compression="jpeg")
    yield "jpeg_colour.tiff", out.getvalue()
    yield "clear.tiff", tiff_of([bytes(range(48))], {258: [8] * 4, 262: [2], 277: [4]})
    yield "no_rows.tiff", tiff_of([ramp], {**gray, 278: [0]})
    yield "fewer_parts.tiff", tiff_of([ramp], {**gray, 278: [1]})


def elf_seeds():
    good = bytearray((CORPUS / "elf/moves.so").read_bytes())

    def changed(at, form, *values):
        data = bytearray(good)
        struct.pack_into(form, data, at, *values)
        return bytes(data)

    yield "relocations.so", relocations(good)
    yield "other_machine.so", changed(18, "<H", 183)
    yield "executable_data.so", changed(64 + 2 * 56 + 4, "<I", 7)
    yield "interpreter.so", changed(64 + 6 * 56, "<I", 3)
    yield "library.so", changed(0x680, "<Q", 1)
    yield "constructor.so", changed(0x680, "<Q", 12)
    yield "hash.so", changed(0x680 + 7 * 16, "<Q", 4)


def relocations(good):
    """Relative relocations in writable data, of which the first changes the second."""
    data, at = bytearray(good[:0x710]), 0x680
    # The dynamic section has nine entries of 16 bytes: four go, three come and the table follows.
    kept = [bytes(data[at + 16 * i:at + 16 * (i + 1)]) for i in range(3, 8)]
    table = 0x2680 + 0x90
    entries = kept + [struct.pack("<QQ", tag, value) for tag, value in ((7, table), (8, 48), (9, 24), (0, 0))]
    data[at:at + 0x90] = b"".join(entries)
    data += struct.pack("<QQq", table + 24, 8, 0) + struct.pack("<QQq", table + 16, 8, 16)
    struct.pack_into("<QQ", data, 64 + 3 * 56 + 32, 0x90 + 48, 0x980)
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HHH", data, 58, 64, 0, 0)
    return bytes(data)


def main():
    folders = {"npz": npz_seeds, "package": package_seeds, "archive": archive_seeds, "picture": picture_seeds,
               "elf": elf_seeds, "model_format": format_seeds, "tflite": seeds_tflite.seeds, "onnx": seeds_onnx.seeds, "tfjs": seeds_tfjs.tfjs_seeds,
               "coreml": seeds_coreml.seeds, "mxnet": seeds_mxnet.seeds, "caffe2": seeds_caffe2.seeds, "cntk": seeds_cntk.seeds,
               **seeds_text.SEEDS}
    for folder, seeds in folders.items():
        for name, data in seeds():
            (CORPUS / folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


if __name__ == "__main__":
    main()
