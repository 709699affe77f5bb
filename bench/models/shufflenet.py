"""ShuffleNetV2 1.0: channel split, depthwise convolutions, and the shuffle as Reshape, Transpose, Reshape."""

import numpy as np
from net import Net, Value

STAGES = [(116, 4), (232, 8), (464, 4)]


def shuffle(net, x):
    batch, channels, rows, columns = x.shape
    half = channels // 2
    y = net.node("Reshape", [x, net.int64s([batch, 2, half, rows, columns])])
    y = net.node("Transpose", [y], perm=[0, 2, 1, 3, 4])
    y = net.node("Reshape", [y, net.int64s([batch, -1, rows, columns])])
    return Value(y, x.shape, x.data[:, np.arange(channels).reshape(2, half).T.ravel()])


def split(net, x):
    half = x.shape[1] // 2
    names = net.node("Split", [x, net.int64s([half, half])], outputs=2, axis=1)
    shape = [x.shape[0], half, *x.shape[2:]]
    return [Value(n, shape, x.data[:, i * half:(i + 1) * half]) for i, n in enumerate(names)]


def depthwise(net, x, stride):
    return net.batch_norm(net.conv(x, x.shape[1], 3, stride, group=x.shape[1]))


def branch(net, x, channels, stride):
    y = net.relu(net.batch_norm(net.conv(x, channels, 1)))
    return net.relu(net.batch_norm(net.conv(depthwise(net, y, stride), channels, 1)))


def unit(net, x, channels, stride):
    half = channels // 2
    if stride == 1:
        kept, worked = split(net, x)
        return shuffle(net, net.concat([kept, branch(net, worked, half, 1)]))
    side = net.relu(net.batch_norm(net.conv(depthwise(net, x, stride), half, 1)))
    return shuffle(net, net.concat([side, branch(net, x, half, stride)]))


def shufflenetv2():
    """Opset 13: Split with its sizes as input, ReduceMean over the pixels."""
    net = Net("shufflenetv2", opset=13, seed=33)
    x = net.input("input", [1, 3, 224, 224])
    x = net.relu(net.batch_norm(net.conv(x, 24, 3, 2)))
    x = net.max_pool(x, 3, 2, [1, 1, 1, 1], ceil_mode=0)
    for channels, count in STAGES:
        for i in range(count):
            x = unit(net, x, channels, 1 if i else 2)
    x = net.relu(net.batch_norm(net.conv(x, 1024, 1)))
    x = Value(net.node("ReduceMean", [x], axes=[2, 3], keepdims=0), [1, 1024], net.pooled(x))
    net.output(net.dense(x, 1000, gain=8.0), "output", [1, 1000])
    return net
