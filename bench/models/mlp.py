"""A multi-layer perceptron 784-512-512-10."""

from net import Net


def mlp():
    """Opset 13, batch dim free, pictures flattened first, Softmax last."""
    net = Net("mlp", opset=13, seed=7)
    x = net.input("input", ["N", 1, 28, 28])
    x = net.flattened(net.node("Flatten", [x], axis=1), x)
    x = net.relu(net.dense(x, 512, gain=2.0, name="fc1"))
    x = net.relu(net.dense(x, 512, gain=2.0, name="fc2"))
    x = net.dense(x, 10, gain=2.0, name="fc3")
    net.output(net.node("Softmax", [x], axis=-1), "probabilities", ["N", 10])
    return net
