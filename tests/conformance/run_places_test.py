"""Pads, crops, places and copies by numbers of a run: nothing of them is known when the model is compiled. Values by numpy."""

import itertools
import unittest

import numpy as np
from onnx import helper

from one_node import floats
from run_axes_test import AXES, OfARun, ints

CUT = 'node ".*": pads of .* and .* take more away than axis [0-9] has, [0-9]'
NOTHING = 'node ".*": pads of .* and .* leave nothing of axis [0-9], of [0-9], that goes on'


class Pads(OfARun):
    def test_modes(self):
        x = floats(3, 4)
        for before, behind in (((1, 2), (0, 3)), ((0, 0), (0, 0)), ((2, 0), (2, 3)), ((5, 9), (7, 11))):
            for mode in ("constant", "edge", "reflect", "wrap"):
                right = np.pad(x, list(zip(before, behind)), mode)
                self.check("Pad", 19, [x, ints(*before, *behind)], [right], mode=mode)
        self.check("Pad", 19, [x.astype(np.int8), ints(1, 0, 0, 2), np.array(7, np.int8)],
                   [np.pad(x.astype(np.int8), [(1, 0), (0, 2)], constant_values=7)])

    def test_axes(self):
        x = floats(2, 3, 4)
        for axes, pads in (((1,), (1, 2)), ((-1, 0), (0, 2, 3, 1)), ((2, 1, 0), (1, 0, 2, 0, 1, 3))):
            full = [(0, 0)] * 3
            for i, axis in enumerate(axes):
                full[axis] = (pads[i], pads[i + len(axes)])
            for mode in ("constant", "edge", "reflect", "wrap"):
                self.check("Pad", 19, [x, ints(*pads), None, ints(*axes)], [np.pad(x, full, mode)], mode=mode)
            self.check("Pad", 18, [x, ints(*pads), np.array(3, np.float32), ints(*axes)], [np.pad(x, full, constant_values=3)], constants=(1,))
            self.check("Pad", 18, [x, ints(*pads), None, ints(*axes)], [np.pad(x, full)], constants=(3,))

    def test_what_is_taken_away(self):
        x = floats(5)
        for pads, constant, edge, wrap in (((-1, 2), x[[1, 2, 3, 4, -1, -1]], x[[1, 2, 3, 4, 4, 4]], x[[1, 2, 3, 4, 1, 2]]),
                                           ((1, -3), x[[-1, 0, 1]], x[[0, 0, 1]], x[[1, 0, 1]]), ((-2, -2), x[2:3], x[2:3], x[2:3]),
                                           ((-3, -2), x[:0], x[:0], x[:0])):
            if -1 in pads:
                constant = np.concatenate([x[1:], np.zeros(2, np.float32)])
            elif 1 in pads:
                constant = np.concatenate([np.zeros(1, np.float32), x[:2]])
            for mode, right in (("constant", constant), ("edge", edge), ("wrap", wrap)):
                self.check("Pad", 19, [x, ints(*pads)], [right], mode=mode)

    def test_what_is_taken_away_goes_on_nowhere(self):
        """Negative pads come first, whichever end they are at, and whether they are known or a run's."""
        x = floats(5)
        for before, behind in itertools.product((-4, -1, 0, 2, 5), repeat=2):
            left = x[max(-before, 0):5 - max(-behind, 0)]
            if not len(left):
                continue
            for mode in ("edge", "reflect", "wrap"):
                places = np.arange(-max(before, 0), len(left) + max(behind, 0)) % len(left)
                right = left[places] if mode == "wrap" else np.pad(left, (max(before, 0), max(behind, 0)), mode)
                with self.subTest(mode=mode, before=before, behind=behind):
                    self.check("Pad", 19, [x, ints(before, behind)], [right], mode=mode)
                    self.check("Pad", 19, [x, ints(before, behind)], [right], mode=mode, constants=(1,))

    def test_pads_that_do_not_fit(self):
        x = floats(3)
        for mode in ("constant", "edge", "wrap"):
            self.refuse(f"{CUT}|{NOTHING}", "Pad", 19, [x, ints(-2, -2)], [x], mode=mode)
        for mode in ("edge", "reflect", "wrap"):
            for pads in ((-3, 1), (2, -3), (-4, 2), (-1, -2)):
                if sum(pads) + 3 == 0:
                    self.check("Pad", 19, [x, ints(*pads)], [x[:0]], mode=mode)
                    continue
                self.refuse(f"{CUT}|{NOTHING}", "Pad", 19, [x, ints(*pads)], [x], mode=mode)
                self.refuse("error ", "Pad", 19, [x, ints(*pads)], [x], mode=mode, constants=(1,))
        self.refuse(NOTHING, "Pad", 19, [x[:0], ints(0, 1)], [x], mode="edge")
        self.refuse(f"{CUT}|{NOTHING}", "Pad", 19, [np.zeros((0, 1), np.float32), ints(1, -2, 0, 1)], [x], mode="edge")
        self.check("Pad", 19, [x[:0], ints(2, 1)], [np.zeros(3, np.float32)])
        self.refuse(AXES, "Pad", 19, [x, ints(0, 1), None, ints(1)], [x])
        self.refuse("pads has 3 values, expected 2", "Pad", 19, [x, ints(0, 1, 1), None, ints(0)], [x])

    def test_free_and_decided_by_data(self):
        keep = np.array([True, False, True, True, True])
        for mode in ("constant", "reflect"):
            for rows in (3, 6):
                x = floats(rows, 2)
                self.check("Pad", 19, [x, ints(1, 4), None, ints(0)], [np.pad(x, [(1, 4), (0, 0)], mode)], mode=mode, free={0: {0: "N"}},
                           buckets="N=3")
            x = floats(5, 2)
            self.after_compress(helper.make_node("Pad", ["some", "pads", "", "axes"], ["y0"], mode=mode), x, keep, 0,
                                {"pads": ints(5, 2), "axes": ints(0)}, [np.pad(x[keep], [(5, 2), (0, 0)], mode)])

    def test_strings(self):
        x = np.array(["a", "b"])
        self.check("Pad", 19, [x, ints(1, 1)], [np.array(["", "a", "b", ""])])
        self.check("Pad", 19, [x, ints(2, 1)], [np.array(["a", "b", "a", "b", "a"])], mode="wrap")


class Places(OfARun):
    def middle(self, x, shape):
        for axis, wanted in enumerate(shape):
            extent = x.shape[axis]
            if wanted <= extent:
                x = np.take(x, np.arange((extent - wanted) // 2, (extent - wanted) // 2 + wanted), axis)
            else:
                x = np.pad(x, [((wanted - extent) // 2, (wanted - extent + 1) // 2) if d == axis else (0, 0) for d in range(x.ndim)])
        return x

    def test_center_crop_pad(self):
        x = floats(5, 4)
        for shape in ((5, 4), (2, 9), (8, 1), (0, 5), (3, 3)):
            self.check("CenterCropPad", 18, [x, ints(*shape)], [self.middle(x, shape)])
        self.check("CenterCropPad", 18, [x, ints(7)], [self.middle(x, (5, 7))], axes=[-1])
        self.check("CenterCropPad", 18, [x, ints(7, 2)], [self.middle(x, (2, 7))], axes=[1, 0])
        for rows in (4, 9):
            x = floats(rows, 3)
            self.check("CenterCropPad", 18, [x, ints(6, 2)], [self.middle(x, (6, 2))], free={0: {0: "N"}}, buckets="N=4")
        self.refuse("an extent is -1, expected 0 or more", "CenterCropPad", 18, [x, ints(-1, 2)], [x])

    def test_max_unpool(self):
        x, places = floats(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]], np.int64)
        small = np.zeros((1, 1, 4, 4), np.float32)
        small.flat[places.reshape(-1)] = x.reshape(-1)
        for shape in ((1, 1, 5, 5), (1, 1, 4, 4), (1, 1, 6, 4)):
            right = np.zeros(shape, np.float32)
            right[..., :4, :4] = small
            self.check("MaxUnpool", 11, [x, places, ints(*shape)], [right], kernel_shape=[2, 2], strides=[2, 2])
        for shape in ((1, 2, 4, 4), (2, 1, 4, 4), (1, 1, 4, -1)):
            self.refuse("output_shape has [12], expected [12]|an extent is -1", "MaxUnpool", 11, [x, places, ints(*shape)], [x], kernel_shape=[2, 2], strides=[2, 2])

    def test_unpooled_as_it_was(self):
        """Places are those of the map that was pooled where that has the shape."""
        x = floats(1, 2, 5, 5)
        nodes = [helper.make_node("MaxPool", ["x"], ["most", "places"], kernel_shape=[2, 2], strides=[2, 2]),
                 helper.make_node("MaxUnpool", ["most", "places", "shape"], ["y0"], kernel_shape=[2, 2], strides=[2, 2])]
        blocks = x[:, :, :4, :4].reshape(1, 2, 2, 2, 2, 2).max((3, 5))
        self.check_nodes(nodes, {"x": x, "shape": ints(*x.shape)}, [np.where(np.isin(x, blocks), x, 0)], 11)

    def test_tiles(self):
        x = floats(2, 3)
        for axis in (0, 1):
            for tiles in (0, 1, 4):
                operands = [x, np.array([tiles], np.float32), np.array([axis], np.float32)]
                right = np.concatenate([x] * tiles + [np.take(x, [], axis)], axis)
                self.check("Tile", 1, operands, [right])
                self.check("Tile", 1, operands, [right], constants=(2,))
        for tiles, axis in ((-1, 0), (2, 2)):
            self.refuse(f"{AXES}|a number of repeats is -1", "Tile", 1, [x, np.array([tiles], np.float32), np.array([axis], np.float32)], [x])

    def test_numbers_past_all_extents(self):
        x, most = floats(4), 2**63 - 1
        for repeats in (2**62, 2**61 + 1, -1):
            self.refuse("a number of repeats is", "Tile", 13, [x, ints(repeats)], [x])
        for mode in ("constant", "reflect", "edge", "wrap"):
            for pads in ((most, most), (-most - 1, -most - 1)):
                self.refuse("a pad is", "Pad", 19, [x, ints(*pads)], [x], mode=mode)
        self.refuse("an extent is -1", "Expand", 13, [floats(1, 3), ints(-1, 3)], [x])


if __name__ == "__main__":
    unittest.main()
