"""Opset 27: LinearAttention, CausalConvWithState and Range of float16 and bfloat16: one node each, values by numpy from the standard's
text."""

import unittest

import numpy as np
from onnx import TensorProto, helper

from one_node import RANDOM, OneNode, floats


def heads_of(x, heads):
    """[batch, steps, heads * columns] as [batch, heads, steps, columns] in float64."""
    batch, steps, columns = x.shape
    return x.astype(np.float64).reshape(batch, steps, heads, columns // heads).transpose(0, 2, 1, 3)


def linear_attention(query, key, value, state, decay, beta, queries, heads, rule, scale=0.0, erase=None):
    """The recurrence, head by head and step by step: the output and the last state."""
    q, k, v = heads_of(query, queries), heads_of(key, heads), heads_of(value, heads)
    batch, _, steps, keys = q.shape
    scale = scale or keys**-0.5
    last = np.zeros((batch, heads, keys, v.shape[3])) if state is None else state.astype(np.float64)
    out = np.zeros((batch, steps, queries, v.shape[3]))
    for b in range(batch):
        for h in range(heads):
            kept = last[b, h]
            for t in range(steps):
                if "gated" in rule:
                    g = heads_of(decay, heads)[b, h, t]
                    kept = np.exp(g)[:, None] * kept
                added = v[b, h, t]
                if "delta" in rule:
                    rate = beta[b, t, 0 if beta.shape[2] == 1 else h]
                    asked = k[b, h, t] if erase is None else k[b, h, t] * heads_of(erase, heads)[b, h, t]
                    added = rate * (added - kept.T @ asked)
                kept = kept + np.outer(k[b, h, t], added)
                for one in range(queries // heads):
                    at = h * (queries // heads) + one
                    out[b, t, at] = scale * (q[b, at, t] @ kept)
            last[b, h] = kept
    return out.reshape(batch, steps, -1), last


def causal_conv(x, weight, bias, past, silu):
    batch, channels, steps = x.shape
    taps = weight.shape[2]
    past = np.zeros((batch, channels, taps - 1), x.dtype) if past is None else past
    behind = np.concatenate([past, x], 2)
    y = np.stack([(behind[:, :, t:t + taps].astype(np.float64) * weight[:, 0]).sum(2) for t in range(steps)], 2)
    y = y if bias is None else y + bias[:, None]
    return y / (1 + np.exp(-y)) if silu else y, behind[:, :, steps:]


class StatefulOperators(OneNode):
    def attend(self, rule, batch, steps, queries, heads, keys, values, *, state=True, scalar=False, shared=False, erase=False,
               dtype=np.float32, free=None, buckets="", **attributes):
        query, key, value = (floats(batch, steps, width).astype(dtype) for width in (queries * keys, heads * keys, heads * values))
        key = (key / np.sqrt(keys)).astype(dtype)
        past = floats(batch, heads, keys, values) if state else None
        decay = -np.abs(floats(batch, steps, heads if scalar else heads * keys)).astype(dtype) if "gated" in rule else None
        beta = RANDOM.random((batch, steps, 1 if shared else heads)).astype(dtype) if "delta" in rule else None
        gate = RANDOM.random((batch, steps, heads * keys)).astype(dtype) if erase else None
        out, last = linear_attention(query, key, value, past, decay, beta, queries, heads, rule, attributes.get("scale", 0.0), gate)
        digits = 2 if dtype == np.float16 else 4
        state_type = np.float32 if state else dtype
        self.check("LinearAttention", 27, [query, key, value, past, decay, beta, gate], [out.astype(dtype), last.astype(state_type)],
                   digits=digits, free=free, buckets=buckets, q_num_heads=queries, kv_num_heads=heads, update_rule=rule, **attributes)

    def test_rules(self):
        for rule in ("linear", "gated", "delta", "gated_delta"):
            self.attend(rule, 2, 5, 4, 2, 3, 7)
            self.attend(rule, 1, 1, 2, 2, 4, 4)

    def test_forms_of_the_operands(self):
        self.attend("gated", 2, 4, 2, 1, 3, 5, scalar=True, state=False)
        self.attend("gated_delta", 2, 4, 3, 3, 2, 5, shared=True, scale=0.5)
        self.attend("gated_delta", 1, 6, 2, 2, 4, 3, dtype=np.float16)
        self.attend("linear", 1, 3, 2, 2, 4, 3, dtype=np.float16, state=False)

    def test_a_gate_of_what_is_erased(self):
        self.attend("delta", 2, 5, 4, 2, 3, 7, erase=True)
        self.attend("gated_delta", 2, 4, 3, 3, 2, 5, erase=True, shared=True)
        self.attend("gated_delta", 1, 70, 2, 1, 4, 4, erase=True, dtype=np.float16)

    def test_many_steps(self):
        self.attend("gated_delta", 1, 400, 2, 1, 4, 4)

    def test_free_steps(self):
        free = {i: {0: "N", 1: "T"} for i in (0, 1, 2, 4, 5)}
        free[3] = {0: "N"}
        for batch, steps in ((1, 1), (2, 7), (3, 40)):
            self.attend("gated_delta", batch, steps, 4, 2, 3, 5, free=free, buckets="N=1;T=16")

    def test_operands_that_do_not_fit(self):
        x = floats(1, 2, 6)
        for columns, attributes, said in ((6, {"q_num_heads": 4, "kv_num_heads": 2}, "do not divide"),
                                          (4, {"q_num_heads": 2, "kv_num_heads": 2}, "key has shape"),
                                          (6, {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "other"}, "update_rule")):
            with self.assertRaises(AssertionError) as caught:
                self.check("LinearAttention", 27, [x, x[:, :, :columns], x, None, x, x], [x, None], **attributes)
            self.assertIn(said, str(caught.exception))

        one, gates = np.array(1, np.float32), {"q_num_heads": 2, "kv_num_heads": 2}
        for decay, beta, said in ((one, floats(1, 2, 2), r"decay has shape \[\]"), (floats(1, 2, 2), one, r"beta has shape \[\]"),
                                  (floats(1, 2, 2), None, "operand 5 is missing")):
            with self.assertRaises(AssertionError) as caught:
                self.check("LinearAttention", 27, [x, x, x, None, decay, beta], [x, None], **gates)
            self.assertRegex(str(caught.exception), said)
        for rule, gate, said in (("linear", x, "erase_gate belongs to the delta rules"), ("delta", x[:, :, :2], "erase_gate has shape")):
            with self.assertRaises(AssertionError) as caught:
                self.check("LinearAttention", 27, [x, x, x, None, None, x[:, :, :2], gate], [x, None], update_rule=rule, **gates)
            self.assertIn(said, str(caught.exception))
        for weight in (np.array(1, np.float32), floats(3, 1, 2), floats(2, 2, 2), floats(2, 1, 0)):
            with self.assertRaises(AssertionError) as caught:
                self.check("CausalConvWithState", 27, [x, weight], [x], constants=(1,))
            self.assertIn("does not fit an input of shape", str(caught.exception))
        with self.assertRaises(AssertionError) as caught:
            self.check("CausalConvWithState", 27, [x.astype(np.int64), floats(2, 1, 2)], [x])
        self.assertIn("operand 0 is i64", str(caught.exception))

    def test_causal_convolution(self):
        for taps, steps, bias, past, activation in ((4, 6, True, True, "silu"), (4, 2, False, True, "none"), (3, 5, True, False, "swish"),
                                                    (1, 4, False, False, "none"), (5, 1, True, True, None)):
            x, weight = floats(2, 6, steps), floats(6, 1, taps)
            b, state = floats(6) if bias else None, floats(2, 6, taps - 1) if past else None
            y, last = causal_conv(x, weight, b, state, activation in ("silu", "swish"))
            attributes = {} if activation is None else {"activation": activation}
            self.check("CausalConvWithState", 27, [x, weight, b, state], [y.astype(np.float32), last], **attributes)

    def test_causal_convolution_of_float16_and_of_any_length(self):
        x, weight = floats(2, 4, 5).astype(np.float16), floats(4, 1, 3).astype(np.float16)
        y, last = causal_conv(x, weight, None, None, True)
        self.check("CausalConvWithState", 27, [x, weight], [y.astype(np.float16), last], digits=2, activation="silu")
        # Far below zero the activation shows how its operand was rounded.
        x, weight = -2 * RANDOM.random((2, 4, 40)).astype(np.float16), floats(4, 1, 4).astype(np.float16) ** 2
        y, last = causal_conv(x, weight, None, None, False)
        y = y.astype(np.float16).astype(np.float64)
        self.check("CausalConvWithState", 27, [x, weight], [(y / (1 + np.exp(-y))).astype(np.float16), last], digits=6, activation="silu")
        for steps in (1, 9, 70):
            x, weight, state = floats(1, 4, steps), floats(4, 1, 4), floats(1, 4, 3)
            y, last = causal_conv(x, weight, None, state, False)
            self.check("CausalConvWithState", 27, [x, weight, None, state], [y.astype(np.float32), last], free={0: {2: "T"}},
                       buckets="T=16", constants=(1,))

    def test_ranges(self):
        start, limit, delta = (np.array(value, np.float16) for value in (1000, 3000, 0.5))
        right = (1000 + np.arange(4000, dtype=np.float32) * np.float32(0.5)).astype(np.float16)
        self.check("Range", 27, [start, limit, delta], [right], constants=(0, 1, 2))
        cast = {name: helper.make_node("Cast", [name], [f"{name}_b"], to=TensorProto.BFLOAT16) for name in "abc"}
        nodes = [*cast.values(), helper.make_node("Range", ["a_b", "b_b", "c_b"], ["r"]), helper.make_node("Cast", ["r"], ["y"], to=1)]
        feed = {name: np.array(value, np.float32) for name, value in zip("abc", (1, 5, 1.5))}
        graph = helper.make_graph(nodes, "range", [helper.make_tensor_value_info(name, 1, []) for name in feed],
                                  [helper.make_tensor_value_info("y", 1, None)])
        self.run_model(graph, 27, feed, lambda answer, outputs: np.testing.assert_array_equal(outputs["0"], [1, 2.5, 4], answer))


if __name__ == "__main__":
    unittest.main()
