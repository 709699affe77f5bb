"""Operators that move elements, look for some, or work on what is no tensor of numbers."""

import itertools

import numpy as np

from .model import Cases, Const, Model, bools, const, longs, normal, uniform, whole

CASES = Cases()
op = CASES.op
HALF = np.float16
MAP = (1, 64, 56, 56)
TEXT = (1, 128, 768)


def text(words):
    return np.array(words, "U")


def shapes():
    for perm in itertools.permutations(range(4)):
        if list(perm) != sorted(perm):
            op(f"Transpose.{''.join(map(str, perm))}", "Transpose", normal(2, 32, 48, 50), perm=list(perm))
    op("Transpose.u8", "Transpose", whole(0, 255, 1, 224, 224, 3, dtype=np.uint8), perm=[0, 3, 1, 2])
    op("Transpose.f16", "Transpose", normal(12, 128, 64, dtype=HALF), perm=[0, 2, 1])
    op("Transpose.i64", "Transpose", whole(0, 9, 300, 400), perm=[1, 0])
    op("Transpose.shuffle", "Transpose", normal(1, 2, 58, 28, 28), perm=[0, 2, 1, 3, 4])
    pads = [0, 0, 3, 3, 0, 0, 3, 3]
    for mode in ("constant", "edge", "reflect", "wrap"):
        op(f"Pad.{mode}", "Pad", normal(*MAP), longs(*pads), mode=mode)
        op(f"Pad.1d.{mode}", "Pad", normal(1, 16000), longs(0, 200, 0, 200), mode=mode)
    op("Pad.rows", "Pad", normal(*TEXT), longs(0, 1, 0, 0, 1, 0))
    op("Pad.crop", "Pad", normal(*MAP), longs(0, 0, -2, -2, 0, 0, -2, -2))
    for name, starts, ends, axes, steps in (("first", [0], [32], [1], [1]), ("last", [4], [40], [3], [1]), ("steps", [0, 0], [56, 56], [2, 3], [2, 2]),
                                            ("back", [-1], [-99], [3], [-1]), ("rows", [1], [56], [2], [3]), ("flip", [-1], [-99], [1], [-1])):
        op(f"Slice.{name}", "Slice", normal(*MAP), longs(*starts), longs(*ends), longs(*axes), longs(*steps))
    for axis in range(4):
        op(f"Concat.{axis}", "Concat", normal(2, 16, 48, 50), normal(2, 16, 48, 50), axis=axis)
        op(f"Split.{axis}", "Split", normal(2, 16, 48, 50), axis=axis, num_outputs=2, outputs=2)
    op("Concat.many", "Concat", *(normal(1, 8, 56, 56) for _ in range(12)), axis=1)
    op("Concat.odd", "Concat", normal(8400, 4), normal(8400, 1), normal(8400, 80), axis=1)
    op("Split.odd", "Split", normal(8400, 85), longs(4, 1, 80), axis=1, outputs=3)
    op("Tile", "Tile", normal(1, 64, 28, 28), longs(1, 1, 2, 2))
    op("Tile.rows", "Tile", normal(1, 768), longs(128, 1))
    op("Expand", "Expand", normal(1, 128, 1), longs(8, 128, 256))
    op("Expand.grouped", "Expand", normal(1, 4, 1, 128, 64), longs(1, 4, 4, 128, 64))
    for mode in ("DCR", "CRD"):
        op(f"DepthToSpace.{mode}", "DepthToSpace", normal(1, 64, 56, 56), blocksize=2, mode=mode)
    op("SpaceToDepth", "SpaceToDepth", normal(1, 16, 112, 112), blocksize=2)
    op("ReverseSequence", "ReverseSequence", normal(100, 8, 64), const(whole(1, 100, 8)), time_axis=0, batch_axis=1)
    op("Range", "Range", Const(np.int64(0)), Const(np.int64(100000)), Const(np.int64(1)))
    op("CenterCropPad", "CenterCropPad", normal(*MAP), longs(48, 64), axes=[2, 3])
    op("Col2Im", "Col2Im", normal(1, 64 * 9, 28 * 28), longs(28, 28), longs(3, 3), pads=[1] * 4)
    op("OneHot", "OneHot", whole(0, 1000, 128), Const(np.int64(1000)), Const(np.array([0, 1], np.float32)))
    op("EyeLike", "EyeLike", normal(512, 512))


def indices():
    op("Gather.embedding", "Gather", const(normal(30000, 384)), whole(0, 30000, 1, 128), axis=0)
    op("Gather.columns", "Gather", normal(128, 768), whole(0, 768, 100), axis=1)
    op("Gather.channels", "Gather", normal(*MAP), whole(0, 64, 32), axis=1)
    op("Gather.long", "Gather", normal(8400, 80), whole(0, 8400, 300), axis=0)
    for axis in (0, 1, 2):
        op(f"GatherElements.{axis}", "GatherElements", normal(64, 64, 64), whole(0, 64, 64, 64, 64), axis=axis)
    op("GatherND.points", "GatherND", normal(100, 100, 64), whole(0, 100, 1000, 2))
    op("GatherND.elements", "GatherND", normal(32, 64, 64), lambda r: r.integers(0, 32, (20000, 3)))
    op("GatherND.batch", "GatherND", normal(8, 1000, 16), whole(0, 1000, 8, 300, 1), batch_dims=1)
    for reduction in ("none", "add", "max"):
        op(f"ScatterND.rows.{reduction}", "ScatterND", normal(1000, 64), whole(0, 1000, 500, 1), normal(500, 64), reduction=reduction)
        op(f"ScatterND.elements.{reduction}", "ScatterND", normal(200, 200), whole(0, 200, 10000, 2), normal(10000), reduction=reduction)
        op(f"ScatterElements.rows.{reduction}", "ScatterElements", normal(1000, 64), whole(0, 1000, 500, 64), normal(500, 64), axis=0, reduction=reduction)
        op(f"ScatterElements.columns.{reduction}", "ScatterElements", normal(64, 1000), whole(0, 1000, 64, 500), normal(64, 500), axis=1, reduction=reduction)
    op("ScatterElements.short", "ScatterElements", normal(64, 128), whole(0, 64, 32, 128), normal(32, 128), axis=0)
    op("ScatterND.cache", "ScatterND", normal(1, 12, 256, 64), lambda r: np.array([[[0, h, 17]] for h in range(12)]), normal(12, 1, 64))
    op("TensorScatter", "TensorScatter", normal(1, 12, 256, 64), normal(1, 12, 1, 64), whole(0, 200, 1), opset=24, axis=2)
    op("NonZero.sparse", "NonZero", bools(512, 512, share=0.05))
    op("NonZero.dense", "NonZero", bools(512, 512))
    op("NonZero.f32", "NonZero", lambda r: np.maximum(r.standard_normal((256, 256)), 0).astype(np.float32))
    op("Compress", "Compress", normal(8400, 80), bools(8400, share=0.1), axis=0)
    op("Compress.flat", "Compress", normal(100000), bools(100000))
    op("Unique.few", "Unique", whole(0, 100, 10000), outputs=4)
    op("Unique.many", "Unique", whole(0, 10**9, 10000), outputs=4)
    op("Unique.f32", "Unique", normal(10000), sorted=0)
    op("Unique.rows", "Unique", whole(0, 3, 2000, 4), axis=0)
    for name, shape, k in (("8400", (1, 8400), 100), ("8400.300", (1, 8400), 300), ("row", (64, 1000), 5), ("vocabulary", (1, 32000), 50), ("vocabulary.8", (8, 32000), 50),
                           ("half", (16, 2000), 1000), ("short", (1000, 80), 1), ("short.5", (300, 91), 5), ("whole", (1, 10000), 10000), ("flat", (1, 27300), 300)):
        op(f"TopK.{name}", "TopK", normal(*shape), longs(k), outputs=2)
    op("TopK.first", "TopK", normal(1000, 16), longs(10), axis=0, outputs=2)
    op("TopK.least", "TopK", normal(1, 8400), longs(100), largest=0, outputs=2)
    op("TopK.i64", "TopK", whole(0, 10**6, 1, 8400), longs(100), outputs=2)
    op("TopK.f16", "TopK", normal(1, 8400, dtype=HALF), longs(100), outputs=2)
    op("TopK.equal", "TopK", lambda r: r.integers(0, 3, (1, 8400)).astype(np.float32), longs(300), outputs=2)

    def boxes(random, count):
        low = random.uniform(0, 600, (1, count, 2))
        return np.concatenate([low, low + random.uniform(10, 80, (1, count, 2))], 2).astype(np.float32)

    for count, classes, score in ((300, 1, 0.3), (1000, 80, 0.9), (8400, 80, 0.99), (8400, 1, 0.5)):
        op(f"NonMaxSuppression.{count}x{classes}", "NonMaxSuppression", lambda r, n=count: boxes(r, n), uniform(0, 1, 1, classes, count), longs(100),
           Const(np.array([0.5], np.float32)), Const(np.array([score], np.float32)))
    rois = lambda r: (r.uniform(0, 200, (100, 4)) + np.array([0, 0, 250, 250])).astype(np.float32)  # noqa: E731
    op("RoiAlign.2", "RoiAlign", normal(1, 64, 50, 50), rois, const(np.zeros(100, np.int64)), output_height=7, output_width=7, sampling_ratio=2, spatial_scale=0.1)
    op("RoiAlign.0", "RoiAlign", normal(1, 64, 50, 50), rois, const(np.zeros(100, np.int64)), output_height=7, output_width=7, sampling_ratio=0, spatial_scale=0.1)
    op("MaxRoiPool", "MaxRoiPool", normal(1, 64, 50, 50), lambda r: np.concatenate([np.zeros((50, 1)), rois(r)[:50]], 1).astype(np.float32), pooled_shape=[7, 7],
       spatial_scale=0.1)


def pictures():
    for mode in ("nearest", "linear", "cubic"):
        for name, out in (("up", (128, 128)), ("down", (40, 40)), ("odd", (90, 97))):
            op(f"Resize.{mode}.{name}", "Resize", normal(1, 64, 64, 64), None, None, longs(1, 64, *out), mode=mode)
        op(f"Resize.{mode}.corners", "Resize", normal(1, 64, 64, 64), None, None, longs(1, 64, 128, 128), mode=mode, coordinate_transformation_mode="align_corners")
    op("Resize.nearest.2", "Resize", normal(1, 128, 40, 40), None, Const(np.array([1, 1, 2, 2], np.float32)), mode="nearest", coordinate_transformation_mode="asymmetric",
       nearest_mode="floor")
    for mode in ("linear", "cubic"):
        op(f"Resize.{mode}.antialias", "Resize", normal(1, 3, 480, 640), None, None, longs(1, 3, 224, 224), mode=mode, antialias=1)
        op(f"Resize.{mode}.picture", "Resize", normal(1, 3, 480, 640), None, None, longs(1, 3, 224, 224), mode=mode)
    op("Resize.linear.u8", "Resize", whole(0, 255, 1, 3, 480, 640, dtype=np.uint8), None, None, longs(1, 3, 224, 224), mode="linear")
    op("Resize.linear.mask", "Resize", normal(1, 21, 65, 65), None, None, longs(1, 21, 513, 513), mode="linear")
    op("Resize.linear.nhwc", "Resize", normal(1, 240, 320, 3), None, None, longs(1, 224, 224, 3), mode="linear")
    op("Resize.linear.1d", "Resize", normal(1, 64, 500), None, None, longs(1, 64, 1000), mode="linear")
    op("Resize.3d", "Resize", normal(1, 8, 16, 32, 32), None, None, longs(1, 8, 32, 64, 64), mode="linear")
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            op(f"GridSample.{mode}.{padding}", "GridSample", normal(1, 32, 64, 64), uniform(-1.1, 1.1, 1, 64, 64, 2), mode=mode, padding_mode=padding)
    op("AffineGrid", "AffineGrid", normal(1, 2, 3), longs(1, 3, 128, 128))
    op("DeformConv", "DeformConv", normal(1, 32, 28, 28), const(normal(32, 32, 3, 3)), normal(1, 18, 28, 28), pads=[1] * 4)
    op("ImageToFloat", "Cast", whole(0, 255, 1, 480, 640, 3, dtype=np.uint8), to=1)


def signals():
    op("DFT.400", "DFT", normal(1, 100, 400, 1), axis=2, onesided=1, opset=19)
    op("DFT.512", "DFT", normal(1, 100, 512, 1), axis=2, onesided=1, opset=19)
    op("DFT.inverse", "DFT", normal(1, 100, 512, 2), axis=2, inverse=1, opset=19)
    op("STFT", "STFT", normal(1, 16000, 1), Const(np.int64(160)), const(np.hanning(400).astype(np.float32)), Const(np.int64(400)))
    op("STFT.512", "STFT", normal(1, 16000, 1), Const(np.int64(256)), const(np.hanning(512).astype(np.float32)), Const(np.int64(512)))
    op("MelWeightMatrix", "MelWeightMatrix", *(Const(np.int64(v)) for v in (80, 400, 16000)), Const(np.float32(0)), Const(np.float32(8000)))
    op("HannWindow", "HannWindow", Const(np.int64(400)))


def tree_attributes(kind, trees, depth, features, classes):
    """Full trees of one depth."""
    random = np.random.default_rng(1)
    inner, every = 2**depth - 1, 2 ** (depth + 1) - 1
    node = np.tile(np.arange(every), trees)
    tree = np.repeat(np.arange(trees), every)
    leaf = node >= inner
    at = np.flatnonzero(leaf)
    weights = random.uniform(0, 1, (len(at), classes)).astype(np.float32)
    prefix = "class" if kind.endswith("Classifier") else "target"
    attributes = {
        "nodes_treeids": tree.tolist(), "nodes_nodeids": node.tolist(), "nodes_featureids": np.where(leaf, 0, random.integers(0, features, len(node))).tolist(),
        "nodes_values": np.where(leaf, 0, random.standard_normal(len(node))).astype(np.float32).tolist(),
        "nodes_modes": ["LEAF" if is_leaf else "BRANCH_LEQ" for is_leaf in leaf],
        "nodes_truenodeids": np.where(leaf, 0, 2 * node + 1).tolist(), "nodes_falsenodeids": np.where(leaf, 0, 2 * node + 2).tolist(),
        f"{prefix}_treeids": np.repeat(tree[at], classes).tolist(), f"{prefix}_nodeids": np.repeat(node[at], classes).tolist(),
        f"{prefix}_ids": np.tile(np.arange(classes), len(at)).tolist(), f"{prefix}_weights": weights.ravel().tolist()}
    if prefix == "class":
        attributes["classlabels_int64s"] = list(range(classes))
    else:
        attributes["n_targets"] = classes
    return attributes


def learners():
    ml = {"domain": "ai.onnx.ml"}
    for rows in (1, 100):
        op(f"TreeEnsembleClassifier.{rows}", "TreeEnsembleClassifier", normal(rows, 20), outputs=2, **tree_attributes("Classifier", 100, 6, 20, 3), **ml)
        op(f"TreeEnsembleRegressor.{rows}", "TreeEnsembleRegressor", normal(rows, 20), **tree_attributes("Regressor", 100, 6, 20, 1), **ml)
        op(f"TreeEnsembleRegressor.deep.{rows}", "TreeEnsembleRegressor", normal(rows, 20), **tree_attributes("Regressor", 50, 9, 20, 1), **ml)
        vectors = np.random.default_rng(1)
        op(f"SVMClassifier.{rows}", "SVMClassifier", normal(rows, 30), outputs=2, kernel_type="RBF", kernel_params=[0.05, 0.0, 3.0], classlabels_ints=[0, 1, 2],
           vectors_per_class=[50, 50, 50], support_vectors=vectors.standard_normal(150 * 30).tolist(), coefficients=vectors.standard_normal(300).tolist(),
           rho=[0.1, 0.2, 0.3], **ml)
        op(f"SVMRegressor.{rows}", "SVMRegressor", normal(rows, 30), kernel_type="RBF", kernel_params=[0.05, 0.0, 3.0], n_supports=200,
           support_vectors=vectors.standard_normal(200 * 30).tolist(), coefficients=vectors.standard_normal(200).tolist(), rho=[0.1], **ml)
        op(f"LinearClassifier.{rows}", "LinearClassifier", normal(rows, 50), outputs=2, coefficients=vectors.standard_normal(500).tolist(),
           intercepts=vectors.standard_normal(10).tolist(), classlabels_ints=list(range(10)), post_transform="SOFTMAX", **ml)
    op("Scaler", "Scaler", normal(1000, 50), offset=[0.5] * 50, scale=[2.0] * 50, **ml)
    op("Normalizer", "Normalizer", normal(1000, 50), norm="L2", **ml)
    op("LabelEncoder.ints", "LabelEncoder", whole(0, 1000, 10000), keys_int64s=list(range(1000)), values_floats=[float(i) for i in range(1000)], **ml)
    op("OneHotEncoder", "OneHotEncoder", whole(0, 100, 1000), cats_int64s=list(range(100)), zeros=1, **ml)
    op("ArrayFeatureExtractor", "ArrayFeatureExtractor", normal(1000, 50), longs(3, 7, 9), **ml)
    op("Imputer", "Imputer", normal(1000, 50), imputed_value_floats=[1.0] * 50, replaced_value_float=float("nan"), **ml)
    op("Binarizer", "Binarizer", normal(1000, 50), threshold=0.5, **ml)


def strings():
    words = text([f"word{i % 97}" for i in range(1000)])
    op("LabelEncoder.strings", "LabelEncoder", words, keys_strings=[f"word{i}" for i in range(100)], values_int64s=list(range(100)), domain="ai.onnx.ml")
    op("StringConcat", "StringConcat", words, words)
    op("StringNormalizer", "StringNormalizer", words, case_change_action="UPPER")
    op("StringSplit", "StringSplit", text([f"a{i} b c{i}" for i in range(300)]), outputs=2, delimiter=" ")
    op("RegexFullMatch", "RegexFullMatch", words, pattern="word[0-4]+")
    op("Equal.strings", "Equal", words, Const(text(["word3"]).astype(object)))
    op("Cast.strings", "Cast", text([f"{i}.5" for i in range(1000)]), to=1)
    op("TfIdfVectorizer", "TfIdfVectorizer", whole(0, 100, 200), mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0, ngram_counts=[0, 50],
       ngram_indexes=list(range(100)), pool_int64s=list(range(50)) + [i % 100 for i in range(100)])


def loops():
    """A thousand rows of 64 appended to what a loop hands on."""
    model = Model(21)
    from onnx import helper, numpy_helper

    count = model.operand(Const(np.array(1000, np.int64)))
    start = model.operand(Const(np.zeros((0, 64), np.float32)))
    x = model.operand(normal(1000, 64)(model.random))
    body = helper.make_graph(
        [helper.make_node("Gather", [x, "i"], ["row"], axis=0), helper.make_node("Unsqueeze", ["row", "zero"], ["part"]),
         helper.make_node("Concat", ["list", "part"], ["longer"], axis=0), helper.make_node("Identity", ["go"], ["on"])],
        "body", [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("go", 9, []), helper.make_tensor_value_info("list", 1, ["n", 64])],
        [helper.make_tensor_value_info("on", 9, []), helper.make_tensor_value_info("longer", 1, ["m", 64])],
        [numpy_helper.from_array(np.array([0], np.int64), "zero")])
    model.node("Loop", count, None, start, body=body)
    return model


shapes()
indices()
pictures()
signals()
learners()
strings()
CASES.add("Loop.append", loops)
