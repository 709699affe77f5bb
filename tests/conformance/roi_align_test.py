"""RoiAlign whose number of sampling points depends on the box (sampling_ratio 0, the default), with values by numpy."""

import math
import unittest

import numpy as np

from one_node import OneNode, floats


def bilinear_parts(plane, y, x):
    """The four weighed pixels around a point; zeros for one that is more than a pixel outside."""
    height, width = plane.shape
    if y < -1 or y > height or x < -1 or x > width:
        return [0.0] * 4
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = math.floor(y), math.floor(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, aside = y - top, x - left
    return [(1 - down) * (1 - aside) * plane[top, left], (1 - down) * aside * plane[top, right],
            down * (1 - aside) * plane[bottom, left], down * aside * plane[bottom, right]]


def roi_align(x, boxes, pictures, height, width, scale, half_pixel, mode, samples=0):
    result = np.zeros((len(boxes), x.shape[1], height, width))
    for n, (box, picture) in enumerate(zip(boxes.astype(np.float64), pictures)):
        left, top, right, bottom = box * scale - (0.5 if half_pixel else 0)
        wide, high = right - left, bottom - top
        if not half_pixel:
            wide, high = max(wide, 1), max(high, 1)
        rows, columns = (samples, samples) if samples else (math.ceil(high / height), math.ceil(wide / width))
        for c in range(x.shape[1]):
            for i in range(height):
                for j in range(width):
                    parts = [bilinear_parts(x[picture, c], top + (i + (a + 0.5) / rows) * high / height,
                                            left + (j + (b + 0.5) / columns) * wide / width)
                             for a in range(rows) for b in range(columns)]
                    if parts:
                        result[n, c, i, j] = np.max(parts) if mode == "max" else np.sum(parts) / len(parts)
    return result.astype(x.dtype)


BOXES = np.array([[0.3, 1.1, 7.9, 8.7], [2, 3, 2.4, 3.1], [-6, -5, 3, 14], [5, 5, 30, 40], [4, 4, 4, 4], [50, 60, 70, 90]])
PICTURES = np.array([1, 0, 1, 0, 0, 1])


class AdaptiveRoiAlign(OneNode):
    def compare(self, opset, half_pixel, x=None, boxes=BOXES, digits=5, **attributes):
        x = floats(2, 3, 11, 9) if x is None else x
        wanted = roi_align(x, boxes, PICTURES[:len(boxes)], attributes.get("output_height", 1), attributes.get("output_width", 1),
                           attributes.get("spatial_scale", 1.0), half_pixel, attributes.get("mode", "avg"), attributes.get("sampling_ratio", 0))
        self.check("RoiAlign", opset, [x, boxes.astype(x.dtype), PICTURES[:len(boxes)]], [wanted], digits=digits, **attributes)

    def test_as_many_samples_as_are_asked_for(self):
        for mode, samples in (("avg", 1), ("avg", 2), ("max", 3)):
            with self.subTest(mode=mode, samples=samples):
                sizes = {"mode": mode, "sampling_ratio": samples, "output_height": 3, "output_width": 2, "spatial_scale": 0.5}
                if mode == "avg":
                    self.compare(10, False, **sizes)
                self.compare(16, True, **sizes)

    def test_modes_and_coordinates_of_each_opset(self):
        for mode in ("avg", "max"):
            with self.subTest(mode=mode):
                sizes = {"mode": mode, "output_height": 3, "output_width": 2}
                self.compare(10, False, **sizes)
                self.compare(16, True, **sizes)
                self.compare(16, False, coordinate_transformation_mode="output_half_pixel", sampling_ratio=0, **sizes)
                self.compare(22, True, coordinate_transformation_mode="half_pixel", spatial_scale=0.75, **sizes)

    def test_one_bin_and_more_bins_than_pixels(self):
        self.compare(16, True)
        self.compare(16, True, output_height=13, output_width=17)
        self.compare(16, True, x=floats(2, 1, 1, 1), output_height=2, output_width=2)

    def test_other_types(self):
        self.compare(16, True, x=floats(2, 3, 11, 9).astype(np.float64), output_height=2, output_width=2)
        self.compare(16, True, x=floats(2, 3, 11, 9).astype(np.float16), boxes=np.round(BOXES), digits=2, output_height=2,
                     output_width=2)

    def test_boxes_of_any_size_take_bounded_work(self):
        x = np.ones((2, 1, 4, 4), np.float32)
        boxes = np.array([[-1e30, -1e30, 1e30, 1e30], [0, 0, np.inf, 2], [0, np.nan, 3, 3], [-1e6, -1e6, 1e6, 1e6]], np.float32)
        # Of 2e6 points an axis, those from one pixel before to one behind weigh 1.
        share = np.float32((6 / 2e6)**2)
        wanted = np.array([0, 0, 0, share], np.float32).reshape(4, 1, 1, 1)
        self.check("RoiAlign", 16, [x, boxes, np.zeros(4, np.int64)], [wanted], digits=12)

    def test_picture_that_is_not_there(self):
        from onnx import helper
        names = {"x": floats(2, 3, 5, 5), "boxes": BOXES.astype(np.float32), "pictures": PICTURES + 1}
        types = {"x": 1, "boxes": 1, "pictures": 7}
        graph = helper.make_graph([helper.make_node("RoiAlign", list(names), ["y"])], "one",
                                  [helper.make_tensor_value_info(name, types[name], array.shape) for name, array in names.items()],
                                  [helper.make_tensor_value_info("y", 1, None)])
        self.run_model(graph, 16, names, lambda answer, _: self.assertIn("box 0 is in picture 2 of 2", answer))


if __name__ == "__main__":
    unittest.main()
