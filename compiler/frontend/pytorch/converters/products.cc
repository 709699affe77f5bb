// Matrix products and convolutions.
#include <algorithm>

#include "compiler/build/extents/run_numbers.h"
#include "compiler/build/maps/conv_pool.h"
#include "compiler/build/moves/places.h"
#include "compiler/frontend/pytorch/converters/helpers.h"

namespace tensormill::frontend::pytorch {

namespace {

/// beta * self + alpha * product
V combined(NodeContext& node, V self, V product) {
  Compose c(node);
  const Operand alpha = node.operand("alpha"), beta = node.operand("beta");
  if (node.real("alpha") != 1) product = c.mul(product, node.as(alpha, node.dtype(product)));
  const double factor = node.real("beta");
  if (factor == 0) return product;
  if (factor != 1) self = c.mul(self, node.as(beta, node.dtype(self)));
  return c.add(product, self);
}

V matrix_product(NodeContext& node, V a, V b, bool transpose_b = false) {
  Compose c(node);
  const DType dtype = node.dtype(a), wide = summed_in(dtype);
  if (wide == dtype) return c.matmul(a, b, transpose_b);
  return c.cast(c.matmul(c.cast(a, wide), c.cast(b, wide), transpose_b), dtype);
}

/// As torch.matmul: vectors are rows or columns.
V product(NodeContext& node, V a, V b) {
  Compose c(node);
  const bool is_row = node.rank(a) == 1, is_column = node.rank(b) == 1;
  if (node.rank(a) == 0 || node.rank(b) == 0) node.invalid("an operand has no dims");
  V y = matrix_product(node, is_row ? c.unsqueeze(a, 0) : a, is_column ? c.unsqueeze(b, 1) : b);
  if (is_column) y = c.squeeze(y, node.rank(y) - 1);
  if (is_row) y = c.squeeze(y, node.rank(y) - (is_column ? 1 : 2));
  return y;
}

void check_is(const NodeContext& node, V x, DType dtype) {
  if (node.dtype(x) != dtype)
    node.invalid("an operand is of " + std::string(dtype_name(node.dtype(x))) + ", not of " +
                 std::string(dtype_name(dtype)));
}

}  // namespace

// Summed over the axes of both that are named, which stand at the end of the one and at the front of the
// other.
void convert_tensordot(NodeContext& node) {
  Compose c(node);
  V a = node.tensor("self"), b = node.tensor("other");
  const ir::Ints of_a = node.axes("dims_self", node.rank(a)), of_b = node.axes("dims_other", node.rank(b));
  if (of_a.size() != of_b.size()) node.invalid("dims_self and dims_other have other lengths");
  const auto summed_along = [&](V x, int64_t axis) {
    const V sum = c.reduce("reduce_sum", c.cast(x, summed_in(node.dtype(x))), {axis}, true);
    return c.cast(sum, node.dtype(x));
  };
  // An axis of one element goes with all of the other's.
  for (size_t i = 0; i < of_a.size(); ++i) {
    const ir::SymInt left = node.shape(a)[static_cast<size_t>(of_a[i])],
                     right = node.shape(b)[static_cast<size_t>(of_b[i])];
    if (same(right, 1) && !same(left, 1)) {
      a = summed_along(a, of_a[i]);
    } else if (same(left, 1) && !same(right, 1)) {
      b = summed_along(b, of_b[i]);
    } else if (!ir::demand(ir::Relation::kEqual, left, right)) {
      node.invalid("axes of " + to_string(left) + " and " + to_string(right) + " elements");
    }
  }
  ir::SymShape shape;
  const auto rest_of = [&](V x, const std::vector<int64_t>& summed) {
    std::vector<int64_t> rest;
    for (int64_t axis = 0; axis < node.rank(x); ++axis) {
      if (std::find(summed.begin(), summed.end(), axis) != summed.end()) continue;
      rest.push_back(axis);
      shape.push_back(node.shape(x)[static_cast<size_t>(axis)]);
    }
    return rest;
  };
  std::vector<int64_t> left = rest_of(a, of_a), right = of_b;
  left.insert(left.end(), of_a.begin(), of_a.end());
  ir::SymInt depth = 1;
  for (const int64_t axis : of_a) depth = node.product(depth, node.shape(a)[static_cast<size_t>(axis)]);
  const ir::SymInt rows = num_elements(shape);
  const std::vector<int64_t> behind = rest_of(b, of_b);
  right.insert(right.end(), behind.begin(), behind.end());
  ir::SymInt columns = 1;
  for (const int64_t axis : behind) columns = node.product(columns, node.shape(b)[static_cast<size_t>(axis)]);
  const V y = matrix_product(node, c.reshape(c.transpose(a, left), {rows, depth}),
                             c.reshape(c.transpose(b, right), {depth, columns}));
  node.set_output(0, c.reshape(y, shape));
}

void convert_linear(NodeContext& node) {
  Compose c(node);
  const V x = node.tensor("input"), weight = node.tensor("weight");
  V y;
  if (node.rank(weight) == 1) {
    y = product(node, x, weight);
  } else {
    y = matrix_product(node, node.rank(x) == 1 ? c.unsqueeze(x, 0) : x, weight, true);
    if (node.rank(x) == 1) y = c.squeeze(y, 0);
  }
  if (const V bias = node.optional_tensor("bias"); bias != ir::kAbsent) y = c.add(y, bias);
  node.set_output(0, y);
}

// mm, bmm, matmul, mv, dot, with the second operand's own name.
void convert_matmul(NodeContext& node) {
  const std::string& op = node.op();
  const char* second = op == "mv" ? "vec" : op == "dot" ? "tensor" : takes(node, "other") ? "other" : "mat2";
  const V a = node.tensor("self");
  V b = node.tensor(second);
  if (op == "inner") {
    if (node.rank(a) == 0 || node.rank(b) == 0) return node.set_output(0, Compose(node).mul(a, b));
    if (node.rank(b) > 2) node.unsupported("other", "more than two dims are not implemented");
    if (node.rank(b) == 2) b = Compose(node).transpose(b, {1, 0});
  }
  node.set_output(0, product(node, a, b));
}

void convert_addmm(NodeContext& node) {
  const std::string& op = node.op();
  const char* first = op == "addmv" ? "mat" : op == "addmm" ? "mat1" : "batch1";
  const char* second = op == "addmv" ? "vec" : op == "addmm" ? "mat2" : "batch2";
  V y = product(node, node.tensor(first), node.tensor(second));
  if (op == "addbmm") y = Compose(node).reduce("reduce_sum", y, {0}, false);
  node.set_output(0, combined(node, node.tensor("self"), y));
}

// The product of all, one after the other, of which the first and the last may be vectors.
void convert_multi_dot(NodeContext& node) {
  const std::vector<V> parts = node.tensors(node.op() == "chain_matmul" ? "matrices" : "tensors");
  if (parts.empty()) node.invalid("it has no operands");
  V y = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    if (node.rank(parts[i]) > 2 || node.rank(y) > 2) node.invalid("an operand has more than two dims");
    y = product(node, y, parts[i]);
  }
  node.set_output(0, parts.size() == 1 ? node.add("identity", {y}) : y);
}

// The product of each two vectors, which stand along an axis of both.
void convert_vecdot(NodeContext& node) {
  Compose c(node);
  const DType dtype = node.output_dtype();
  const auto operand = [&](const char* name) { return c.cast(node.tensor(name), summed_in(dtype)); };
  const V both_of = c.mul(operand("x"), operand("y"));
  const V y = c.reduce("reduce_sum", both_of, {node.axis("dim", node.rank(both_of))}, false);
  node.set_output(0, c.cast(y, dtype));
}

void convert_outer(NodeContext& node) {
  Compose c(node);
  const V a = node.tensor("self"), b = node.tensor("vec2");
  check_rank(node, a, 1);
  check_rank(node, b, 1);
  const V rows = numeric(node, node.as_output(a)), columns = numeric(node, node.as_output(b));
  node.set_output(0, node.as_output(c.mul(c.unsqueeze(rows, 1), c.unsqueeze(columns, 0))));
}

// x1 W[k] x2 for each k.
void convert_bilinear(NodeContext& node) {
  Compose c(node);
  const V a = node.tensor("input1"), b = node.tensor("input2"), weight = node.tensor("weight");
  const ir::SymShape w = node.shape(weight);
  if (w.size() != 3) node.invalid("weights of shape " + to_string(w));
  if (node.rank(a) == 0) node.invalid("an operand has no dims");
  ir::SymShape out = node.shape(a);
  const ir::SymInt rows = num_elements(ir::SymShape(out.begin(), out.end() - 1));
  out.back() = w[0];
  // [rows, I] x [I, K*J] = [rows, K, J], times b.
  const V flat = c.reshape(c.transpose(weight, {1, 0, 2}), {w[1], w[0] * w[2]});
  const V left = c.reshape(c.matmul(c.reshape(a, {rows, w[1]}), flat), {rows, w[0], w[2]});
  V y = c.reduce("reduce_sum", c.mul(left, c.reshape(b, {rows, 1, w[2]})), {2}, false);
  y = c.reshape(y, out);
  if (const V bias = node.optional_tensor("bias"); bias != ir::kAbsent) y = c.add(y, bias);
  node.set_output(0, y);
}

namespace {

struct Conv {
  V x, weight, bias;
  size_t spatial = 0;
  std::vector<int64_t> stride, padding, dilation, output_padding;
  int64_t groups = 1;
  bool is_transposed = false, had_batch = true;
};

void check_windows(NodeContext& node, const Conv& conv) {
  for (const std::vector<int64_t>* numbers : {&conv.stride, &conv.dilation})
    for (const int64_t number : *numbers)
      if (number < 1 || number > build::kMaxWindowNumber)
        node.invalid("a stride or dilation of " + std::to_string(number));
  for (const int64_t number : conv.padding)
    if (number < 0 || number > build::kMaxWindowNumber)
      node.invalid("a padding of " + std::to_string(number));
  if (conv.groups < 1) node.invalid(std::to_string(conv.groups) + " groups");
}

void set_conv(NodeContext& node, Conv conv, const std::vector<int64_t>& pads) {
  Compose c(node);
  check_windows(node, conv);
  // Sums of products of whole numbers are whole numbers of 53 bits, unless they are far larger.
  const DType own = node.dtype(conv.x);
  const bool is_whole = !is_float(own);
  if (is_whole)
    for (V* operand : {&conv.x, &conv.weight, &conv.bias})
      if (*operand != ir::kAbsent) *operand = c.cast(*operand, DType::kFloat64);
  const ir::SymShape w = node.shape(conv.weight);
  const std::vector<int64_t> kernel = ir::SymShape(w.begin() + 2, w.end());
  V y;
  if (conv.is_transposed) {
    std::vector<V> inputs{conv.x, conv.weight};
    if (conv.bias != ir::kAbsent) inputs.push_back(conv.bias);
    y = node.add("conv_transpose", inputs,
                 {{"strides", conv.stride},
                  {"dilations", conv.dilation},
                  {"pads", pads},
                  {"output_padding", conv.output_padding},
                  {"group", conv.groups}});
  } else {
    build::ConvSpec spec;
    spec.windows = {kernel, conv.stride, conv.dilation, pads};
    spec.groups = conv.groups;
    y = build::conv(node, conv.x, conv.weight, conv.bias, spec);
  }
  if (is_whole) y = c.cast(c.cast(y, DType::kInt64), own);
  node.set_output(0, conv.had_batch ? y : c.squeeze(y, 0));
}

/// Operands and the numbers that all forms have.
Conv conv_of(NodeContext& node) {
  Conv conv;
  const V weight = node.tensor("weight");
  if (node.rank(weight) < 3 || node.rank(weight) > 5)
    node.invalid("weights of rank " + std::to_string(node.rank(weight)));
  conv.weight = weight;
  conv.spatial = static_cast<size_t>(node.rank(weight)) - 2;
  const V x = node.tensor("input");
  conv.x = with_batch(node, x, conv.spatial);
  conv.had_batch = conv.x == x;
  conv.bias = node.optional_tensor("bias");
  conv.stride = spread(node, "stride", conv.spatial);
  conv.dilation = spread(node, "dilation", conv.spatial);
  conv.groups = node.integer("groups");
  return conv;
}

std::vector<int64_t> twice(const std::vector<int64_t>& padding) {
  std::vector<int64_t> pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

}  // namespace

void convert_conv(NodeContext& node) {
  Conv conv = conv_of(node);
  if (node.row().overload == "padding" || node.op() == "_convolution_mode") {
    const std::string mode = node.text("padding");
    std::vector<int64_t> begins(conv.spatial, 0), ends(conv.spatial, 0);
    if (mode != "valid" && mode != "same") node.invalid("a padding of \"" + mode + "\"");
    for (size_t d = 0; mode == "same" && d < conv.spatial; ++d) {
      const int64_t all = conv.dilation[d] * (int64_t{node.shape(conv.weight)[d + 2]} - 1);
      begins[d] = all / 2;
      ends[d] = all - all / 2;
    }
    begins.insert(begins.end(), ends.begin(), ends.end());
    return set_conv(node, std::move(conv), begins);
  }
  conv.padding = spread(node, "padding", conv.spatial);
  if (node.op() == "convolution" || node.op() == "_convolution") {
    conv.is_transposed = node.flag("transposed");
    conv.output_padding = spread(node, "output_padding", conv.spatial);
  }
  const std::vector<int64_t> pads = twice(conv.padding);
  set_conv(node, std::move(conv), pads);
}

void convert_conv_transpose(NodeContext& node) {
  Conv conv = conv_of(node);
  conv.is_transposed = true;
  conv.padding = spread(node, "padding", conv.spatial);
  conv.output_padding = spread(node, "output_padding", conv.spatial);
  const std::vector<int64_t> pads = twice(conv.padding);
  set_conv(node, std::move(conv), pads);
}

// Of bytes, as numbers of 32 bits.
void convert_int_mm(NodeContext& node) {
  Compose c(node);
  const auto wide = [&](const char* name) {
    const V x = node.tensor(name);
    check_is(node, x, DType::kInt8);
    return c.cast(x, DType::kInt32);
  };
  const V a = wide("self"), b = wide("mat2");
  check_rank(node, a, 2);
  check_rank(node, b, 2);
  node.set_output(0, c.matmul(a, b));
}

// Rows of bytes, each with its scale.
void convert_int8pack_mm(NodeContext& node) {
  Compose c(node);
  const V a = node.tensor("self"), rows = node.tensor("mat2"), scales = node.tensor("scales");
  check_is(node, rows, DType::kInt8);
  const DType wide = computed_in(node.dtype(a));
  const V y = c.matmul(c.cast(a, wide), c.cast(rows, wide), true);
  node.set_output(0, c.cast(c.mul(y, c.cast(scales, wide)), node.dtype(a)));
}

// Rows of the first operand times a matrix for each group of them, of which "offs" says where they end: a run
// binds the groups' sizes. Rows behind the last group are zeros.
void convert_grouped_mm(NodeContext& node) {
  Compose c(node);
  const bool is_aten = takes(node, "mat2");
  const V a = node.tensor(is_aten ? "self" : "input"), b = node.tensor(is_aten ? "mat2" : "weight");
  if (is_aten && node.has("bias")) node.unsupported("bias", "it is not implemented");
  if (is_aten) static_cast<void>(node.optional_dtype("out_dtype"));
  if (!node.has("offs")) return node.set_output(0, node.as_output(matrix_product(node, a, b)));
  if (node.rank(a) != 2 || node.rank(b) != 3)
    node.unsupported("offs", "groups of columns are not implemented");
  const V ends = c.cast(node.tensor("offs"), DType::kInt64);
  const ir::SymInt rows = node.shape(a)[0];
  const int64_t groups = node.shape(b)[0];
  const V begins = c.concat({c.ints({0}, {1}), c.slice(ends, 0, 0, groups - 1)}, 0);
  const V sizes = c.binary("max", c.sub(ends, begins), c.number(ends, 0));
  ir::SymInt begin = 0;
  std::vector<V> made;
  for (const ir::SymInt& size : build::bind_run_numbers(node, sizes, 0, rows)) {
    const V matrix = c.squeeze(c.slice(b, 0, static_cast<int64_t>(made.size()), 1), 0);
    const V own = c.gather(a, c.add(c.iota(size), c.dims({begin}, {})), 0);
    made.push_back(matrix_product(node, own, matrix));
    begin = begin + size;
  }
  const V whole = c.filled(node.dtype(a), {rows, node.shape(b)[2]}, 0);
  node.set_output(0, node.as_output(build::scattered(node, whole, c.iota(begin), c.concat(made, 0), "none")));
}

}  // namespace tensormill::frontend::pytorch
