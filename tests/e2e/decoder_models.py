"""Decoders as exporters write them, with loops: texts of models, their weights, and feeds of several sizes."""

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser

RNG = np.random.default_rng(5)


def weights(*shape):
    return (RNG.standard_normal(shape) * 1.2).astype(np.float32)


# Tokens until the last of them, with the scores of each.
GREEDY_EOS = """g (int64[1,1] bos, float[1,8] h0, int64 maxlen) => (int64[1,L] out, float[S,1,12] all) {
 one = Constant<value = int64[1] {1}>()
 true = Constant<value = bool {1}>()
 out, hN, tokN, all = Loop <body = b (int64 it, bool c, int64[1,k] seq, float[1,8] h, int64[1,1] tok)
    => (bool cn, int64[1,k1] seqn, float[1,8] hn, int64[1,1] tokn, float[1,12] sc) {
   ax = Constant<value = int64[1] {1}>()
   tk = Squeeze(tok, ax)
   e = Gather<axis=0>(E, tk)
   eh = Concat<axis=1>(e, h)
   hh = MatMul(eh, Wh)
   hn = Tanh(hh)
   sc = MatMul(hn, Wo)
   tokn = ArgMax<axis=1, keepdims=1>(sc)
   seqn = Concat<axis=1>(seq, tokn)
   eos = Constant<value = int64 {3}>()
   t0 = Squeeze(tokn)
   is = Equal(t0, eos)
   cn = Not(is)
 }> (maxlen, true, bos, h0, bos)
}"""

# Three beams, which are put in another order in each step.
BEAM = """g (int64[1,3] start, float[3,6] h0, int64 n) => (int64[3,L] seqs, float[3] scores) {
 z = Constant<value = float[3] {0,-1000,-1000}>()
 a0 = Constant<value = int64[2] {1,0}>()
 st = Transpose<perm=[1,0]>(start)
 true = Constant<value = bool {1}>()
 seqs, scores, hN = Loop <body = b (int64 it, bool c, int64[3,k] seq, float[3] score, float[3,6] h)
    => (bool cn, int64[3,k1] seqn, float[3] scoren, float[3,6] hn) {
   m1 = Constant<value = int64[1] {-1}>()
   mx = Constant<value = int64[1] {9223372036854775807}>()
   one = Constant<value = int64[1] {1}>()
   last = Slice(seq, m1, mx, one)
   ls = Squeeze(last, one)
   e = Gather<axis=0>(E, ls)
   hx = Add(e, h)
   hw = MatMul(hx, Wh)
   ht = Tanh(hw)
   lg = MatMul(ht, Wo)
   lp = LogSoftmax<axis=1>(lg)
   su = Unsqueeze(score, one)
   tot = Add(lp, su)
   flat = Reshape(tot, m1)
   k = Constant<value = int64[1] {3}>()
   scoren, idx = TopK<axis=0, largest=1, sorted=1>(flat, k)
   V = Constant<value = int64 {10}>()
   beam = Div(idx, V)
   tok = Mod(idx, V)
   sg = Gather<axis=0>(seq, beam)
   tu = Unsqueeze(tok, one)
   seqn = Concat<axis=1>(sg, tu)
   hn = Gather<axis=0>(ht, beam)
   bt = Constant<value = int64 {4}>()
   t0 = Gather<axis=0>(tok, z0)
   eq = Equal(t0, bt)
   cn = Not(eq)
 }> (n, true, st, z, h0)
}"""

# Up to three symbols a frame, until there is none.
RNNT = """g (float[T,8] enc) => (int64[U] out, int64 cnt) {
 T0 = Shape<start=0,end=1>(enc)
 T = Squeeze(T0)
 true = Constant<value = bool {1}>()
 hyp0 = Constant<value = int64[1] {0}>()
 s0 = Constant<value = float[1,8] {0,0,0,0,0,0,0,0}>()
 hyp, st = Loop <body = b (int64 t, bool c, int64[k] hyp_in, float[1,8] s_in)
    => (bool c_out, int64[k1] hyp_o, float[1,8] s_o) {
   fr = Gather<axis=0>(enc, t)
   three = Constant<value = int64 {3}>()
   c1 = Identity(true)
   _, hyp_o, s_o = Loop <body = ib (int64 i, bool cc, bool blankin, int64[q] h2, float[1,8] s2)
    => (bool go, bool blank, int64[q1] h3, float[1,8] s3) {
      j = Add(fr, s2)
      jt = Tanh(j)
      lg = MatMul(jt, Wj)
      am = ArgMax<axis=1, keepdims=0>(lg)
      z = Constant<value = int64[1] {0}>()
      bq = Equal(am, z)
      blank = Squeeze(bq)
      go = Not(blank)
      h3, s3 = If <then_branch = tb () => (int64[q2] ha, float[1,8] sa) { ha = Identity(h2)
 sa = Identity(s2) }, else_branch = eb () => (int64[q3] hb, float[1,8] sb) { hb = Concat<axis=0>(h2, am)
 e = Gather<axis=0>(E, am)
 es = Add(e, s2)
 sb = Tanh(es) }> (blank)
   }> (three, c1, c1, hyp_in, s_in)
   c_out = Identity(c)
 }> (T, true, hyp0, s0)
 one = Constant<value = int64[1] {1}>()
 mx = Constant<value = int64[1] {9223372036854775807}>()
 out = Slice(hyp, one, mx)
 sh = Shape(out)
 cnt = Squeeze(sh)
}"""

# Runs of labels collapsed.
CTC = """g (float[T,7] logits) => (int64[U] out) {
 am = ArgMax<axis=1, keepdims=0>(logits)
 T0 = Shape(am)
 T = Squeeze(T0)
 true = Constant<value = bool {1}>()
 
 prev0 = Constant<value = int64 {0}>()
 out, pN = Loop <body = b (int64 t, bool c, int64[k] acc, int64 prev) => (bool c_out, int64[k1] acc_o, int64 cur) {
   cur = Gather<axis=0>(am, t)
   z = Constant<value = int64 {0}>()
   same = Equal(cur, prev)
   bl = Equal(cur, z)
   skip = Or(same, bl)
   acc_o = If <then_branch = tb ()
    => (int64[q] a) { a = Identity(acc) }
    , else_branch = eb ()
    => (int64[q] bq) { m1 = Constant<value = int64[1] {-1}>()
 cu = Reshape(cur, m1)
 bq = Concat<axis=0>(acc, cu) }> (skip)
   c_out = Identity(c)
 }> (T, true, e0, prev0)
}"""

# A cache of keys and values, until data says so.
KV_DECODE = """g (int64[1,P] prompt, int64 limit) => (int64[1,L] ids) {
 emb = Gather<axis=0>(E, prompt)
 k0 = MatMul(emb, Wk)
 v0 = MatMul(emb, Wv)
 true = Constant<value = bool {1}>()
 empty =  Constant<value = int64 {9223372036854775807}>()
 ids, kN, vN = Loop <body = b (int64 it, bool c, int64[1,l] seq, float[1,p,8] k, float[1,p,8] v)
    => (bool cn, int64[1,l1] seqn, float[1,p1,8] kn, float[1,p1,8] vn) {
   one = Constant<value = int64[1] {1}>()
   m1 = Constant<value = int64[1] {-1}>()
   mx = Constant<value = int64[1] {9223372036854775807}>()
   last = Slice(seq, m1, mx, one)
   e = Gather<axis=0>(E, last)
   q = MatMul(e, Wq)
   kt = Transpose<perm=[0,2,1]>(k)
   s = MatMul(q, kt)
   a = Softmax<axis=2>(s)
   o = MatMul(a, v)
   r = Add(o, e)
   lg = MatMul(r, Wo)
   t = ArgMax<axis=2, keepdims=0>(lg)
   seqn = Concat<axis=1>(seq, t)
   e2 = Gather<axis=0>(E, t)
   k2 = MatMul(e2, Wk)
   v2 = MatMul(e2, Wv)
   kn = Concat<axis=1>(k, k2)
   vn = Concat<axis=1>(v, v2)
   sh = Shape(seqn)
   i1 = Constant<value = int64 {1}>()
   ln = Gather<axis=0>(sh, i1)
   lt = Less(ln, limit)
   ts = Squeeze(t)
   eos = Constant<value = int64 {2}>()
   ne = Equal(ts, eos)
   nn = Not(ne)
   cn = And(lt, nn)
 }> (empty, true, prompt, k0, v0)
}"""


# A step of a language model as exporters for com.microsoft write it: its lengths come from the mask alone.
LANGUAGE_MODEL = """g (int64[B,S] ids, int64[B,T] mask, float[B,2,P,16] past_k, float[B,2,P,16] past_v)
    => (float[B,S,11] logits, float[B,2,T,16] present_k, float[B,2,T,16] present_v) {
 ax = Constant<value = int64[1] {1}>()
 i1 = Constant<value = int64 {1}>()
 kept = ReduceSum<keepdims=0>(mask, ax)
 less = Sub(kept, i1)
 lens = Cast<to=6>(less)
 sh = Shape(mask)
 t = Gather<axis=0>(sh, i1)
 total = Cast<to=6>(t)
 e = Gather<axis=0>(E, ids)
 q = MatMul(e, Wq)
 k = MatMul(e, Wk)
 v = MatMul(e, Wv)
 a, present_k, present_v = com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2, do_rotary=1>
    (q, k, v, past_k, past_v, lens, total, cosines, sines)
 o = MatMul(a, Wo)
 r = Add(o, e)
 logits = MatMul(r, Wl)
}"""
ANGLES = np.arange(64)[:, None] / 100.0 ** np.arange(0, 1, 0.125)


def step(batch, tokens, past, total=None):
    """Inputs of a step of the language model; `total`: valid keys, of a cache that is longer."""
    return dict(ids=RNG.integers(0, 11, (batch, tokens)), mask=np.ones((batch, total or tokens + past), np.int64),
                past_k=weights(batch, 2, past, 16), past_v=weights(batch, 2, past, 16))


def model(text, constants):
    opsets = '"": 17, "com.microsoft": 1'
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: [{opsets}]>\n' + text)
    made.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in constants.items())
    return made.SerializeToString()


LANGUAGE_MODEL_WEIGHTS = {"E": weights(11, 64), "Wq": weights(64, 64) / 8, "Wk": weights(64, 32) / 8, "Wv": weights(64, 32),
    "Wo": weights(64, 64), "Wl": weights(64, 11), "cosines": np.cos(ANGLES).astype(np.float32),
    "sines": np.sin(ANGLES).astype(np.float32)}

# Text, weights, --input-shapes, feeds.
DECODERS = {
    "greedy_eos": (GREEDY_EOS, {"E": weights(12, 4), "Wh": weights(12, 8), "Wo": weights(8, 12)}, "",
        [dict(bos=np.array([[i]]), h0=weights(1, 8), maxlen=np.int64(m)) for i, m in ((1, 10), (2, 100), (5, 3), (7, 90))]),
    "beam": (BEAM, {"E": weights(10, 6), "Wh": weights(6, 6), "Wo": weights(6, 10), "z0": np.array(0)}, "",
        [dict(start=np.array([[i, i, i]]), h0=weights(3, 6), n=np.int64(n)) for i, n in ((0, 5), (1, 30), (2, 80))]),
    "rnnt": (RNNT, {"E": weights(6, 8), "Wj": weights(8, 6)}, "enc:[T,8]",
        [dict(enc=weights(n, 8)) for n in (1, 2, 5, 13, 40)]),
    "ctc": (CTC, {"e0": np.zeros(0, np.int64)}, "logits:[T,7]",
        [dict(logits=weights(n, 7)) for n in (1, 2, 5, 13, 40, 100)]),
    "kv_decode": (KV_DECODE, {"E": weights(11, 8), "Wk": weights(8, 8), "Wv": weights(8, 8), "Wq": weights(8, 8), "Wo": weights(8, 11)},
        "prompt:[1,P]",
        [dict(prompt=RNG.integers(0, 11, (1, n)), limit=np.int64(m)) for n, m in ((1, 5), (3, 40), (9, 90))]),
    "language_model": (LANGUAGE_MODEL, LANGUAGE_MODEL_WEIGHTS, "ids:[B,S] mask:[B,T] past_k:[B,2,P,16] past_v:[B,2,P,16]",
        [step(1, 7, 0), step(1, 1, 7), step(3, 1, 12), step(2, 5, 0), step(1, 4, 9)]),
    "language_model_tokens": (LANGUAGE_MODEL, LANGUAGE_MODEL_WEIGHTS, "ids:[B,1] mask:[B,T] past_k:[B,2,P,16] past_v:[B,2,P,16]",
        [step(1, 1, 7), step(3, 1, 12)]),
    "language_model_full_cache": (LANGUAGE_MODEL, LANGUAGE_MODEL_WEIGHTS, "ids:[B,S] mask:[B,T] past_k:[B,2,24,16] past_v:[B,2,24,16]",
        [step(1, 7, 24, 24), step(2, 1, 24, 24)]),
}
