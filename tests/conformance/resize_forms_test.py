"""Resize in its modes, with values by numpy from the standard's text: along each axis an element is the filter's mean over all
elements of an endless line, on which those outside of the input are the nearest inside, or nothing."""

import itertools
import math
import unittest

import numpy as np

from one_node import OneNode, floats

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
    def check_form(self, x, scales=None, sizes=None, axes=None, roi=None, policy=None, free=None, **given):
        """`free`: the buckets of H and W, which then are names of the map's extents."""
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
        if free is not None:
            options.update(free={0: {2: "H", 3: "W"}}, buckets=free, constants=(1, 2, 3))
        self.check("Resize", 19, operands, [right], digits=4, **options)

    def test_coordinates(self):
        x = floats(1, 2, 4, 5)
        for mode, coordinates in itertools.product(
                ("linear", "cubic", "nearest"), ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")):
            form = {"mode": mode, "coordinate_transformation_mode": coordinates}
            with self.subTest(**form):
                self.check_form(x, sizes=[1, 2, 7, 3], **form)
                self.check_form(x, sizes=[1, 2, 1, 1], **form)
                self.check_form(x, scales=[1, 1, 2, 0.6] if coordinates != "align_corners" else [1, 1, 2, 0.6000001], **form)

    def test_nearest_elements(self):
        x = floats(1, 1, 4, 6)
        for nearest, coordinates in itertools.product(NEAREST, ("half_pixel", "align_corners", "asymmetric")):
            form = {"nearest_mode": nearest, "coordinate_transformation_mode": coordinates}
            with self.subTest(**form):
                self.check_form(x, sizes=[1, 1, 8, 9], **form)
                self.check_form(x, sizes=[1, 1, 3, 4], **form)

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
