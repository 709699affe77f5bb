"""ImageDecoder of opset 20: files written here by their formats' definitions, and by Pillow where those are long."""

import io
import struct
import unittest
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from one_node import RANDOM, OneNode


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(picture):
    height, width, _ = picture.shape
    rows = b"".join(b"\0" + row.tobytes() for row in picture)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def bmp(picture, top_down=False):
    height, width, _ = picture.shape
    rows = [row[:, ::-1].tobytes() for row in (picture if top_down else picture[::-1])]
    data = b"".join(row + bytes(-len(row) % 4) for row in rows)
    return (b"BM" + struct.pack("<IHHI", 54 + len(data), 0, 0, 54)
            + struct.pack("<IiiHHIIiiII", 40, width, -height if top_down else height, 1, 24, 0, len(data), 2835, 2835, 0, 0) + data)


def bmp_of_palette(indices, palette):
    height, width = indices.shape
    table = b"".join(bytes([*color[::-1], 0]) for color in palette)
    data = b"".join(row.tobytes() + bytes(-width % 4) for row in indices[::-1])
    start = 54 + len(table)
    return (b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start)
            + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 0, len(data), 2835, 2835, len(palette), 0) + table + data)


def pnm(picture):
    height, width, channels = picture.shape
    return b"P%d\n# a comment\n%d %d\n255\n" % (6 if channels == 3 else 5, width, height) + picture.tobytes()


def tiff_of(parts, order, described):
    """The data of strips or tiles, then `described`: fields as (tag, kind, values), in which "starts" and "sizes" stand for
    those of the parts."""
    starts = [8 + sum(map(len, parts[:i])) for i in range(len(parts))]
    end = 8 + sum(map(len, parts))
    lists, fields = b"", []

    def field(tag, kind, values):
        nonlocal lists
        data = struct.pack(order + ("H" if kind == 3 else "I") * len(values), *values)
        if len(data) > 4:
            place = end + len(lists)
            lists += data
            data = struct.pack(order + "I", place)
        fields.append(struct.pack(order + "HHI", tag, kind, len(values)) + data.ljust(4, b"\0"))

    for tag, kind, values in described:
        field(tag, kind, {"starts": starts, "sizes": [len(part) for part in parts]}[values] if isinstance(values, str) else values)
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return (mark + struct.pack(order + "I", end + len(lists)) + b"".join(parts) + lists
            + struct.pack(order + "H", len(fields)) + b"".join(fields) + bytes(4))


def tiff(picture, order="<", strips=2):
    height, width, channels = picture.shape
    parts = [rows.tobytes() for rows in np.array_split(picture, strips)]
    return tiff_of(parts, order, [
        (256, 4, [width]), (257, 4, [height]), (258, 3, [8] * channels), (259, 3, [1]), (262, 3, [2 if channels == 3 else 1]),
        (273, 4, "starts"), (277, 3, [channels]), (278, 4, [-(-height // strips)]), (279, 4, "sizes")])


def tiff_of_tiles(picture, side, order="<"):
    """Square tiles, those at the border filled up, each compressed by Deflate."""
    height, width, channels = picture.shape
    filled = np.pad(picture, ((0, -height % side), (0, -width % side), (0, 0)), mode="edge")
    parts = [zlib.compress(filled[y:y + side, x:x + side].tobytes()) for y in range(0, height, side) for x in range(0, width, side)]
    return tiff_of(parts, order, [
        (256, 4, [width]), (257, 4, [height]), (258, 3, [8] * channels), (259, 3, [8]), (262, 3, [2]), (277, 3, [channels]),
        (322, 3, [side]), (323, 3, [side]), (324, 4, "starts"), (325, 4, "sizes")])


def tiff_of_planes(picture, order=">"):
    """A strip a colour, as runs of bytes as they are."""
    height, width, channels = picture.shape
    planes = [picture[:, :, c].tobytes() for c in range(channels)]
    parts = [b"".join(bytes([len(run) - 1]) + run for run in (plane[i:i + 128] for i in range(0, len(plane), 128))) for plane in planes]
    return tiff_of(parts, order, [
        (256, 4, [width]), (257, 4, [height]), (258, 3, [8] * channels), (259, 3, [32773]), (262, 3, [2]), (273, 4, "starts"),
        (277, 3, [channels]), (278, 4, [height]), (279, 4, "sizes"), (284, 3, [2])])


def box(kind, content):
    return struct.pack(">I", 8 + len(content)) + kind + content


def jp2_of_palette(indices, palette):
    """A gray JPEG 2000 by Pillow whose samples are entries of a palette."""
    file = by_pillow(indices, "JPEG2000")
    at = file.index(b"jp2h") - 4
    length = int.from_bytes(file[at:at + 4], "big")
    colors = struct.pack(">HB", len(palette), 3) + b"\7" * 3 + palette.tobytes()
    mapping = b"".join(struct.pack(">HBB", 0, 1, column) for column in range(3))
    added = box(b"pclr", colors) + box(b"cmap", mapping)
    return file[:at] + struct.pack(">I", length + len(added)) + file[at + 4:at + length] + added + file[at + length:]


def by_pillow(picture, kind, **options):
    out = io.BytesIO()
    Image.fromarray(picture).save(out, kind, **options)
    return out.getvalue()


def read_by_pillow(file, mode="RGB"):
    return np.asarray(Image.open(io.BytesIO(file)).convert(mode))


class Pictures(OneNode):
    def decode(self, file, right, pixel_format="RGB"):
        """The file as the model's and as a run's."""
        for constants in ((0,), ()):
            self.check("ImageDecoder", 20, [np.frombuffer(file, np.uint8)], [right], constants=constants, pixel_format=pixel_format)
        self.assertTrue(self.said.startswith("ok 0 "), self.said)

    def answer(self, model, feed, buckets=""):
        self.said = super().answer(model, feed, buckets)
        return self.said

    def test_large_pictures(self):
        """Pictures that are larger than usual hints of extents."""
        for shape in ((70, 3, 3), (2, 600, 3), (90, 700, 3)):
            picture = RANDOM.integers(0, 256, shape).astype(np.uint8)
            self.decode(png(picture), picture)
            self.decode(bmp(picture), picture[:, :, ::-1], "BGR")

    def test_a_picture_that_goes_on(self):
        """What is computed of a picture that a run decodes."""
        picture = RANDOM.integers(0, 256, (6, 9, 3)).astype(np.uint8)
        file = np.frombuffer(png(picture), np.uint8)
        graph = helper.make_graph(
            [helper.make_node("ImageDecoder", ["f"], ["p"]), helper.make_node("Cast", ["p"], ["n"], to=TensorProto.FLOAT),
             helper.make_node("Transpose", ["n"], ["y"], perm=[2, 0, 1]), helper.make_node("ReduceMean", ["n", "a"], ["m"])], "net",
            [helper.make_tensor_value_info("f", TensorProto.UINT8, file.shape)],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "ym"], [numpy_helper.from_array(np.array([0, 1]), "a")])

        def expect(answer, outputs):
            self.assertTrue(answer.startswith("ok 0 "), answer)
            np.testing.assert_array_equal(outputs["0"], picture.transpose(2, 0, 1).astype(np.float32))
            np.testing.assert_allclose(outputs["1"], picture.mean((0, 1), keepdims=True), rtol=1e-5)

        self.run_model(graph, 20, {"f": file}, expect)

    def test_formats(self):
        picture = RANDOM.integers(0, 256, (5, 7, 3)).astype(np.uint8)
        for write in (png, bmp, pnm, tiff, lambda p: bmp(p, True), lambda p: tiff(p, ">", 3)):
            file = write(picture)
            self.decode(file, picture)
            self.decode(file, picture[:, :, ::-1], "BGR")
        gray = picture[:, :, :1]
        for write in (pnm, tiff):
            self.decode(write(gray), gray, "Grayscale")
            self.decode(write(gray), gray.repeat(3, 2))
        palette = RANDOM.integers(0, 256, (9, 3)).astype(np.uint8)
        indices = RANDOM.integers(0, 9, (4, 6)).astype(np.uint8)
        self.decode(bmp_of_palette(indices, palette), palette[indices])

    def test_gray_of_colours(self):
        picture = RANDOM.integers(0, 256, (6, 4, 3)).astype(np.uint8)
        # ITU-R 601, in 16 bits behind the point.
        sums = picture.astype(np.int64) @ np.array([19595, 38470, 7471])
        self.decode(bmp(picture), ((sums + 32768) >> 16).astype(np.uint8)[..., None], "Grayscale")

    def test_compressed_pictures(self):
        picture = RANDOM.integers(0, 256, (21, 34, 3)).astype(np.uint8)
        smooth = np.add.outer(np.arange(21) * 5, np.arange(34) * 4).astype(np.uint8)[..., None] // np.array([1, 2, 3], np.uint8)
        exact = (("WEBP", {"lossless": True}), ("JPEG2000", {}), ("JPEG2000", {"no_jp2": True}), ("JPEG2000", {"tile_size": (16, 16)}))
        for kind, options in exact:
            file = by_pillow(picture, kind, **options)
            self.decode(file, picture)
            self.decode(file, picture[:, :, ::-1], "BGR")
        for kind, options in (("WEBP", {"quality": 60}), ("JPEG2000", {"irreversible": True, "quality_layers": [8]}), ("JPEG", {"quality": 70}),
                              ("PNG", {}), ("BMP", {}), ("TIFF", {})):
            file = by_pillow(smooth, kind, **options)
            right = read_by_pillow(file)
            self.decode(file, right)
            self.decode(file, right[:, :, ::-1], "BGR")
            self.decode(file, read_by_pillow(file, "L")[..., None], "Grayscale")

    def test_gray_and_transparent_pictures(self):
        gray = RANDOM.integers(0, 256, (9, 12)).astype(np.uint8)
        for kind in ("JPEG2000", "JPEG", "PNG", "BMP", "TIFF", "PPM"):
            file = by_pillow(gray, kind)
            right = read_by_pillow(file, "L")[..., None]
            self.decode(file, right, "Grayscale")
            self.decode(file, right.repeat(3, 2))
        clear = RANDOM.integers(0, 256, (9, 12, 4)).astype(np.uint8)
        for kind, options in (("WEBP", {"lossless": True, "exact": True}), ("JPEG2000", {})):
            self.decode(by_pillow(clear, kind, **options), clear[..., :3])

    def test_deep_components(self):
        deep = (np.arange(108, dtype=np.uint16) * 601).reshape(9, 12)
        self.decode(by_pillow(deep, "JPEG2000"), np.floor(deep * (255 / 65535) + 0.5).astype(np.uint8)[..., None], "Grayscale")

    def test_forms_of_netpbm(self):
        levels = np.array([[0, 3, 7], [1, 5, 6]])
        plain = b"P2 # levels\n3 2\n7\n0 3 7\n1 5 6\n"
        right = np.floor(levels * 255 / 7 + 0.5).astype(np.uint8)
        self.decode(plain, right[..., None], "Grayscale")
        self.decode(b"P3 1 2 7\n0 3 7 1 5 6", right.reshape(2, 1, 3))
        self.decode(b"P5 3 2 7\n" + levels.astype(np.uint8).tobytes(), right[..., None], "Grayscale")
        self.decode(b"P5 3 2 700\n" + (levels * 100).astype(">u2").tobytes(), right[..., None], "Grayscale")
        bits = RANDOM.integers(0, 2, (3, 11)).astype(np.uint8)
        black = np.where(bits, 0, 255).astype(np.uint8)[..., None]
        self.decode(b"P4\n11 3\n" + np.packbits(bits, axis=1).tobytes(), black, "Grayscale")
        self.decode(b"P1\n11 3\n" + "\n".join("".join(map(str, row)) for row in bits).encode(), black.repeat(3, 2))

    def test_compressed_tiff(self):
        picture = RANDOM.integers(0, 256, (37, 90, 3)).astype(np.uint8)
        smooth = np.add.outer(np.arange(120) // 7 * 5, np.arange(150) * 4).astype(np.uint8)[..., None] // np.array([1, 2, 3], np.uint8)
        for kind in ("tiff_lzw", "packbits", "tiff_adobe_deflate", "tiff_deflate"):
            for one in (picture, smooth):
                file = by_pillow(one, "TIFF", compression=kind)
                self.decode(file, one)
                self.decode(by_pillow(one[:, :, 0], "TIFF", compression=kind), one[:, :, :1], "Grayscale")
        for kind in ("tiff_lzw", "tiff_adobe_deflate"):
            self.decode(by_pillow(smooth, "TIFF", compression=kind, tiffinfo={317: 2}), smooth)

    def test_forms_of_tiff(self):
        picture = RANDOM.integers(0, 256, (37, 50, 3)).astype(np.uint8)
        self.decode(tiff_of_tiles(picture, 16), picture)
        self.decode(tiff_of_planes(picture), picture)
        palette, indices = RANDOM.integers(0, 256, (16, 3)), RANDOM.integers(0, 16, (5, 8)).astype(np.uint8)
        packed = (indices[:, ::2] << 4 | indices[:, 1::2]).tobytes()
        colors = [int(value) * 257 for value in palette.T.ravel()]
        shape = [(256, 4, [8]), (257, 4, [5])]
        strip = [(273, 4, "starts"), (277, 3, [1]), (278, 4, [5]), (279, 4, "sizes")]
        self.decode(tiff_of([packed], "<", shape + [(258, 3, [4]), (262, 3, [3])] + strip + [(320, 3, colors)]),
                    palette[indices].astype(np.uint8))
        bits = RANDOM.integers(0, 2, (5, 8)).astype(np.uint8)
        rows = np.packbits(bits, axis=1).tobytes()
        for white, right in ((0, 255 - bits * 255), (1, bits * 255)):
            self.decode(tiff_of([rows], ">", shape + [(262, 3, [white])] + strip), right[..., None], "Grayscale")
        deep = RANDOM.integers(0, 65536, (5, 8))
        right = np.floor(deep * (255 / 65535) + 0.5).astype(np.uint8)[..., None]
        differences = np.diff(deep, axis=1, prepend=0) % 65536
        for order in "<>":
            for values, predictor in ((deep, 1), (differences, 2)):
                data = zlib.compress(values.astype(order + "u2").tobytes())
                described = shape + [(258, 3, [16]), (259, 3, [8]), (262, 3, [1])] + strip + [(317, 3, [predictor])]
                self.decode(tiff_of([data], order, described), right, "Grayscale")

    def test_colours_of_tiff(self):
        inks = RANDOM.integers(0, 256, (9, 12, 4)).astype(np.uint8)
        out = io.BytesIO()
        Image.fromarray(inks, "CMYK").save(out, "TIFF", compression="tiff_lzw")
        levels = 255 - inks.astype(int)
        self.decode(out.getvalue(), (levels[..., :3] * levels[..., 3:] // 255).astype(np.uint8))
        for extra in (0, 1, 2):
            clear = tiff_of([inks.tobytes()], "<", [
                (256, 4, [12]), (257, 4, [9]), (258, 3, [8] * 4), (262, 3, [2]), (273, 4, "starts"), (277, 3, [4]), (279, 4, "sizes"),
                (338, 3, [extra])])
            self.decode(clear, inks[..., :3])

    def test_facsimiles_in_tiff(self):
        page = np.kron(RANDOM.integers(0, 2, (19, 30)), np.ones((3, 4), int)).astype(bool)
        for kind in ("group3", "group4", "tiff_ccitt"):
            self.decode(by_pillow(page, "TIFF", compression=kind), (page * 255).astype(np.uint8)[..., None], "Grayscale")

    def test_jpeg_in_tiff(self):
        smooth = np.add.outer(np.arange(37) * 5, np.arange(50) * 4).astype(np.uint8)[..., None] // np.array([1, 2, 3], np.uint8)
        for picture in (smooth, smooth[..., 0]):
            file = by_pillow(picture, "TIFF", compression="jpeg")
            self.decode(file, read_by_pillow(file))
            start = file.index(b"\xff\xd8\xff", 8)
            self.undecodable(file[:start + 100] + bytes(400) + file[start + 500:])

    def test_deep_tiles_of_tiff(self):
        deep = RANDOM.integers(0, 65536, (16, 32))
        parts = [deep[:, x:x + 16].astype("<u2").tobytes() for x in (0, 16)]
        right = np.floor(deep * (255 / 65535) + 0.5).astype(np.uint8)[..., None]
        shape = [(256, 4, [32]), (257, 4, [16]), (258, 3, [16]), (262, 3, [1]), (277, 3, [1]), (322, 3, [16]), (323, 3, [16])]
        self.decode(tiff_of(parts, "<", shape + [(324, 4, "starts"), (325, 4, "sizes")]), right, "Grayscale")
        narrow = [(256, 4, [20]), *shape[1:5], (322, 3, [32]), (323, 3, [16])]
        self.decode(tiff_of([deep.astype("<u2").tobytes()], "<", narrow + [(324, 4, "starts"), (325, 4, "sizes")]), right[:, :20], "Grayscale")
        colors = RANDOM.integers(0, 65536, (5, 7, 3))
        file = tiff_of([colors.astype(">u2").tobytes()], ">", [
            (256, 4, [7]), (257, 4, [5]), (258, 3, [16] * 3), (262, 3, [2]), (273, 4, "starts"), (277, 3, [3]), (279, 4, "sizes")])
        self.decode(file, np.floor(colors * (255 / 65535) + 0.5).astype(np.uint8))

    def test_jpeg2000_with_a_palette(self):
        palette = RANDOM.integers(0, 256, (9, 3)).astype(np.uint8)
        indices = RANDOM.integers(0, 9, (14, 16)).astype(np.uint8)
        file = jp2_of_palette(indices, palette)
        self.decode(file, palette[indices])
        self.undecodable(file.replace(b"cmap", b"cmaq"))

    def undecodable(self, file):
        """By the standard's text the result is an empty picture."""
        for pixel_format, channels in (("RGB", 3), ("Grayscale", 1)):
            self.decode(file, np.zeros((0, 0, channels), np.uint8), pixel_format)

    def refused(self, file, said):
        """What is not implemented, or too large, is no empty picture."""
        with self.assertRaises(AssertionError) as caught:
            self.decode(file, np.zeros((0, 0, 3), np.uint8))
        self.assertRegex(str(caught.exception), said)

    def test_broken_files(self):
        picture = RANDOM.integers(0, 256, (5, 7, 3)).astype(np.uint8)
        for write in (bmp, pnm, tiff):
            self.undecodable(write(picture)[:-30])
        self.undecodable(b"no picture at all")
        self.undecodable(b"\xff\xd8\xff" + bytes(40))
        packed = by_pillow(np.zeros((40, 40, 3), np.uint8), "TIFF", compression="tiff_lzw")
        strip = packed.index(b"\x80\x00")
        self.undecodable(packed[:strip] + b"\xff" * 8 + packed[strip + 8:])

    def test_forms_that_are_not_implemented(self):
        cmyk = RANDOM.integers(0, 256, (8, 8, 4)).astype(np.uint8)
        out = io.BytesIO()
        Image.fromarray(cmyk, "CMYK").save(out, "JPEG")
        self.refused(out.getvalue(), "CMYK pictures are not supported")
        self.refused(by_pillow(cmyk[..., :3], "TIFF", compression="zstd"), "TIFF: not implemented: compression 50000")
        self.refused(by_pillow(RANDOM.random((8, 8), np.float32), "TIFF"), "TIFF: not implemented: samples that are no whole numbers")
        self.refused(tiff(np.zeros((8, 8, 9), np.uint8)), "TIFF: not implemented: 9 samples")

    def test_broken_compressed_files(self):
        noise = RANDOM.integers(0, 256, (40, 40, 3)).astype(np.uint8)
        for kind, options in (("WEBP", {"lossless": True}), ("WEBP", {}), ("JPEG2000", {}), ("JPEG2000", {"no_jp2": True})):
            file = by_pillow(noise, kind, **options)
            for length in (len(file) // 2, 60, 20, 13):
                self.undecodable(file[:length])

    def test_what_starts_claim(self):
        """Extents, tiles and components are refused before there is room for them."""
        file = by_pillow(np.zeros((4, 4, 3), np.uint8), "JPEG2000", no_jp2=True)
        claims = {8: (60000).to_bytes(4, "big") + (60000).to_bytes(4, "big"), 24: bytes(8), 40: (16000).to_bytes(2, "big"),
                  16: (9).to_bytes(4, "big")}
        claims[8, 24] = ((7000).to_bytes(4, "big") + (7000).to_bytes(4, "big"), (1).to_bytes(4, "big") * 2)
        for places, values in claims.items():
            broken = bytearray(file)
            for at, value in zip(*([places], [values]) if isinstance(places, int) else (places, values)):
                broken[at:at + len(value)] = value
            if places == 16 or places == 24:
                self.undecodable(bytes(broken))
            else:
                self.refused(bytes(broken), "pixels are allowed|JPEG 2000: not implemented: (16000 components|more than 16384 tiles)")


if __name__ == "__main__":
    unittest.main()
