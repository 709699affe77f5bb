"""Small torch modules that coremltools converts: layers in their forms, and blocks of networks."""

import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Module:
    name: str
    module: nn.Module
    inputs: list
    free: dict = dataclasses.field(default_factory=dict)  # by input the axes whose extents stay free


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def real(*shape, low=-2.0, high=2.0):
    return torch.empty(shape).uniform_(low, high)


def whole(*shape, low=0, high=5):
    return torch.randint(low, high, shape, dtype=torch.int32)


def layers():
    picture, row, box = real(2, 4, 9, 8), real(2, 4, 11), real(1, 3, 5, 6, 4)
    yield "conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1), [row]
    yield "conv2d", nn.Conv2d(4, 6, 3, padding=1), [picture]
    yield "conv2d_dilated", nn.Conv2d(4, 6, 3, dilation=2, padding=2, bias=False), [picture]
    yield "conv2d_groups", nn.Conv2d(4, 8, 3, groups=2, stride=2), [picture]
    yield "conv2d_same", nn.Conv2d(4, 6, (3, 4), padding="same"), [picture]
    yield "conv2d_reflect", nn.Conv2d(4, 6, 3, padding=2, padding_mode="reflect"), [picture]
    yield "depthwise", nn.Conv2d(4, 4, 5, groups=4, padding=2), [picture]
    yield "conv3d", nn.Conv3d(3, 4, (2, 3, 3), padding=(0, 1, 1)), [box]
    yield "transposed1d", nn.ConvTranspose1d(4, 3, 4, stride=2, padding=1), [row]
    yield "transposed2d", nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1), [picture]
    yield "transposed2d_groups", nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2), [picture]
    yield "batch_norm1d", nn.BatchNorm1d(4), [row]
    yield "batch_norm2d", nn.BatchNorm2d(4, affine=False), [picture]
    yield "conv_batch_norm", nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU6()), [picture]
    yield "instance_norm", nn.InstanceNorm2d(4, affine=True), [picture]
    yield "group_norm", nn.GroupNorm(2, 4), [picture]
    yield "layer_norm", nn.LayerNorm([9, 8]), [picture]
    yield "layer_norm_last", nn.LayerNorm(8, eps=1e-3), [picture]
    yield "normalize", Call(lambda x: F.normalize(x, dim=1)), [picture]
    yield "linear", nn.Linear(8, 5), [picture]
    yield "bilinear_products", Call(lambda a, b: torch.baddbmm(a @ b, a, b, alpha=0.5)), [real(2, 3, 4), real(2, 4, 5)]
    yield "embedding", nn.Embedding(7, 5), [whole(2, 3, high=7)]
    yield "max_pool", nn.MaxPool2d(3, stride=2, padding=1), [picture]
    yield "max_pool_ceil", nn.MaxPool2d(3, stride=2, ceil_mode=True), [picture]
    yield "max_pool1d", nn.MaxPool1d(3), [row]
    yield "avg_pool", nn.AvgPool2d(3, stride=2, padding=1), [picture]
    yield "avg_pool_excluding", nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), [picture]
    yield "avg_pool_ceil", nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True), [picture]
    yield "avg_pool3d", nn.AvgPool3d(2), [box]
    yield "adaptive_avg_pool", nn.AdaptiveAvgPool2d((3, 4)), [picture]
    yield "adaptive_uneven", nn.AdaptiveAvgPool2d((2, 3)), [picture]
    yield "adaptive_max_pool", nn.AdaptiveMaxPool2d(1), [picture]
    yield "pixel_shuffle", nn.PixelShuffle(2), [picture]
    yield "pixel_unshuffle", nn.PixelUnshuffle(2), [real(1, 2, 6, 4)]
    yield "channel_shuffle", Call(lambda x: x.view(2, 2, 2, 9, 8).transpose(1, 2).reshape(2, 4, 9, 8)), [picture]
    for pad in ("reflect", "replicate", "constant"):
        yield f"pad_{pad}", Call(lambda x, pad=pad: F.pad(x, (2, 1, 1, 3), mode=pad)), [picture]
    yield "unfold", nn.Unfold(3, padding=1), [real(1, 3, 6, 5)]


def activations():
    x = real(2, 4, 5, 3) * 3
    for kind in (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish, nn.Hardsigmoid, nn.Hardtanh, nn.Softplus,
                 nn.Softsign, nn.Sigmoid, nn.Tanh, nn.Tanhshrink, nn.Threshold):
        yield kind.__name__.lower(), kind(0.5, -1.0) if kind is nn.Threshold else kind(), [x]
    yield "prelu_channels", nn.PReLU(4), [x]
    yield "gelu_tanh", nn.GELU("tanh"), [x]
    yield "glu", nn.GLU(1), [x]
    yield "softmax", nn.Softmax(1), [x]
    yield "log_softmax", nn.LogSoftmax(-1), [x]


def recurrent():
    steps = real(6, 2, 4)
    yield "lstm", Call2(nn.LSTM(4, 5)), [steps]
    yield "lstm_both_ways", Call2(nn.LSTM(4, 5, bidirectional=True, batch_first=True)), [real(2, 6, 4)]
    yield "lstm_deep", Call2(nn.LSTM(4, 5, num_layers=2)), [steps]
    yield "lstm_state", Call2(nn.LSTM(4, 5)), [steps, (real(1, 2, 5), real(1, 2, 5))]
    yield "gru", Call2(nn.GRU(4, 5)), [steps]
    yield "gru_both_ways", Call2(nn.GRU(4, 5, bidirectional=True)), [steps]
    yield "rnn", Call2(nn.RNN(4, 5)), [steps]
    yield "rnn_relu", Call2(nn.RNN(4, 5, nonlinearity="relu")), [steps]


class Call2(nn.Module):
    """A recurrent layer, whose results are a flat tuple."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, *state):
        made = self.layer(x, tuple(state)) if state else self.layer(x)
        return tuple(each for part in made for each in (part if isinstance(part, tuple) else (part,)))


def resizes():
    x = real(1, 3, 5, 6)
    for mode, align in (("nearest", None), ("bilinear", False), ("bilinear", True)):
        for size in ((10, 12), (7, 11), (3, 4)):
            yield f"resize_{mode}_{align}_{size[0]}", Call(lambda x, mode=mode, align=align, size=size: F.interpolate(x, size=size, mode=mode, align_corners=align)), [x]
    yield "resize_factor", nn.Upsample(scale_factor=2, mode="bilinear"), [x]
    yield "resize_linear", nn.Upsample(scale_factor=2, mode="linear"), [real(1, 3, 7)]
    yield "resize_nearest_exact", Call(lambda x: F.interpolate(x, size=(9, 7), mode="nearest")), [x]
    for padding in ("zeros", "border", "reflection"):
        for mode in ("bilinear", "nearest"):
            grid = real(1, 4, 5, 2, low=-1.3, high=1.3)
            yield (f"grid_sample_{padding}_{mode}",
                   Call(lambda x, grid, padding=padding, mode=mode: F.grid_sample(x, grid, mode, padding, align_corners=padding == "border")), [x, grid])


def moves():
    x, places = real(3, 4, 5), torch.tensor([2, 0, 2], dtype=torch.int32)
    functions = {
        "permute": lambda x: x.permute(2, 0, 1), "flatten": lambda x: x.flatten(1), "roll": lambda x: torch.roll(x, (1, -2), (0, 2)), "flip": lambda x: x.flip((0, 2)),
        "slices": lambda x: x[1:, ::2, -3:-1], "negative_steps": lambda x: x[:, :, 1:].flip(2)[..., ::2], "split": lambda x: torch.split(x, [1, 3], 1), "chunk": lambda x: torch.chunk(x, 3, 2),
        "stack": lambda x: torch.stack([x, x * 2], 1), "concat": lambda x: torch.cat([x, -x], 2), "repeat": lambda x: x.repeat(2, 1, 3), "expand": lambda x: x[:, :1].expand(3, 6, 5),
        "tile": lambda x: torch.tile(x, (2, 1)), "repeat_interleave": lambda x: x.repeat_interleave(2, 1), "unbind": lambda x: torch.unbind(x, 0), "squeeze": lambda x: x[:, :1].squeeze(1),
        "tril": lambda x: torch.tril(x, 1), "triu": lambda x: torch.triu(x), "cumsum": lambda x: torch.cumsum(x, 1), "topk": lambda x: torch.topk(x, 2, 2), "sort": lambda x: torch.sort(x, 1, True),
        "argsort": lambda x: torch.argsort(x, 2), "argmax": lambda x: torch.argmax(x, 1), "max": lambda x: torch.max(x, 2), "min_all": torch.min, "mean": lambda x: x.mean((0, 2)),
        "var": lambda x: x.var(1), "std": lambda x: x.std((1, 2), unbiased=False), "norm": lambda x: torch.linalg.vector_norm(x, dim=1), "logsumexp": lambda x: torch.logsumexp(x, 2),
        "any": lambda x: (x > 1.9).any(1), "all": lambda x: (x > -1.5).all(2), "where": lambda x: torch.where(x > 0, x, x * 0.5), "clamp": lambda x: x.clamp(-0.5, 1),
        "clamp_min": lambda x: x.clamp_min(0.25), "masked_fill": lambda x: x.masked_fill(x > 0.5, -1.0), "einsum": lambda x: torch.einsum("abc,adc->bd", x, x),
        "powers": lambda x: x.abs().pow(1.5) + x.pow(2) + 2**x, "remainder": lambda x: torch.remainder(x, 0.75), "floor_divide": lambda x: torch.floor_divide(x, 0.5),
        "rounds": lambda x: (x.round(), x.floor(), x.ceil()), "trigonometry": lambda x: (x.sin(), x.cos(), x.tan(), x.atan(), torch.atan2(x, x + 3)),
        "logarithms": lambda x: (x.abs().add(0.1).log(), x.abs().log1p(), x.abs().add(1).log2(), x.exp(), x.expm1()), "hyperbolic": lambda x: (x.sinh(), x.cosh(), x.tanh()),
        "erf": torch.erf, "rsqrt": lambda x: x.abs().add(0.1).rsqrt(), "sign": torch.sign, "compare": lambda x: ((x > 0) & (x < 1), torch.logical_or(x == 2, x != 1), ~(x >= 0)),
        "bool_sum": lambda x: (x > 0).sum(1), "arange": lambda x: x + torch.arange(5), "linspace": lambda x: x * torch.linspace(0, 1, 5), "one_hot": lambda x: F.one_hot(x[:, 0, 0].long() + 2, 6).float(),
        "outer": lambda x: torch.outer(x[0, 0], x[1, 1]), "matmul": lambda x: x @ x.transpose(1, 2), "cosine": lambda x: F.cosine_similarity(x, x.flip(2), dim=1), "cdist": lambda x: ((x[:, None] - x[None]) ** 2).sum(-1).sqrt(),
        "meshgrid": lambda x: torch.stack(torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij")), "write": lambda x: written(x),
    }
    yield from ((name, Call(function), [x]) for name, function in functions.items())
    yield "index_select", Call(lambda x, i: torch.index_select(x, 1, i)), [x, places]
    yield "gather", Call(lambda x, i: torch.gather(x, 1, i.long())), [x, whole(3, 2, 5, high=4)]
    yield "indexed", Call(lambda x, i: x[:, i.long()]), [x, places]
    yield "indexed_pairs", Call(lambda x, i: x[i.long(), i.long()]), [x, places]
    yield "scatter", Call(lambda x, i, y: x.scatter(1, i.long(), y)), [x, torch.tensor([[[0, 1, 2, 3, 0]], [[1, 0, 2, 2, 3]], [[3, 3, 0, 1, 1]]], dtype=torch.int32), real(3, 1, 5)]
    yield "scatter_add", Call(lambda x, i, y: x.scatter_add(1, i.long(), y)), [x, whole(3, 2, 5, high=4), real(3, 2, 5)]
    yield "integers", Call(lambda i: (i * 3 - 1, i // 2, i % 3, i.float() / 3)), [whole(3, 4, low=-6, high=7)]


def written(x):
    y = x.clone()
    y[:, 1] = 0
    y[0, :, 2:4] = x[1, :, :2]
    return y


class Residual(nn.Module):
    def __init__(self, channels, hidden, norm=nn.BatchNorm2d):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, hidden, 1, bias=False), norm(hidden), nn.ReLU6(), nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden, bias=False),
                                  norm(hidden), nn.Hardswish(), nn.Conv2d(hidden, channels, 1, bias=False), norm(channels))
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 2, 1), nn.ReLU(), nn.Conv2d(2, channels, 1), nn.Hardsigmoid())

    def forward(self, x):
        y = self.body(x)
        return x + y * self.squeeze(y)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.deep, self.up = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        first = F.relu(self.down(x))
        return torch.sigmoid(self.out(torch.cat([first, F.relu(self.up(F.silu(self.deep(first))))], 1)))


class ConvNext(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 7, padding=3, groups=channels), nn.LayerNorm(channels)
        self.wide, self.narrow, self.scale = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels), nn.Parameter(real(channels))

    def forward(self, x):
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.narrow(F.gelu(self.wide(y)))).permute(0, 3, 1, 2)


class Attention(nn.Module):
    """Causal attention with turned places and keys of fewer heads, as decoders of today have it."""

    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads, self.q, self.kv, self.out = heads, nn.Linear(width, width, bias=False), nn.Linear(width, width // 2 * 2 // 2, bias=False), nn.Linear(width, width, bias=False)

    def turned(self, x):
        half, steps = x.shape[-1] // 2, x.shape[-2]
        angles = torch.outer(torch.arange(steps).float(), 1 / 100 ** (torch.arange(half).float() / half))
        angles = torch.cat([angles, angles], -1)
        return x * angles.cos() + torch.cat([-x[..., half:], x[..., :half]], -1) * angles.sin()

    def forward(self, x):
        batch, steps, width = x.shape
        size = width // self.heads
        q = self.turned(self.q(x).view(batch, steps, self.heads, size).transpose(1, 2))
        k, v = self.kv(x).view(batch, steps, 2, self.heads // 2 // 2 or 1, size).unbind(2)
        k, v = (each.transpose(1, 2).repeat_interleave(self.heads // each.shape[2], 1) for each in (self.turned(k.transpose(1, 2)).transpose(1, 2), v))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, steps, width))


class Windows(nn.Module):
    """Attention within shifted windows of a picture."""

    def __init__(self):
        super().__init__()
        self.qkv, self.places = nn.Linear(8, 24), nn.Parameter(real(2, 4, 4))

    def forward(self, x):
        x = torch.roll(x, (-1, -1), (1, 2))
        n, h, w, c = x.shape
        parts = x.view(n, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, c)
        q, k, v = self.qkv(parts).reshape(-1, 4, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        y = ((q @ k.transpose(-2, -1)) / math.sqrt(c // 2) + self.places).softmax(-1) @ v
        y = y.transpose(1, 2).reshape(n, h // 2, w // 2, 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        return torch.roll(y, (1, 1), (1, 2))


class Rms(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Heads(nn.Module):
    """A pyramid of maps, and boxes of each place."""

    def __init__(self):
        super().__init__()
        self.side, self.out = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 5, 3, padding=1)

    def forward(self, x):
        large = F.leaky_relu(self.side(x), 0.1)
        small = F.max_pool2d(large, 2)
        large = large + F.interpolate(small, scale_factor=2, mode="nearest")
        rows = torch.cat([self.out(each).flatten(2) for each in (large, small)], 2).transpose(1, 2)
        return torch.cat([rows[..., :2].sigmoid() * 2 - 0.5, rows[..., 2:4].exp(), rows[..., 4:].sigmoid()], -1)


def blocks():
    picture = real(1, 3, 8, 8)
    yield "residual", Residual(8, 16), [real(1, 8, 6, 6)]
    yield "residual_groups", Residual(8, 16, lambda n: nn.GroupNorm(2, n)), [real(1, 8, 6, 6)]
    yield "unet", UNet(), [picture]
    yield "convnext", ConvNext(8), [real(1, 8, 9, 9)]
    yield "attention", Attention(), [real(2, 5, 16)]
    yield "windows", Windows(), [real(1, 4, 6, 8)]
    yield "multihead", Call(Own(nn.MultiheadAttention(16, 4, batch_first=True))), [real(2, 5, 16)]
    yield "encoder", nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), [real(2, 5, 16)]
    yield "encoder_first", nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", norm_first=True), [real(5, 2, 16)]
    yield "decoder", nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), [real(2, 5, 16), real(2, 7, 16)]
    yield "rms", Rms(), [real(2, 5, 16)]
    yield "heads", Heads(), [picture]
    yield "patches", nn.Sequential(nn.Conv2d(3, 8, 4, stride=4), nn.Flatten(2), nn.LayerNorm(4)), [picture]
    yield "inception", Call(Branches()), [picture]
    yield "dense", nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 5), nn.Softmax(1)), [picture]
    yield "words", nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 8), nn.LayerNorm(8), nn.Tanh()), [whole(2, 6, high=11)]


class Own(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, x, x)[0]


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.three, self.five = nn.Conv2d(3, 2, 1), nn.Conv2d(3, 2, 3, padding=1), nn.Conv2d(3, 2, 5, padding=2)

    def forward(self, x):
        return torch.cat([F.relu(self.one(x)), F.relu(self.three(x)), F.relu(self.five(x)), F.max_pool2d(x, 3, 1, 1)], 1)


def free():
    """Dims that stay free."""
    yield "free_rows", nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.LayerNorm(6)), [real(3, 4)], {0: [0]}
    yield "free_picture", nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()), [real(1, 3, 9, 8)], {0: [2, 3]}
    yield "free_attention", Call(Own(nn.MultiheadAttention(16, 4, batch_first=True))), [real(2, 5, 16)], {0: [1]}
    yield "free_flat", Call(lambda x: x.reshape(x.shape[0], -1).softmax(1)), [real(3, 2, 4)], {0: [0]}
    yield "free_resize", Call(lambda x: F.interpolate(x, scale_factor=2, mode="nearest")), [real(1, 3, 5, 6)], {0: [2, 3]}
    yield "free_lstm", Call2(nn.LSTM(4, 5)), [real(6, 1, 4)], {0: [0]}
    yield "free_pool", nn.MaxPool2d(2, ceil_mode=True), [real(1, 3, 5, 6)], {0: [2, 3]}
    yield "free_positions", Call(lambda x: x + torch.arange(x.shape[1], dtype=torch.float32)[None, :, None]), [real(1, 5, 4)], {0: [1]}


GROUPS = {"layers": layers, "activations": activations, "recurrent": recurrent, "resizes": resizes, "moves": moves, "blocks": blocks, "free": free}


def modules(group, seed):
    """Of a group, the same ones of the same seed; parameters of their own that are no zeros and ones."""
    torch.manual_seed(seed)
    for name, module, inputs, *free_axes in GROUPS[group]():
        for each in module.modules():
            if isinstance(each, (nn.BatchNorm1d, nn.BatchNorm2d)):
                each.running_mean.uniform_(-1, 1)
                each.running_var.uniform_(0.5, 2)
        flat = [each for part in inputs for each in (part if isinstance(part, tuple) else (part,))]
        yield Module(name, module.eval(), flat, free_axes[0] if free_axes else {})
