"""Resize in its modes, with values by numpy from the standard's text: along each axis an element is the filter's mean over all
elements of an endless line, on which those outside of the input are the nearest inside, or nothing."""

import itertools
import math
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from one_node import OneNode, element_type, floats

NEAREST = {"round_prefer_floor": lambda x: math.ceil(x - 0.5), "round_prefer_ceil": lambda x: math.floor(x + 0.5),
           "floor": math.floor, "ceil": math.ceil}


def triangle(x, _):
    return max(0.0, 1 - abs(x))


def keys(x, a):
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def position(x, size, out, scale, coordinates, roi):
    if coordinates == "align_corners":
        return 0.0 if out == 1 else x * (size - 1) / (out - 1)
    if coordinates == "asymmetric":
        return x / scale
    if coordinates == "tf_crop_and_resize":
        start, end = roi
        if out == 1:
            return 0.5 * (start + end) * (size - 1)
        return start * (size - 1) + x * (end - start) * (size - 1) / (out - 1)
    if coordinates == "pytorch_half_pixel" and out == 1:
        return 0.0
    at = (x + 0.5) / scale - 0.5
    if coordinates == "half_pixel_symmetric":
        adjustment = out / (scale * size)
        return size / 2 * (1 - adjustment) + at
    return at


def resized_line(x, out, scale, mode, coordinates, roi, nearest, a, exclude, antialias, fill):
    """The last axis of x."""
    size = x.shape[-1]
    result = np.zeros((*x.shape[:-1], out))
    for i in range(out):
        at = position(i, size, out, scale, coordinates, roi)
        if coordinates == "tf_crop_and_resize" and not 0 <= at <= size - 1:
            result[..., i] = fill
            continue
        if mode == "nearest":
            result[..., i] = x[..., min(max(NEAREST[nearest](at), 0), size - 1)]
            continue
        shrink = min(1.0, scale) if antialias else 1.0
        reach = math.ceil((1 if mode == "linear" else 2) / shrink) + 1
        taps = range(math.floor(at) - reach, math.floor(at) + reach + 1)
        weights = [(triangle if mode == "linear" else keys)((tap - at) * shrink, a) for tap in taps]
        if exclude:
            weights = [weight if 0 <= tap < size else 0.0 for tap, weight in zip(taps, weights)]
        values = [x[..., min(max(tap, 0), size - 1)] for tap in taps]
        result[..., i] = sum(w * v for w, v in zip(weights, values)) / sum(weights)
    return result


def resized(x, outs, scales, rois, **options):
    """`outs`, `scales` and `rois` by axis. What lies outside along one axis is filled along all."""
    x = x.astype(np.float64)
    for axis, (out, scale) in enumerate(zip(outs, scales)):
        if out == x.shape[axis] and scale == 1 and rois[axis] == (0, 1):
            continue
        x = np.moveaxis(resized_line(np.moveaxis(x, axis, -1), out, scale, roi=rois[axis], **options), -1, axis)
    return x.astype(np.float32)


WHOLE = (0, 1)


class ResizeForms(OneNode):
    def check_form(self, x, scales=None, sizes=None, axes=None, roi=None, policy=None, free=None, of_run=False, **given):
        """With operands of the model, and of a run. `free`: the buckets of H and W, which then are names of the map's extents;
        operands are of a run there where `of_run` says so."""
        axes_in_order = list(range(x.ndim)) if axes is None else axes
        outs, factors, rois = list(x.shape), [1.0] * x.ndim, [WHOLE] * x.ndim
        for place, axis in enumerate(axes_in_order):
            if scales is not None:
                factors[axis] = float(np.float32(scales[place]))
                outs[axis] = math.floor(x.shape[axis] * factors[axis])
            else:
                factors[axis], outs[axis] = sizes[place] / x.shape[axis], sizes[place]
            if roi is not None:
                rois[axis] = (float(np.float32(roi[place])), float(np.float32(roi[place + len(axes_in_order)])))
        if policy not in (None, "stretch"):
            common = (min if policy == "not_larger" else max)(factors[axis] for axis in axes_in_order)
            for axis in axes_in_order:
                factors[axis], outs[axis] = common, math.floor(common * x.shape[axis] + 0.5)
        form = {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_floor",
                "cubic_coeff_a": -0.75, "exclude_outside": 0, "antialias": 0, "extrapolation_value": 0.0, **given}
        right = resized(x, outs, factors, rois, mode=form["mode"], coordinates=form["coordinate_transformation_mode"],
                        nearest=form["nearest_mode"], a=form["cubic_coeff_a"], exclude=form["exclude_outside"],
                        antialias=form["antialias"], fill=form["extrapolation_value"])
        operands = [x, None if roi is None else np.array(roi, np.float32), None if scales is None else np.array(scales, np.float32),
                    None if sizes is None else np.array(sizes, np.int64)]
        if sizes is None:
            operands.pop()
        options = {**given, **({} if axes is None else {"axes": axes}),
                   **({} if policy is None else {"keep_aspect_ratio_policy": policy})}
        names = {} if free is None else {"free": {0: {2: "H", 3: "W"}}, "buckets": free}
        self.check("Resize", 19, operands, [right], digits=4, constants=(1, 2, 3), **names, **options)
        if free is None or of_run:
            self.check("Resize", 19, operands, [right], digits=4, **names, **options)
            self.assertTrue(self.said.startswith("ok 0 "), self.said)

    def answer(self, model, feed, buckets=""):
        self.said = super().answer(model, feed, buckets)
        return self.said

    def test_coordinates(self):
        x = floats(1, 2, 4, 5)
        for mode, coordinates in itertools.product(
                ("linear", "cubic", "nearest"), ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")):
            form = {"mode": mode, "coordinate_transformation_mode": coordinates}
            with self.subTest(**form):
                self.check_form(x, sizes=[7, 3], axes=[2, 3], **form)
                self.check_form(x, sizes=[1, 1], axes=[2, 3], **form)
                self.check_form(x, scales=[1, 1, 2, 0.6] if coordinates != "align_corners" else [1, 1, 2, 0.6000001], **form)

    def test_nearest_elements(self):
        x = floats(1, 1, 4, 6)
        for nearest, coordinates in itertools.product(NEAREST, ("half_pixel", "align_corners", "asymmetric")):
            form = {"nearest_mode": nearest, "coordinate_transformation_mode": coordinates}
            with self.subTest(**form):
                self.check_form(x, sizes=[8, 9], axes=[2, 3], **form)
                self.check_form(x, sizes=[3, 4], axes=[2, 3], **form)

    def test_filters(self):
        x = floats(1, 1, 9, 8)
        for mode, antialias, exclude in itertools.product(("linear", "cubic"), (0, 1), (0, 1)):
            form = {"mode": mode, "antialias": antialias, "exclude_outside": exclude}
            with self.subTest(**form):
                self.check_form(x, scales=[0.6, 0.3], axes=[2, 3], **form)
                self.check_form(x, sizes=[4, 13], axes=[2, 3], **form)
        self.check_form(x, scales=[2.5, 0.5], axes=[2, 3], mode="cubic", cubic_coeff_a=-0.5)

    def test_axes_and_aspects(self):
        x = floats(2, 3, 4, 6)
        self.check_form(x, scales=[2, 3], axes=[3, 2])
        self.check_form(x, sizes=[9, 7], axes=[3, 2], mode="linear")
        self.check_form(x, sizes=[7, 9], axes=[-2, -1], mode="linear")
        for policy in ("not_larger", "not_smaller", "stretch"):
            self.check_form(x, sizes=[7, 8], axes=[2, 3], policy=policy)
            self.check_form(x, sizes=[3, 2], axes=[3, 2], policy=policy, mode="linear")

    def test_aspects_of_maps_of_any_size(self):
        for shape in ((5, 7), (9, 4), (20, 33), (3, 3), (64, 17), (12, 16)):
            for policy in ("not_larger", "not_smaller"):
                for form in ({"mode": "linear"}, {"mode": "nearest"}, {"mode": "cubic", "exclude_outside": 1}, {"mode": "linear", "antialias": 1}):
                    with self.subTest(shape=shape, policy=policy, **form):
                        self.check_form(floats(1, 2, *shape), sizes=[12, 10], axes=[-2, -1], policy=policy, free="H=30;W=40", **form)

    def test_whole_numbers_of_maps_of_any_size(self):
        for nearest, coordinates in itertools.product(NEAREST, ("half_pixel", "half_pixel_symmetric", "asymmetric")):
            form = {"nearest_mode": nearest, "coordinate_transformation_mode": coordinates}
            with self.subTest(**form):
                self.check_form(floats(1, 2, 5, 7), scales=[1, 1, 2, 3], free="H=30;W=40", **form)
        for shape, scales in (((16, 9), (4, 1)), ((1, 3), (2, 2)), ((4, 1), (3, 5)), ((2, 2), (2, 7))):
            with self.subTest(shape=shape, scales=scales):
                self.check_form(floats(1, 2, *shape), scales=[1, 1, *scales], free="H=30;W=40",
                                coordinate_transformation_mode="pytorch_half_pixel")

    def test_one_element_of_a_common_scale(self):
        for mode in ("linear", "cubic"):
            self.check_form(floats(7, 13), sizes=[1, 1], mode=mode, antialias=1, policy="not_larger")

    def test_numbers_of_a_run(self):
        x = floats(1, 2, 4, 5)
        for mode in ("nearest", "linear", "cubic"):
            self.check_form(x, sizes=[6, 7], axes=[2, 3], mode=mode, free="H=9;W=9", of_run=True)
            self.check_form(x, scales=[1.5, 0.6], axes=[2, 3], mode=mode, free="H=9;W=9", of_run=True)
            self.check_form(x, sizes=[1, 600], axes=[2, 3], mode=mode)
            self.check_form(x, scales=[140, 0.1], axes=[3, 2], mode=mode)
        self.check_form(x, scales=[1.5, 0.6], axes=[2, 3], mode="linear", antialias=1, free="H=9;W=9", of_run=True)
        crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": -7.0, "mode": "linear"}
        self.check_form(x, scales=[1, 1], axes=[2, 3], roi=[0, 0, 1, 1], **crop)
        self.check_form(x, scales=[1, 1], axes=[2, 3], roi=[0, 0.1, 1, 1.2], **crop)
        self.check("Resize", 19, [floats(2, 0, 3), None, None, np.array([2, 0, 5])], [floats(2, 0, 5)], mode="linear")

    def test_axes_that_are_left(self):
        """What is not resized is not touched by what stands beside it."""
        x = floats(2, 3, 4, 5)
        x[0, 1, 2] = np.inf
        x[1, 2] = np.nan
        for mode in ("nearest", "linear", "cubic"):
            for nearest in ("ceil", "round_prefer_ceil") if mode == "nearest" else ("floor",):
                for operands in ([x, None, np.ones(4, np.float32)], [x, None, None, np.array(x.shape)]):
                    self.check("Resize", 13, operands, [x], mode=mode, nearest_mode=nearest,
                               coordinate_transformation_mode="tf_half_pixel_for_nn" if mode == "nearest" else "half_pixel")
            rows = resized(np.nan_to_num(x, nan=0, posinf=0), (2, 3, 4, 10), (1, 1, 1, 2), [WHOLE] * 4, mode=mode, nearest="floor",
                           coordinates="half_pixel", a=-0.75, exclude=0, antialias=0, fill=0)
            rows[0, 1, 2] = np.inf
            rows[1, 2] = np.nan
            if mode == "nearest":
                self.check("Resize", 13, [x, None, np.array([1, 1, 1, 2], np.float32)], [rows], nearest_mode="floor")

    def test_earlier_opsets(self):
        x = floats(1, 2, 3, 4)
        scales = np.array([1, 1, 2, 1.5], np.float32)
        for mode in ("nearest", "linear"):
            right = resized(x, (1, 2, 6, 6), (1, 1, 2, 1.5), [WHOLE] * 4, mode=mode, nearest="floor", coordinates="asymmetric",
                            a=-0.75, exclude=0, antialias=0, fill=0)
            self.check("Upsample", 9, [x, scales], [right], mode=mode)
            self.check("Resize", 10, [x, scales], [right], mode=mode)
        fewer = np.array([1, 1, 0.6, 1], np.float32)
        right = resized(x, (1, 2, 1, 4), (1, 1, 0.6, 1), [WHOLE] * 4, mode="nearest", nearest="ceil", coordinates="asymmetric",
                        a=-0.75, exclude=0, antialias=0, fill=0)
        self.check("Resize", 10, [x, fewer], [right])

    def test_element_types(self):
        x = (floats(1, 2, 3, 4) * 40)
        for dtype in (np.int8, np.uint8, np.int32, np.int64, np.float16, np.float64, np.bool_):
            own = np.abs(x).astype(dtype)
            right = own.repeat(2, -1).repeat(3, -2)
            self.check("Resize", 13, [own, None, np.array([1, 1, 3, 2], np.float32)], [right])
            self.check("Resize", 13, [own, None, None, np.array([1, 2, 9, 8])], [right])

    def test_operands_of_which_some_numbers_are_known(self):
        """The batch and the channels are the model's, the map's scales or sizes a run's."""
        x = floats(2, 3, 4, 5)
        right = resized(x, (2, 3, 8, 7), (1, 1, 2, 1.5), [WHOLE] * 4, mode="linear", nearest="", coordinates="half_pixel",
                        a=-0.75, exclude=0, antialias=0, fill=0)
        for place, known, given in ((2, np.ones(2, np.float32), np.array([2, 1.5], np.float32)), (3, np.array([2, 3]), np.array([8, 7]))):
            names = ["x", "", "", ""]
            names[place] = "all"
            graph = helper.make_graph(
                [helper.make_node("Concat", ["known", "given"], ["all"], axis=0),
                 helper.make_node("Resize", names[:place + 1], ["y"], mode="linear")], "map",
                [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape),
                 helper.make_tensor_value_info("given", element_type(given), [2])],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(known, "known")])
            expected = right if place == 2 else resized(x, (2, 3, 8, 7), (1, 1, 2, 1.4), [WHOLE] * 4, mode="linear", nearest="",
                                                        coordinates="half_pixel", a=-0.75, exclude=0, antialias=0, fill=0)

            def expect(answer, outputs, expected=expected):
                self.assertTrue(answer.startswith("ok 0 "), answer)
                np.testing.assert_allclose(outputs["0"], expected, atol=1e-5)

            self.run_model(graph, 13, {"x": x, "given": given}, expect)

    def test_rows_that_data_chooses(self):
        """The extent is the data's, the scale the model's or a run's, or the size is given."""
        x = floats(6, 4)
        chosen = np.array([True, False, True, True, False, False])
        for name, given in (("scales", np.array([2, 1], np.float32)), ("sizes", np.array([7, 4])), ("scales", np.array([2, 2], np.float32))):
            outs = [6, 4 * int(given[1])] if name == "scales" else [7, 4]
            factors = [float(n) for n in given] if name == "scales" else [7 / 3, 1]
            expected = resized(x[chosen], outs, factors, [WHOLE] * 2, mode="linear", nearest="", coordinates="half_pixel", a=-0.75,
                               exclude=0, antialias=0, fill=0)
            for is_known in (False, True):
                names = ["rows", "", "g"] if name == "scales" else ["rows", "", "", "g"]
                inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape),
                          helper.make_tensor_value_info("c", TensorProto.BOOL, chosen.shape)]
                if not is_known:
                    inputs.append(helper.make_tensor_value_info("g", element_type(given), [2]))
                graph = helper.make_graph(
                    [helper.make_node("Compress", ["x", "c"], ["rows"], axis=0), helper.make_node("Resize", names, ["y"], mode="linear")],
                    "rows", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                    [numpy_helper.from_array(given, "g")] if is_known else [])

                def expect(answer, outputs, expected=expected):
                    self.assertTrue(answer.startswith("ok 0 "), answer)
                    np.testing.assert_allclose(outputs["0"], expected, atol=1e-5)

                feed = {"x": x, "c": chosen} if is_known else {"x": x, "c": chosen, "g": given}
                self.run_model(graph, 13, feed, expect)

    def test_numbers_that_are_none(self):
        x = floats(1, 1, 4, 5)
        for operands in ([x, None, np.array([1, 1, 0, 2], np.float32)], [x, None, np.array([1, 1, -1, 2], np.float32)],
                         [x, None, np.array([1, 1, np.nan, 2], np.float32)], [x, None, np.array([1, 1, np.inf, 2], np.float32)],
                         [x, None, None, np.array([1, 1, -1, 2])], [x, None, None, np.array([1, 1, 2**40, 2])],
                         [x, None, None, np.array([1, 2, 3])]):
            with self.subTest(operands=[None if each is None else each.tolist() for each in operands[1:]]):
                self.assertRegex(self.answer_to("Resize", 13, operands), '^error .*node "Resize_0".*(a scale|scales|sizes|would have the shape|cannot become one of)')

    def test_parts_that_are_none(self):
        x = floats(1, 1, 4, 5)
        for number in (np.nan, np.inf, -np.inf):
            operands = [x, np.array([0, 0, 0, 0, 1, 1, number, 1], np.float32), None, np.array([1, 1, 2, 2])]
            said = self.answer_to("Resize", 13, operands, coordinate_transformation_mode="tf_crop_and_resize")
            self.assertIn(f'error node "Resize_0": roi has {number}', said)
            with self.assertRaisesRegex(AssertionError, f"roi has {number}"):
                self.check("Resize", 13, operands, [x], constants=(1,), coordinate_transformation_mode="tf_crop_and_resize")

    def test_no_rows_at_all(self):
        """Nothing becomes something of none, and none of something."""
        x, make = floats(3, 4), helper.make_node
        for sizes in ((5, 4), (0, 4)):
            graph = helper.make_graph(
                [make("Compress", ["x", "c"], ["rows"], axis=0), make("Constant", [], ["s"], value_ints=list(sizes)),
                 make("Resize", ["rows", "", "", "s"], ["y"], mode="linear")], "rows",
                [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape), helper.make_tensor_value_info("c", TensorProto.BOOL, [3])],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])

            def expect(answer, outputs, sizes=sizes):
                if sizes[0] == 0:
                    self.assertTrue(answer.startswith("ok "), answer)
                    self.assertEqual(outputs["0"].shape, sizes)
                else:
                    self.assertIn('error node "Resize_2": an axis of 0 cannot become one of 5', answer)

            self.run_model(graph, 13, {"x": x, "c": np.zeros(3, bool)}, expect)

    def test_cuts(self):
        x = floats(1, 1, 5, 6)
        crop = {"coordinate_transformation_mode": "tf_crop_and_resize"}
        for mode in ("linear", "nearest", "cubic"):
            self.check_form(x, sizes=[3, 4], axes=[2, 3], roi=[0.4, 0.6, 0.6, 0.8], mode=mode, **crop)
            self.check_form(x, sizes=[4, 3], axes=[3, 2], roi=[0.6, 0.4, 0.8, 0.6], mode=mode, **crop)
            self.check_form(x, sizes=[3, 1], axes=[2, 3], roi=[0.2, 0.3, 0.9, 0.7], mode=mode, **crop)
            self.check_form(x, sizes=[1, 1, 4, 5], roi=[0, 0, -0.3, 0.5, 1, 1, 0.8, 1.4], mode=mode, extrapolation_value=10.0, **crop)


if __name__ == "__main__":
    unittest.main()
