"""SqueezeNet 1.1: no batch norm, fire modules, pooling with the one-sided pads that stood for ceil_mode."""

from net import Net


def fire(net, x, squeeze, expand):
    x = net.relu(net.conv(x, squeeze, 1, bias=True, gain=1.0))
    return net.concat([net.relu(net.conv(x, expand, 1, bias=True, gain=1.0)), net.relu(net.conv(x, expand, 3, bias=True, gain=1.0))])


def squeezenet11():
    """Opset 7, IR 3, Dropout left in, Softmax over all axes from 1 on a 4-D tensor."""
    net = Net("squeezenet11", opset=7, seed=11)
    x = net.input("data", [1, 3, 224, 224])
    x = net.relu(net.conv(x, 64, 3, 2, pad=0, bias=True, gain=1.0))
    x = net.max_pool(x, 3, 2, [0, 0, 0, 0])
    for squeeze, expand in ((16, 64), (16, 64)):
        x = fire(net, x, squeeze, expand)
    x = net.max_pool(x, 3, 2, [0, 0, 1, 1])
    for squeeze, expand in ((32, 128), (32, 128)):
        x = fire(net, x, squeeze, expand)
    x = net.max_pool(x, 3, 2, [0, 0, 1, 1])
    for squeeze, expand in ((48, 192), (48, 192), (64, 256), (64, 256)):
        x = fire(net, x, squeeze, expand)
    x.name = net.node("Dropout", [x], ratio=0.5)
    x = net.relu(net.conv(x, 1000, 1, bias=True, gain=16.0))
    x = net.node("AveragePool", [x], kernel_shape=x.shape[2:], strides=[1, 1], pads=[0] * 4)
    net.output(net.node("Softmax", [x]), "softmaxout_1", [1, 1000, 1, 1])
    return net
