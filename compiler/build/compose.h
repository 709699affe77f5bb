/// Short forms for converters that express an operator by others. Each method adds one node (or none, when it
/// would change nothing) and returns its first output. Thread-safety: as the context.
#pragma once

#include <string>
#include <vector>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// As many numbers as stand in a graph at most: of places along an axis, whose extent a run may work out, or
/// of a table. More of them would be larger than most models, and slow to import.
inline constexpr int64_t kMaxListed = int64_t{1} << 24;

class Compose {
public:
  using V = ir::ValueId;
  explicit Compose(OpBuilder& context) : context_(context) {}

  ir::SymShape shape(V x) const { return context_.type(x).shape; }
  DType dtype(V x) const { return context_.type(x).dtype; }

  V unary(const char* op, V x) { return context_.add(op, {x}); }
  V binary(const char* op, V a, V b) { return context_.add(op, {a, b}); }
  V add(V a, V b) { return binary("add", a, b); }
  V sub(V a, V b) { return binary("sub", a, b); }
  V mul(V a, V b) { return binary("mul", a, b); }
  V div(V a, V b) { return binary("div", a, b); }
  /// With a number of the operand's dtype.
  V plus(V a, double b) { return add(a, number(a, b)); }
  V minus(V a, double b) { return sub(a, number(a, b)); }
  V times(V a, double b) { return mul(a, number(a, b)); }
  V where(V condition, V a, V b) { return context_.add("where", {condition, a, b}); }
  V matmul(V a, V b, bool transpose_b = false);
  V cast(V x, DType to);
  /// What can be summed: integers below 32 bits and bools as wider integers, whose sums cast back agree
  /// modulo 2^bits.
  V summable(V x);
  V number(V like, double value) { return context_.scalar_like(like, value); }
  /// A dim as a scalar of the operand's dtype.
  V extent(V like, const ir::SymInt& value);
  V clip(V x, double low, double high);
  /// Of what is there along axes whose extent data decides.
  V reduce(const char* op, V x, std::vector<int64_t> axes, bool keepdims);
  /// Over all axes of x [N,C,spatial...] behind the channels, which become 1.
  V reduce_spatial(const char* op, V x);
  V transpose(V x, std::vector<int64_t> perm);
  V concat(std::vector<V> parts, int64_t axis);
  /// Elements start, start + step ... of one axis.
  V slice(V x, int64_t axis, const ir::SymInt& start, const ir::SymInt& extent, int64_t step = 1);
  V gather(V x, V indices, int64_t axis);
  V gather_elements(V x, V indices, int64_t axis);
  V arg_max(V x, int64_t axis, bool keepdims);
  V expand(V x, const ir::SymShape& to);
  V tile_each(V x, std::vector<int64_t> repeats);  ///< each element, so often along each dimension
  V reshape(V x, ir::SymShape to);
  /// With an axis of extent 1 at `axis`, or without the axis.
  V unsqueeze(V x, int64_t axis);
  V squeeze(V x, int64_t axis);
  /// Filled constants and values; of strings empty ones.
  V filled(DType dtype, const ir::SymShape& shape, double value);
  /// 0, 1 ... count - 1; UnsupportedForm when that is too long to stand in the graph.
  ir::Ints count_to(int64_t count) const;
  V ints(const std::vector<int64_t>& values, const ir::SymShape& shape);
  /// Dims, as `shape` of as many elements.
  V dims(const ir::SymShape& values, const Shape& shape) { return reshape(context_.extents(values), shape); }
  /// 0, 1 ... count - 1, in the shape [count], or in one of as many elements.
  V iota(const ir::SymInt& count) { return iota(count, {count}); }
  V iota(const ir::SymInt& count, const ir::SymShape& shape);
  /// 0, 1 ... count - 1 along `axis` of `rank` axes, the others of extent 1.
  V positions(const ir::SymInt& count, size_t axis, size_t rank);
  V doubles(DType dtype, const std::vector<double>& values, const ir::SymShape& shape);

private:
  OpBuilder& context_;
};

}  // namespace tensormill::build
