"""Networks with free batches, sizes and lengths, exported to ONNX with seeded weights as their users export them."""

import torch
import torch.nn.functional as F
import torchvision
from torch import nn


class Vit(nn.Module):
    """ViT-B/16 for pictures of any size: learned positions are resized to the map of patches, as its users do for other resolutions."""

    def __init__(self, width=768, layers=12, heads=12, patch=16, side=14):
        super().__init__()
        self.patch, self.side = patch, side
        self.embed = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, width, side, side) * 0.02)
        self.layers = nn.ModuleList([Layer(width, heads, first=True) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, x):
        x = x[:, :, : x.shape[2] // self.patch * self.patch, : x.shape[3] // self.patch * self.patch]
        x = self.embed(x)
        x = x + F.interpolate(self.positions, size=(x.shape[2], x.shape[3]), mode="bilinear", align_corners=False)
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        for layer in self.layers:
            x = layer(x, None)
        return self.head(self.norm(x)[:, 0])


class Layer(nn.Module):
    """A layer of a transformer; `first`: the norms stand before what they feed (ViT), else behind (BERT)."""

    def __init__(self, width, heads, first):
        super().__init__()
        self.heads, self.first = heads, first
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def attend(self, x, mask):
        n, s, width = x.shape
        q, k, v = (part(x).view(n, s, self.heads, width // self.heads).transpose(1, 2) for part in (self.q, self.k, self.v))
        scores = q @ k.transpose(2, 3) / (width // self.heads) ** 0.5
        if mask is not None:
            scores = scores + mask
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, s, width))

    def forward(self, x, mask):
        if self.first:
            x = x + self.attend(self.norm1(x), mask)
            return x + self.down(F.gelu(self.up(self.norm2(x))))
        x = self.norm1(x + self.attend(x, mask))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    """BERT-base."""

    def __init__(self, width=768, layers=12, heads=12, words=30522, most=512):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(words, width), nn.Embedding(most, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList([Layer(width, heads, first=False) for _ in range(layers)])

    def forward(self, ids, mask):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))[None] + self.kinds(torch.zeros_like(ids))
        x = self.norm(x)
        mask = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, mask)
        return x


def conv(i, o, k=3, s=1, groups=1, act=nn.SiLU):
    parts = [nn.Conv2d(i, o, k, s, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*parts, *([act()] if act else []))


class Csp(nn.Module):
    def __init__(self, i, o, count):
        super().__init__()
        half = o // 2
        self.a, self.b, self.last = conv(i, half, 1), conv(i, half, 1), conv(o, o, 1)
        self.parts = nn.ModuleList([nn.Sequential(conv(half, half, 1), conv(half, half)) for _ in range(count)])

    def forward(self, x):
        a = self.a(x)
        for part in self.parts:
            a = a + part(a)
        return self.last(torch.cat([a, self.b(x)], 1))


class Yolo(nn.Module):
    """Three maps, brought together and read by a head each, as detectors of the YOLO family."""

    def __init__(self, c=32, classes=80):
        super().__init__()
        self.stem = nn.Sequential(conv(3, c, 6, 2), conv(c, 2 * c, 3, 2), Csp(2 * c, 2 * c, 1))
        self.p3 = nn.Sequential(conv(2 * c, 4 * c, 3, 2), Csp(4 * c, 4 * c, 2))
        self.p4 = nn.Sequential(conv(4 * c, 8 * c, 3, 2), Csp(8 * c, 8 * c, 3))
        self.p5 = nn.Sequential(conv(8 * c, 16 * c, 3, 2), Csp(16 * c, 16 * c, 1))
        self.l5, self.l4 = conv(16 * c, 8 * c, 1), conv(8 * c, 4 * c, 1)
        self.m4, self.m3 = Csp(16 * c, 8 * c, 1), Csp(8 * c, 4 * c, 1)
        self.heads = nn.ModuleList([nn.Conv2d(i, 5 + classes, 1) for i in (4 * c, 8 * c, 16 * c)])

    @staticmethod
    def up(x, other):
        x = F.interpolate(x, scale_factor=2.0, mode="nearest")
        return torch.cat([x[:, :, : other.shape[2], : other.shape[3]], other], 1)

    def forward(self, x):
        p3 = self.p3(self.stem(x))
        p4 = self.p4(p3)
        p5 = self.p5(p4)
        m4 = self.m4(self.up(self.l5(p5), p4))
        m3 = self.m3(self.up(self.l4(m4), p3))
        return torch.cat([head(m).flatten(2) for head, m in zip(self.heads, (m3, m4, p5))], 2)


class Squeeze(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c // 4, 1), nn.Conv2d(c // 4, c, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.b(F.relu(self.a(x.mean((2, 3), keepdim=True)))))


class Inverted(nn.Module):
    def __init__(self, i, o, wide, k=3, s=1, act=nn.Hardswish, squeeze=False):
        super().__init__()
        self.adds = i == o and s in (1, (1, 1))
        self.body = nn.Sequential(conv(i, wide, 1, act=act), conv(wide, wide, k, s, wide, act), *([Squeeze(wide)] if squeeze else []),
                                  conv(wide, o, 1, act=None))

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


class Detection(nn.Module):
    """PP-OCR's detection of text: a mobile backbone, a pyramid, a map of probabilities as large as the picture."""

    def __init__(self, width=96):
        super().__init__()
        relu = nn.ReLU
        self.stages = nn.ModuleList([
            nn.Sequential(conv(3, 16, 3, 2, act=nn.Hardswish), Inverted(16, 16, 16, act=relu), Inverted(16, 24, 64, 3, 2, relu), Inverted(24, 24, 72, act=relu)),
            nn.Sequential(Inverted(24, 40, 72, 5, 2, relu, True), Inverted(40, 40, 120, 5, 1, relu, True)),
            nn.Sequential(Inverted(40, 80, 240, 3, 2), Inverted(80, 80, 200), Inverted(80, 112, 480, squeeze=True)),
            nn.Sequential(Inverted(112, 160, 672, 5, 2, squeeze=True), Inverted(160, 160, 960, 5, squeeze=True), conv(160, 480, 1, act=nn.Hardswish))])
        self.sides = nn.ModuleList([nn.Conv2d(c, width, 1, bias=False) for c in (24, 40, 112, 480)])
        self.smooth = nn.ModuleList([nn.Conv2d(width, width // 4, 3, padding=1, bias=False) for _ in range(4)])
        self.head = nn.Sequential(conv(width, width // 4, act=relu), nn.ConvTranspose2d(width // 4, width // 4, 2, 2), nn.BatchNorm2d(width // 4),
                                  nn.ReLU(), nn.ConvTranspose2d(width // 4, 1, 2, 2), nn.Sigmoid())

    def forward(self, x):
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        maps = [side(m) for side, m in zip(self.sides, maps)]
        for i in (2, 1, 0):
            maps[i] = maps[i] + F.interpolate(maps[i + 1], size=maps[i].shape[2:], mode="nearest")
        maps = [F.interpolate(s(m), size=maps[0].shape[2:], mode="nearest") for s, m in zip(self.smooth, maps)]
        return self.head(torch.cat(maps[::-1], 1))


class Recognition(nn.Module):
    """PP-OCR's recognition of a line of text: a mobile backbone that keeps the width, a recurrent layer both ways, classes of each column."""

    def __init__(self, classes=6625):
        super().__init__()
        down = (2, 1)
        self.body = nn.Sequential(
            conv(3, 16, 3, 2, act=nn.Hardswish), Inverted(16, 32, 64, 3, down), Inverted(32, 32, 96), Inverted(32, 64, 128, 5, down, squeeze=True),
            Inverted(64, 64, 256, 5, squeeze=True), Inverted(64, 96, 256, 5, down, squeeze=True), Inverted(96, 96, 480, 5, squeeze=True),
            conv(96, 480, 1, act=nn.Hardswish))
        self.lstm = nn.LSTM(480, 96, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(192, classes)

    def forward(self, x):
        x = self.body(x)
        x = F.max_pool2d(x, 2).mean(2).transpose(1, 2)
        return self.out(self.lstm(x)[0]).softmax(-1)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(128, 256, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(512, 64)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


def picture(make, shapes):
    return make, {"x": ("N", 3, "H", "W")}, [{"x": shape} for shape in shapes]


def words(shapes):
    return [{"ids": shape, "mask": shape} for shape in shapes]


# Name: how it is made, its inputs' dims, three odd shapes.
NETWORKS = {
    "mobilenet_v2": picture(lambda: torchvision.models.mobilenet_v2(weights=None), [(1, 3, 217, 199), (2, 3, 171, 233), (1, 3, 331, 157)]),
    "efficientnet_b0": picture(lambda: torchvision.models.efficientnet_b0(weights=None), [(1, 3, 217, 199), (2, 3, 171, 233), (1, 3, 331, 157)]),
    "resnet50": picture(lambda: torchvision.models.resnet50(weights=None), [(1, 3, 217, 199), (2, 3, 171, 233), (1, 3, 331, 157)]),
    "vit_b16": picture(Vit, [(1, 3, 217, 199), (2, 3, 183, 169), (1, 3, 331, 157)]),
    "bert_base": (Bert, {"ids": ("N", "S"), "mask": ("N", "S")}, words([(1, 37), (3, 23), (1, 113)])),
    "yolo": picture(Yolo, [(1, 3, 224, 352), (1, 3, 288, 160), (2, 3, 160, 416)]),
    "ppocr_det": (Detection, {"x": (1, 3, "H", "W")}, [{"x": s} for s in [(1, 3, 224, 416), (1, 3, 352, 288), (1, 3, 160, 608)]]),
    "ppocr_rec": (Recognition, {"x": ("N", 3, 48, "W")}, [{"x": s} for s in [(1, 3, 48, 199), (3, 3, 48, 331), (1, 3, 48, 523)]]),
    "lstm": (Lstm, {"x": ("N", "T", 128)}, [{"x": s} for s in [(1, 47, 128), (2, 61, 128), (1, 113, 128)]]),
}


def tensor_of(name, shape):
    return torch.ones(shape, dtype=torch.int64) if name == "mask" else \
        torch.randint(0, 30000, shape) if name == "ids" else torch.rand(shape) * 2 - 1


def export(name, path):
    make, dims, shapes = NETWORKS[name]
    torch.manual_seed(7)
    net = make()
    sample = {port: tensor_of(port, shape) for port, shape in shapes[1].items()}
    for part in net.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.momentum = 1.0
    # Statistics as a trained network has them, so that activations stay finite.
    with torch.no_grad():
        net.train()
        for part in net.modules():
            if "Drop" in type(part).__name__ or "StochasticDepth" in type(part).__name__:
                part.eval()
        net(*(torch.cat([x, x.flip(-1)]) for x in sample.values()))
        net.eval()
    axes = {port: {i: dim for i, dim in enumerate(shape) if isinstance(dim, str)} for port, shape in dims.items()}
    torch.onnx.export(net, tuple(sample.values()), str(path), input_names=list(sample), output_names=["y"], dynamic_axes=axes, opset_version=17,
                      dynamo=False)
