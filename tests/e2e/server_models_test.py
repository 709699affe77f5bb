"""Every architecture through HTTP at level 3: upload, compile, run, and the same answer as ONNX Runtime."""

import unittest

import mill
import serving

ARCHITECTURES = ["mlp", "squeezenet11", "mobilenetv2", "shufflenetv2", "resnet18", "resnet50", "resnet50v2", "minilm6"]


class ServerModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = serving.make_server(cls)

    def check(self, name):
        path = mill.generated(name)
        inputs = mill.alive.random_inputs(mill.alive.onnx.load(str(path)), seed=1, batch=1)
        _, expected = mill.reference(path, inputs, f"{name}.batch1")
        answer = self.server.upload(name, path.read_bytes())
        self.assertEqual(answer.status, 201, answer.body)
        package = self.server.compile(name, {key: list(value.shape) for key, value in inputs.items()})
        answer = self.server.run(package, inputs)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(mill.compare.compare_sets(serving.from_npz(answer.body), expected, mill.tolerance(3)), [])


def add_test(arch):
    setattr(ServerModels, f"test_{arch}", lambda self: self.check(arch))


for architecture in ARCHITECTURES:
    add_test(architecture)

if __name__ == "__main__":
    unittest.main()
