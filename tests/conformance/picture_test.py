"""ImageDecoder of opset 20: files written here by their formats' definitions, and by Pillow where those are long."""

import io
import struct
import unittest
import zlib

import numpy as np
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


def tiff(picture, order="<", strips=2):
    """The rows in strips, then the fields of the picture."""
    height, width, channels = picture.shape
    parts = [rows.tobytes() for rows in np.array_split(picture, strips)]
    starts = [8 + sum(map(len, parts[:i])) for i in range(strips)]
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

    field(256, 4, [width])
    field(257, 4, [height])
    field(258, 3, [8] * channels)
    field(259, 3, [1])
    field(262, 3, [2 if channels == 3 else 1])
    field(273, 4, starts)
    field(277, 3, [channels])
    field(278, 4, [-(-height // strips)])
    field(279, 4, [len(part) for part in parts])
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return (mark + struct.pack(order + "I", end + len(lists)) + b"".join(parts) + lists
            + struct.pack(order + "H", len(fields)) + b"".join(fields) + bytes(4))


def by_pillow(picture, kind, **options):
    out = io.BytesIO()
    Image.fromarray(picture).save(out, kind, **options)
    return out.getvalue()


def read_by_pillow(file, mode="RGB"):
    return np.asarray(Image.open(io.BytesIO(file)).convert(mode))


class Pictures(OneNode):
    def decode(self, file, right, pixel_format="RGB"):
        self.check("ImageDecoder", 20, [np.frombuffer(file, np.uint8)], [right], pixel_format=pixel_format)

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

    def test_broken_files(self):
        picture = RANDOM.integers(0, 256, (5, 7, 3)).astype(np.uint8)
        for write in (bmp, pnm, tiff):
            with self.assertRaises(AssertionError) as caught:
                self.decode(write(picture)[:-30], picture)
            self.assertRegex(str(caught.exception), "(BMP|PNM|TIFF): ")
        noise = RANDOM.integers(0, 256, (40, 40, 3)).astype(np.uint8)
        for kind, options in (("WEBP", {"lossless": True}), ("WEBP", {}), ("JPEG2000", {}), ("JPEG2000", {"no_jp2": True})):
            file = by_pillow(noise, kind, **options)
            for length in (len(file) // 2, 60, 20, 13):
                with self.assertRaises(AssertionError) as caught:
                    self.decode(file[:length], noise)
                self.assertRegex(str(caught.exception), "(WebP|JPEG 2000): ")

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
            with self.assertRaises(AssertionError) as caught:
                self.decode(bytes(broken), np.zeros((4, 4, 3), np.uint8))
            self.assertRegex(str(caught.exception), "pixels are allowed|JPEG 2000: (its extents|16000 components|it has more)")


if __name__ == "__main__":
    unittest.main()
