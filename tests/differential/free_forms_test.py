"""Models of free dims at shapes without kernels of their own, beside ONNX Runtime."""

import tempfile
import unittest

import free_dependents  # noqa: F401
import free_exports  # noqa: F401
import free_limits  # noqa: F401
import free_networks  # noqa: F401
import free_slices  # noqa: F401
import free_spread  # noqa: F401
import sweep
from free_forms import MODELS, FreeBuilder


class FreeForms(unittest.TestCase):
    def test_shapes_without_a_variant_are_served(self):
        with tempfile.TemporaryDirectory() as folder:
            run = sweep.Sweep(folder)
            self.addCleanup(run.close)
            for name, (make, dims, shapes, opset, values) in MODELS.items():
                buckets = ";".join(f"{dim}={extent}" for dim, extent in dims.items())
                for shape in shapes:
                    builder = FreeBuilder(opset, dict(zip(dims, shape, strict=True)), values)
                    make(builder)
                    model, feed, ours, peer = (run.folder / file for file in ("model.onnx", "in.npz", "ours.npz", "peer.npz"))
                    model.write_bytes(builder.free_model().SerializeToString())
                    sweep.cases.save(feed, builder.feed)
                    answers = run.own.ask(f"{model} {feed} {ours} 3 {buckets}"), run.peer.ask(f"{model} {feed} {peer}")
                    with self.subTest(name, shape=shape):
                        self.assertEqual(run.compare(builder, *answers), ("equal", ""))


if __name__ == "__main__":
    unittest.main()
