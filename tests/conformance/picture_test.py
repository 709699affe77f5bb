"""ImageDecoder of opset 20: files written here by their formats' definitions."""

import struct
import unittest
import zlib

import numpy as np

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

    def test_broken_files(self):
        picture = RANDOM.integers(0, 256, (5, 7, 3)).astype(np.uint8)
        for write in (bmp, pnm, tiff):
            with self.assertRaises(AssertionError) as caught:
                self.decode(write(picture)[:-30], picture)
            self.assertRegex(str(caught.exception), "(BMP|PNM|TIFF): ")


if __name__ == "__main__":
    unittest.main()
