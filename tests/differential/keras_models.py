"""Draws Keras models: chains of layers over maps, sequences and rows, with branches that join again."""

import random

import numpy as np

ACTIVATIONS = ("relu", "elu", "selu", "silu", "gelu", "tanh", "sigmoid", "softplus", "softsign", "hard_sigmoid", "relu6", "leaky_relu", "linear")


def map_layers(layers, draw):
    """Layers over maps of any size, whatever their extents."""
    padding = draw.choice(("same", "valid"))
    size = (draw.randint(1, 3), draw.randint(1, 3))
    return draw.choice((
        lambda: layers.Conv2D(draw.randint(1, 6), size, strides=draw.randint(1, 2), padding=padding, activation=draw.choice(ACTIVATIONS)),
        lambda: layers.Conv2D(draw.randint(1, 4), size, dilation_rate=draw.randint(1, 2), padding=padding, use_bias=draw.random() < 0.5),
        lambda: layers.DepthwiseConv2D(size, strides=draw.randint(1, 2), padding=padding, depth_multiplier=draw.randint(1, 2)),
        lambda: layers.SeparableConv2D(draw.randint(1, 5), size, padding=padding, activation=draw.choice(ACTIVATIONS)),
        lambda: layers.Conv2DTranspose(draw.randint(1, 4), size, strides=draw.randint(1, 3), padding=padding),
        lambda: layers.MaxPooling2D(draw.randint(1, 2), strides=draw.randint(1, 2), padding=padding),
        lambda: layers.AveragePooling2D(draw.randint(1, 2), strides=draw.randint(1, 2), padding=padding),
        lambda: layers.BatchNormalization(epsilon=draw.choice((1e-3, 1e-5))),
        lambda: layers.LayerNormalization(),
        lambda: layers.GroupNormalization(-1),
        lambda: layers.ZeroPadding2D(((draw.randint(0, 2), draw.randint(0, 2)), (draw.randint(0, 2), 1))),
        lambda: layers.UpSampling2D(2, interpolation=draw.choice(("nearest", "bilinear"))),
        lambda: layers.ReLU(max_value=draw.choice((None, 6.0, 1.5)), negative_slope=draw.choice((0.0, 0.1))),
        lambda: layers.Activation(draw.choice(ACTIVATIONS)),
        lambda: layers.Dropout(0.4),
        lambda: layers.PReLU(shared_axes=[1, 2]),
    ))()


def step_layers(layers, draw):
    units = draw.randint(1, 4)
    return draw.choice((
        lambda: layers.Conv1D(units, draw.randint(1, 3), padding=draw.choice(("same", "causal"))),
        lambda: layers.LSTM(units, return_sequences=True, go_backwards=draw.random() < 0.3),
        lambda: layers.GRU(units, return_sequences=True, reset_after=draw.random() < 0.5),
        lambda: layers.SimpleRNN(units, return_sequences=True, activation=draw.choice(ACTIVATIONS)),
        lambda: layers.Bidirectional(layers.LSTM(units, return_sequences=True), merge_mode=draw.choice(("concat", "sum", "ave", "mul"))),
        lambda: layers.TimeDistributed(layers.Dense(units, activation=draw.choice(ACTIVATIONS))),
        lambda: layers.Dense(units, activation=draw.choice(ACTIVATIONS)),
        lambda: layers.LayerNormalization(),
        lambda: layers.ZeroPadding1D(draw.randint(1, 2)),
        lambda: layers.MaxPooling1D(2, strides=1, padding="same"),
        lambda: layers.UpSampling1D(2),
    ))()


def grown(x, draw, layers, of, count):
    """A chain that stops where a layer would leave nothing."""
    for _ in range(count):
        try:
            y = of(layers, draw)(x)
        except (ValueError, ZeroDivisionError):
            continue
        extents = [n for n in y.shape[1:] if n is not None]
        if min(extents) < 1 or np.prod(extents) > 20_000:
            continue
        x = y
    return x


def randomize(model, seed):
    generator = np.random.default_rng(seed)
    for weight in model.weights:
        if not str(weight.dtype).startswith("float"):
            continue
        positive = weight.path.rsplit("/", 1)[-1] in ("moving_variance", "gamma", "scale")
        weight.assign(generator.uniform(*((0.5, 1.5) if positive else (-0.5, 0.5)), weight.shape).astype(str(weight.dtype)))


def random_model(keras, seed):
    draw, layers = random.Random(seed), keras.layers
    keras.utils.set_random_seed(seed % 2**31)
    if draw.random() < 0.65:
        shape = (draw.randint(4, 12), draw.randint(4, 12), draw.randint(1, 5))
        entry = keras.Input(shape, name="x")
        x = grown(entry, draw, layers, map_layers, draw.randint(1, 4))
        if draw.random() < 0.5:
            channels = x.shape[-1]
            sides = [layers.Conv2D(channels, draw.randint(1, 3), padding="same")(x), layers.DepthwiseConv2D(3, padding="same")(x)]
            x = draw.choice((layers.Add, layers.Multiply, layers.Concatenate, layers.Maximum, layers.Average))()(sides)
            x = grown(x, draw, layers, map_layers, draw.randint(0, 2))
        if draw.random() < 0.7:
            x = draw.choice((layers.GlobalAveragePooling2D, layers.GlobalMaxPooling2D, layers.Flatten))()(x)
            x = layers.Dense(draw.randint(1, 6), activation=draw.choice(("softmax", "sigmoid", "relu")))(x)
    else:
        shape = (draw.randint(3, 7), draw.randint(1, 5))
        entry = keras.Input(shape, name="x")
        x = grown(entry, draw, layers, step_layers, draw.randint(1, 4))
        if draw.random() < 0.4:
            x = layers.MultiHeadAttention(draw.randint(1, 3), draw.randint(1, 4))(x, x)
        if draw.random() < 0.5:
            x = draw.choice((layers.GlobalAveragePooling1D, layers.GlobalMaxPooling1D))()(x)
    if x is entry:
        x = layers.Dense(2)(x)
    model = keras.Model(entry, x)
    randomize(model, seed)
    values = np.random.default_rng(seed + 1).uniform(-2, 2, (draw.randint(1, 3), *shape)).astype(np.float32)
    return model, {"x": values}


def seeded_network(keras, name):
    """One of keras.applications with random weights, and a picture."""
    keras.utils.set_random_seed(3)
    model = getattr(keras.applications, name)(weights=None)
    generator = np.random.default_rng(5)
    for layer in model.layers:
        if type(layer).__name__ != "BatchNormalization":
            continue
        for weight in layer.weights:
            positive = weight.path.rsplit("/", 1)[-1] in ("gamma", "moving_variance")
            weight.assign(generator.uniform(*((0.8, 1.2) if positive else (-0.1, 0.1)), weight.shape))
    entry = next(layer for layer in model.layers if type(layer).__name__ == "InputLayer")
    # Some take pictures of any size.
    shape = (1, *(224 if extent is None else extent for extent in model.inputs[0].shape[1:]))
    return model, {entry.name: generator.uniform(-1, 1, shape).astype(np.float32)}
