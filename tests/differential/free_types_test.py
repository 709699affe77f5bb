"""Types with free dims, imported once: at the shapes where their guards hold they are the types of the model imported at those
shapes."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import free_dependents  # noqa: F401
import free_exports  # noqa: F401
import free_limits  # noqa: F401
import free_networks  # noqa: F401
import free_slices  # noqa: F401
import free_runs  # noqa: F401
import free_spread  # noqa: F401
import free_weights  # noqa: F401
import numpy as np
import sweep
import scope  # (sweep adds its folder)
from free_forms import MODELS, FreeBuilder

TOOL = Path(__file__).resolve().parents[2] / "build/bin/tensormill"


def scaled(x, factor):
    return int(np.floor(np.float32(x) * np.float32(factor)))


def scaled_by_ratio(x, up, down):
    return int(np.floor(np.float32(x) * (np.float32(up) / np.float32(max(down, 1)))))


def rounded_by_ratio(x, up, down):
    product = x * (up / max(down, 1))
    return int(np.trunc(product + np.copysign(0.5, product)))


def code(number):
    """Float32 numbers as integers in their order, both zeros as 0."""
    bits = int(np.float32(number).view(np.uint32))
    return bits if bits < 2**31 else 2**31 - bits


def of_code(number):
    return np.uint32(number if number >= 0 else 2**31 - number).view(np.float32)


def coded(function):
    return lambda *codes: code(function(*map(of_code, codes)))


def steps_of_f32(start, limit, delta):
    start, limit, delta = (float(of_code(each)) for each in (start, limit, delta))
    return max(int(np.ceil((limit - start) / delta)), 0)


# What runtime/base/extents/extent_functions.def names.
KNOWN = {"min": min, "max": max, "scaled": scaled, "scaled_by_ratio": scaled_by_ratio, "rounded_by_ratio": rounded_by_ratio,
         "steps_of_f32": steps_of_f32, "f32_of": code, "f32_to_int": lambda number: int(of_code(number)),
         "f32_add": coded(np.add), "f32_sub": coded(np.subtract), "f32_mul": coded(np.multiply), "f32_div": coded(np.divide),
         "f32_sqrt": coded(np.sqrt), "f32_floor": coded(np.floor), "f32_ceil": coded(np.ceil), "f32_round": coded(np.rint),
         "__builtins__": {}}


def evaluate(text, dims):
    return eval(re.sub(r"(?<=[\d.])f\b", "", text), KNOWN, dims)  # noqa: S307 - our own tool's formulas


def shown(model, shapes=None):
    """The graph's text, or nothing where the model is not imported so."""
    command = [TOOL, "show", model, "--graph"] + (["--input-shapes", shapes] if shapes else [])
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if answer.returncode not in (0, 3):
        raise AssertionError(answer.stderr)
    return answer.stdout if answer.returncode == 0 else None


def parts(shape):
    """Between the commas that are inside no call."""
    found, depth = [""], 0
    for letter in shape:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found if shape else []


def types(text):
    return dict(re.findall(r"%([\w.]+)(?:: | = const )\w+\[([^\]]*)\]", text))


class FreeTypes(unittest.TestCase):
    def test_all_functions_of_extents_are_known_here(self):
        table = (Path(__file__).resolve().parents[2] / "runtime/base/extents/extent_functions.def").read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"^TM_EXTENT_FUNCTION\((\w+),", table, re.MULTILINE)) - set(KNOWN), set())

    def test_types_agree_with_an_import_at_the_shape(self):
        agreed = 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            for name, (make, dims, shapes, opset, values) in scope.sampled(MODELS.items(), 40):
                builder = FreeBuilder(opset, dict(zip(dims, shapes[0], strict=True)), values)
                make(builder)
                path.write_bytes(builder.free_model().SerializeToString())
                text = shown(path)
                # What a run decides is no number of a shape.
                if text is None or " run_dims (" in text:
                    continue
                guards = re.findall(r'^  "([^"]*)" "[^"]*"(?: demanded)?\)?', text, re.MULTILINE)
                # A branch's own symbols are the free dims where it is taken.
                guards = [guard for guard in guards if not re.search(r"\w\.b\d", guard)]
                outputs = re.findall(r"%([\w.]+)", re.search(r"\n  return (.*)\n}", text)[1])
                # An extent of 0 is no value of a symbol.
                for shape in scope.sampled([each for each in shapes if 0 not in each], 2):
                    extents = dict(zip(dims, shape, strict=True))
                    if not all(evaluate(guard, extents) for guard in guards):
                        continue
                    bound = " ".join(f"{key}:[{','.join(str(extents.get(e, e)) for e in own)}]" for key, own in builder.shapes.items())
                    concrete = shown(path, bound)
                    self.assertIsNotNone(concrete, (name, shape))
                    own, there = types(text), types(concrete)
                    for output in outputs:
                        with self.subTest(name, shape=shape, output=output):
                            self.assertEqual([evaluate(part, extents) for part in parts(own[output])], [int(part) for part in parts(there[output])])
                            agreed += 1
        self.assertGreater(agreed, 20)


if __name__ == "__main__":
    unittest.main()
