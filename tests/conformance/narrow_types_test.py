"""float8, float4, int4, uint4, int2 and uint2: conversions, quantization and moves, with values by numpy from the formats' tables."""

import unittest
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import cases
from one_node import OneNode

FLOAT, UINT8, INT8, FLOAT16, DOUBLE = 1, 2, 3, 10, 11
# Element types that Debian's onnx module has no names for.
E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, UINT4, INT4, E2M1, E8M0, UINT2, INT2 = 17, 18, 19, 20, 21, 22, 23, 24, 25, 26
FLOAT8 = {E4M3FN: (3, 7), E4M3FNUZ: (3, 8), E5M2: (2, 15), E5M2FNUZ: (2, 16)}
NUMPY = {FLOAT: np.float32, UINT8: np.uint8, INT8: np.int8, FLOAT16: np.float16, DOUBLE: np.float64, INT4: np.int8}
RANDOM = np.random.default_rng(11)


def values_of(kind):
    """The value of each code, by the format's definition."""
    if kind == E2M1:
        half = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
        return np.array(half + [-value for value in half])
    mantissa, bias = FLOAT8[kind]
    codes = np.arange(128)
    exponent, fraction = codes >> mantissa, (codes & (2**mantissa - 1)) / 2**mantissa
    half = np.where(exponent == 0, fraction * 2.0 ** (1 - bias), (1 + fraction) * 2.0 ** (exponent - bias))
    if kind == E4M3FN:
        half[127] = np.nan
    if kind == E5M2:
        half[124:] = [np.inf, np.nan, np.nan, np.nan]
    values = np.concatenate([half, -half])
    if kind in (E4M3FNUZ, E5M2FNUZ):
        values[128] = np.nan
    return values


def rounded(x, kind, saturate=True):
    """x to the nearest value of the type, ties to the even code; by search."""
    table = values_of(kind)
    table = table[: len(table) // 2]
    finite = np.where(np.isfinite(table), table, np.nan)
    largest = np.nanmax(finite)
    last = int(np.nanargmax(finite))
    # Where the step beyond the largest value would lead.
    limit = largest + (largest - table[last - 1]) / 2
    result = []
    for value in np.asarray(x, np.float64).ravel():
        size = abs(value)
        beyond = size >= limit if last % 2 else size > limit
        if np.isnan(value):
            nearest = 6.0 if kind == E2M1 else np.nan
        elif beyond and not saturate and kind != E2M1:
            nearest = np.inf if kind == E5M2 else np.nan
        elif size >= largest:
            nearest = largest
        else:
            above = int(np.searchsorted(table[: last + 1], size))
            below = max(above - 1, 0)
            up, down = table[above] - size, size - table[below]
            nearest = table[above] if up < down or (up == down and above % 2 == 0) else table[below]
        result.append(nearest if np.isnan(value) else np.copysign(nearest, value))
    return np.array(result).reshape(np.shape(x))


def hard_values(kind):
    """Values, their midpoints and neighbours of these, what is too large and what is no number."""
    table = values_of(kind)
    table = np.unique(table[np.isfinite(table)])
    middle = (table[1:] + table[:-1]) / 2
    some = np.concatenate([table, middle, np.nextafter(middle.astype(np.float32), np.float32(1e30)),
                           np.nextafter(middle.astype(np.float32), np.float32(-1e30)),
                           [1e6, -1e6, 1e38, 1e-30, -1e-30, 0.0, -0.0, np.inf, -np.inf, np.nan],
                           table.max() * np.array([1.01, 1.03, 1.06, 1.1, 1.2, 1.3])])
    return some.astype(np.float32)


def bits_of(array):
    return np.ascontiguousarray(array).view(np.uint8)


class NarrowTypes(OneNode):
    def answer_of(self, nodes, feed, outputs, initializers=(), opset=26):
        """feed: name -> (element type, array); outputs: name -> element type. What the run says; outputs are in out.npz."""
        folder = Path(self.folder.name)
        graph = helper.make_graph(
            list(nodes), "narrow",
            [helper.make_tensor_value_info(name, kind, array.shape) for name, (kind, array) in feed.items()],
            [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()],
            initializer=list(initializers))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        cases.save(folder / "in.npz", {name: array for name, (_, array) in feed.items()})
        return self.program.ask(f"{folder}/model.onnx {folder}/in.npz {folder}/out.npz")

    def run_nodes(self, nodes, feed, outputs, initializers=(), opset=26):
        """As answer_of, of nodes that run: the outputs by name."""
        answer = self.answer_of(nodes, feed, outputs, initializers, opset)
        self.assertTrue(answer.startswith("ok "), answer)
        with np.load(Path(self.folder.name) / "out.npz") as archive:
            return {name: archive[str(i)] for i, name in enumerate(outputs)}

    def cast(self, x, kind, to, **attributes):
        nodes = [helper.make_node("Cast", ["x"], ["y"], to=to, **attributes)]
        return self.run_nodes(nodes, {"x": (kind, x)}, {"y": to})["y"]

    def assert_values(self, actual, expected):
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(np.signbit(actual[expected == 0]), np.signbit(expected[expected == 0]))

    def test_every_code_has_its_value(self):
        for kind in [*FLOAT8, E2M1]:
            codes = np.arange(len(values_of(kind)), dtype=np.uint8)
            for to in (FLOAT, FLOAT16, DOUBLE):
                self.assert_values(self.cast(codes, kind, to), values_of(kind).astype(NUMPY[to]))

    def test_which_codes_are_no_finite_number(self):
        for kind in FLOAT8:
            codes, values = np.arange(256, dtype=np.uint8), values_of(kind)
            nodes = [helper.make_node("IsNaN", ["x"], ["n"]), helper.make_node("IsInf", ["x"], ["i"]),
                     helper.make_node("IsInf", ["x"], ["p"], detect_negative=0)]
            y = self.run_nodes(nodes, {"x": (kind, codes)}, dict.fromkeys("nip", TensorProto.BOOL))
            for name, right in (("n", np.isnan(values)), ("i", np.isinf(values)), ("p", np.isposinf(values))):
                np.testing.assert_array_equal(y[name], right)

    def test_floats_round_to_the_nearest_value(self):
        for kind in [*FLOAT8, E2M1]:
            x = hard_values(kind)
            for source in (FLOAT, DOUBLE, FLOAT16):
                with np.errstate(over="ignore"):
                    given = x.astype(NUMPY[source])
                for saturate in (1, 0):
                    codes = bits_of(self.cast(given, source, kind, saturate=saturate))
                    expected = rounded(given, kind, bool(saturate))
                    if kind in (E4M3FNUZ, E5M2FNUZ):
                        expected = expected + 0.0
                    self.assert_values(values_of(kind)[codes], expected)

    def test_the_type_of_another_value(self):
        """Of which nothing but the type is read: it has no elements."""
        x = np.array([0.47, 1e6, 1e-7, np.nan, np.inf, -np.inf, -1e-7, -1e6], np.float32)
        for kind in FLOAT8:
            for saturate in (1, 0):
                node = helper.make_node("CastLike", ["x", "like"], ["y"], saturate=saturate)
                y = self.run_nodes([node], {"x": (FLOAT, x), "like": (kind, np.zeros(0, np.uint8))}, {"y": kind})["y"]
                np.testing.assert_array_equal(values_of(kind)[bits_of(y)], rounded(x, kind, bool(saturate)))
        node = helper.make_node("CastLike", ["x", "like"], ["y"])
        feed = {"x": (INT4, np.array([-8, 7], np.int8)), "like": (FLOAT16, np.zeros(0, np.float16))}
        y = self.run_nodes([node], feed, {"y": FLOAT16})["y"]
        np.testing.assert_array_equal(y, np.array([-8, 7], np.float16))

    def test_doubles_round_once(self):
        # Just above a midpoint, by less than float32 can say: through float32 it would round to even.
        x = np.array([1.0625 + 2.0**-40, 1.0625 - 2.0**-40, 1.1875 - 2.0**-40])
        codes = bits_of(self.cast(x, DOUBLE, E4M3FN))
        np.testing.assert_array_equal(values_of(E4M3FN)[codes], [1.125, 1.0, 1.125])

    def test_powers_of_two(self):
        x = np.array([0, 0.124, 0.25, 1.1, -3, 1.4, 1.5, 3e38, 1e-45, np.inf, np.nan], np.float32)
        expected = {"up": [0, 124, 125, 128, 129, 128, 128, 254, 0, 255, 255],
                    "down": [0, 123, 125, 127, 128, 127, 127, 254, 0, 255, 255],
                    "nearest": [0, 124, 125, 127, 129, 127, 128, 254, 0, 255, 255]}
        for mode, codes in expected.items():
            np.testing.assert_array_equal(bits_of(self.cast(x, FLOAT, E8M0, round_mode=mode)), codes, mode)
        back = self.cast(np.array([0, 1, 127, 254, 255], np.uint8), E8M0, FLOAT)
        np.testing.assert_array_equal(back, np.array([2.0**-127, 2.0**-126, 1, 2.0**127, np.nan], np.float32))

    def test_four_bit_integers(self):
        x = np.arange(-9, 16).astype(np.float32)
        np.testing.assert_array_equal(self.cast(x, FLOAT, INT4), ((x.astype(int) + 8) % 16 - 8).astype(np.int8))
        np.testing.assert_array_equal(self.cast(x, FLOAT, UINT4), (x.astype(int) % 16).astype(np.uint8))
        np.testing.assert_array_equal(self.cast(np.array([0.5, 1.5, 2.5, -0.5], np.float32), FLOAT, INT4), [0, 2, 2, 0])
        np.testing.assert_array_equal(self.cast(np.array([7, -8, -7], np.int8), INT4, FLOAT), [7, -8, -7])
        np.testing.assert_array_equal(self.cast(np.array([7, 8, 9], np.uint8), UINT4, FLOAT16), [7, 8, 9])
        np.testing.assert_array_equal(self.cast(np.array([200, 7, 8], np.uint8), UINT8, INT4), [-8, 7, -8])

    def test_two_bit_integers(self):
        x = np.arange(-5, 9).astype(np.float32)
        np.testing.assert_array_equal(self.cast(x, FLOAT, INT2), ((x.astype(int) + 2) % 4 - 2).astype(np.int8))
        np.testing.assert_array_equal(self.cast(x, FLOAT, UINT2), (x.astype(int) % 4).astype(np.uint8))
        np.testing.assert_array_equal(self.cast(np.array([1, -2, -1], np.int8), INT2, FLOAT), [1, -2, -1])
        np.testing.assert_array_equal(self.cast(np.array([1, 2, 3], np.uint8), UINT2, INT8), [1, 2, 3])
        values = np.array([-9, -1, 0.6, 1.4, 9], np.float32)
        feed = {"x": (FLOAT, values), "s": (FLOAT, np.array(1, np.float32))}
        nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=INT2),
                 helper.make_node("DequantizeLinear", ["q", "s"], ["y"])]
        result = self.run_nodes(nodes, feed, {"q": INT2, "y": FLOAT})
        np.testing.assert_array_equal(result["y"], [-2, -1, 1, 1, 1])

    def test_bytes_that_are_no_values_are_refused(self):
        node = helper.make_node("Cast", ["x"], ["y"], to=FLOAT)
        for kind, byte in ((INT4, 9), (INT4, 0x17), (UINT4, 16), (INT2, 2), (INT2, 0xF5), (UINT2, 4), (E2M1, 16)):
            answer = self.answer_of([node], {"x": (kind, np.array([0, byte], np.uint8))}, {"y": FLOAT})
            self.assertIn(f'input "x": element 1 is byte {byte}, no value of', answer)

    def test_moves_keep_the_bytes(self):
        x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4) % 16
        nodes = [helper.make_node("Identity", ["x"], ["i"]), helper.make_node("Transpose", ["i"], ["t"], perm=[2, 0, 1]),
                 helper.make_node("Concat", ["t", "t"], ["c"], axis=1),
                 helper.make_node("Slice", ["c", "begin", "end"], ["s"]), helper.make_node("Reshape", ["s", "shape"], ["y"])]
        constants = [helper.make_tensor("begin", 7, [1], [1]), helper.make_tensor("end", 7, [1], [3]),
                     helper.make_tensor("shape", 7, [2], [4, -1])]
        expected = np.concatenate([x.transpose(2, 0, 1)] * 2, 1)[1:3].reshape(4, -1)
        for kind in (E5M2, E8M0, E2M1, UINT4):
            y = self.run_nodes(nodes, {"x": (kind, x)}, {"y": kind}, constants)["y"]
            np.testing.assert_array_equal(bits_of(y), expected)
        dropped = self.run_nodes([helper.make_node("Dropout", ["x"], ["y"])], {"x": (E5M2, x)}, {"y": E5M2}, opset=22)["y"]
        np.testing.assert_array_equal(bits_of(dropped), x)

    def test_constants(self):
        packed = bytes([0x21, 0xF8, 0x07])
        raw = helper.make_tensor("raw", FLOAT, [5], np.zeros(5, np.float32))
        raw.Clear()
        raw.name, raw.data_type, raw.raw_data = "raw", INT4, packed
        raw.dims.append(5)
        typed = TensorProto(name="typed", data_type=UINT4, int32_data=[0x21, 0xF8, 0x07])
        typed.dims.append(5)
        float8 = TensorProto(name="float8", data_type=E4M3FN, int32_data=[0x38, 0xC0])
        float8.dims.append(2)
        two_bits = TensorProto(name="two_bits", data_type=INT2, raw_data=bytes([0b11100100, 0b01]))
        two_bits.dims.append(5)
        names = ["raw", "typed", "float8", "two_bits"]
        nodes = [helper.make_node("Cast", [name], [f"{name}_y"], to=FLOAT) for name in names]
        nodes.append(helper.make_node("Neg", ["x"], ["z"]))
        outputs = {**{f"{name}_y": FLOAT for name in names}, "z": FLOAT}
        y = self.run_nodes(nodes, {"x": (FLOAT, np.ones(1, np.float32))}, outputs, [raw, typed, float8, two_bits])
        np.testing.assert_array_equal(y["raw_y"], [1, 2, -8, -1, 7])
        np.testing.assert_array_equal(y["typed_y"], [1, 2, 8, 15, 7])
        np.testing.assert_array_equal(y["float8_y"], [1, -2])
        np.testing.assert_array_equal(y["two_bits_y"], [0, 1, -2, -1, 1])

    def test_quantization(self):
        x = RANDOM.standard_normal((3, 8)).astype(np.float32) * 5
        scale = np.array([0.5, 0.25, 2], np.float32)
        feed = {"x": (FLOAT, x), "s": (FLOAT, scale)}
        for kind in (E4M3FN, E5M2, E2M1):
            nodes = [helper.make_node("QuantizeLinear", ["x", "s"], ["q"], axis=0, output_dtype=kind),
                     helper.make_node("DequantizeLinear", ["q", "s"], ["y"], axis=0)]
            expected = rounded(x / scale[:, None], kind) * scale[:, None]
            result = self.run_nodes(nodes, feed, {"q": kind, "y": FLOAT})
            np.testing.assert_array_equal(result["y"], expected.astype(np.float32))

    def test_blocked_quantization(self):
        x = RANDOM.standard_normal((2, 7)).astype(np.float32) * 3
        scale = np.array([[0.5, 1, 0.25], [2, 0.125, 1]], np.float32)
        zero = np.array([[1, 0, -2], [3, -8, 7]], np.int8)
        nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1, block_size=3),
                 helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1, block_size=3)]
        wide, shift = scale.repeat(3, 1)[:, :7], zero.repeat(3, 1)[:, :7].astype(np.int32)
        codes = np.clip(np.rint(x / wide).astype(np.int32) + shift, -8, 7)
        feed = {"x": (FLOAT, x), "s": (FLOAT, scale), "z": (INT4, zero)}
        result = self.run_nodes(nodes, feed, {"q": INT4, "y": FLOAT})
        np.testing.assert_array_equal(result["q"], codes)
        np.testing.assert_array_equal(result["y"], (codes - shift) * wide)


if __name__ == "__main__":
    unittest.main()
