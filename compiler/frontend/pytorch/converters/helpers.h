/// What converters have in common. Thread-safety: as the context.
#pragma once

#include <cmath>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/moves/slices.h"
#include "compiler/frontend/pytorch/node_context.h"

namespace tensormill::frontend::pytorch {

/// Integers and bools as float32.
inline V floated(NodeContext& node, V x) {
  return is_float(node.dtype(x)) ? x : Compose(node).cast(x, DType::kFloat32);
}
/// In what elements of its type are computed in, which is rounded to the type once, at the end.
inline V widened(NodeContext& node, V x) { return Compose(node).cast(x, computed_in(node.dtype(x))); }
/// Bools as numbers.
inline V numeric(NodeContext& node, V x) {
  return node.dtype(x) == DType::kBool ? Compose(node).cast(x, DType::kUInt8) : x;
}
inline V to_bool(NodeContext& node, V x) { return Compose(node).cast(x, DType::kBool); }
inline V both(NodeContext& node, V a, V b) { return node.add("and", {a, b}); }
inline V negated(NodeContext& node, V x) { return node.add("not", {x}); }
inline V is_negative(NodeContext& node, V x) {
  return Compose(node).binary("less", x, node.scalar_like(x, 0));
}
inline V is_zero(NodeContext& node, V x) { return Compose(node).binary("equal", x, node.scalar_like(x, 0)); }

/// Sums of products of short whole numbers, and of bools, are computed in 64 bits, whose lowest ones they
/// are.
DType summed_in(DType dtype);

/// Throws Error(kInvalidModel) where x has another rank.
void check_rank(const NodeContext& node, V x, int64_t rank);

/// Whether the operator has an argument of that name.
bool takes(const NodeContext& node, std::string_view name);
/// x modulo y with the sign of y, as Python has it.
V python_mod(NodeContext& node, V x, V y);
/// x divided by y, rounded down.
V floor_divided(NodeContext& node, V x, V y);
/// x / y of floats; of whole numbers rounded toward zero.
V quotient(NodeContext& node, V x, V y);

/// All axes, or the argument's.
std::vector<int64_t> reduced_axes(NodeContext& node, const char* name, V x);
/// How many elements the axes have together, as a number like `like`.
V count_of(NodeContext& node, V like, V x, const std::vector<int64_t>& axes, double less);
/// Tensors without dims as [1]; what is made of them loses the axis again where `was_scalar`.
V with_axis(NodeContext& node, V x);
/// Positions of the first `k` elements of x in order along the axis.
V sorted_positions(NodeContext& node, V x, int64_t axis, const ir::SymInt& k, bool largest);
/// How a scatter reduces elements of the type: truth values, as numbers of 0 and 1, are added by or and
/// multiplied by and.
std::string reduction_for(DType dtype, const std::string& reduction);
/// x with updates at indices along an axis.
V scattered(NodeContext& node, V x, V indices, V updates, int64_t axis, const std::string& reduction);
/// An integer that a run works out and that may be below 0, or, with `any`, is whatever it is: of one
/// element.
std::optional<V> run_time_number(NodeContext& node, const char* name, bool any = false);
/// A number that a run works out as a place on an axis: one below 0 counts from the end.
V from_front(NodeContext& node, V number, const ir::SymInt& extent);
/// The arguments "start", "end" and "step" of a slice of an axis, of which a run may work out the first two;
/// `said`: how many elements they take, where that is known.
build::AxisSlice slice_of(NodeContext& node, const ir::SymInt& extent, const std::optional<ir::SymInt>& said);
/// x gathered along the axis by indices, which may be negative.
V gathered(NodeContext& node, V x, V indices, int64_t axis);
/// x of three or more dims, of which one more is put in front where it has `spatial` + 1.
V with_batch(NodeContext& node, V x, size_t spatial);
/// A list of one number stands for as many.
std::vector<int64_t> spread(NodeContext& node, const char* name, size_t count);
/// The same of a window's numbers: `least` or more, and so few that products of two are of 64 bits.
std::vector<int64_t> window_numbers(NodeContext& node, const char* name, size_t count, int64_t least);
/// (sum |x|^p)^(1/p) along axes, with its limits.
V p_norm(NodeContext& node, V x, double p, const std::vector<int64_t>& axes, bool keepdim);
/// The losses as the argument "reduction" wants them: each for itself, their mean or their sum.
V reduced_loss(NodeContext& node, V losses);
/// log(e^a + e^b)
V log_of_sum(NodeContext& node, V a, V b);
/// softmax along the axis, of maps without elements too.
V softmax_along(NodeContext& node, const char* op, V x, int64_t axis);
/// Begins and ends of all axes padded.
V padded(NodeContext& node, V x, const ir::SymShape& pads, const std::string& mode, double value);

}  // namespace tensormill::frontend::pytorch
