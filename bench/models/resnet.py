"""ResNet-18 and -50 (v1: convolution, normalization, ReLU; v2: normalization and ReLU first)."""

from net import RESIDUAL_GAIN, Net

STAGES = {18: [2, 2, 2, 2], 50: [3, 4, 6, 3]}


def shortcut(net, x, channels, stride, normalize):
    if stride == 1 and x.shape[1] == channels:
        return x
    y = net.conv(x, channels, 1, stride, bias=not normalize, gain=1.0)
    return net.batch_norm(y) if normalize else y


def conv_block(net, x, channels, kernel, stride, normalize, gain=1.0):
    """Convolution and batch normalization, or, folded as newer exporters do, a convolution with bias."""
    if not normalize:
        return net.conv(x, channels, kernel, stride, bias=True, gain=gain * gain)
    return net.batch_norm(net.conv(x, channels, kernel, stride), gain)


def basic_block(net, x, width, stride, normalize):
    y = net.relu(conv_block(net, x, width, 3, stride, normalize))
    y = conv_block(net, y, width, 3, 1, normalize, gain=RESIDUAL_GAIN)
    return net.relu(net.add(y, shortcut(net, x, width, stride, normalize)))


def bottleneck(net, x, width, stride, normalize):
    y = net.relu(conv_block(net, x, width, 1, 1, normalize))
    y = net.relu(conv_block(net, y, width, 3, stride, normalize))
    y = conv_block(net, y, width * 4, 1, 1, normalize, gain=RESIDUAL_GAIN)
    return net.relu(net.add(y, shortcut(net, x, width * 4, stride, normalize)))


def v1(net, depth, batch, normalize):
    block = basic_block if depth == 18 else bottleneck
    x = net.input("input", [batch, 3, 224, 224])
    x = net.conv(x, 64, 7, 2, bias=not normalize)
    x = net.relu(net.batch_norm(x) if normalize else x)
    x = net.max_pool(x, 3, 2, [1, 1, 1, 1])
    for stage, count in enumerate(STAGES[depth]):
        for i in range(count):
            x = block(net, x, 64 << stage, 2 if stage and not i else 1, normalize)
    return net.global_average_pool(x)


def resnet18():
    """Opset 9, batch dim free, batch norm folded into the convolutions, flatten by Shape, Gather, Concat, Reshape."""
    net = Net("resnet18", opset=9, seed=18)
    x = net.flatten_traced(v1(net, 18, "N", normalize=False))
    net.output(net.dense(x, 1000, gain=8.0), "output", ["N", 1000])
    return net


def resnet50():
    """Opset 12, batch 1, batch norm as nodes, Flatten."""
    net = Net("resnet50", opset=12, seed=50)
    x = v1(net, 50, 1, normalize=True)
    x = net.flattened(net.node("Flatten", [x], axis=1), x)
    net.output(net.dense(x, 1000, gain=8.0), "output", [1, 1000])
    return net


def resnet50v2():
    """Opset 8 as symbolic exporters wrote it: a batch norm on the data, initializers as inputs, IR 3."""
    net = Net("resnet50v2", opset=8, seed=502)
    x = net.batch_norm(net.input("data", [1, 3, 224, 224]), name="data_bn")
    x = net.relu(net.batch_norm(net.conv(x, 64, 7, 2)))
    x = net.max_pool(x, 3, 2, [1, 1, 1, 1])
    for stage, count in enumerate(STAGES[50]):
        width = 64 << stage
        for i in range(count):
            stride = 2 if stage and not i else 1
            y = net.relu(net.batch_norm(x))
            # The first block of a stage projects what is already normalized.
            side = x if i else net.conv(y, width * 4, 1, stride)
            y = net.relu(net.batch_norm(net.conv(y, width, 1)))
            y = net.relu(net.batch_norm(net.conv(y, width, 3, stride)))
            x = net.add(net.conv(y, width * 4, 1, scale=RESIDUAL_GAIN), side)
    x = net.global_average_pool(net.relu(net.batch_norm(x)))
    x = net.flattened(net.node("Reshape", [x, net.int64s([0, -1], "reshape_shape")]), x)
    net.output(net.dense(x, 1000, gain=8.0), "resnetv27_dense0_fwd", [1, 1000])
    return net
