"""Pads, crops, places and copies by numbers of a run: nothing of them is known when the model is compiled. Values by numpy."""

import itertools
import unittest

import numpy as np
from onnx import helper

import cases
from one_node import element_type, floats
from run_axes_test import AXES, OfARun, ints

CUT = 'node ".*": pads of .* and .* take more away than axis [0-9] has, [0-9]|pads .* cut more than the extent [0-9]+ of dimension|the pads take more than axis [0-9] has'
NOTHING = 'node ".*": pads of .* and .* leave nothing of axis [0-9], of [0-9], that goes on|dimension [0-9] has extent 0, and there is nothing to fill'


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
        self.refuse("an extent is -1, expected 0 or more|shape is .-1,2.", "CenterCropPad", 18, [x, ints(-1, 2)], [x])

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
            self.refuse("a number of repeats is|attribute repeats has the value|an extent of the bound shapes passes", "Tile", 13, [x, ints(repeats)], [x])
        for mode in ("constant", "reflect", "edge", "wrap"):
            for pads in ((most, most), (-most - 1, -most - 1)):
                self.refuse("a pad is|an extent of the bound shapes passes|attribute pads has the value|pads of more than|the pads take more than", "Pad", 19, [x, ints(*pads)], [x], mode=mode)
        self.refuse("an extent is -1|has the negative extent -1", "Expand", 13, [floats(1, 3), ints(-1, 3)], [x])


def scattered(x, indices, updates, axis, reduction):
    """ScatterElements: each update of a column of the other axes to its place."""
    right = x.copy()
    for at in np.ndindex(*indices.shape):
        to = list(at)
        to[axis] = indices[at]
        right[tuple(to)] = COMBINE[reduction](right[tuple(to)], updates[at])
    return right


def scattered_tuples(x, indices, updates, reduction):
    right = x.copy()
    for at in np.ndindex(*indices.shape[:-1]):
        to = tuple(indices[at])
        right[to] = COMBINE[reduction](right[to], updates[at])
    return right


COMBINE = {"none": lambda old, new: new, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
KEPT = ((0, 0, 0, 0), (0, 1, 0, 1), (1, 1, 1, 1), (0, 0, 1, 0))


class Scatters(OfARun):
    """What is scattered are rows that data chooses."""

    def kept(self, names, axes, keep="k"):
        return [helper.make_node("Compress", [name, keep], [f"{name}_some"], axis=axis) for name, axis in zip(names, axes)]

    def test_elements(self):
        make = helper.make_node
        for axis, along, reduction, k in itertools.product((0, -1), (0, 1), COMBINE, KEPT):
            if reduction not in ("none", "add") and k != KEPT[1]:
                continue
            x, updates = floats(5, 6), floats(4, 4)
            k = np.array(k, bool)
            indices = np.stack([np.random.default_rng(3 + i).permutation(5)[:4] for i in range(4)], axis % 2 ^ 1)
            indices = np.where(indices % 2, indices - x.shape[axis], indices)
            right = scattered(x, np.compress(k, indices, along), np.compress(k, updates, along), axis % 2, reduction)
            nodes = [*self.kept(("i", "u"), (along, along)),
                     make("ScatterElements", ["x", "i_some", "u_some"], ["y0"], axis=axis, reduction=reduction)]
            with self.subTest(axis=axis, along=along, reduction=reduction, k=k):
                self.check_nodes(nodes, {"x": x, "i": indices, "u": updates, "k": k}, [right], 18)

    def test_elements_chosen_along_all_axes(self):
        make = helper.make_node
        nodes = [make("Compress", ["i", "k"], ["i_rows"], axis=0), make("Compress", ["i_rows", "l"], ["i_some"], axis=1),
                 make("Compress", ["u", "k"], ["u_rows"], axis=0), make("Compress", ["u_rows", "l"], ["u_some"], axis=1),
                 make("ScatterElements", ["x", "i_some", "u_some"], ["y0"], axis=1, reduction="add")]
        x, updates, indices = floats(4, 5), floats(4, 4), np.random.default_rng(2).integers(-5, 5, (4, 4))
        for k, l in itertools.product(KEPT, repeat=2):
            rows, columns = np.array(k, bool), np.array(l, bool)
            right = scattered(x, indices[rows][:, columns], updates[rows][:, columns], 1, "add")
            self.check_nodes(nodes, {"x": x, "i": indices, "u": updates, "k": rows, "l": columns}, [right], 18)

    def test_one_operand_of_a_fixed_extent(self):
        make = helper.make_node
        x, indices, updates = floats(5, 3), ints(*[[0, -1, 2], [4, 1, 1]]), floats(4, 3)
        nodes = [*self.kept("u", (0,)), make("ScatterElements", ["x", "i", "u_some"], ["y0"], axis=0)]
        others = [*self.kept("i", (0,)), make("ScatterElements", ["x", "i_some", "u"], ["y0"], axis=0)]
        tuples = [*self.kept("i", (0,)), make("ScatterND", ["x", "i_some", "u"], ["y0"])]
        wide, places = np.concatenate([indices, indices[::-1]]), ints([3], [-5], [1], [2])
        for k in KEPT:
            k = np.array(k, bool)
            cases = ((nodes, {"x": x, "i": indices, "u": updates, "k": k}, lambda: scattered(x, indices, updates[k], 0, "none")),
                     (others, {"x": x, "i": wide, "u": updates[:2], "k": k}, lambda: scattered(x, wide[k], updates[:2], 0, "none")),
                     (tuples, {"x": x, "i": places, "u": updates[:2], "k": k}, lambda: scattered_tuples(x, places[k], updates[:2], "none")))
            for made, feed, right in cases:
                if k.sum() == 2:
                    self.check_nodes(made, feed, [right()], 18)
                    continue
                with self.assertRaisesRegex(AssertionError, f'node "Scatter.*_1": .*({k.sum()}.* has to be .*2|2 has to be .*{k.sum()})'):
                    self.check_nodes(made, feed, [x], 18)

    def test_other_numbers_of_indices_and_updates(self):
        make = helper.make_node
        nodes = [*self.kept("i", (0,)), *self.kept("u", (0,), "l"), make("ScatterND", ["x", "i_some", "u_some"], ["y0"], reduction="add")]
        x, indices, updates = floats(5, 3), ints([4], [-5], [4], [1]), floats(4, 3)
        for k, l in itertools.product(KEPT, repeat=2):
            feed = {"x": x, "i": indices, "k": np.array(k, bool), "u": updates, "l": np.array(l, bool)}
            if sum(k) == sum(l):
                self.check_nodes(nodes, feed, [scattered_tuples(x, indices[feed["k"]], updates[feed["l"]], "add")], 18)
                continue
            with self.assertRaisesRegex(AssertionError, 'node "ScatterND_2": run[01] .[0-4]. has to be'):
                self.check_nodes(nodes, feed, [x], 18)

    def test_tuples(self):
        make, random = helper.make_node, np.random.default_rng(4)
        for depth, reduction, k in itertools.product((1, 2, 3), COMBINE, KEPT):
            if reduction not in ("none", "add") and k != KEPT[1]:
                continue
            x, k = floats(4, 3, 2), np.array(k, bool)
            places = np.stack(np.unravel_index(random.permutation(int(np.prod(x.shape[:depth])))[:4], x.shape[:depth]), -1)
            places = np.where(random.integers(0, 2, places.shape), places - np.array(x.shape[:depth]), places)
            updates = floats(4, *x.shape[depth:])
            nodes = [*self.kept(("i", "u"), (0, 0)), make("ScatterND", ["x", "i_some", "u_some"], ["y0"], reduction=reduction)]
            with self.subTest(depth=depth, reduction=reduction, k=k):
                right = scattered_tuples(x, places[k], updates[k], reduction)
                self.check_nodes(nodes, {"x": x, "i": places, "u": updates, "k": k}, [right], 18)
                # Along the second axis of the tuples.
                nodes = [*self.kept(("i", "u"), (1, 1)), make("ScatterND", ["x", "i_some", "u_some"], ["y0"], reduction=reduction)]
                self.check_nodes(nodes, {"x": x, "i": places[None], "u": updates[None], "k": k}, [right], 18)

    def test_data_of_the_run(self):
        """Data that is itself chosen, along the axis to which updates go and along another one."""
        make = helper.make_node
        x, indices, updates = floats(4, 4), np.random.default_rng(1).integers(-2, 2, (4, 4)), floats(4, 4)
        for axis, k in itertools.product((0, 1), KEPT[1:]):
            k = np.array(k, bool)
            indices = np.where(indices >= 0, 0, -1) if k.sum() == 1 else indices
            nodes = [*self.kept("xiu", (0, 0, 0)), make("ScatterElements", ["x_some", "i_some", "u_some"], ["y0"], axis=axis, reduction="add")]
            feed = {"x": x, "i": indices, "u": updates, "k": k}
            with self.subTest(axis=axis, k=k):
                self.check_nodes(nodes, feed, [scattered(x[k], indices[k], updates[k], axis, "add")], 18)
                nodes = [*self.kept("xu", (1, 1)), make("ScatterND", ["x_some", "i", "u_some"], ["y0"], reduction="max")]
                places = ints([2], [-4], [2], [3])
                self.check_nodes(nodes, {**feed, "i": places}, [scattered_tuples(x[:, k], places, updates[:, k], "max")], 18)

    def test_more_room_than_the_data_has(self):
        x, indices, updates = floats(5, 3), np.random.default_rng(6).integers(-5, 5, (2, 6)), floats(2, 6)
        nodes = [*self.kept(("i", "u"), (1, 1)), helper.make_node("ScatterElements", ["x", "i_some", "u_some"], ["y0"], axis=0, reduction="add")]
        for k in ((0, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 1), (1, 0, 0, 1, 0, 1), (1, 1, 1, 1, 0, 0)):
            k = np.array(k, bool)
            feed = {"x": x, "i": indices, "u": updates, "k": k}
            if k.sum() <= 3:
                self.check_nodes(nodes, feed, [scattered(x, indices[:, k], updates[:, k], 0, "add")], 18)
                continue
            with self.assertRaisesRegex(AssertionError, r'node "ScatterElements_2": run0 \(4\) has to be <= 3'):
                self.check_nodes(nodes, feed, [x], 18)

    def test_places_outside(self):
        make = helper.make_node
        x, k, updates = floats(3, 2), np.array([0, 1], bool), floats(2, 2)
        elements = [*self.kept(("i", "u"), (0, 0)), make("ScatterElements", ["x", "i_some", "u_some"], ["y0"], axis=0)]
        tuples = [*self.kept(("i", "u"), (0, 0)), make("ScatterND", ["x", "i_some", "u_some"], ["y0"])]
        for place in (3, 4, -4, -5, 2**40):
            for nodes, indices in ((elements, ints([0, 0], [0, place])), (tuples, ints([0], [place]))):
                with self.assertRaisesRegex(AssertionError, "error .*ind[ei]"):
                    self.check_nodes(nodes, {"x": x, "i": indices, "u": updates, "k": k}, [x])
                # What is not kept goes nowhere.
                rest = {"x": x, "i": indices[::-1].copy(), "u": updates, "k": k}
                right = scattered(x, indices[:1], updates[1:], 0, "none") if nodes is elements else scattered_tuples(x, indices[:1], updates[1:], "none")
                self.check_nodes(nodes, rest, [right])

    def check_free(self, nodes, shapes, feed, right, buckets="*"):
        graph = helper.make_graph(nodes, "graph", [helper.make_tensor_value_info(name, element_type(array), shapes.get(name, array.shape))
                                                   for name, array in feed.items()], [helper.make_tensor_value_info("y0", element_type(right), None)])

        def expect(answer, actual):
            self.assertTrue(answer.startswith("ok "), answer)
            self.assertEqual(cases.difference(actual["0"], right), "")

        self.run_model(graph, 18, feed, expect, buckets=buckets)

    def test_masked_elements_of_free_dims(self):
        """x[mask] = v, and the rows of x at which the mask holds."""
        make = helper.make_node
        nodes = [make("NonZero", ["m"], ["nz"]), make("Transpose", ["nz"], ["i"], perm=[1, 0])]
        for rows, columns in ((2, 4), (5, 3)):
            x, y = floats(rows, columns), floats(rows, columns)
            for m in (np.zeros(x.shape, bool), x > 0, np.ones(x.shape, bool)):
                right = np.where(m, y, x)
                both = [*nodes, make("GatherND", ["y", "i"], ["v"]), make("ScatterND", ["x", "i", "v"], ["y0"])]
                names = {name: ["N", "C"] for name in "xym"}
                self.check_free(both, names, {"x": x, "y": y, "m": m}, right)
                self.check_free(both, {}, {"x": x, "y": y, "m": m}, right, "")
                alone = [*nodes, make("ScatterND", ["x", "i", "v"], ["y0"])]
                self.check_free(alone, {}, {"x": x, "m": m, "v": y[m]}, right, "")
                self.check_free(alone, {**names, "v": ["K"]}, {"x": x, "m": m, "v": y[m]}, right)

    def test_chosen_rows_of_free_dims(self):
        make = helper.make_node
        for rows in (2, 6):
            x, y = floats(rows, 3), floats(rows, 3)
            for k in (np.zeros(rows, bool), np.arange(rows) % 2 == 1, np.ones(rows, bool)):
                nodes = [make("NonZero", ["k"], ["nz"]), make("Transpose", ["nz"], ["i"], perm=[1, 0]), make("Compress", ["y", "k"], ["some"], axis=0),
                         make("Shape", ["some"], ["like"]), make("Expand", ["i", "like"], ["places"]),
                         make("ScatterElements", ["x", "places", "some"], ["y0"], axis=0, reduction="add")]
                feed = {"x": x, "y": y, "k": k}
                self.check_free(nodes, {"x": ["N", 3], "y": ["N", 3], "k": ["N"]}, feed, np.where(k[:, None], x + y, x))
                self.check_free(nodes, {}, feed, np.where(k[:, None], x + y, x), "")

    def test_updates_of_which_there_are_none(self):
        """No rows of a shape that is known, or of one that a run binds, where a run chooses no rows either, or some."""
        make = helper.make_node
        nodes = [*self.kept("i", (0,)), make("ScatterND", ["x", "i_some", "u"], ["y0"], reduction="add")]
        others = [*self.kept("u", (0,)), make("ScatterND", ["x", "i", "u_some"], ["y0"], reduction="add")]
        elements = [*self.kept("i", (0,)), make("ScatterElements", ["x", "i_some", "u"], ["y0"], axis=0)]
        x = floats(5, 3)
        for k in KEPT[0], KEPT[1]:
            k = np.array(k, bool)
            for made, name, indices, updates in ((nodes, "u", ints([4], [-5], [4], [1]), x[:0]), (others, "i", np.zeros((0, 1), np.int64), x[:4]),
                                                 (elements, "u", np.zeros((4, 3), np.int64), x[:0])):
                feed = {"x": x, "i": indices, "u": updates, "k": k}
                for free in ({}, {name: ["K", *feed[name].shape[1:]]}):
                    with self.subTest(name=name, free=free, k=k):
                        if not k.any():
                            self.check_free(made, free, feed, x, "*" if free else "")
                            continue
                        with self.assertRaisesRegex(AssertionError, 'error .*node "Scatter'):
                            self.check_free(made, free, feed, x, "*" if free else "")


class Parts(OfARun):
    """Sequences of parts of what data chooses."""

    def check_parts(self, inputs, right, **options):
        make = helper.make_node
        operands = ["x_some", *(["split_some"] if "split_keep" in inputs else ["split"] if "split" in inputs else [])]
        kept = [make("Compress", [name, f"{name}_keep"], [f"{name}_some"], axis=0) for name in ("x", "split") if f"{name}_keep" in inputs]
        nodes = [*kept, make("SplitToSequence", operands, ["parts"], axis=0, **options), make("SequenceLength", ["parts"], ["y0"])]
        if not right:
            return self.check_nodes(nodes, inputs, [np.array(0)])
        nodes += [make("Constant", [], ["last"], value_int=-1), make("SequenceAt", ["parts", "last"], ["y1"]),
                  make("SequenceInsert", ["parts", "y1"], ["more"]), make("ConcatFromSequence", ["more"], ["y2"], axis=0)]
        return self.check_nodes(nodes, inputs, [np.array(len(right)), right[-1], np.concatenate([*right, right[-1]])])

    def test_parts(self):
        x = floats(7, 2)
        for keep in ((0, 0, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 1, 0), (1, 1, 0, 1, 1, 0, 1), (1, 1, 1, 1, 1, 1, 1)):
            some = x[np.array(keep, bool)]
            given = {"x": x, "x_keep": np.array(keep, bool)}
            with self.subTest(keep=keep):
                self.check_parts(given, [some[i:i + 1] for i in range(len(some))])
                for size in (1, 2, 7, 40):
                    self.check_parts({**given, "split": np.array(size)}, [some[i:i + size] for i in range(0, len(some), size)])
                lengths = np.array([len(some) // 2, 0, len(some) - len(some) // 2])
                parts = np.split(some, np.cumsum(lengths)[:-1])
                self.check_parts({**given, "split": lengths}, parts)
                self.check_parts({**given, "split": lengths, "split_keep": np.array([1, 0, 1], bool)}, [parts[0], parts[2]])


if __name__ == "__main__":
    unittest.main()
