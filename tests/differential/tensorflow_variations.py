"""TensorFlow's operators that are imported, as texts over named inputs, and how they are varied: types, extents, among them 0 and 1, no
dims, other numbers and words in their attributes, free dims. Eager TensorFlow says which variations mean something.
"""

import random
import re

import numpy as np
import tensorflow as tf

from variations import cases_of, other_type, rows_of, with_other_extents, with_other_numbers, with_other_words

# name: (dtype, shape, low, high); of integers high is not reached.
INPUTS = {
    "x": ("float32", [3, 4], -2, 2), "y": ("float32", [3, 4], -2, 2), "w": ("float32", [4], -2, 2), "v": ("float32", [3, 1], -2, 2),
    "p": ("float32", [3, 4], 0.1, 4), "u": ("float32", [3, 4], -0.95, 0.95), "g": ("float32", [3, 4], 1.1, 4), "s": ("float32", [], -2, 2),
    "i": ("int32", [3, 4], -9, 9), "j": ("int32", [3, 4], 1, 7), "b": ("bool", [3, 4], 0, 2), "c": ("bool", [3, 4], 0, 2), "c0": ("bool", [3], 0, 2),
    "m": ("float32", [2, 3, 4], -2, 2), "mm": ("float32", [2, 4, 5], -2, 2), "sq": ("float32", [2, 4, 4], -2, 2), "r": ("float32", [4, 5], -2, 2),
    "one": ("float32", [1, 3, 1, 4], -2, 2), "d2": ("float32", [2, 4], -2, 2), "d3": ("float32", [2, 3], -2, 2),
    "im": ("float32", [2, 7, 6, 4], -2, 2), "bl": ("float32", [4, 4, 6, 4], -2, 2), "vol": ("float32", [2, 4, 5, 6, 2], -2, 2),
    "k2": ("float32", [3, 2, 4, 6], -1, 1), "kg": ("float32", [3, 3, 2, 6], -1, 1), "kd": ("float32", [3, 3, 4, 2], -1, 1),
    "kt": ("float32", [3, 2, 5, 4], -1, 1), "k3": ("float32", [2, 3, 2, 2, 3], -1, 1), "t3": ("float32", [2, 3, 2, 3, 2], -1, 1),
    "b4": ("float32", [4], -1, 1), "b6": ("float32", [6], -1, 1), "va": ("float32", [4], 0.5, 1.5),
    "ix": ("int32", [2, 3], 0, 3), "i1": ("int32", [3], 0, 3), "nd": ("int32", [5, 2], 0, 2), "n1": ("int32", [5, 1], 0, 3), "up": ("float32", [5, 4], -2, 2),
    "sg": ("int32", [3], 0, 3), "len": ("int32", [2], 0, 4), "lb": ("int32", [11], 0, 5), "rw": ("int32", [6, 2], 0, 2),
    "bx": ("float32", [5, 4], 0, 1), "sc": ("float32", [5], 0, 1), "bi": ("int32", [5], 0, 2), "ia": ("int32", [], -2, 2), "k": ("int32", [], 1, 4),
    "imi": ("int32", [2, 7, 6, 4], -2**31, 2**31), "k2i": ("int32", [3, 2, 4, 6], -2**31, 2**31), "kti": ("int32", [3, 2, 5, 4], -2**31, 2**31),
    "lo": ("float32", [], -2, 0), "hi": ("float32", [], 0.1, 2), "rows": ("int64", [5], 0, 4), "vals": ("float32", [9, 4], -2, 2), "kinds": ("int32", [9], 0, 5),
    "wave": ("float32", [400, 1], -1, 1), "lim": ("float32", [3], -1, 1),
}
WORDS = (("True", "False"), ("'SAME'", "'VALID'"), ("'REFLECT'", "'SYMMETRIC'"), ("'bilinear'", "'nearest'"), ("tf.int32", "tf.int64"),
         ("'LEFT_RIGHT'", "'RIGHT_LEFT'", "'LEFT_LEFT'", "'RIGHT_RIGHT'"))
# What TensorFlow asks to be a constant, or of an own type, whatever the other inputs are.
OWN_TYPE = ("imi", "k2i", "kti", "lo", "hi", "rows", "kinds", "ix", "i1", "nd", "n1", "sg", "len", "bi", "ia", "k", "bx", "sc", "lim", "b", "c", "c0")
# Of equal elements any comes first.
UNORDERED = re.compile(r"TopKV2|NonMaxSuppression")
# TensorFlow's Round of long integers is 0.
WRONG = re.compile(r"raw.Round")


def of(names, arguments):
    return [f"raw.{name}({arguments})" for name in names.split()]


def unary():
    return (of("Abs Neg Sign Exp Tanh Sigmoid Erf Erfc Sin Cos Atan Sinh Cosh Asinh Floor Ceil Rint Round Square Expm1 Invert ZerosLike OnesLike", "x=x")
            + of("Relu Relu6 Selu Elu Softplus Softsign", "features=x") + of("Sqrt Rsqrt Log Reciprocal Inv Log1p Tan", "x=p")
            + of("Asin Acos Atanh", "x=u") + of("Acosh", "x=g") + of("IsNan IsInf IsFinite", "x=x / (x * u)") + of("LogicalNot", "x=b")
            + of("Abs Neg Sign Square Invert OnesLike", "x=i") + of("Relu Relu6", "features=i") + of("Exp Sqrt Tanh Floor Round", "x=s")
            + ["raw.LeakyRelu(features=x, alpha=0.3)", "raw.LeakyRelu(features=x)", "raw.ClipByValue(t=x, clip_value_min=tf.cast(-1, x.dtype), clip_value_max=tf.cast(1, x.dtype))",
               "raw.ClipByValue(t=x, clip_value_min=y, clip_value_max=y)", "raw.Identity(input=x)", "raw.Snapshot(input=x)", "raw.StopGradient(input=x)",
               "raw.CheckNumerics(tensor=x, message='m')", "raw.L2Loss(t=x)", "raw.EnsureShape(input=x, shape=[3, None])", "raw.Rank(input=x)",
               "raw.Size(input=x, out_type=tf.int32)", "raw.Shape(input=x, out_type=tf.int32)", "raw.ShapeN(input=[x, y], out_type=tf.int32)"]
            + [f"tf.cast(x, tf.{kind})" for kind in "float16 bfloat16 float32 float64 int8 int16 int32 int64 bool".split()]
            + [f"tf.cast(p, tf.{kind})" for kind in "uint8 uint16 uint32 uint64".split()]  # of numbers below 0 nothing is defined
            + [f"tf.cast(i, tf.{kind})" for kind in "int8 int16 int64 float16 float64 bool".split()]
            + [f"tf.cast(j, tf.{kind})" for kind in "uint8 uint16 uint32".split()]
            + ["raw.Cast(x=x, DstT=tf.float16, Truncate=True)", "raw.Cast(x=x, DstT=tf.bfloat16, Truncate=True)"]
            + [f"raw.Bitcast(input=x, type=tf.{kind})" for kind in "int32 uint8 int16 float64 int64".split()])


def binary():
    both = "Add AddV2 Sub Mul RealDiv Div Maximum Minimum Less LessEqual Greater GreaterEqual Equal NotEqual SquaredDifference FloorDiv FloorMod"
    cases = [text for operands in ("x=x, y=y", "x=x, y=p", "x=x, y=w", "x=v, y=w", "x=s, y=x", "x=m, y=x", "x=i, y=j", "x=j, y=j") for text in of(both, operands)]
    cases += of("TruncateDiv TruncateMod Mod BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift Pow", "x=i, y=j") + of("Pow", "x=p, y=y")
    cases += of("Pow", "x=j, y=j") + of("DivNoNan MulNoNan Xdivy Xlogy", "x=x, y=p") + of("DivNoNan MulNoNan Xdivy Xlogy", "x=x, y=p * tf.cast(x > 0, x.dtype)")
    cases += of("Xlog1py", "x=x, y=p") + of("Atan2", "y=y, x=x") + of("LogicalAnd LogicalOr", "x=b, y=c") + of("Equal NotEqual", "x=b, y=c")
    cases += of("ApproximateEqual", "x=x, y=y, tolerance=0.5") + of("TruncateMod Mod", "x=x, y=p") + of("Equal", "x=x, y=m, incompatible_shape_error=False")
    cases += ["raw.AddN(inputs=[x, y, x])", "raw.AddN(inputs=[i, j])", "raw.AccumulateNV2(inputs=[x, y], shape=[3, 4])", "raw.BiasAdd(value=x, bias=b4)",
              "raw.BiasAdd(value=im, bias=b4)", "raw.BiasAdd(value=im, bias=b4, data_format='NHWC')", "raw.BiasAddV1(value=x, bias=b4)",
              "raw.Select(condition=b, x=x, y=y)", "raw.Select(condition=c0, x=x, y=y)", "raw.SelectV2(condition=b, t=x, e=y)", "raw.SelectV2(condition=b, t=v, e=w)",
              "raw.SelectV2(condition=b, t=s, e=x)", "raw.SelectV2(condition=c0, t=s, e=v)",
              "tf.quantization.fake_quant_with_min_max_args(x, -1.1, 1.7, num_bits=6)", "tf.quantization.fake_quant_with_min_max_vars(x, -1.2, 1.5, narrow_range=True)",
              "tf.quantization.fake_quant_with_min_max_vars_per_channel(x, -va, va, num_bits=4)",
              "tf.quantization.fake_quant_with_min_max_vars(x, lo, hi, num_bits=7)", "tf.quantization.fake_quant_with_min_max_vars(x, lo * 0, lo * 0, narrow_range=True)",
              "tf.quantization.fake_quant_with_min_max_vars_per_channel(m, tf.minimum(w, 0), tf.maximum(w, 0), narrow_range=True)"]
    return cases


def convolutions():
    cases = []
    for more in ("strides=[1, 1, 1, 1], padding='SAME'", "strides=[1, 2, 2, 1], padding='SAME'", "strides=[1, 2, 1, 1], padding='VALID'",
                 "strides=[1, 1, 1, 1], padding='SAME', dilations=[1, 2, 2, 1]", "strides=[1, 1, 1, 1], padding='VALID', dilations=[1, 2, 1, 1]",
                 "strides=[1, 2, 1, 1], padding='EXPLICIT', explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0]"):
        cases += [f"raw.Conv2D(input=im, filter={kernel}, {more})" for kernel in ("k2", "kg")]
        cases.append(f"raw.DepthwiseConv2dNative(input=im, filter=kd, {more})")
    for more in ("strides=[1, 1, 1, 1, 1], padding='SAME'", "strides=[1, 2, 1, 2, 1], padding='SAME'", "strides=[1, 1, 2, 1, 1], padding='VALID'"):
        cases += [f"raw.Conv3D(input=vol, filter=k3, {more})", f"raw.MaxPool3D(input=vol, ksize=[1, 2, 3, 2, 1], {more})", f"raw.AvgPool3D(input=vol, ksize=[1, 2, 3, 2, 1], {more})"]
    for more in ("ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding='SAME'", "ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding='SAME'",
                 "ksize=[1, 3, 3, 1], strides=[1, 3, 2, 1], padding='VALID'"):
        cases += [f"raw.MaxPool(input=im, {more})", f"raw.MaxPoolV2(input=im, {more})", f"raw.AvgPool(value=im, {more})"]
    cases += [f"raw.Conv2D(input=imi, filter=k2i, strides=[1, {stride}, 1, 1], padding='SAME')" for stride in (1, 2)]
    cases.append("raw.Conv2DBackpropInput(input_sizes=[tf.shape(imi)[0], 14, 12, 5], filter=kti, out_backprop=imi, strides=[1, 2, 2, 1], padding='SAME')")
    cases.append("raw.MaxPool(input=im, ksize=[1, 3, 2, 1], strides=[1, 2, 2, 1], padding='EXPLICIT', explicit_paddings=[0, 0, 1, 1, 0, 1, 0, 0])")
    cases += ["raw.Conv2DBackpropInput(input_sizes=[tf.shape(im)[0], 14, 12, 5], filter=kt, out_backprop=im, strides=[1, 2, 2, 1], padding='SAME')",
              "raw.Conv2DBackpropInput(input_sizes=[tf.shape(im)[0], 13, 11, 5], filter=kt, out_backprop=im, strides=[1, 2, 2, 1], padding='SAME')",
              "raw.Conv2DBackpropInput(input_sizes=[tf.shape(im)[0], 15, 12, 5], filter=kt, out_backprop=im, strides=[1, 2, 2, 1], padding='VALID')",
              "raw.Conv2DBackpropInput(input_sizes=[tf.shape(im)[0], tf.shape(im)[1], tf.shape(im)[2], 5], filter=kt, out_backprop=im, strides=[1, 1, 1, 1], padding='SAME')",
              "raw.Conv3DBackpropInputV2(input_sizes=[2, 4, 10, 6, 3], filter=t3, out_backprop=vol, strides=[1, 1, 2, 1, 1], padding='SAME')"]
    for name in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        cases.append(f"raw.{name}(x=im, scale=b4, offset=w, mean=b4, variance=va, epsilon=0.01, is_training=False).y")
    cases += [f"list(raw.{name}(x=im, scale=b4, offset=w, mean=[], variance=[], epsilon=0.01, is_training=True))[:{many}]" for name, many in (("FusedBatchNorm", 3), ("FusedBatchNormV3", 3))]
    cases += ["raw.LRN(input=im, depth_radius=1, bias=1.5, alpha=0.3, beta=0.6)", "raw.LRN(input=im)", "raw.Softmax(logits=x)", "raw.LogSoftmax(logits=x)",
              "raw.Softmax(logits=im)", "raw.LogSoftmax(logits=m)"]
    return cases


def products():
    cases = ["raw.MatMul(a=x, b=r)", "raw.MatMul(a=x, b=y, transpose_b=True)", "raw.MatMul(a=x, b=y, transpose_a=True)", "raw.MatMul(a=r, b=x, transpose_a=True, transpose_b=True)",
             "raw.MatMul(a=i, b=j, transpose_b=True)"]
    for name in ("BatchMatMul", "BatchMatMulV2"):
        cases += [f"raw.{name}(x=m, y=mm)", f"raw.{name}(x=m, y=m, adj_y=True)", f"raw.{name}(x=m, y=m, adj_x=True)", f"raw.{name}(x=m, y=r)", f"raw.{name}(x=x, y=mm)"]
    cases += ["raw.BatchMatMulV2(x=mm, y=m, adj_x=True, adj_y=True)", "raw.BatchMatMulV3(x=m, y=mm, Tout=tf.float32)", "raw.BatchMatMulV2(x=one, y=mm)"]
    for equation, operands in (("bij,bjk->bik", "m, mm"), ("bij,jk->bik", "m, r"), ("ij,ij->", "x, y"), ("ij->ji", "x"), ("ij->i", "x"), ("bii->bi", "sq"),
                               ("...j,jk->...k", "m, r"), ("bij,bkj->bik", "m, m"), ("i,j->ij", "w, b6"), ("bij,j->bi", "m, w"), ("abcd,cde->abe", "im, mm")):
        cases.append(f"tf.einsum('{equation}', {operands})")
    return cases


def reductions():
    cases = []
    for name in "Mean Sum Prod Max Min EuclideanNorm".split():
        cases += [f"raw.{name}(input={of}, axis={axis}, keep_dims={keeps})" for of, axis, keeps in (
            ("m", [1], False), ("m", [0, -1], True), ("m", 2, False), ("x", [], False), ("x", [0, 1], False), ("i", [0], False), ("s", [], True), ("im", [1, 2], True))]
        cases.append(f"raw.{name}(input=x, axis=tf.range(tf.rank(x)))")
    cases += [f"raw.{name}(input=b, axis={axis}, keep_dims=False)" for name in ("All", "Any") for axis in ([1], [0, -1], 0, [])]
    cases += [f"raw.{name}(input={of}, dimension={axis}, output_type=tf.int32)" for name in ("ArgMax", "ArgMin") for of in ("m", "i") for axis in (1, -1)]
    cases += ["raw.TopKV2(input=x, k=2)", "raw.TopKV2(input=m, k=3)", "raw.TopKV2(input=i, k=1)", "raw.TopKV2(input=x, k=k)[0]", "raw.TopKV2(input=m, k=k)[0]",
              "tf.math.top_k(i, k)[0]", "tf.reduce_sum(raw.TopKV2(input=up, k=k)[0], 1)"]
    for name in ("Cumsum", "Cumprod"):
        cases += [f"raw.{name}(x={of}, axis={axis}, exclusive=False, reverse={back})" for of, axis, back in (("m", 1, False), ("x", -1, True), ("i", 0, False), ("w", 0, True))]
    for name in ("Sum", "Prod", "Max", "Min"):
        cases += [f"raw.UnsortedSegment{name}(data={of}, segment_ids=sg, num_segments=4)" for of in ("x", "i")]
        cases += [f"raw.UnsortedSegment{name}(data=m, segment_ids=ix, num_segments=3)", f"raw.UnsortedSegment{name}(data=x, segment_ids=i1 - 1, num_segments=3)"]
    return cases + ["raw.Bucketize(input=x, boundaries=[-1, 0, 0.5])", "raw.Bucketize(input=i, boundaries=[-3, 0, 5])",
                    "raw.DenseBincount(input=lb, size=6, weights=tf.constant([], tf.float32))", "raw.DenseBincount(input=ix, size=4, weights=d3)",
                    "raw.DenseBincount(input=ix, size=5, weights=tf.constant([], tf.int32), binary_output=True)"]


def moves():
    cases = ["tf.reshape(x, [4, -1])", "tf.reshape(m, [-1, 6])", "tf.reshape(m, [2, 12])", "tf.reshape(m, tf.stack([tf.shape(m)[0], -1]))", "tf.reshape(s, [1, 1])",
             "raw.Squeeze(input=one, axis=[0])", "raw.Squeeze(input=one, axis=[-2, 0])", "raw.Squeeze(input=one)", "raw.ExpandDims(input=x, axis=1)", "raw.ExpandDims(input=x, axis=-1)",
             "raw.ExpandDims(input=s, axis=0)", "raw.Transpose(x=m, perm=[2, 0, 1])", "raw.Transpose(x=x, perm=[1, 0])", "raw.ConjugateTranspose(x=m, perm=[0, 2, 1])",
             "tf.concat([x, y, v], 1)", "tf.concat([m, m], -2)", "tf.concat([x, y], 0)", "raw.Concat(concat_dim=0, values=[x, y])", "tf.stack([x, y], 1)", "tf.stack([s, s], 0)",
             "tf.stack([x, y, x], -1)", "tf.unstack(m, axis=1)", "tf.unstack(x, axis=-1)", "tf.split(x, 2, axis=1)", "tf.split(m, 3, axis=-2)",
             "tf.split(x, [1, 3], axis=1)", "tf.split(x, [1, -1], axis=-1)", "tf.split(x, [1, 2], axis=0)", "tf.slice(m, [0, 1, 0], [2, 1, 3])", "tf.slice(m, [0, 1, 1], [-1, -1, 2])",
             "tf.slice(x, [0, 0], [3, 4])", "m[:, 1:]", "m[..., ::2]", "m[:, ::-1, 1:3]", "m[0]", "m[:, None, -1]", "m[..., None]", "m[:, -2:, :2]", "x[3:1:-1]", "x[::-2, 1]", "m[1:, ..., 0]",
             "m[:, 3:1]", "x[-1:0:-1, :3]", "raw.Pad(input=x, paddings=[[1, 2], [0, 1]])", "raw.Pad(input=m, paddings=[[0, 0], [1, 0], [2, 1]])", "raw.PadV2(input=x, paddings=[[1, 0], [2, 1]], constant_values=s)",
             "raw.MirrorPad(input=m, paddings=[[0, 0], [1, 2], [2, 1]], mode='REFLECT')", "raw.MirrorPad(input=x, paddings=[[1, 1], [2, 3]], mode='SYMMETRIC')",
             "tf.reverse(m, [0, 2])", "tf.reverse(x, [-1])", "tf.reverse(x, [])", "tf.tile(x, [2, 3])", "tf.tile(m, [1, 2, 1])", "tf.tile(v, [1, 4])", "tf.broadcast_to(v, [3, 5])", "tf.broadcast_to(x, [2, 3, 4])",
             "tf.broadcast_to(s, [2, 2])", "tf.broadcast_to(v, tf.shape(x))", "raw.SpaceToDepth(input=bl, block_size=2)", "raw.DepthToSpace(input=bl, block_size=2)",
             "tf.space_to_batch_nd(bl, [2, 3], [[1, 1], [0, 0]])", "tf.space_to_batch_nd(im, [2, 2], [[1, 0], [0, 2]])", "tf.batch_to_space(bl, [2, 1], [[1, 0], [0, 2]])", "tf.batch_to_space(bl, [2, 2], [[0, 0], [1, 0]])",
             "raw.SpaceToBatch(input=bl, paddings=[[0, 0], [0, 2]], block_size=2)", "raw.BatchToSpace(input=bl, crops=[[1, 0], [0, 0]], block_size=2)", "tf.roll(m, [1, -2], [1, 2])", "tf.roll(x, 1, 0)", "tf.roll(x, ia, -1)",
             "tf.reverse_sequence(m, len, seq_axis=1, batch_axis=0)", "tf.reverse_sequence(m, i1, seq_axis=2, batch_axis=1)", "raw.Gather(params=x, indices=ix)", "tf.gather(m, ix, axis=2)", "tf.gather(m, i1, axis=-2)",
             "tf.gather(m, ix, axis=1, batch_dims=1)", "tf.gather(x, k, axis=1)", "tf.gather(m, len - 0, axis=1, batch_dims=1)", "tf.gather_nd(x, nd)", "tf.gather_nd(m, nd)", "tf.gather_nd(m, ix[:, :1] * 0, batch_dims=1)",
             "tf.scatter_nd(n1, up, [4, 4])", "tf.scatter_nd(nd, sc, [3, 2])", "tf.scatter_nd(nd, up, tf.stack([2, 2, 4]))"]
    cases += [f"raw.TensorScatter{name}(tensor=x, indices=n1 * {times}, updates=up)" for name in ("Add", "Sub", "Max", "Min") for times in (1, 0)]
    cases += ["raw.TensorScatterUpdate(tensor=x, indices=[[1], [0]], updates=d2)", "raw.TensorScatterUpdate(tensor=i, indices=[[1, 2], [0, 3]], updates=[5, 7])",
              "tf.linalg.band_part(m, 1, 0)", "tf.linalg.band_part(sq, 0, -1)", "tf.linalg.band_part(m, -1, 2)", "raw.MatrixDiag(diagonal=d3)", "raw.MatrixSetDiag(input=sq, diagonal=d2)", "raw.MatrixDiagPart(input=m)",
              "raw.MatrixDiagV2(diagonal=d3, k=0, num_rows=-1, num_cols=-1, padding_value=tf.cast(0, d3.dtype))", "tf.linalg.diag(d3)", "tf.linalg.diag(d3, k=1)", "tf.linalg.diag(d3, num_rows=4, num_cols=5, padding_value=2)",
              "tf.linalg.diag(d2, k=(0, 1), num_rows=4, num_cols=4, align='LEFT_RIGHT')", "tf.linalg.set_diag(sq, d2)", "tf.linalg.set_diag(m, d3)", "tf.linalg.diag_part(m)", "tf.linalg.diag_part(sq, k=1)",
              "tf.linalg.diag_part(sq, k=(-1, 1), align='LEFT_RIGHT', padding_value=3)", "raw.MatrixDiagPartV2(input=m, k=0, padding_value=tf.cast(0, m.dtype))"]
    return cases


def shapes():
    return ["raw.Fill(dims=[2, 3], value=s)", "raw.Fill(dims=tf.shape(x), value=s)", "x[:, 0] + tf.cast(tf.range(tf.shape(x)[0]), x.dtype)", "tf.range(0, 7, 2) + tf.cast(k, tf.int32)", "tf.range(k)", "tf.range(5, k, -1)",
            "tf.linspace(-1.0, 1.0, 4) + w", "tf.linspace(-1.0, 1.0, tf.shape(x)[0])", "tf.linspace(0.0, tf.cast(tf.shape(x)[0] - 1, tf.float32), 4)",
            "tf.range(0.0, tf.cast(tf.shape(x)[1], tf.float32) * 0.5, 0.25)", "tf.fill([tf.cast(tf.cast(tf.shape(x)[0], tf.float32) * 0.7, tf.int32)], s)",
            "x[tf.cast(tf.math.floor(tf.cast(tf.shape(x)[0], tf.float32) / 2.0), tf.int32):]", "tf.one_hot(ix, 4, on_value=2.0, off_value=-1.0)", "tf.one_hot(i, 3, axis=0)", "tf.one_hot(i1, 5, axis=-1)", "tf.one_hot(k, 3)", "tf.one_hot(i1, k + 1)",
            "raw.BroadcastArgs(s0=tf.shape(x), s1=tf.shape(v))", "raw.BroadcastArgs(s0=tf.shape(m), s1=[1, 4])", "tf.transpose(m, raw.InvertPermutation(x=[2, 0, 1]))",
            "tf.reshape(m, tf.stack([tf.shape(m)[0], tf.reduce_prod(tf.shape(m)[1:])]))", "tf.zeros(tf.shape(m)[:2]) + tf.cast(tf.size(m), tf.float32)", "tf.shape(x)[0] * 2 - tf.shape(x)[1]",
            "tf.reshape(x, [-1])[: tf.shape(x)[0]]", "tf.expand_dims(x, -1) * tf.ones([tf.shape(x)[1], 3])[None]", "raw.IdentityN(input=[x, i])", "tf.pad(x, [[0, tf.shape(x)[1]], [k, 0]])", "tf.tile(x, tf.stack([k, 2]))",
            "x[: tf.shape(x)[0] // 2]", "tf.concat([tf.shape(x), tf.shape(m)], 0)", "tf.image.resize(im, tf.shape(im)[1:3] * 2)", "tf.reduce_mean(im, axis=tf.range(1, 3))", "raw.Unpack(value=tf.shape(m), num=3)"]


def pictures():
    cases = [f"raw.{name}(images=im, size=[{size}], align_corners={align}, half_pixel_centers={half})" for name in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic")
             for align, half in ((False, False), (True, False), (False, True)) for size in ("9, 12", "4, 3", "7, 11", "1, 1")]
    cases += [f"raw.CropAndResize(image=im, boxes={boxes}, box_ind=bi, crop_size=[3, 4], method='bilinear', extrapolation_value={outside})" for boxes in ("bx", "bx * 1.5 - 0.2") for outside in (0.0, -1.0)]
    cases += [f"tf.image.resize(im, [{size}], method='{method}', antialias={smooth})" for size in ("9, 4", "3, 12") for smooth in ("False", "True")
              for method in ("bilinear", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic", "area")]
    cases += [f"raw.ScaleAndTranslate(images=im, size=[5, 8], scale=[0.7, {scale}], translation=[{moved}, 1.0], kernel_type='{kernel}', antialias=True)"
              for kernel in ("lanczos1", "box", "triangle", "keyscubic") for scale, moved in (("1.3", "0.0"), ("2.0", "-2.5"))]
    cases += ["raw.ScaleAndTranslate(images=im, size=[5, 8], scale=p[0, :2], translation=x[0, :2])", "raw.ResizeArea(images=im, size=[4, 9], align_corners=True)",
              "raw.ResizeArea(images=im, size=[3, 2])"]
    cases += [f"tf.image.resize_with_pad(im, {size}, method='{method}')" for size in ("5, 9", "20, 11") for method in ("bilinear", "nearest", "area")]
    cases += ["tf.image.resize(im, [10, 12], preserve_aspect_ratio=True)", "tf.image.resize(im, tf.cast(tf.cast(tf.shape(im)[1:3], tf.float32) * 0.5, tf.int32) + 1)",
              *(f"raw.{name}(images=im, size=j[0, :2])" for name in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea")),
              "tf.image.central_crop(im, 0.6)", "tf.image.resize_with_crop_or_pad(im, 5, 9)"]
    corners = "tf.concat([tf.minimum(bx[:, :2], bx[:, 2:]), tf.maximum(bx[:, :2], bx[:, 2:])], 1)"
    cases += [f"raw.NonMaxSuppression(boxes={corners}, scores=sc, max_output_size=4, iou_threshold=0.5)", f"raw.NonMaxSuppressionV2(boxes={corners}, scores=sc, max_output_size=3, iou_threshold=0.2)",
              f"raw.NonMaxSuppressionV3(boxes={corners}, scores=sc, max_output_size=4, iou_threshold=0.5, score_threshold=0.3)",
              f"raw.NonMaxSuppressionV4(boxes={corners}, scores=sc, max_output_size=4, iou_threshold=0.5, score_threshold=0.3, pad_to_max_output_size=True)",
              f"raw.NonMaxSuppressionV5(boxes={corners}, scores=sc, max_output_size=4, iou_threshold=0.3, score_threshold=0.1, soft_nms_sigma=0.0, pad_to_max_output_size=True)"]
    cases += ["raw.AudioSpectrogram(input=wave, window_size=100, stride=55)", "raw.AudioSpectrogram(input=wave, window_size=64, stride=32, magnitude_squared=True)",
              "raw.Mfcc(spectrogram=tf.tile(tf.abs(m)[:, :, :1], [1, 1, 129]) * 9, sample_rate=16000)"]
    return cases


def counted():
    cases = [f"tf.where({of})" for of in ("x > 0", "b", "i > 2", "m > 1", "tf.cast(i, tf.float32)", "x > 9", "s > 0")]
    cases += ["tf.boolean_mask(x, c0) * 2 + 1", "tf.boolean_mask(x, b)", "tf.gather_nd(x, tf.where(x > 0))", "tf.cast(tf.where(x > 0)[:, 1], tf.float32) * 0.5", "tf.reduce_sum(tf.boolean_mask(m, tf.reduce_all(m > -1, 2)))",
              "tf.shape(tf.where(x > 0))[0]", "tf.gather(x, tf.where(x[:, 0] > 0)[:, 0])"]
    cases += [f"list(raw.{name}(x={of}, out_idx=tf.int32))" for name in ("Unique", "UniqueWithCounts") for of in ("lb", "tf.cast(lb, tf.float32)")]
    return cases + [f"list(raw.{name}(x={of}, axis=[{axis}]))" for name in ("UniqueV2", "UniqueWithCountsV2") for of, axis in (("rw", 0), ("rw", 1), ("lb", 0))]


def ragged():
    """Rows of lengths of a run; a ragged or a sparse result counts as the tensors that it is made of."""
    one, other, of_ints = "rag(vals, kinds)", "rag(vals * 2, 4 - kinds)", "rag(kinds, kinds)"
    two = "tf.RaggedTensor.from_row_lengths(rag(vals, kinds), [2, 0, 3, 1], validate=False)"
    cases = [f"{one}.to_tensor()", f"{one}.to_tensor(default_value=[1, 2, 3, 4.0][0])", f"{of_ints}.to_tensor(default_value=-1)", f"{of_ints}.to_tensor(shape=[None, 3])",
             f"{one}.to_tensor(shape=[4, None, 4])", f"{one}.to_tensor(shape=[8, 5, 4])", f"{two}.to_tensor()", f"{two}.to_tensor(shape=[None, 2, None, None])",
             f"{one}.row_lengths()", f"{one}.value_rowids()", f"{one}.bounding_shape()",
             f"{one} + 1.5", f"tf.concat([{one}, {other}], 1)", f"tf.concat([{one}, {other}], 0)", f"tf.stack([{one}, {other}], 0)", f"{one}[:, :2]", f"{one}[:, -1:]", f"{one}[1]", f"{one}[1:]",
             f"tf.gather({one}, [1, 0, 4])", f"tf.gather({two}, ix)", f"tf.gather({one}, ix)", f"tf.ragged.boolean_mask({of_ints}, {of_ints} > 1)", f"{one}.to_sparse()", f"{two}.to_sparse()", f"{of_ints}.to_sparse()",
             "tf.ragged.range(rows)", "tf.ragged.range(rows, rows * 2 - 3, 2)", "tf.ragged.range(3, rows)", "tf.ragged.range(rows, 0, -2)", "tf.ragged.range(sc, sc * 4, 0.3)",
             f"tf.nn.embedding_lookup(up, {of_ints})", f"tf.cast({of_ints}, tf.float32)", f"tf.size({one})", f"tf.expand_dims({one}, -1)", f"tf.reverse({of_ints}, [1])", f"{two}.merge_dims(0, 1)",
             f"tf.one_hot({of_ints}, 4)", f"tf.math.bincount({of_ints}, minlength=5, maxlength=5, axis=-1)", f"tf.math.bincount({of_ints}, minlength=3, maxlength=3, axis=-1, binary_output=True)",
             f"tf.nn.softmax(rag(vals[:, 0], kinds))", f"rag(kinds, kinds) * tf.constant([[1], [2], [3], [4], [5], [6]])", f"tf.tile({of_ints}, [1, 2])",
             f"tf.RaggedTensor.from_tensor(x, lengths=sg)", f"tf.RaggedTensor.from_tensor(i, padding=0)"]
    cases += [f"tf.reduce_{name}({of}, axis={axis})" for name in ("sum", "mean", "max", "min", "prod") for of, axis in ((one, 1), (two, 2), (of_ints, 1))]
    cases += [f"raw.Segment{name}(data={of}, segment_ids=tf.sort(kinds))" for name in ("Sum", "Mean", "Max", "Min", "Prod") for of in ("vals", "kinds")]
    return cases


def algebra():
    """Matrices, functions of many terms, sparse tensors, losses. Factors of which columns have either sign count as what is made of them."""
    definite = "(tf.matmul(m, m, transpose_b=True) + tf.eye(tf.shape(m)[1], dtype=m.dtype))"
    cases = [f"raw.{name}(input={definite})" for name in ("Cholesky", "MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant")]
    cases += [f"raw.MatrixSolve(matrix={definite}, rhs=m, adjoint=True)", f"raw.MatrixTriangularSolve(matrix={definite}, rhs=m, lower=True, adjoint=False)",
              f"raw.MatrixTriangularSolve(matrix={definite}[0], rhs=m, lower=False)", "raw.Qr(input=mm, full_matrices=True)", "raw.Qr(input=m, full_matrices=False)",
              f"raw.SelfAdjointEigV2(input={definite}, compute_v=False).e", f"(lambda e: tf.matmul(e.v * e.e[..., None, :], e.v, transpose_b=True))(raw.SelfAdjointEigV2(input={definite}))",
              "raw.Svd(input=m, compute_uv=False).s", "raw.Svd(input=sq + 1, compute_uv=False).s",
              "(lambda s: tf.matmul(s.u * s.s[..., None, :], s.v, transpose_b=True))(raw.Svd(input=mm))", "(lambda s: tf.matmul(s.u, s.u, transpose_a=True))(raw.Svd(input=m, full_matrices=True))"]
    cases += ["raw.Igamma(a=p, x=g)", "raw.Igammac(a=p * 3, x=g)", "raw.Igamma(a=p, x=w * w)", "raw.Betainc(a=p, b=g, x=tf.abs(u))", "raw.Zeta(x=g, q=p)", "raw.Polygamma(a=tf.floor(p), x=g)"]
    cases += [f"raw.Bessel{kind}(x={of} * 9)" for of, kinds in (("x", "I0 I0e I1 I1e J0 J1"), ("p", "K0 K0e K1 K1e Y0 Y1")) for kind in kinds.split()]
    places = "tf.where(b)"
    sparse, other = f"tf.SparseTensor({places}, tf.boolean_mask(x, b), tf.shape(x, tf.int64))", "tf.SparseTensor(tf.where(c), tf.boolean_mask(y, c), tf.shape(y, tf.int64))"
    cases += [f"tf.sparse.add({sparse}, {other})", f"tf.sparse.concat(0, [{sparse}, {other}])", f"tf.sparse.concat(-1, [{sparse}, {other}])", f"tf.sparse.reorder({sparse})",
              f"tf.sparse.slice({sparse}, [1, 0], [2, 3])", f"tf.sparse.reduce_sum({sparse}, 1)", f"tf.sparse.reduce_max({sparse}, 0, keepdims=True)", f"{sparse} * w", f"{sparse} / p",
              f"tf.sparse.softmax({sparse})", f"tf.sparse.add({sparse}, y)",
              f"raw.SparseFillEmptyRows(indices=tf.reverse({places}, [0]), values=tf.reverse(tf.boolean_mask(x, b), [0]), dense_shape=tf.shape(x, tf.int64), default_value=s)"]
    return cases + ["raw.SoftmaxCrossEntropyWithLogits(features=x, labels=tf.nn.softmax(y))", "raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=sg)",
                    "raw.HistogramFixedWidth(values=x, value_range=[-1.5, 1.5], nbins=5)"]


def systems():
    """Factors, eigenvalues and solutions of matrices of any kind. Of eigenvectors, which have any phase and any order, the sizes of their elements count."""
    apart = "(sq / 4 + tf.linalg.diag(tf.cast(tf.range(1, tf.shape(sq)[1] + 1) * 3, sq.dtype)))"  # no two are of one size
    kind = "tf.complex128 if sq.dtype == tf.float64 else tf.complex64"
    cases = [f"list(raw.Lu(input={of}, output_idx_type=tf.int32))" for of in ("sq", "sq[0]", apart)]
    cases += [f"tf.sort(tf.abs(raw.Eig(input={of}, Tout={kind}).e))" for of in ("sq", "sq[0] + 1", apart)] + [f"tf.sort(tf.abs(raw.Eig(input=tf.complex(sq, sq[::-1]), compute_v=False, Tout={kind}).e))"]
    cases += [f"(lambda e: [tf.sort(tf.math.real(e.e)), tf.reduce_sum(tf.abs(e.v), -1)])(raw.Eig(input={apart}, Tout={kind}))"]
    cases += [f"raw.MatrixSolveLs(matrix={a}, rhs={b}, l2_regularizer=tf.constant({by}, tf.float64), fast={fast})" for a, b in (("m", "m"), ("mm", "mm"), ("x", "v"), (apart, "sq")) for by, fast in ((0.5, True), (0.0, False))]
    cases += ["raw.TridiagonalMatMul(superdiag=m[:, :1], maindiag=m[:, 1:2], subdiag=m[:, 2:], rhs=sq)", "raw.TridiagonalSolve(diagonals=m + tf.constant([[0], [9], [0]], m.dtype), rhs=sq)",
              "raw.TridiagonalSolve(diagonals=x + tf.constant([[0], [9], [0]], x.dtype), rhs=r)"]
    return cases


def sequences():
    """Searches among scores of a run's steps, and distances of rows of a run's lengths."""
    search = "(lambda c: [*c.decoded_indices, *c.decoded_values, *c.decoded_shape, c.log_probability])(raw.CTCBeamSearchDecoder(inputs={}, sequence_length={}, beam_width={}, top_paths={}, merge_repeated={}))"
    cases = [search.format(*each) for each in (("m", "tf.minimum(sg, tf.shape(m)[0])", 4, 1, False), ("m * 3", "tf.fill(tf.shape(m)[1:2], tf.shape(m)[0])", 9, 3, False),
                                                  ("mm", "tf.range(tf.shape(mm)[1]) % (tf.shape(mm)[0] + 1)", 1, 1, True), ("sq", "tf.fill(tf.shape(sq)[1:2], tf.shape(sq)[0])", 16, 2, True))]
    parts = ("tf.where({0})", "tf.boolean_mask({1}, {0})", "tf.shape({0}, tf.int64)")
    row = "raw.EditDistance(hypothesis_indices={}, hypothesis_values={}, hypothesis_shape={}, truth_indices={}, truth_values={}, truth_shape={}, normalize={})"
    sparse = [[form.format(*names) for form in parts] for names in (("b", "i"), ("c", "j"), ("b", "j"), ("c", "i"), ("b", "x"), ("c", "y"))]
    return cases + [row.format(*sparse[at], *sparse[at + 1], normalize) for at in (0, 2, 4) for normalize in (True, False)]


def slopes():
    """What gradients are made of."""
    cases = of("SigmoidGrad TanhGrad SqrtGrad RsqrtGrad ReciprocalGrad InvGrad", "y=p, dy=x") + of("ReluGrad Relu6Grad SoftplusGrad SoftsignGrad LeakyReluGrad", "gradients=y, features=x * 4")
    cases += of("EluGrad SeluGrad", "gradients=y, outputs=x") + ["raw.LeakyReluGrad(gradients=y, features=x, alpha=0.7)", "raw.ReluGrad(gradients=i, features=i)", "raw.BiasAddGrad(out_backprop=m)", "raw.BiasAddGrad(out_backprop=im, data_format='NCHW')"]
    cases += ["list(raw.BroadcastGradientArgs(s0=tf.shape(x), s1=tf.shape(v)))", "list(raw.BroadcastGradientArgs(s0=tf.shape(w), s1=tf.shape(m)))", "list(raw.ConcatOffset(concat_dim=1, shape=[tf.shape(x), tf.shape(v)]))"]
    return cases + ["raw.StridedSliceGrad(shape=tf.shape(m), begin=[0, 1], end=[2, 3], strides=[1, 1], dy=m[0:2, 1:3])", "raw.StridedSliceGrad(shape=tf.shape(x), begin=[2, 0], end=[0, 4], strides=[-1, 2], dy=x[2:0:-1, 0:4:2])"]


def rag(values, rows):
    return tf.RaggedTensor.from_value_rowids(values, tf.sort(rows), nrows=6, validate=False)


FAMILIES = {"ragged": ragged, "algebra": algebra, "systems": systems, "sequences": sequences, "slopes": slopes, "unary": unary, "binary": binary, "convolutions": convolutions, "products": products, "reductions": reductions, "moves": moves, "shapes": shapes, "pictures": pictures, "counted": counted}


class Case:
    """A text over arrays; `types`: what each is in the model, as none of a file's arrays is of bfloat16; `free`: the extent whose axes are free."""

    def __init__(self, text, inputs, types, free):
        self.text, self.inputs, self.types, self.free = text, inputs, types, free
        self.code = compile(text, text, "eval")

    def label(self):
        types = ", ".join(f"{name}: {self.types[name]}{list(value.shape)}" for name, value in self.inputs.items())
        return f"{self.text} | {types}" + (f" | {self.free} is free" if self.free else "")

    def made(self, given):
        """Tensors that can be read, of tensors."""
        typed = {name: tf.cast(value, self.types[name]) if self.types[name] == "bfloat16" else value for name, value in given.items()}
        made = tf.nest.flatten(eval(self.code, {"tf": tf, "raw": tf.raw_ops, "rag": rag} | typed), expand_composites=True)
        return [tf.cast(each, tf.float32) if each.dtype == tf.bfloat16 else tf.identity(each) for each in made if not each.dtype.is_complex]

    def results(self, inputs):
        return [each.numpy() for each in self.made({name: tf.constant(value) for name, value in inputs.items()})]

    def in_double(self):
        """The case with all its floats in double precision."""
        return Case(self.text, self.inputs, {name: "float64" if "float" in kind else kind for name, kind in self.types.items()}, self.free)

    def is_ordered(self, inputs):
        return not UNORDERED.search(self.text) or all(np.unique(value).size == value.size for value in inputs.values())


def drawn(generator, dtype, shape, low, high):
    if dtype == "bool":
        return generator.random(shape) > 0.5
    dtype = "float32" if dtype == "bfloat16" else dtype
    if dtype.startswith("float"):
        return generator.uniform(low, high, shape).astype(dtype)
    low, high = max(int(low), 0) if dtype.startswith("u") else int(low), int(high)
    return generator.integers(low, max(high, low + 1), shape).astype(dtype)


def varied(text, seed):
    draw, generator = random.Random(seed), np.random.default_rng(seed)
    if draw.random() < 0.4:
        text = with_other_numbers(draw, text)
    text = with_other_words(draw, text, WORDS, 0.4)
    rows = rows_of(text, INPUTS)
    if draw.random() < 0.5:
        # TensorFlow has operands of one type, but those that are places.
        of_reals, of_ints = other_type(draw, "float32"), draw.choice(("int32", "int64", "int64"))
        for name, row in rows.items():
            if name not in OWN_TYPE:
                row[0] = of_reals if row[0] == "float32" else other_type(draw, "int32") if len(rows) == 1 else of_ints
            elif row[0] == "int32":
                row[0] = of_ints
    free = with_other_extents(draw, rows, draw.choice(("same", "same", "extent", "extent", "scalars", "ones", "free", "free", "free")))
    inputs = {name: np.asarray(drawn(generator, *row)) for name, row in rows.items()}
    return Case(text, inputs, {name: row[0] for name, row in rows.items()}, free)


def longer(case):
    """Inputs whose free axes are longer by two; its own where TensorFlow does not take them."""
    if not case.free:
        return case.inputs
    generator, made = np.random.default_rng(len(case.text)), {}
    for name, value in case.inputs.items():
        for axis, extent in enumerate(value.shape):
            if extent == case.free:
                more = np.take(value, [extent - 1] * 2, axis)
                if value.dtype.kind == "f":
                    more = more * generator.uniform(0.1, 1, more.shape).astype(more.dtype)  # equal ones have no order
                value = np.concatenate([value, more], axis)
        made[name] = value
    try:
        return made if len(case.results(made)) == len(case.results(case.inputs)) else case.inputs
    except Exception:  # whatever TensorFlow says of it
        return case.inputs


def is_taken(case):
    # Numbers of a run are taken to be able to be 1 and more, which those of nothing are not.
    if "kinds" in case.text and not case.inputs["kinds"].size:
        return False
    if WRONG.search(case.text) and not all(kind.startswith(("float", "bfloat")) for kind in case.types.values()):
        return False
    try:
        return len(case.results(case.inputs)) > 0
    except Exception:  # whatever TensorFlow says of it
        return False


def variations(family, seed, count):
    """Cases of a family, `count` of each text, that TensorFlow takes."""
    return cases_of(FAMILIES[family](), seed, count, lambda text, own, _: varied(text, own), is_taken)
