"""Keras' layers that are imported, as texts over named inputs, and how they are varied: numbers, words and truth values of their arguments,
dtype policies, extents, among them 1, free ones. Keras says which variations mean something.
"""

import random

import keras
import numpy as np

from variations import cases_of, rows_of, with_other_extents, with_other_numbers, with_other_words

# name: (dtype, shape without the batch, low, high); of integers high is not reached.
INPUTS = {
    "row": ("float32", [4], -2, 2), "line": ("float32", [9, 4], -2, 2), "other": ("float32", [9, 4], -2, 2), "im": ("float32", [7, 6, 4], -2, 2),
    "im2": ("float32", [7, 6, 4], -2, 2), "vol": ("float32", [4, 5, 6, 2], -2, 2), "first": ("float32", [4, 7, 6], -2, 2), "steps": ("float32", [5, 3], -1, 1),
    "kept": ("bool", [5], 0, 2), "h": ("float32", [2], -1, 1), "words": ("int32", [5], 0, 7), "places": ("int32", [3], 0, 5), "one": ("int32", [1], 0, 5),
    "q": ("float32", [3, 4], -1, 1), "v": ("float32", [5, 4], -1, 1), "ok": ("bool", [3, 5], 0, 2), "ok2": ("bool", [6, 6], 0, 2), "film": ("float32", [3, 7, 6, 4], -1, 1),
}
ACTIVATIONS = tuple(f"'{name}'" for name in "relu elu selu silu gelu tanh sigmoid softplus softsign hard_sigmoid relu6 leaky_relu linear softmax exponential mish".split())
WORDS = (("True", "False"), ("'same'", "'valid'"), ("'channels_last'", "'channels_first'"), ("'nearest'", "'bilinear'", "'bicubic'", "'lanczos3'"),
         ("'sum'", "'mul'", "'concat'", "'ave'", "None"), ("'dot'", "'concat'"), ("'one_hot'", "'multi_hot'", "'count'"), ACTIVATIONS)
POLICIES = ("float32", "float32", "float32", "mixed_float16", "mixed_bfloat16", "float64", "float16")


def activations():
    cases = [f"L.Activation({name})({of})" for name in ACTIVATIONS for of in ("line", "im")]
    cases += [f"L.Activation('{name}')(row)" for name in "celu squareplus soft_shrink sparse_plus glu tanh_shrink hard_silu hard_tanh hard_shrink log_softmax log_sigmoid sparse_sigmoid".split()]
    return cases + ["L.ReLU(max_value=2.0, negative_slope=0.2, threshold=0.5)(im)", "L.ReLU(6.0)(line)", "L.ReLU(threshold=1.0)(row)", "L.ELU(0.7)(line)", "L.LeakyReLU(negative_slope=0.1)(im)",
                    "L.PReLU()(line)", "L.PReLU(shared_axes=[1, 2])(im)", "L.PReLU(shared_axes=[1])(line)", "L.Softmax(axis=1)(line)", "L.Softmax(axis=-1)(im)", "L.Softmax(axis=[1, 2])(im)", "L.Softmax()(line, mask=line > 0)"]


def dense():
    cases = [f"L.Dense(3, activation='relu', use_bias=True)({of})" for of in ("row", "line", "im")]
    return cases + ["L.EinsumDense('abc,cd->abd', output_shape=(None, 2), bias_axes='d', activation='relu')(line)", "L.EinsumDense('...x,xyz->...yz', output_shape=(2, 3), bias_axes='yz')(row)",
                    "L.EinsumDense('ab,bc->ac', output_shape=3)(row)", "L.Dense(2)(L.Flatten()(im))", "L.Embedding(7, 3)(words)", "L.Embedding(7, 2)(places)",
                    "L.SpectralNormalization(L.Dense(3))(row)", "L.SpectralNormalization(L.Conv2D(3, 2))(im)"]


def convolutions():
    cases = []
    for d, x in ((1, "line"), (2, "im"), (3, "vol")):
        two = f"({', '.join('32212'[i] for i in range(d))},)"
        cases += [f"L.Conv{d}D(4, {two}, strides=2, padding='same', activation='relu', use_bias=True)({x})", f"L.Conv{d}D(2, 2, dilation_rate=2, padding='valid')({x})",
                  f"L.Conv{d}D(4, 3, groups=2, padding='same')({x})", f"L.Conv{d}D(3, {two}, padding='valid', data_format='channels_last')({x})",
                  f"L.Conv{d}DTranspose(3, {two}, strides=2, padding='same', activation='relu')({x})", f"L.Conv{d}DTranspose(2, 2, strides=3, padding='valid')({x})",
                  f"L.Conv{d}DTranspose(2, 3, strides=2, padding='same', output_padding=1)({x})", f"L.Conv{d}DTranspose(2, 3, dilation_rate=2, use_bias=False)({x})",
                  f"L.Conv{d}DTranspose(2, 3, strides=2, padding='valid', output_padding=0, data_format='channels_last')({x})"]
        if d < 3:
            cases += [f"L.DepthwiseConv{d}D(3, strides=2, depth_multiplier=2, padding='same', use_bias=True)({x})", f"L.DepthwiseConv{d}D({two}, dilation_rate=2, padding='valid', activation='elu')({x})",
                      f"L.SeparableConv{d}D(5, 3, depth_multiplier=2, padding='same', activation='elu')({x})", f"L.SeparableConv{d}D(3, 2, dilation_rate=2, use_bias=False)({x})",
                      f"L.SeparableConv{d}D(3, 2, strides=2, padding='valid', data_format='channels_last')({x})", f"L.DepthwiseConv{d}D(2, padding='same', data_format='channels_last')({x})"]
    return cases + ["L.Conv1D(3, 3, dilation_rate=2, padding='causal')(line)", "L.Conv1D(3, 3, strides=2, padding='causal', activation='relu')(line)", "L.Conv2D(3, 3, data_format='channels_first', padding='same')(first)",
                    "L.TimeDistributed(L.Conv2D(2, 3, padding='same'))(film)", "L.TimeDistributed(L.MaxPooling2D(2))(film)", "L.TimeDistributed(L.Flatten())(film)"]


def pools():
    cases = []
    for d, x in ((1, "line"), (2, "im"), (3, "vol")):
        two = f"({', '.join('32212'[i] for i in range(d))},)"
        for kind in ("Max", "Average"):
            cases += [f"L.{kind}Pooling{d}D({two}, strides=2, padding='same')({x})", f"L.{kind}Pooling{d}D(2)({x})", f"L.{kind}Pooling{d}D(3, strides=1, padding='valid', data_format='channels_last')({x})",
                      f"L.Global{kind}Pooling{d}D(keepdims=True, data_format='channels_last')({x})", f"L.Global{kind}Pooling{d}D()({x})", f"L.Adaptive{kind}Pooling{d}D(3)({x})",
                      f"L.Adaptive{kind}Pooling{d}D(2, data_format='channels_last')({x})"]
    return cases


def moves():
    cases = ["L.Flatten()(im)", "L.Flatten(data_format='channels_first')(first)", "L.Flatten()(row)", "L.Reshape((2, -1, 3))(line)", "L.Reshape((-1,))(im)", "L.Reshape((6, 7, 4))(im)", "L.Reshape((-1, 4))(im)", "L.Permute((2, 1))(line)",
             "L.Permute((3, 1, 2))(im)", "L.RepeatVector(3)(row)", "L.UpSampling1D(3)(line)", "L.UpSampling3D((2, 1, 3))(vol)", "L.UpSampling3D(2, data_format='channels_last')(vol)"]
    cases += [f"L.UpSampling2D(({a}, {b}), interpolation='nearest', data_format='channels_last')(im)" for a, b in ((2, 3), (1, 2), (3, 3))]
    for d, x in ((1, "line"), (2, "im"), (3, "vol")):
        pairs = f"({', '.join(f'({i % 2}, {2 - i})' for i in range(d))})" if d > 1 else "(1, 2)"
        shape = "" if d == 1 else ", data_format='channels_last'"
        cases += [f"L.ZeroPadding{d}D({pairs}{shape})({x})", f"L.ZeroPadding{d}D(2)({x})", f"L.Cropping{d}D({pairs}{shape})({x})", f"L.Cropping{d}D(1)({x})"]
    return cases


def merges():
    cases = [f"L.{name}()([{operands}])" for name in ("Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract") for operands in ("line, other", "im, im2", "line, row")]
    cases += [f"L.{name}()([line, other, line])" for name in ("Add", "Average", "Maximum", "Minimum", "Multiply")] + ["L.Multiply()([im, L.GlobalAveragePooling2D(keepdims=True)(im2)])"]
    return cases + ["L.Concatenate()([line, other])", "L.Concatenate(axis=1)([line, other])", "L.Concatenate(axis=-2)([im, im2, im])", "L.Concatenate(axis=3)([im, im2])", "L.Dot(axes=2)([line, other])", "L.Dot(axes=(1, 1))([line, other])",
                    "L.Dot(axes=1)([row, row])", "L.Dot(axes=(2, 1), normalize=True)([line, row])", "L.Dot(axes=-1, normalize=True)([line, other])"]


def normalizations():
    return ["L.BatchNormalization(epsilon=0.1, scale=True, center=True)(im)", "L.BatchNormalization(axis=1)(line)", "L.BatchNormalization(axis=-1, center=False)(row)", "L.BatchNormalization(axis=2)(im)", "L.BatchNormalization()(L.Conv2D(3, 3)(im))",
            "L.LayerNormalization()(line)", "L.LayerNormalization(axis=[1, 2], epsilon=0.01)(im)", "L.LayerNormalization(axis=1, center=False, scale=True)(line)", "L.LayerNormalization(axis=[2, 3])(im)", "L.GroupNormalization(2)(im)",
            "L.GroupNormalization(4, epsilon=0.1)(line)", "L.GroupNormalization(-1, scale=False)(im)", "L.GroupNormalization(1, axis=1)(im)", "L.GroupNormalization(2, axis=-1, center=False)(vol)", "L.UnitNormalization()(line)",
            "L.UnitNormalization(axis=[1, 2])(im)", "L.UnitNormalization(axis=1)(line)", "L.RMSNormalization()(line)", "L.RMSNormalization(axis=1, epsilon=0.01)(im)", "L.RMSNormalization(axis=[1, 2])(line)"]


def recurrent():
    cases = []
    for name, more in (("SimpleRNN", "activation='tanh'"), ("GRU", "reset_after=True"), ("GRU", "activation='relu', recurrent_activation='sigmoid'"), ("LSTM", "activation='tanh', recurrent_activation='hard_sigmoid'"), ("LSTM", "use_bias=True")):
        cases += [f"L.{name}(2, return_sequences=True, go_backwards=False, {more})({of})" for of in ("steps", "L.Masking()(tf_zeroed(steps))")]
        cases += [f"L.{name}(2, return_state=True, return_sequences=False, {more})(steps)", f"L.{name}(2, {more})(L.Embedding(7, 3, mask_zero=True)(words))",
                  f"L.{name}(2, return_sequences=True, {more})(steps, mask=kept)", f"L.{name}(2, stateful=False, unroll=False, {more})(steps, initial_state={'[h, h]' if name == 'LSTM' else 'h'})",
                  f"L.Bidirectional(L.{name}(2, return_sequences=True), merge_mode='sum')(steps)", f"L.Bidirectional(L.{name}(2), merge_mode='concat')(L.Masking()(tf_zeroed(steps)))",
                  f"L.RNN(L.{name}Cell(2), return_sequences=True)(steps)", f"L.RNN([L.{name}Cell(2), L.{name}Cell(3)], go_backwards=False)(steps)"]
    return cases + ["L.Bidirectional(L.LSTM(2, return_state=True), merge_mode='ave')(steps)", "L.RNN(L.GRUCell(2), zero_output_for_mask=True, return_sequences=True)(steps, mask=kept)", "L.LSTM(2)(L.GRU(3, return_sequences=True)(steps))",
                    "L.TimeDistributed(L.Dense(2, activation='tanh'))(steps)", "L.TimeDistributed(L.Dense(2))(L.Masking()(tf_zeroed(steps)))", "L.LSTM(2)(L.Concatenate()([L.Masking()(tf_zeroed(steps)), L.Embedding(7, 3, mask_zero=True)(words)]))",
                    "L.GRU(2)(L.Add()([L.Masking()(tf_zeroed(steps)), L.Embedding(7, 3, mask_zero=True)(words)]))", "L.GlobalAveragePooling1D()(L.Embedding(7, 3, mask_zero=True)(words))", "L.GlobalAveragePooling1D()(steps, mask=kept)",
                    "L.LSTM(2)(L.Dropout(0.5)(L.Dense(3)(L.Embedding(7, 3, mask_zero=True)(words))))"]


def attention():
    cases = [f"L.{name}(use_scale=True{more})({operands})" for name, mores in (("Attention", ("", ", score_mode='dot'")), ("AdditiveAttention", ("",))) for more in mores
             for operands in ("[q, v]", "[q, v, v]", "[v, v], use_causal_mask=True", "[q, v], mask=[None, kept]")]
    return cases + ["L.MultiHeadAttention(2, 3, use_bias=True)(q, v)", "L.MultiHeadAttention(2, 3, value_dim=2, output_shape=5)(q, v, key=v)", "L.MultiHeadAttention(1, 2)(v, v, use_causal_mask=True)", "L.MultiHeadAttention(2, 3)(q, v, attention_mask=ok)",
                    "L.MultiHeadAttention(2, 3)(q, v, return_attention_scores=True)", "L.MultiHeadAttention(2, 2, attention_axes=(1,))(im, im2)", "L.MultiHeadAttention(2, 2, attention_axes=(2,))(im, im2)",
                    "L.MultiHeadAttention(2, 2)(im, im2)", "L.MultiHeadAttention(2, 3, attention_axes=(1, 2))(im, im2, return_attention_scores=True)",
                    "L.MultiHeadAttention(2, 2, attention_axes=(2, 1), use_gate=True)(im, im2)", "L.MultiHeadAttention(2, 2, attention_axes=(3, 1))(vol, vol)",
                    "L.MultiHeadAttention(2, 2, attention_axes=(2,))(im, im2, attention_mask=ok2, return_attention_scores=True)", "L.GroupQueryAttention(3, 4, 2)(q, v)",
                    "L.GroupQueryAttention(2, 2, 1, use_bias=False)(v, v, use_causal_mask=True)", "L.MultiHeadAttention(2, 2)(L.Embedding(7, 4, mask_zero=True)(words), v)", "L.MultiHeadAttention(2, 3, sliding_window=2)(v, v)",
                    "L.MultiHeadAttention(2, 3, use_gate=True)(q, v)"]


def preprocessing():
    cases = ["L.Rescaling(0.5, offset=-1)(im)", "L.Rescaling([0.1, 0.2, 0.3, 0.4], offset=[1, 2, 3, 4])(im)", "L.Normalization(mean=[1.0, 2.0, 3.0, 4.0], variance=[2.0, 0.5, 1.0, 3.0], invert=False)(im)", "L.Normalization(mean=0.5, variance=4.0, axis=None)(row)",
             "L.CenterCrop(3, 4, data_format='channels_last')(im)", "L.CenterCrop(9, 9)(im)", "L.CategoryEncoding(5, output_mode='multi_hot')(places)", "L.CategoryEncoding(5, output_mode='one_hot')(one)",
             "L.Discretization(bin_boundaries=[-1.0, 0.0, 0.5])(row)", "L.Discretization(bin_boundaries=[-1.0, 0.5], output_mode='multi_hot')(row)", "L.IntegerLookup(vocabulary=[3, 1], num_oov_indices=2)(words)",
             "L.IntegerLookup(vocabulary=[3, 1, 5], output_mode='multi_hot')(words)", "L.Hashing(5)(words)", "L.Hashing(4, mask_value=1)(words)"]
    cases += [f"L.Resizing({size}, interpolation='{word}', antialias={smooth})(im)" for size in ("4, 9", "9, 3") for word in ("lanczos3", "lanczos5", "bicubic") for smooth in ("False", "True")]
    cases += [f"L.Resizing({size}, interpolation='bilinear', {more})(im)" for size in ("4, 9", "3, 3", "14, 6") for more in ("antialias=False", "crop_to_aspect_ratio=True", "pad_to_aspect_ratio=True", "data_format='channels_last'")]
    cases += [f"L.{name}({of})" for name, of in (("Dropout(0.3)", "im"), ("AlphaDropout(0.3)", "row"), ("GaussianDropout(0.3)", "line"), ("GaussianNoise(0.3)", "im"), ("ActivityRegularization(0.1)", "row"), ("Identity()", "vol"), ("SpatialDropout1D(0.3)", "line"),
              ("SpatialDropout2D(0.5)", "im"), ("SpatialDropout3D(0.5)", "vol"), ("RandomFlip()", "im"), ("RandomRotation(0.1)", "im"), ("RandomZoom(0.2)", "im"), ("RandomContrast(0.1)", "im"), ("RandomBrightness(0.1)", "im"), ("RandomTranslation(0.1, 0.2)", "im"))]
    return cases


FAMILIES = {"activations": activations, "dense": dense, "convolutions": convolutions, "pools": pools, "moves": moves, "merges": merges, "normalizations": normalizations, "recurrent": recurrent, "attention": attention, "preprocessing": preprocessing}


def drawn(generator, dtype, shape, low, high):
    if dtype == "bool":
        return generator.random(shape) > 0.4
    return generator.uniform(low, high, shape).astype(dtype) if dtype.startswith("float") else generator.integers(low, high, shape).astype(dtype)


def zeroed(x):
    """Some steps of nothing but zeros, as what is masked has."""
    return keras.ops.relu(x) * keras.ops.cast(keras.ops.max(x, axis=-1, keepdims=True) > 0.4, "float32")


class Layers:
    """Keras' layers, each of one dtype policy."""

    def __init__(self, policy):
        self.policy = policy

    def __getattr__(self, name):
        return lambda *given, **options: getattr(keras.layers, name)(*given, dtype=self.policy, **options)


class Case:
    """A text over inputs; `free`: the extent whose axes are free; the batch always is."""

    def __init__(self, text, rows, seed, policy, free):
        self.text, self.rows, self.seed, self.policy, self.free = text, rows, seed, policy, free
        self.code = compile(text, text, "eval")

    def label(self):
        shapes = ", ".join(f"{name}: {row[0]}{row[1]}" for name, row in self.rows.items())
        return f"{self.text} | {shapes} | {self.policy}" + (f" | {self.free} is free" if self.free else "")

    def entries(self, name):
        return {key: keras.Input([None if extent == self.free else extent for extent in row[1]], dtype=row[0], name=name.format(key)) for key, row in self.rows.items()}

    def made(self, entries):
        made = eval(self.code, {"L": Layers(self.policy), "tf_zeroed": zeroed} | entries)
        return list(made) if isinstance(made, (tuple, list)) else [made]

    def roundings(self, more):
        """How often a result is rounded in its own type: a state once each step."""
        steps = self.rows.get("steps", self.rows.get("words"))
        return steps[1][0] + more * (steps[1][0] == self.free) if steps and steps[1] else 1

    def values(self, batch, more):
        """Arrays by name; `more`: how much longer free axes are."""
        generator = np.random.default_rng(self.seed + more)
        return {key: drawn(generator, dtype, [batch, *(extent + more * (extent == self.free) for extent in shape)], low, high) for key, (dtype, shape, low, high) in self.rows.items()}


def is_taken(case):
    try:
        made = case.made(case.entries("{}"))
        # Keras adds a bias along the last axis where that is as long as there are channels.
        if "channels_first" in case.text and any(len(each.shape) > 2 and each.shape[1] == each.shape[-1] for each in made):
            return False
        # Whether a part is cut out or a picture is made larger is decided by each picture where its extents are free: only the first is compiled.
        if "CenterCrop" in case.text and case.free:
            return False
        # Keras saves these without their policy.
        if "SpatialDropout" in case.text and case.policy.startswith("mixed"):
            return False
        return bool(made) and all(0 not in each.shape and (each.dtype.startswith("float") or not case.policy.startswith("float16")) for each in made)
    except Exception:  # whatever Keras says of it
        return False


def varied(text, seed, is_first):
    draw = random.Random(seed)
    policy = "float32"
    rows = rows_of(text, INPUTS)
    if not is_first:
        if draw.random() < 0.5:
            text = with_other_numbers(draw, text)
        text = with_other_words(draw, text, WORDS, 0.3)
        policy = draw.choice(POLICIES)
    free = with_other_extents(draw, rows, draw.choice(("same", "extent", "ones", "free", "free")))
    return Case(text, rows, seed, policy, free)


def variations(family, seed, count):
    """Cases of a family, `count` of each text, that Keras takes; the first has the text as it is."""
    return cases_of(FAMILIES[family](), seed, count, lambda text, own, turn: varied(text, own, turn == 0), is_taken)
