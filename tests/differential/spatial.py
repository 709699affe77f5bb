"""Resizing, sampling, boxes, signals, and what else reads an image or a row by place."""

import numpy as np
from builder import Skip
from registry import spec


@spec("Resize", 11)
def resize(b):
    rank = b.pick([2, 3, 4, 4, 4, 5])
    shape = [b.int(1, 3) if i < rank - 2 and rank > 2 else b.extent(17) for i in range(rank)]
    mode = b.pick(["nearest", "linear", "cubic"])
    free = [i for i in range(rank) if i >= rank - (1 if rank == 2 and b.chance(0.3) else 2)]
    if mode == "nearest" and b.chance(0.3):
        free = list(range(rank))
    if b.chance(0.1) and rank >= 3:
        free = list(range(rank - 3, rank)) if mode != "cubic" else free
    to_axes = b.opset >= 18 and b.chance(0.3)
    options = b.some(coordinate_transformation_mode=b.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] +
                                                           (["half_pixel_symmetric"] if b.opset >= 19 else []) + (["tf_half_pixel_for_nn"] if b.opset < 13 and mode == "nearest" else [])))
    if mode == "nearest":
        options.update(b.some(nearest_mode=b.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])))
    if mode == "cubic":
        options.update(b.some(cubic_coeff_a=-0.5, exclude_outside=b.int(0, 1)))
    if b.opset >= 18 and mode != "nearest" and b.chance(0.3):
        options["antialias"] = 1
    axes = free if to_axes else list(range(rank))
    # The peer cuts antialiased bytes with a sign off at 0.
    whole = ["u1"] + ([] if "antialias" in options else ["i1"])
    x = b.x(shape, b.dtype(["f4"] * 5 + (whole if mode != "cubic" else [])))
    b.rtol, b.atol, b.units = 1e-4, 1e-5, 1
    if to_axes:
        options["axes"] = axes
    if b.chance(0.5):
        scales = [b.pick([1.0, 2.0, 0.5, 3.0, 1.5, 0.7, 0.34, 2.3]) if i in free else 1.0 for i in axes]
        # The standard takes the scaled extent before it is rounded for the corner; the peer the rounded one.
        corners = options.get("coordinate_transformation_mode") == "align_corners"
        if any(int(shape[i] * s) < 1 or corners and shape[i] * s % 1 for i, s in zip(axes, scales)):
            raise Skip
        b.node("Resize", [x, "" if b.opset >= 13 else b.const([], np.float32), b.const(scales, np.float32)], mode=mode if mode != "nearest" or b.chance(0.5) else None, **options)
        return
    sizes = [b.int(1, 2 * shape[i] + 3) if i in free else shape[i] for i in axes]
    if b.opset >= 18 and b.chance(0.2):
        options["keep_aspect_ratio_policy"] = b.pick(["stretch", "not_larger", "not_smaller"])
        if not to_axes:
            options.pop("keep_aspect_ratio_policy")
    blank = "" if b.opset >= 13 else b.const([], np.float32)
    b.node("Resize", [x, blank, blank, b.ints(sizes)], mode=mode if mode != "nearest" or b.chance(0.5) else None, **options)


@spec("Upsample", 7, 9)
def upsample(b):
    shape = [1, b.int(1, 4), b.extent(9), b.extent(9)]
    scales = [1.0, 1.0, b.pick([1.0, 2.0, 3.0, 1.5]), b.pick([1.0, 2.0, 2.5])]
    mode = b.pick(["nearest", "linear"])
    b.node("Upsample", [b.x(shape), b.const(scales, np.float32)], mode=mode) if b.opset >= 9 else b.node("Upsample", [b.x(shape)], scales=scales, mode=mode)


@spec("GridSample", 16)
def grid_sample(b):
    n, c, h, w = b.int(1, 2), b.int(1, 3), b.extent(9), b.extent(9)
    old = b.opset < 20
    modes = ["bilinear", "nearest", "bicubic"] if old else ["linear", "nearest", "cubic"]
    b.atol = 1e-4
    volume = not old and b.chance(0.2)
    mode = b.pick(modes[:2] if volume else modes)
    sizes = [b.extent(5)] if volume else []
    b.node("GridSample", [b.x([n, c] + sizes + [h, w]), b.x([n] + [b.int(1, 5) for _ in range(3 if volume else 2)] + [3 if volume else 2], low=-1.3, high=1.3)],
           **b.some(padding_mode=b.pick(["zeros", "border", "reflection"]), align_corners=b.int(0, 1)), mode=mode)


@spec("AffineGrid", 20)
def affine_grid(b):
    n, volume = b.int(1, 2), b.chance(0.4)
    size = [n, b.int(1, 3)] + [b.int(2, 6) for _ in range(3 if volume else 2)]
    b.node("AffineGrid", [b.x([n, 3, 4] if volume else [n, 2, 3]), b.ints(size)], **b.some(align_corners=b.int(0, 1)))


@spec("RoiAlign", 10)
def roi_align(b):
    c, h, w, rois = b.int(1, 3), b.int(4, 12), b.int(4, 12), b.int(1, 4)
    start = b.rng.uniform(0, 5, (rois, 2))
    boxes = np.concatenate([start, start + b.rng.uniform(0.5, 8, (rois, 2))], 1).astype(np.float32)
    b.atol = 1e-4
    b.node("RoiAlign", [b.x([2, c, h, w]), b.given(boxes), b.given(b.rng.integers(0, 2, rois))],
           **b.some(output_height=b.int(1, 3), output_width=b.int(1, 3), sampling_ratio=b.int(1, 3), spatial_scale=b.pick([0.5, 1.0]), mode=b.pick(["avg", "max"])),
           **(b.some(coordinate_transformation_mode=b.pick(["half_pixel", "output_half_pixel"])) if b.opset >= 16 else {}))


@spec("NonMaxSuppression", 10)
def nms(b):
    boxes, classes, batch = b.int(1, 12), b.int(1, 3), b.int(1, 2)
    start = b.rng.uniform(0, 1, (batch, boxes, 2))
    corners = np.concatenate([start, start + b.rng.uniform(0.1, 0.6, (batch, boxes, 2))], 2).astype(np.float32)
    extra = [b.const(np.array(b.int(0, boxes + 2), np.int64)), b.const(np.float32(b.rng.uniform(0, 1))), b.const(np.float32(b.rng.uniform(-1, 1)))][:b.int(0, 3)]
    b.node("NonMaxSuppression", [b.given(corners), b.x([batch, classes, boxes])] + extra, **b.some(center_point_box=b.int(0, 1)))


@spec("Det", 11)
def det(b):
    n = int(b.rng.choice([1, 2, 3, 4, 5, 37]))
    b.rtol = 1e-3
    b.node("Det", [b.x([b.int(1, 3) for _ in range(b.int(0, 2))] + [n, n])])


@spec("Col2Im", 18)
def col2im(b):
    image, block = [b.int(3, 8), b.int(3, 8)], [b.int(1, 3), b.int(1, 3)]
    count = int(np.prod([i - k + 1 for i, k in zip(image, block)]))
    b.node("Col2Im", [b.x([b.int(1, 2), b.int(1, 3) * int(np.prod(block)), count]), b.ints(image), b.ints(block)])


@spec("DFT", 17)
def dft(b):
    shape = [b.int(1, 2), b.pick([1, 2, 4, 5, 8, 15]), b.pick([1, 2, 3, 8]), b.pick([1, 2])]
    inverse = b.int(0, 1)
    options = b.some(inverse=inverse)
    if shape[-1] == 1 and not options.get("inverse") and b.chance(0.5):
        options["onesided"] = 1
    axis = b.int(1, 2)
    length = [b.ints(np.int64(b.pick([1, 4, 7, 16])))] if b.chance(0.3) else []
    b.atol = 1e-4
    if b.opset >= 20:
        b.node("DFT", [b.x(shape)] + (length or [""]) + [b.ints(np.int64(axis))], **options)
    else:
        b.node("DFT", [b.x(shape)] + length, axis=axis, **options)


@spec("STFT", 17)
def stft(b):
    frame = b.pick([4, 8, 5])
    b.atol = 1e-4
    windowed = b.chance(0.6)
    b.node("STFT", [b.x([b.int(1, 2), b.int(20, 40), 1]), b.ints(np.int64(b.int(1, 6))), b.x([frame], constant=1) if windowed else "", b.ints(np.int64(frame))],
           **b.some(onesided=b.int(0, 1)))


@spec("Window", 17)
def window(b):
    b.atol = 1e-5
    b.node(b.pick(["HannWindow", "HammingWindow", "BlackmanWindow"]), [b.ints(np.int32(b.int(1, 17)), dtype=np.int32)], **b.some(periodic=b.int(0, 1)))


@spec("MelWeightMatrix", 17)
def mel(b):
    b.node("MelWeightMatrix", [b.const(np.array(v, t)) for v, t in ((b.int(3, 12), "i8"), (b.pick([16, 64]), "i8"), (8000, "i8"), (20.0, "f4"), (3800.0, "f4"))])


@spec("DeformConv", 22)
def deform_conv(b):
    c, m, k = b.int(1, 4), b.int(1, 4), b.int(1, 3)
    h, w = b.int(k, 8), b.int(k, 8)
    oh, ow = h - k + 1, w - k + 1
    n = b.int(1, 2)
    b.atol = 1e-4
    parts = [b.x([n, c, h, w]), b.x([m, c, k, k]), b.x([n, 2 * k * k, oh, ow]), b.x([m]) if b.chance(0.5) else "", b.x([n, k * k, oh, ow]) if b.chance(0.5) else ""]
    b.node("DeformConv", parts, kernel_shape=[k, k], pads=[0, 0, 0, 0])


@spec("Loss", 13)
def loss(b):
    n, c, rest = b.int(1, 4), b.int(2, 6), [b.int(1, 4) for _ in range(b.int(0, 2))]
    target = b.rng.integers(0, c, [n] + rest)
    weight = [b.x([c], low=0.1, high=1)] if b.chance(0.4) else []
    options = b.some(reduction=b.pick(["none", "mean", "sum"]), ignore_index=b.int(0, c - 1))
    if b.chance(0.5):
        b.node("SoftmaxCrossEntropyLoss", [b.x([n, c] + rest), b.given(target)] + weight, b.int(1, 2), **options)
    else:
        b.node("NegativeLogLikelihoodLoss", [b.x([n, c] + rest), b.given(target)] + weight, **options)
