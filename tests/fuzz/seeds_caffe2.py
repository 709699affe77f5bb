"""Seeds of the target caffe2: the size of the net that fills (four bytes), that net, and the net that computes; and value_info.json."""

import struct
import sys
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
sys.path[:0] = [str(FIXTURES), str(FIXTURES / "caffe2_ops")]

import net_file  # noqa: E402
import numpy as np  # noqa: E402
from net_file import op  # noqa: E402


def init():
    """Every kind of fill, and a place holder."""
    arrays = [np.array([[1, -2]], np.float32), np.array([3], np.int32), np.array([1 << 40], np.int64), np.array([1, 0], bool),
              np.array([0.5], np.float64), np.array([7], np.int16), np.array([1, 255], np.uint8)]
    fills = [net_file.fill(f"w{index}", array) for index, array in enumerate(arrays)]
    fills += [net_file.int8_fill("q", np.array([1, 2], np.uint8), 0.5, 3), net_file.int8_fill("b", np.array([-9], np.int32), 0.25, 0)]
    fills += [op("ConstantFill", [], ["c"], shape=[2, 2], value=1.5), op("ConstantFill", [], ["i"], shape=[2], value=7, dtype=10),
              op("GivenTensorFill", [], ["data"], shape=[1], values=[0.0]), net_file.fill("f", np.ones((4, 3, 1, 1), np.float32))]
    return net_file.net("init", fills)


def predict():
    nodes = [op("Conv", ["data", "f"], ["y"], kernel=1, order="NCHW", engine="CUDNN"), op("Relu", ["y"], ["y"], name="relu"),
             op("Gather", ["w0", "places"], ["z"]), op("Concat", ["y", "y"], ["both", "split"], texts=["a", "b"])]
    return net_file.net("predict", nodes, ["data", "places", "w0", "f"], ["both", "z"])


def nets(first, second):
    return struct.pack("<I", len(first)) + first + second


def seeds():
    yield "every", nets(init(), predict())
    yield "no_init", nets(b"", predict())
    yield "no_outputs", nets(init(), net_file.net("p", [op("Relu", ["data"], ["y"])]))
    yield "huge_shape", nets(net_file.net("i", [op("ConstantFill", [], ["w"], shape=[1 << 40, 1 << 40], value=0.0)]), predict())
    yield "few_values", nets(net_file.net("i", [op("GivenTensorFill", [], ["w"], shape=[9], values=[1.0])]), predict())
    yield "random", nets(net_file.net("i", [op("XavierFill", [], ["w"], shape=[3])]), predict())
    yield "value_info", b'{"data":[1,[-1,3,8,8]],"places":[7,[2]]}'
