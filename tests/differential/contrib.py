"""Operators of com.microsoft and ai.onnx.ml."""

import numpy as np
from builder import Skip
from layers import conv_operands, matmul_shapes
from quantized import scale, zero
from registry import spec

MICROSOFT, ML = "com.microsoft", "ai.onnx.ml"


@spec("ms.Activation", 13, 22)
def activation(b):
    shape = b.shape(1, 3)
    op = b.pick(["Gelu", "FastGelu", "QuickGelu", "BiasGelu"])
    parts = [b.x(shape)]
    if op == "BiasGelu" or op == "FastGelu" and b.chance(0.5):
        parts.append(b.x(shape[-1:]))
    b.node(op, parts, domain=MICROSOFT, **(b.some(alpha=1.3) if op == "QuickGelu" else {}))


@spec("ms.SkipLayerNormalization", 13, 22)
def skip_layer_norm(b):
    n, s, h = b.int(1, 3), b.int(1, 5), b.pick([4, 8, 17, 32])
    simple = b.chance(0.4)
    skip = b.pick([[n, s, h], [n, s, h], [1, s, h], [s, h]])
    parts = [b.x([n, s, h]), b.x(skip), b.x([h], constant=0.7)]
    if not simple:
        parts.append(b.x([h], constant=0.7) if b.chance(0.6) else "")
    parts.append(b.x([h], constant=0.7) if b.chance(0.4) else "")
    b.atol = 1e-4
    b.node("SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization", parts, ["y"] if b.chance(0.5) else ["y", "", "", "sum"],
           domain=MICROSOFT, **b.some(epsilon=1e-3))


@spec("ms.FusedMatMul", 13, 22)
def fused_matmul(b):
    left, right = matmul_shapes(b)
    ta, tb = b.int(0, 1), b.int(0, 1)
    if min(len(left), len(right)) < 2 and ta + tb:
        raise Skip
    if len(left) > 1 and ta:
        left[-2:] = left[:-3:-1]
    if len(right) > 1 and tb:
        right[-2:] = right[:-3:-1]
    b.node("FusedMatMul", [b.x(left), b.x(right, constant=0.5)], domain=MICROSOFT, transA=ta if len(left) > 1 else 0, transB=tb if len(right) > 1 else 0, **b.some(alpha=0.7))


@spec("ms.FusedConv", 13, 22)
def fused_conv(b):
    x, w, options, _ = conv_operands(b, 2)
    op = b.pick(["Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid"])
    params = {"LeakyRelu": [0.2], "Clip": [-0.5, 0.7], "HardSigmoid": [0.3, 0.4]}.get(op)
    b.node("FusedConv", [b.x(x), b.x(w, constant=0.8), b.x([w[0]], constant=0.8)], domain=MICROSOFT, activation=op, activation_params=params, **options)


@spec("ms.FusedGemm", 13, 22)
def fused_gemm(b):
    m, k, n = b.int(1, 9), b.int(1, 17), b.int(1, 17)
    op = b.pick(["Relu", "Sigmoid", "Tanh", "LeakyRelu"])
    b.node("FusedGemm", [b.x([m, k]), b.x([k, n], constant=0.7), b.x(b.broadcast([m, n]), constant=0.7)], domain=MICROSOFT, activation=op,
           **({"activation_alpha": 0.2} if op == "LeakyRelu" else {}), **b.some(alpha=0.5, beta=0.3))


@spec("ms.QLinearBinary", 13, 22)
def qlinear_binary(b):
    shape = b.shape(1, 4, empty=0)
    kind = b.pick(["u1", "i1"])
    b.units = 1
    b.node(b.pick(["QLinearAdd", "QLinearMul"]), [b.x(shape, kind), scale(b), zero(b, kind), b.x(b.broadcast(shape), kind), scale(b), zero(b, kind), scale(b), zero(b, kind)], domain=MICROSOFT)


@spec("ms.QLinearUnary", 13, 22)
def qlinear_unary(b):
    kind = b.pick(["u1", "i1"])
    op = b.pick(["QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QLinearGlobalAveragePool", "QLinearAveragePool", "QLinearReduceMean"])
    b.units = 1
    options, shape = {}, [b.int(1, 2), b.int(1, 9), b.int(2, 7), b.int(2, 7)]
    if op == "QLinearLeakyRelu":
        options = b.some(alpha=0.2)
    elif op == "QLinearSoftmax":
        options = {"opset": 13, **b.some(axis=b.int(-4, 3))}
    elif op == "QLinearAveragePool":
        options = {"kernel_shape": [2, 2], **b.some(count_include_pad=1, pads=[1, 1, 0, 0], strides=[2, 1])}
    elif op == "QLinearReduceMean":
        options = {"axes": [b.int(0, 3)], **b.some(keepdims=0)}
    b.node(op, [b.x(shape, kind), scale(b), zero(b, kind), scale(b), zero(b, kind)], domain=MICROSOFT, **options)


@spec("ms.QLinearConcat", 13, 22)
def qlinear_concat(b):
    shape, kind, axis = b.shape(2, 3, empty=0), b.pick(["u1", "i1"]), 1
    parts = [scale(b), zero(b, kind)]
    for _ in range(b.int(1, 3)):
        parts += [b.x(shape, kind), scale(b), zero(b, kind)]
    b.units = 1
    b.node("QLinearConcat", parts, domain=MICROSOFT, axis=axis)


@spec("ms.MultiHeadAttention", 13, 22)
def multi_head(b):
    n, heads, d, q, s = b.int(1, 2), b.int(1, 3), b.pick([4, 8]), b.int(1, 6), b.int(1, 7)
    h = heads * d
    parts = [b.x([n, q, h]), b.x([n, s, h]), b.x([n, s, h]), b.x([3 * h], constant=0.7) if b.chance(0.5) else ""]
    if b.chance(0.3):
        parts += ["", b.x([b.pick([1, n]), b.pick([1, heads]), q, s])]
    b.atol = 1e-4
    b.node("MultiHeadAttention", parts, domain=MICROSOFT, num_heads=heads, **b.some(scale=0.3), **({"unidirectional": 1} if q == s and b.chance(0.3) else {}))


@spec("ms.Attention", 13, 22)
def packed(b):
    n, heads, d, s = b.int(1, 2), b.int(1, 3), b.pick([4, 8]), b.int(1, 6)
    h, wide = heads * d, b.pick([4, 9])
    parts = [b.x([n, s, wide]), b.x([wide, 3 * h], constant=0.8), b.x([3 * h], constant=0.8)]
    if b.chance(0.4):
        parts.append(b.given((np.arange(s)[None] < b.rng.integers(1, s + 1, (n, 1))).astype(np.int32)))
    b.atol = 1e-4
    b.node("Attention", parts, domain=MICROSOFT, num_heads=heads, **b.some(unidirectional=b.int(0, 1)))


@spec("ms.GroupQueryAttention", 13, 22)
def group_query(b):
    n, kv, times, d, q = b.int(1, 2), b.int(1, 2), b.int(1, 3), b.pick([8, 16]), b.int(1, 5)
    past = b.int(0, 4) if q == 1 else 0
    heads = kv * times
    parts = [b.x([n, q, heads * d]), b.x([n, q, kv * d]), b.x([n, q, kv * d])]
    parts += [b.x([n, kv, past, d]), b.x([n, kv, past, d])] if past else ["", ""]
    parts += [b.const(np.full(n, past + q - 1, np.int32)), b.const(np.array(past + q, np.int32))]
    options = {}
    if b.chance(0.4):
        parts += [b.x([past + q + 3, d // 2], constant=1), b.x([past + q + 3, d // 2], constant=1)]
        options["do_rotary"] = 1
    b.atol = 1e-4
    b.node("GroupQueryAttention", parts, 3, domain=MICROSOFT, num_heads=heads, kv_num_heads=kv, **options)


@spec("ms.MatMulNBits", 13, 22)
def matmul_nbits(b):
    block, k, n = b.pick([16, 32]), b.pick([16, 32, 40, 64]), b.pick([1, 5, 8, 17])
    blocks = -(-k // block)
    parts = [b.x([b.int(1, 3), k]), b.const(b.rng.integers(0, 256, (n, blocks, block // 2)).astype(np.uint8)), b.const(b.rng.uniform(0.01, 0.1, n * blocks).astype(np.float32))]
    if b.chance(0.5):
        parts.append(b.const(b.rng.integers(0, 256, n * ((blocks + 1) // 2)).astype(np.uint8)))
    b.rtol = 1e-3
    b.node("MatMulNBits", parts, domain=MICROSOFT, K=k, N=n, bits=4, block_size=block)


@spec("ms.DynamicQuantizeMatMul", 13, 22)
def dynamic_matmul(b):
    m, k, n = b.int(1, 5), b.pick([3, 8, 17]), b.pick([1, 8, 17])
    per_column = [n] if b.chance(0.4) else []
    parts = [b.x([m, k]), b.x([k, n], "i1", constant=1, low=-63, high=63), scale(b, per_column), b.const(np.zeros(per_column, np.int8))]
    if b.chance(0.5):
        parts.append(b.x([n], constant=1))
    b.rtol = 1e-2
    b.node("DynamicQuantizeMatMul", parts, domain=MICROSOFT)


@spec("ml.Simple", 13, 22)
def simple(b):
    n, c = b.int(1, 5), b.int(1, 6)
    op = b.pick(["Scaler", "Normalizer", "Binarizer", "Imputer", "ArrayFeatureExtractor", "FeatureVectorizer"])
    x = b.x([n, c], b.pick(["f4", "f4", "i8"] if op in ("Scaler",) else ["f4"]))
    options, extra = {}, []
    if op == "Scaler":
        count = b.pick([1, c])
        options = {"offset": b.rng.normal(size=count).tolist(), "scale": b.rng.normal(size=count).tolist()}
    elif op == "Normalizer":
        options = b.some(norm=b.pick(["MAX", "L1", "L2"]))
    elif op == "Binarizer":
        options = b.some(threshold=0.3)
    elif op == "Imputer":
        options = {"imputed_value_floats": b.rng.normal(size=b.pick([1, c])).tolist(), "replaced_value_float": b.pick([0.0, float("nan")])}
    elif op == "ArrayFeatureExtractor":
        extra = [b.given(b.rng.integers(0, c, b.int(1, 4)))]
    elif op == "FeatureVectorizer":
        extra, options = [b.x([n, 3])], {"inputdimensions": [c, 3]}
    b.node(op, [x] + extra, domain=ML, **options)


@spec("ml.Linear", 13, 22)
def linear(b):
    n, c, classes = b.int(1, 5), b.int(1, 6), b.int(2, 4)
    x = b.x([n, c])
    if b.chance(0.5):
        targets = b.int(1, 3)
        b.node("LinearRegressor", [x], domain=ML, coefficients=b.rng.normal(size=c * targets).tolist(), targets=targets, **b.some(intercepts=b.rng.normal(size=targets).tolist()))
        return
    rows = b.pick([classes, classes, 1]) if classes == 2 else classes
    b.node("LinearClassifier", [x], 2, domain=ML, coefficients=b.rng.normal(size=c * rows).tolist(), intercepts=b.rng.normal(size=rows).tolist(), classlabels_ints=list(range(classes)),
           multi_class=b.int(0, 1), **b.some(post_transform=b.pick(["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])))


def tree(b, prefix, targets, classifier):
    """Attributes of two or three trees of depth 2."""
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    rows, leaves = {name: [] for name in names}, []
    mode = b.pick(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])
    for t in range(b.int(1, 3)):
        for i in range(7):
            inner = i < 3
            for name, value in zip(names, (t, i, b.int(0, 3) if inner else 0, float(np.round(b.rng.normal())) if inner else 0.0, mode if inner else "LEAF",
                                           2 * i + 1 if inner else 0, 2 * i + 2 if inner else 0, b.int(0, 1) if inner else 0)):
                rows[name].append(value)
            if not inner:
                leaves += [(t, i, k, float(b.rng.normal())) for k in range(targets)]
    kind = "class" if classifier else "target"
    result = {f"nodes_{name}": values for name, values in rows.items()}
    for name, at in (("treeids", 0), ("nodeids", 1), ("ids", 2), ("weights", 3)):
        result[f"{kind}_{name}"] = [leaf[at] for leaf in leaves]
    return result


@spec("ml.Trees", 13, 22)
def trees(b):
    n, targets, classifier = b.int(1, 9), b.int(1, 3), b.chance(0.5)
    values = np.round(b.values([n, 4]) * 2) / 2
    if b.chance(0.2):
        values = np.where(b.rng.random(values.shape) < 0.1, np.nan, values)
    x = b.given(values.astype(np.float32))
    if classifier:
        targets = b.int(3, 4)
        b.node("TreeEnsembleClassifier", [x], 2, domain=ML, classlabels_int64s=list(range(targets)), **tree(b, "", targets, True),
               **b.some(post_transform=b.pick(["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]), base_values=b.rng.normal(size=targets).tolist()))
    else:
        b.node("TreeEnsembleRegressor", [x], domain=ML, n_targets=targets, **tree(b, "", targets, False),
               **b.some(aggregate_function=b.pick(["SUM", "AVERAGE", "MIN", "MAX"]), base_values=b.rng.normal(size=targets).tolist()))


@spec("ml.Svm", 13, 22)
def svm(b):
    n, c, vectors = b.int(1, 4), b.int(1, 4), b.int(2, 5)
    kernel = b.pick(["LINEAR", "RBF", "POLY", "SIGMOID"])
    options = {"kernel_type": kernel, "kernel_params": [0.5, 0.1, 2.0], "support_vectors": b.rng.normal(size=vectors * c).tolist()}
    b.rtol = 1e-3
    b.node("SVMRegressor", [b.x([n, c])], domain=ML, coefficients=b.rng.normal(size=vectors).tolist(), n_supports=vectors, rho=[0.3], **options)


@spec("ml.LabelEncoder", 13, 22)
def label_encoder(b):
    kinds = {"int64s": [1, 2, 3], "floats": [1.0, 2.0, float("nan")]}
    source, target = b.pick(list(kinds)), b.pick(list(kinds))
    x = b.given(b.rng.integers(0, 5, b.shape(1, 2, empty=0)).astype(np.int64 if source == "int64s" else np.float32))
    b.node("LabelEncoder", [x], domain=ML, **{f"keys_{source}": kinds[source], f"values_{target}": [7, 8, 9] if target == "int64s" else [0.5, 1.5, 2.5]},
           **b.some(**{f"default_{target[:-1]}": 4 if target == "int64s" else 4.5}))


@spec("ml.OneHotEncoder", 13, 22)
def ml_one_hot(b):
    b.node("OneHotEncoder", [b.given(b.rng.integers(0, 4, b.shape(1, 2, empty=0)).astype(b.pick(["i8", "f4"])))], domain=ML, cats_int64s=[0, 1, 2, 5], zeros=1)
