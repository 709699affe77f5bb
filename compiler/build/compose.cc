#include "compiler/build/compose.h"

#include "runtime/base/text.h"

namespace tensormill::build {

ir::ValueId Compose::matmul(V a, V b, bool transpose_b) {
  return context_.add("matmul", {a, b}, {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{transpose_b}}});
}

ir::ValueId Compose::cast(V x, DType to) {
  return dtype(x) == to ? x : context_.add("cast", {x}, {{"to", to}});
}

ir::ValueId Compose::summable(V x) {
  const DTypeInfo& info = dtype_info(dtype(x));
  if (info.is_float || info.bits >= 32) return x;
  return cast(x, info.is_signed ? DType::kInt32 : DType::kUInt32);
}

ir::ValueId Compose::extent(V like, const ir::SymInt& value) {
  if (value.is_constant()) return number(like, static_cast<double>(value.hint()));
  return reshape(cast(context_.extents({value}), dtype(like)), {});
}

ir::ValueId Compose::clip(V x, double low, double high) {
  return context_.add("clip", {x, number(x, low), number(x, high)});
}

ir::ValueId Compose::reduce(const char* op, V x, std::vector<int64_t> axes, bool keepdims) {
  if (axes.empty()) return x;
  return context_.add_reduction(op, x, {{"axes", std::move(axes)}, {"keepdims", int64_t{keepdims}}});
}

ir::ValueId Compose::reduce_spatial(const char* op, V x) {
  const int64_t rank = context_.rank(x);
  if (rank < 3)
    context_.invalid("the input has rank " + std::to_string(rank) + ", expected [N,C,spatial...]");
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < rank; ++axis) axes.push_back(axis);
  return reduce(op, x, std::move(axes), true);
}

ir::ValueId Compose::transpose(V x, std::vector<int64_t> perm) {
  return context_.add("transpose", {x}, {{"perm", std::move(perm)}});
}

ir::ValueId Compose::concat(std::vector<V> parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : context_.add("concat", std::move(parts), {{"axis", axis}});
}

ir::ValueId Compose::slice(V x, int64_t axis, const ir::SymInt& start, const ir::SymInt& extent,
                           int64_t step) {
  const auto at = static_cast<size_t>(axis);
  if (axis < 0 || at >= shape(x).size())
    context_.invalid("axis " + std::to_string(axis) + " of an operand of shape " + to_string(shape(x)));
  ir::SymShape starts(shape(x).size(), 0), extents(shape(x));
  std::vector<int64_t> steps(shape(x).size(), 1);
  if (is_proven(ir::Relation::kEqual, start, 0) && step == 1 &&
      is_proven(ir::Relation::kEqual, extent, extents[at]))
    return x;
  starts[at] = start;
  extents[at] = extent;
  steps[at] = step;
  return context_.add("slice", {x}, {{"starts", starts}, {"extents", extents}, {"steps", steps}});
}

ir::ValueId Compose::gather(V x, V indices, int64_t axis) {
  return context_.add("gather", {x, indices}, {{"axis", axis}});
}

ir::ValueId Compose::gather_elements(V x, V indices, int64_t axis) {
  return context_.add("gather_elements", {x, indices}, {{"axis", axis}});
}

ir::ValueId Compose::arg_max(V x, int64_t axis, bool keepdims) {
  return context_.add("arg_max", {x},
                      {{"axis", axis}, {"keepdims", int64_t{keepdims}}, {"select_last", int64_t{0}}});
}

ir::ValueId Compose::tile_each(V x, std::vector<int64_t> repeats) {
  return context_.add("tile", {x}, {{"repeats", std::move(repeats)}, {"each", int64_t{1}}});
}

ir::ValueId Compose::expand(V x, const ir::SymShape& to) {
  return same(shape(x), to) ? x : context_.add("expand", {x}, {{"shape", to}});
}

ir::ValueId Compose::reshape(V x, ir::SymShape to) {
  return same(shape(x), to) ? x : context_.reshape(x, std::move(to));
}

ir::ValueId Compose::unsqueeze(V x, int64_t axis) {
  ir::SymShape to = shape(x);
  to.insert(to.begin() + axis, 1);
  return context_.reshape(x, to);
}

ir::ValueId Compose::squeeze(V x, int64_t axis) {
  ir::SymShape to = shape(x);
  to.erase(to.begin() + axis);
  return context_.reshape(x, to);
}

ir::ValueId Compose::filled(DType dtype, const ir::SymShape& shape, double value) {
  // A string of nothing but zeros is empty; its bytes are an axis of their own.
  if (dtype == kString)
    return expand(context_.constant(Tensor::zeros(dtype, ir::SymShape(shape.size(), 1))), shape);
  Tensor scalar(dtype, {});
  scalar.set_element(0, value);
  return expand(context_.constant(std::move(scalar)), shape);
}

ir::ValueId Compose::iota(const ir::SymInt& count, const ir::SymShape& shape) {
  if (count.is_constant() && shape.is_constant()) return ints(count_to(count), shape);
  return reshape(context_.add("iota", {}, {{"extent", count}}), shape);
}

ir::ValueId Compose::positions(const ir::SymInt& count, size_t axis, size_t rank) {
  ir::SymShape along(rank, 1);
  along[axis] = count;
  return iota(count, along);
}

ir::Ints Compose::count_to(int64_t count) const {
  if (count > kMaxListed)
    context_.unsupported("shape", "axes of " + std::to_string(count) + " elements are not implemented");
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(i);
  return values;
}

ir::ValueId Compose::ints(const std::vector<int64_t>& values, const ir::SymShape& shape) {
  return context_.constant(Tensor::from<int64_t>(shape, values));
}

ir::ValueId Compose::doubles(DType dtype, const std::vector<double>& values, const ir::SymShape& shape) {
  Tensor tensor(dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) tensor.set_element(static_cast<int64_t>(i), values[i]);
  return context_.constant(std::move(tensor));
}

}  // namespace tensormill::build
