"""MobileNetV2 1.0: inverted residuals with depthwise convolutions and ReLU6."""

from net import RESIDUAL_GAIN, Net

#            expansion, channels, blocks, stride
SETTINGS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def inverted_residual(net, x, channels, stride, expansion):
    hidden = x.shape[1] * expansion
    y = x
    if expansion != 1:
        y = net.relu6(net.batch_norm(net.conv(y, hidden, 1), gain=1.5))
    y = net.relu6(net.batch_norm(net.conv(y, hidden, 3, stride, group=hidden), gain=1.5))
    if stride == 1 and x.shape[1] == channels:
        return net.add(x, net.batch_norm(net.conv(y, channels, 1), gain=RESIDUAL_GAIN))
    return net.batch_norm(net.conv(y, channels, 1))


def mobilenetv2():
    """Opset 11: Clip with its bounds as inputs, batch norm as nodes, Reshape whose shape is computed."""
    net = Net("mobilenetv2", opset=11, seed=22)
    x = net.input("input", [1, 3, 224, 224])
    x = net.relu6(net.batch_norm(net.conv(x, 32, 3, 2), gain=1.5))
    for expansion, channels, count, stride in SETTINGS:
        for i in range(count):
            x = inverted_residual(net, x, channels, 1 if i else stride, expansion)
    x = net.relu6(net.batch_norm(net.conv(x, 1280, 1), gain=1.5))
    x = net.flatten_traced(net.global_average_pool(x))
    net.output(net.dense(x, 1000, gain=8.0), "output", [1, 1000])
    return net
