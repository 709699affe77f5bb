"""Models with lists whose elements have several shapes, or whose lengths a run works out, as exporters write them: texts."""

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.parser


def typed(info):
    """The parser knows tensors alone: what is named l_ is a sequence of them, what is named o_ an optional one, q_ an optional sequence."""
    tensor = info.type
    if info.name.startswith("l_"):
        return onnx.helper.make_value_info(info.name, onnx.helper.make_sequence_type_proto(tensor))
    if info.name.startswith("o_"):
        return onnx.helper.make_value_info(info.name, onnx.helper.make_optional_type_proto(tensor))
    if info.name.startswith("q_"):
        return onnx.helper.make_value_info(info.name, onnx.helper.make_optional_type_proto(onnx.helper.make_sequence_type_proto(tensor)))
    return info


def retype(graph):
    for infos in (graph.input, graph.output):
        for info in infos:
            info.CopyFrom(typed(info))
    for node in graph.node:
        if node.op_type == "Optional" and not node.input:
            node.attribute.append(onnx.helper.make_attribute("type", onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)))
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                retype(attribute.g)


def model(text, opset=17):
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]>\n' + text)
    retype(made.graph)
    return made.SerializeToString()


CONSTANTS = """ zero = Constant<value = int64 {0}>()
 one = Constant<value = int64 {1}>()
 zero1 = Constant<value = int64[1] {0}>()
 one1 = Constant<value = int64[1] {1}>()
 m1 = Constant<value = int64[1] {-1}>()
 true = Constant<value = bool {1}>()
"""

# Of inputs that are no tensors: a list, an optional tensor and one whose values are given for good.
TAKEN = """g (float[K] l_x, float[2] o_y, int64 place, float scale) => (float[J] joined, float[E] at, bool holds) {
 joined = ConcatFromSequence<axis=0>(l_x)
 own = SequenceAt(l_x, place)
 at = Mul(own, scale)
 holds = OptionalHasElement(o_y)
}"""

# In each round what is below a bound is appended: joined, counted, one of them.
FOUND = """g (float[9] x, float[R] bounds, int64 place) => (float[K] joined, int64 length, float[E] at, float[F] last, float[G] less) {
""" + CONSTANTS + """ R1 = Shape(bounds)
 R0 = Squeeze(R1)
 none = SequenceEmpty()
 l_all = Loop <body = b (int64 i, bool c, float[k] l_in) => (bool c1, float[k] l_out) {
   c1 = Identity(c)
   bound = Gather<axis=0>(bounds, i)
   mask = Less(x, bound)
   part = Compress<axis=0>(x, mask)
   own = Add(part, bound)
   l_out = SequenceInsert(l_in, own)
 }> (R0, true, none)
 joined = ConcatFromSequence<axis=0>(l_all)
 length = SequenceLength(l_all)
 at = SequenceAt(l_all, place)
 l_less = SequenceErase(l_all, place)
 l_more = SequenceInsert(l_less, x, place)
 less = ConcatFromSequence<axis=0>(l_more)
 back = Constant<value = int64 {-1}>()
 last = SequenceAt(l_all, back)
}"""

# Boxes of each class suppressed in a loop, collected with their scores and labels.
DETECTIONS = """g (float[N,4] boxes, float[C,N] scores) => (float[K,4] kept, float[K] best, int64[K] labels, int64 count) {
""" + CONSTANTS + """ C1 = Shape<start=0, end=1>(scores)
 C0 = Squeeze(C1)
 none = SequenceEmpty()
 nones = SequenceEmpty()
 nonel = SequenceEmpty<dtype=7>()
 boxes1 = Unsqueeze(boxes, zero1)
 most = Constant<value = int64[1] {5}>()
 iou = Constant<value = float[1] {0.4}>()
 least = Constant<value = float[1] {0.3}>()
 l_boxes, l_scores, l_labels = Loop <body = b (int64 i, bool c, float[k,4] l_b, float[k] l_s, int64[k] l_l)
     => (bool c1, float[k,4] l_b1, float[k] l_s1, int64[k] l_l1) {
   c1 = Identity(c)
   own = Gather<axis=0>(scores, i)
   axes = Constant<value = int64[2] {0,1}>()
   own3 = Unsqueeze(own, axes)
   found = NonMaxSuppression(boxes1, own3, most, iou, least)
   two = Constant<value = int64 {2}>()
   at = Gather<axis=1>(found, two)
   b1 = Gather<axis=0>(boxes, at)
   s1 = Gather<axis=0>(own, at)
   n1 = Shape(at)
   l1 = Expand(i, n1)
   l_b1 = SequenceInsert(l_b, b1)
   l_s1 = SequenceInsert(l_s, s1)
   l_l1 = SequenceInsert(l_l, l1)
 }> (C0, true, none, nones, nonel)
 kept = ConcatFromSequence<axis=0>(l_boxes)
 best = ConcatFromSequence<axis=0>(l_scores)
 labels = ConcatFromSequence<axis=0>(l_labels)
 count = SequenceLength(l_labels)
}"""

# A list of three shapes, and the place that an input says.
PLACES = """g (float[2,3] a, float[4,3] b, float[1,3] c, int64 place) => (float[E,3] at, float[J,3] more, float[L,3] less, float[S] sums) {
""" + CONSTANTS + """ l_all = SequenceConstruct(a, b, c)
 at = SequenceAt(l_all, place)
 l_more = SequenceInsert(l_all, b, place)
 more = ConcatFromSequence<axis=0>(l_more)
 l_less = SequenceErase(l_all, place)
 less = ConcatFromSequence<axis=0>(l_less)
 sums = ReduceSum<keepdims=0>(at, one1)
}"""

# Of two lists of other lengths and shapes one, and what is done to each of its elements.
CHOSEN = """g (float[2,3] a, float[4,3] b, bool which, float[3] w) => (float[K,3] joined, float[E] sums, int64 length, float[F,3] first) {
""" + CONSTANTS + """ l_one = If (which) <then_branch = t () => (float[k,3] l_t) { l_t = SequenceConstruct(a, b, a) },
     else_branch = e () => (float[k,3] l_e) { mask = Greater(w, zf)
 zf = Constant<value = float {0}>()
 l_e = SequenceConstruct(b) }>
 l_scaled, l_sums = SequenceMap <body = m (float[k,3] x) => (float[k,3] y, float[k] s) {
   y = Mul(x, w)
   s = ReduceSum<keepdims=0>(x, one1)
 }> (l_one)
 joined = ConcatFromSequence<axis=0>(l_scaled)
 sums = ConcatFromSequence<axis=0>(l_sums)
 length = SequenceLength(l_one)
 first = SequenceAt(l_scaled, zero)
}"""
CHOSEN = CHOSEN.replace(" mask = Greater(w, zf)\n zf = Constant<value = float {0}>()\n", "")

# Parts as long as an input says: the list of them, padded as torch's pad_sequence does.
LENGTHS = """g (float[10,2] x, int64[3] lengths) => (float[A,2] first, float[B,2] third, float[K,2] joined, float[3,10,2] padded) {
""" + CONSTANTS + """ l_parts = SplitToSequence<axis=0>(x, lengths)
 first = SequenceAt(l_parts, zero)
 two = Constant<value = int64 {2}>()
 third = SequenceAt(l_parts, two)
 l_less = SequenceErase(l_parts, one)
 joined = ConcatFromSequence<axis=0>(l_less)
 none = SequenceEmpty()
 three = Constant<value = int64 {3}>()
 l_padded = Loop <body = b (int64 i, bool c, float[10,2] l_in) => (bool c1, float[10,2] l_out) {
   c1 = Identity(c)
   part = SequenceAt(l_parts, i)
   zeros = Sub(x, x)
   longer = Concat<axis=0>(part, zeros)
   ten = Constant<value = int64[1] {10}>()
   row = Slice(longer, zero1, ten)
   l_out = SequenceInsert(l_in, row)
 }> (three, true, none)
 padded = ConcatFromSequence<axis=0, new_axis=1>(l_padded)
}"""

# Rows of a free number, each as often as an input says.
REPEATED = """g (float[N,3] x, int64[N] times) => (float[K,3] y) {
 shape = Shape(times)
 ones = ConstantOfShape<value = int64[1] {1}>(shape)
 l_times = SplitToSequence<axis=0>(times, ones)
 l_rows = SplitToSequence<axis=0>(x, ones)
 l_none = SequenceEmpty()
 n = Squeeze(shape)
 true = Constant<value = bool {1}>()
 l_all = Loop <body = b (int64 i, bool c, float[A,3] l_in) => (bool c1, float[B,3] l_out) {
   c1 = Identity(c)
   own = SequenceAt(l_times, i)
   row = SequenceAt(l_rows, i)
   one = Constant<value = int64[1] {1}>()
   wide = Constant<value = int64[1] {3}>()
   flat = Constant<value = int64[2] {-1, 3}>()
   higher = Unsqueeze(row, one)
   sides = Concat<axis=0>(one, own, wide)
   several = Expand(higher, sides)
   rows = Reshape(several, flat)
   l_out = SequenceInsert(l_in, rows)
 }> (n, true, l_none)
 y = ConcatFromSequence<axis=0>(l_all)
}"""

# What else is done with such a list: in the loop, in another one and behind both; one begins with an element.
REPEATED_READS = """g (float[N,3] x, int64[N] times, int64 place) => (int64 many, float[A,3] at, float[K,3] y, float[L,3] more, float[M,3] first,
                                                  float[P,3] without, float[Q,3] turned, int64[N] so_far) {
""" + CONSTANTS + """ shape = Shape(times)
 n = Squeeze(shape)
 start = Slice(x, zero1, one1)
 l_start = SequenceConstruct(start)
 l_all, so_far = Loop <body = b (int64 i, bool c, float[A,3] l_in) => (bool c1, float[B,3] l_out, int64 len) {
   c1 = Identity(c)
   own = Gather(times, i)
   rest = Sub(n, i)
   taken = Min(own, rest)
   end = Add(i, taken)
   flat = Constant<value = int64[1] {-1}>()
   from = Reshape(i, flat)
   to = Reshape(end, flat)
   rows = Slice(x, from, to)
   l_out = SequenceInsert(l_in, rows)
   len = SequenceLength(l_out)
 }> (n, true, l_start)
 l_twice = Loop <body = b2 (int64 j, bool d, float[C,3] l_before) => (bool d1, float[D,3] l_after) {
   d1 = Identity(d)
   again = SequenceAt(l_all, j)
   double = Add(again, again)
   l_after = SequenceInsert(l_before, double)
 }> (n, true, l_all)
 many = SequenceLength(l_twice)
 at = SequenceAt(l_twice, place)
 y = ConcatFromSequence<axis=0>(l_all)
 l_more = SequenceInsert(l_twice, x)
 more = ConcatFromSequence<axis=0>(l_more)
 l_first = SequenceInsert(l_all, x, zero)
 first = ConcatFromSequence<axis=-2>(l_first)
 l_without = SequenceErase(l_all, place)
 without = ConcatFromSequence<axis=0>(l_without)
 turned = ConcatFromSequence<axis=0>(l_twice)
}"""

# Parts of one size that an input says; as many lengths as data says.
SIZES = """g (float[10] x, int64 size, int64[5] lengths) => (int64 parts, float[A] last, float[K] turned, int64 others, float[B] second) {
""" + CONSTANTS + """ l_parts = SplitToSequence<axis=0>(x, size)
 parts = SequenceLength(l_parts)
 back = Constant<value = int64 {-1}>()
 last = SequenceAt(l_parts, back)
 l_turned = SequenceInsert(l_parts, last, zero)
 turned = ConcatFromSequence<axis=0>(l_turned)
 is_some = Greater(lengths, zero)
 some = Compress<axis=0>(lengths, is_some)
 l_others = SplitToSequence<axis=0>(x, some)
 others = SequenceLength(l_others)
 second = SequenceAt(l_others, one)
}"""

# Lists of tokens that get longer in a loop, one in each round: the last one starts a new list.
BEAMS = """g (int64 rounds, int64[R] choice) => (int64[K] joined, int64[E] first, int64 length) {
""" + CONSTANTS + """ start = SequenceConstruct(zero1, m1, one1)
 most = Constant<value = int64 {8}>()
 trips = Min(rounds, most)
 l_all = Loop <body = b (int64 i, bool c, int64[k] l_in) => (bool c1, int64[k] l_out) {
   c1 = Identity(c)
   which = Gather<axis=0>(choice, i)
   own = SequenceAt(l_in, which)
   i1 = Unsqueeze(i, zero1)
   longer = Concat<axis=0>(own, i1)
   l_less = SequenceErase(l_in, which)
   l_out = SequenceInsert(l_less, longer, which)
 }> (trips, true, start)
 joined = ConcatFromSequence<axis=0>(l_all)
 first = SequenceAt(l_all, zero)
 length = SequenceLength(l_all)
}"""

# What is there of a list so far is read where there is some.
SO_FAR = """g (float[3] x, float[R] steps) => (float[K] joined, float[R,3] seen) {
""" + CONSTANTS + """ R1 = Shape(steps)
 R0 = Squeeze(R1)
 none = SequenceEmpty()
 l_all, seen = Loop <body = b (int64 i, bool c, float[k] l_in) => (bool c1, float[k] l_out, float[3] own) {
   c1 = Identity(c)
   n = SequenceLength(l_in)
   is_some = Greater(n, zero)
   step = Gather<axis=0>(steps, i)
   before = If (is_some) <then_branch = t () => (float[3] v) { v = SequenceAt(l_in, back)
 back = Constant<value = int64 {-1}>() }, else_branch = e () => (float[3] w) { w = Identity(x) }>
   own = Mul(before, step)
   l_out = SequenceInsert(l_in, own)
 }> (R0, true, none)
 joined = ConcatFromSequence<axis=0>(l_all)
}""".replace("v = SequenceAt(l_in, back)\n back = Constant<value = int64 {-1}>()", "back = Constant<value = int64 {-1}>()\n v = SequenceAt(l_in, back)")

# Stacked parts that are as long as data says, all alike.
STACKED = """g (float[6] x, float[R] factors, float bound) => (float[R,K] all, float[K] total) {
""" + CONSTANTS + """ R1 = Shape(factors)
 R0 = Squeeze(R1)
 start = Constant<value = float {0}>()
 sum, all = Loop <body = b (int64 i, bool c, float s) => (bool c1, float s1, float[k] own) {
   c1 = Identity(c)
   f = Gather<axis=0>(factors, i)
   s1 = Add(s, f)
   mask = Less(x, bound)
   part = Compress<axis=0>(x, mask)
   own = Mul(part, f)
 }> (R0, true, start)
 total = ReduceSum<keepdims=0>(all, zero1)
}"""

# Lists and an optional value that data decides about, as results.
RESULTS = """g (float[5,2] x, float[3] bounds, float limit, int64 m) => (float[A,B,2] l_parts, float[C] l_known, float[2] o_row, float[D,2] l_rows) {
""" + CONSTANTS + """ none = SequenceEmpty()
 some = SequenceEmpty()
 x0 = Gather<axis=1>(x, zero)
 trips = Min(m, three)
 three = Constant<value = int64 {3}>()
 l_parts, l_rows = Loop <body = b (int64 i, bool c, float[k,2] l_in, float[2] l_row) => (bool c1, float[k,2] l_out, float[2] l_row1) {
   c1 = Identity(c)
   bound = Gather<axis=0>(bounds, i)
   mask = Less(x0, bound)
   part = Compress<axis=0>(x, mask)
   l_out = SequenceInsert(l_in, part)
   row = Gather<axis=0>(x, i)
   l_row1 = SequenceInsert(l_row, row)
 }> (trips, true, none, some)
 top = ReduceMax<keepdims=0>(x)
 is_low = Less(top, limit)
 first = Gather<axis=0>(x, zero)
 o_row = If (is_low) <then_branch = t () => (float[2] o_t) { o_t = Optional(first) },
   else_branch = e () => (float[2] o_e) { o_e = Optional() }>
 two = Constant<value = int64[2] {2,3}>()
 l_known = SplitToSequence<axis=0>(x0, two)
}""".replace(" trips = Min(m, three)\n three = Constant<value = int64 {3}>()\n", " three = Constant<value = int64 {3}>()\n trips = Min(m, three)\n")

# The rows that are as large as the first one that is large enough, if one is.
FIRST_FOUND = """g (float[6,2] x, float bound, int64 m) => (bool has, float[K,2] got) {
""" + CONSTANTS + """ o_none = Optional()
 x0 = Gather<axis=1>(x, zero)
 o_best = Loop <body = b (int64 i, bool c, float[k,2] o_in) => (bool c1, float[k,2] o_out) {
   c1 = Identity(c)
   has0 = OptionalHasElement(o_in)
   row = Gather<axis=0>(x0, i)
   enough = Greater(row, bound)
   has_none = Not(has0)
   both = And(enough, has_none)
   mask = GreaterOrEqual(x0, row)
   part = Compress<axis=0>(x, mask)
   o_out = If (both) <then_branch = t () => (float[k,2] o_t) { o_t = Optional(part) },
     else_branch = e () => (float[k,2] o_e) { o_e = Identity(o_in) }>
 }> (m, true, o_none)
 has = OptionalHasElement(o_best)
 got = If (has) <then_branch = t2 () => (float[k,2] g1) { g1 = OptionalGetElement(o_best) },
   else_branch = e2 () => (float[k,2] g2) { g2 = Identity(x) }>
}"""

# Two lists side by side: what is found of each row, and scores as many as that; both again in a second loop.
PAIRS = """g (float[R,7,2] x, float[R,7] scores, float bound) => (float[K,3] all, float[K,2] weighted) {
""" + CONSTANTS + """ R1 = Shape<start=0, end=1>(x)
 R0 = Squeeze(R1)
 none = SequenceEmpty()
 nones = SequenceEmpty()
 l_x, l_s = Loop <body = b (int64 i, bool c, float[k,2] l_in, float[k] l_s_in) => (bool c1, float[k,2] l_out, float[k] l_s_out) {
   c1 = Identity(c)
   row = Gather<axis=0>(x, i)
   score = Gather<axis=0>(scores, i)
   mask = Less(score, bound)
   again = Greater(bound, score)
   part = Compress<axis=0>(row, mask)
   own = Compress<axis=0>(score, again)
   l_out = SequenceInsert(l_in, part)
   l_s_out = SequenceInsert(l_s_in, own)
 }> (R0, true, none, nones)
 nonej = SequenceEmpty()
 nonew = SequenceEmpty()
 l_j, l_w = Loop <body = b2 (int64 j, bool d, float[k,3] l_j_in, float[k,2] l_w_in) => (bool d1, float[k,3] l_j_out, float[k,2] l_w_out) {
   d1 = Identity(d)
   rows = SequenceAt(l_x, j)
   weights = SequenceAt(l_s, j)
   column = Unsqueeze(weights, one1)
   both = Concat<axis=1>(rows, column)
   product = Mul(rows, column)
   l_j_out = SequenceInsert(l_j_in, both)
   l_w_out = SequenceInsert(l_w_in, product)
 }> (R0, true, nonej, nonew)
 all = ConcatFromSequence<axis=0>(l_j)
 weighted = ConcatFromSequence<axis=0>(l_w)
}"""

# What two masks find, added: as many of one as of the other, or the run fails.
SUMS = """g (float[8] x, float[5] y) => (float[K] sum, float[K,2] both) {
 zero = Constant<value = float {0}>()
 two = Constant<value = int64[1] {1}>()
 in_x = Greater(x, zero)
 in_y = Greater(y, zero)
 of_x = Compress<axis=0>(x, in_x)
 of_y = Compress<axis=0>(y, in_y)
 sum = Add(of_x, of_y)
 column_x = Unsqueeze(of_x, two)
 column_y = Unsqueeze(of_y, two)
 both = Concat<axis=1>(column_x, column_y)
}"""

# A list of two shapes, if there is one, and what is in it.
MAYBE_LIST = """g (float[2] x, float[3] y, bool wanted, int64 place) => (bool has, float[E] got) {
 l_both = SequenceConstruct(x, y)
 q_list = If (wanted) <then_branch = t () => (float[k] q_t) { q_t = Optional(l_both) },
   else_branch = e () => (float[k] q_e) { q_e = Optional() }>
 has = OptionalHasElement(q_list)
 got = If (has) <then_branch = t2 () => (float[k] g1) { l_got = OptionalGetElement(q_list)
 g1 = SequenceAt(l_got, place) }, else_branch = e2 () => (float[k] g2) { g2 = Identity(y) }>
}"""

# A list of what is found in the rows in which something is.
SOME_ROWS = """g (float[R,6] x, float bound) => (float[K] joined, int64 n, float[L] sums) {
""" + CONSTANTS + """ R1 = Shape<start=0,end=1>(x)
 R0 = Squeeze(R1)
 none = SequenceEmpty()
 l_all = Loop <body = b (int64 i, bool c, float[k] l_in) => (bool c1, float[k] l_out) {
   c1 = Identity(c)
   row = Gather<axis=0>(x, i)
   top = ReduceMax<keepdims=0>(row)
   good = Greater(top, bound)
   l_out = If (good) <then_branch = t () => (float[k] l_t) { mask = Greater(row, bound)
 part = Compress<axis=0>(row, mask)
 l_t = SequenceInsert(l_in, part) }, else_branch = e () => (float[k] l_e) { l_e = Identity(l_in) }>
 }> (R0, true, none)
 more = Constant<value = float[3] {1,2,3}>()
 l_more = SequenceInsert(l_all, more)
 joined = ConcatFromSequence<axis=0>(l_more)
 n = SequenceLength(l_all)
 l_sums = SequenceMap <body = m (float[k] v) => (float[1] s) { s = ReduceSum<keepdims=1>(v) }> (l_more)
 sums = ConcatFromSequence<axis=0>(l_sums)
}"""

# A list of each picture, joined, in a list of all pictures.
NESTED = """g (float[B,R,4] x, float[B] bounds) => (float[K] all, int64[B] counts, float[M] first) {
""" + CONSTANTS + """ B1 = Shape<start=0,end=1>(x)
 B0 = Squeeze(B1)
 R1 = Shape<start=1,end=2>(x)
 R0 = Squeeze(R1)
 none = SequenceEmpty()
 l_all, counts = Loop <body = b (int64 i, bool c, float[k] l_o) => (bool c1, float[k] l_o1, int64 count) {
   c1 = Identity(c)
   picture = Gather<axis=0>(x, i)
   bound = Gather<axis=0>(bounds, i)
   empty = SequenceEmpty()
   l_in = Loop <body = b2 (int64 j, bool d, float[k] l_i) => (bool d1, float[k] l_i1) {
     d1 = Identity(d)
     row = Gather<axis=0>(picture, j)
     mask = Greater(row, bound)
     part = Compress<axis=0>(row, mask)
     l_i1 = SequenceInsert(l_i, part)
   }> (R0, true, empty)
   own = ConcatFromSequence<axis=0>(l_in)
   shape = Shape(own)
   count = Squeeze(shape)
   l_o1 = SequenceInsert(l_o, own)
 }> (B0, true, none)
 all = ConcatFromSequence<axis=0>(l_all)
 first = SequenceAt(l_all, zero)
}"""
