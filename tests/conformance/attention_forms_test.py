"""Attention, RotaryEmbedding and TensorScatter of opsets 23 and 24 in their forms, with values by numpy from the standard's
text."""

import unittest

import numpy as np

from one_node import RANDOM, OneNode, floats

INFINITY = np.float32(np.inf)


def softmax(x):
    """Of the last axis; a row of nothing but minus infinity is nothing."""
    largest = x.max(-1, keepdims=True)
    powers = np.where(np.isneginf(largest), 0, np.exp(x - np.where(np.isneginf(largest), 0, largest)))
    return powers / np.maximum(powers.sum(-1, keepdims=True), 1e-300)


def heads_of(x, heads):
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)


def attention(q, k, v, mask=None, past=None, valid=None, causal=False, scale=None, softcap=0.0, mode=0, window=-1):
    """Y, keys, values and the scores of `mode` for operands with an axis of heads."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    if past is not None:
        k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    batch, heads, queries, width = q.shape
    keys = k.shape[2]
    bias = np.zeros((batch, heads, queries, keys))
    if mask is not None:
        added = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)
        added = np.concatenate([added, np.full((*added.shape[:-1], keys - added.shape[-1]), -np.inf)], -1)
        bias = bias + added
    for entry in range(batch):
        seen = keys if valid is None else int(valid[entry])
        before = past[0].shape[2] if past is not None else 0 if valid is None else seen - queries
        for i in range(queries):
            for j in range(keys):
                hidden = j >= seen or ((causal or window > 0) and j > i + before)
                if hidden or (window > 0 and i + before - j >= window):
                    bias[entry, :, i, j] = -np.inf
    repeats = heads // k.shape[1]
    stages = [q @ np.repeat(k, repeats, 1).transpose(0, 1, 3, 2) * (1 / np.sqrt(width) if scale is None else scale)]
    stages.append(softcap * np.tanh(stages[0] / softcap) if softcap else stages[0])
    stages.append(stages[1] + bias)
    stages.append(softmax(stages[2]))
    y = stages[3] @ np.repeat(v, repeats, 1)
    return [x.astype(np.float32) for x in (y, k, v, stages[mode])]


def rotated(x, cosines, sines, turned, interleaved):
    """x [B,heads,S,D], angles [B,S,turned/2]."""
    part, rest = x[..., :turned].astype(np.float64), x[..., turned:]
    first, second = (part[..., ::2], part[..., 1::2]) if interleaved else np.split(part, 2, -1)
    cosines, sines = cosines[:, None], sines[:, None]
    real, imaginary = cosines * first - sines * second, sines * first + cosines * second
    part = np.stack([real, imaginary], -1).reshape(part.shape) if interleaved else np.concatenate([real, imaginary], -1)
    return np.concatenate([part, rest], -1).astype(np.float32)


class AttentionForms(OneNode):
    def setUp(self):
        self.q, self.k, self.v = floats(2, 6, 4, 8), floats(2, 2, 5, 8), floats(2, 2, 5, 6)
        self.past = floats(2, 2, 3, 8), floats(2, 2, 3, 6)

    def check_form(self, mask=None, past=None, valid=None, outputs=1, opset=24, mode=0, causal=0, **attributes):
        own = dict(attributes)
        own["window"] = own.pop("local_window_size", -1)
        expected = attention(self.q, self.k, self.v, mask, past, valid, causal=bool(causal), mode=mode, **own)
        chosen = [array if i in ((0,) if outputs == 1 else outputs) else None for i, array in enumerate(expected)]
        self.check("Attention", opset, [self.q, self.k, self.v, mask, *(past or (None, None)), valid], chosen,
                   digits=4, is_causal=causal, qk_matmul_output_mode=mode, **attributes)

    def test_masks_of_each_rank(self):
        for shape in [(4, 5), (1, 5), (6, 4, 5), (2, 1, 4, 5), (2, 6, 4, 5)]:
            with self.subTest(shape=shape):
                self.check_form(floats(*shape))
                self.check_form(RANDOM.integers(0, 2, shape).astype(bool) | (np.arange(5) == 2))

    def test_heads_side_by_side(self):
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (self.q, self.k, self.v))
        y, keys, values, _ = attention(self.q, self.k, self.v)
        self.check("Attention", 23, [q, k, v], [y.transpose(0, 2, 1, 3).reshape(2, 4, -1), keys, values], q_num_heads=6,
                   kv_num_heads=2)
        mask = RANDOM.integers(0, 2, (2, 6, 4, 5)).astype(bool)
        mask[1, 3, 2] = False
        y = attention(self.q, self.k, self.v, mask)[0]
        self.check("Attention", 23, [q, k, v, mask], [y.transpose(0, 2, 1, 3).reshape(2, 4, -1)], q_num_heads=6,
                   kv_num_heads=2)

    def test_a_past(self):
        mask = floats(4, 8)
        for causal in (0, 1):
            self.check_form(mask, self.past, causal=causal, outputs=(0, 1, 2))
            self.check_form(None, self.past, causal=causal, outputs=(0, 1, 2), opset=23)
        self.check_form(RANDOM.integers(0, 2, (2, 1, 4, 8)).astype(bool) | (np.arange(8) == 0), self.past, causal=1)

    def test_scores(self):
        mask = floats(2, 1, 4, 5)
        for mode in range(4):
            self.check_form(mask, outputs=(0, 1, 2, 3), mode=mode, softcap=1.5)
            self.check_form(mask, outputs=(0, 3), mode=mode, causal=1, scale=0.3)
            self.check_form(None, self.past, outputs=(0, 3), mode=mode)

    def test_short_masks_and_valid_lengths(self):
        self.check_form(floats(2, 6, 4, 3))
        self.check_form(floats(4, 4) > 0, valid=np.array([4, 2], np.int64))
        self.check_form(None, valid=np.array([5, 1], np.int64))
        mask, lengths = floats(2, 4, 5), np.array([3, 5], np.int64)
        right = attention(self.q, self.k, self.v, mask[:, None], valid=lengths)[0]
        self.check("Attention", 24, [self.q, self.k, self.v, mask, None, None, lengths], [right], digits=4)
        self.check_form(None, valid=np.array([5, 4], np.int64), causal=1)

    def test_queries_that_see_no_key(self):
        mask = np.ones((4, 5), bool)
        mask[2] = False
        for mode in (2, 3):
            self.check_form(mask, outputs=(0, 3), mode=mode)
        each = np.ones((2, 6, 4, 5), bool)
        each[0, 1, 0] = each[1, 5, 3] = False
        self.check_form(each)
        added = np.zeros((4, 5), np.float32)
        added[1] = -INFINITY
        self.check_form(added, softcap=2.0)
        self.check_form(None, valid=np.array([2, 5], np.int64), causal=1)

    def test_windows(self):
        for window in (1, 3):
            self.check_form(None, causal=1, opset=26, local_window_size=window)
            self.check_form(floats(4, 8), self.past, causal=1, opset=26, local_window_size=window)

    def test_half_precision(self):
        q, k, v = (x.astype(np.float16) for x in (self.q, self.k, self.v))
        self.check("Attention", 23, [q, k, v], [attention(q, k, v)[0].astype(np.float16)], digits=1.7)
        self.check("Attention", 23, [q, k, v], [attention(q, k, v)[0].astype(np.float16)], digits=1.7, softmax_precision=1)

    def test_half_precision_of_large_products(self):
        # Unscaled, the products are past float16's largest number; each of their roundings would be seen.
        q, k, v = ((floats(2, 2, length, width) + near).astype(np.float16) for length, width, near in ((4, 128, 30), (6, 128, 30), (6, 16, 0)))
        right = attention(q, k, v, scale=0.001)[0].astype(np.float16)
        self.check("Attention", 24, [q, k, v], [right], digits=3, scale=0.001)
        for mode in (1, 2, 3):
            capped = attention(q, k, v, scale=0.001, softcap=20.0, mode=mode)
            self.check("Attention", 24, [q, k, v], [capped[0].astype(np.float16), None, None, capped[3].astype(np.float16)], digits=3,
                       scale=0.001, softcap=20.0, qk_matmul_output_mode=mode)
        flat = [x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (q, k, v, right)]
        self.check("Attention", 24, flat[:3], flat[3:], digits=3, scale=0.001, q_num_heads=2, kv_num_heads=2)
        alike = [x[..., :16] for x in (q, k, v)]
        for mask in (None, floats(4, 6).astype(np.float16)):
            right = attention(*alike, mask, scale=0.01)[0].astype(np.float16)
            flat = [x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (*alike, right)]
            self.check("Attention", 24, [*flat[:3], mask], flat[3:], digits=3, scale=0.01, q_num_heads=2, kv_num_heads=2)

    def check_free(self, batch, new, past, length, buckets, dtype=np.float32):
        """A decoder whose lengths are all named; the mask is `length` long."""
        q, k, v = (floats(batch, heads, new, 16).astype(dtype) for heads in (4, 2, 2))
        kept = [floats(batch, 2, past, 16).astype(dtype) for _ in range(2)]
        mask = floats(batch, 1, new, length).astype(dtype)
        right = [array.astype(dtype) for array in attention(q, k, v, mask, kept, causal=True)[:3]]
        free = {i: {0: "B", 2: "S"} for i in range(3)} | {3: {0: "B", 2: "S", 3: "T"}} | {i: {0: "B", 2: "P"} for i in (4, 5)}
        self.check("Attention", 24, [q, k, v, mask, *kept], right, digits=3, is_causal=1, free=free, buckets=buckets)

    def test_free_lengths(self):
        for dtype in (np.float32, np.float16):
            for batch, new, past in ((1, 4, 8), (2, 3, 7), (1, 1, 40), (1, 5, 0)):
                self.check_free(batch, new, past, new + past, "B=1;S=4;P=8;T=12", dtype)

    def test_free_masks_that_are_shorter(self):
        for new, past, length in ((4, 64, 3), (6, 70, 9), (2, 33, 4)):
            self.check_free(1, new, past, length, "B=1;S=4;P=64;T=3")

    def test_rotary_embedding(self):
        x = floats(2, 3, 4, 8)
        for turned in (0, 4):
            half = (turned or 8) // 2
            cosines, sines = floats(50, half), floats(50, half)
            ids = RANDOM.integers(0, 50, (2, 4)).astype(np.int64)
            for interleaved in (0, 1):
                options = {"interleaved": interleaved, "rotary_embedding_dim": turned}
                right = rotated(x, cosines[ids], sines[ids], turned or 8, interleaved)
                self.check("RotaryEmbedding", 23, [x, cosines, sines, ids], [right], **options)
                self.check("RotaryEmbedding", 23, [x, cosines[ids], sines[ids]], [right], **options)
                flat = x.transpose(0, 2, 1, 3).reshape(2, 4, 24)
                self.check("RotaryEmbedding", 23, [flat, cosines, sines, ids],
                           [right.transpose(0, 2, 1, 3).reshape(2, 4, 24)], num_heads=3, **options)

    def test_tensor_scatter(self):
        past, update = floats(3, 2, 6, 4), floats(3, 2, 2, 4)
        starts = np.array([4, 0, 3], np.int64)
        linear, circular = past.copy(), past.copy()
        late = np.array([5, 0, 3], np.int64)
        for entry in range(3):
            for i in range(2):
                linear[entry, :, starts[entry] + i] = update[entry, :, i]
                circular[entry, :, (late[entry] + i) % 6] = update[entry, :, i]
        self.check("TensorScatter", 24, [past, update, starts], [linear])
        self.check("TensorScatter", 24, [past, update, late], [circular], mode="circular")
        first = past.copy()
        first[:, :, :2] = update
        self.check("TensorScatter", 24, [past, update], [first], axis=2)
        rows, row = floats(2, 5, 3), floats(2, 1, 3)
        moved = rows.copy()
        moved[0, 4], moved[1, 2] = row[0, 0], row[1, 0]
        self.check("TensorScatter", 24, [rows, row, np.array([4, 2], np.int64)], [moved], axis=1)


if __name__ == "__main__":
    unittest.main()
