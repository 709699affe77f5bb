/// What the type rules of operators share: dtype sets, typed attributes with defaults, checked shapes. Every
/// function that refuses something throws Error(kInvalidModel) with what was found and what was expected.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/op_def.h"

namespace tensormill::ops {

/// A set of dtypes, one bit each.
using DTypeSet = uint32_t;
constexpr DTypeSet set_of(DType dtype) { return 1u << static_cast<unsigned>(dtype); }
inline constexpr DTypeSet kFloats =
    set_of(DType::kFloat32) | set_of(DType::kFloat64) | set_of(DType::kFloat16) | set_of(DType::kBFloat16);
inline constexpr DTypeSet kSignedInts =
    set_of(DType::kInt8) | set_of(DType::kInt16) | set_of(DType::kInt32) | set_of(DType::kInt64);
inline constexpr DTypeSet kUnsignedInts =
    set_of(DType::kUInt8) | set_of(DType::kUInt16) | set_of(DType::kUInt32) | set_of(DType::kUInt64);
inline constexpr DTypeSet kInts = kSignedInts | kUnsignedInts;
inline constexpr DTypeSet kWideInts =
    set_of(DType::kInt32) | set_of(DType::kInt64) | set_of(DType::kUInt32) | set_of(DType::kUInt64);
inline constexpr DTypeSet kNumeric = kFloats | kInts;
inline constexpr DTypeSet kBools = set_of(DType::kBool);
inline constexpr DTypeSet kAnyType = kNumeric | kBools;
inline constexpr DTypeSet kIndexTypes = set_of(DType::kInt32) | set_of(DType::kInt64);

[[noreturn]] void fail(const std::string& message);

/// Input `index`, which must be given and have a size that can exist.
const ir::ValueType& input(const ir::InferContext& context, size_t index);
bool has_input(const ir::InferContext& context, size_t index);
/// Input `index` with a dtype of `allowed`.
const ir::ValueType& input_of(const ir::InferContext& context, size_t index, DTypeSet allowed);
/// Input `index` with the dtype of input 0.
const ir::ValueType& input_like_first(const ir::InferContext& context, size_t index);
/// `type`, checked: at most kMaxTensorRank axes, extents >= 0 and a product, zeros taken as one, of at
/// most kMaxTensorBytes bytes.
ir::ValueType made_type(DType dtype, ir::SymShape shape);
/// As broadcast_shapes, with made_type's checks.
Shape broadcast_checked(const Shape& a, const Shape& b);
ir::SymShape broadcast_checked(const ir::SymShape& a, const ir::SymShape& b);

int64_t attr_int(const ir::Attrs& attrs, const std::string& name);
int64_t attr_int(const ir::Attrs& attrs, const std::string& name, int64_t fallback);
bool attr_bool(const ir::Attrs& attrs, const std::string& name, bool fallback);
double attr_float(const ir::Attrs& attrs, const std::string& name, double fallback);
std::string attr_string(const ir::Attrs& attrs, const std::string& name, const std::string& fallback);
DType attr_dtype(const ir::Attrs& attrs, const std::string& name);
ir::Ints attr_ints(const ir::Attrs& attrs, const std::string& name);
/// One integer, or a list of them, that may be symbolic.
ir::SymInt attr_dim(const ir::Attrs& attrs, const std::string& name);
ir::SymInt attr_dim(const ir::Attrs& attrs, const std::string& name, int64_t fallback);
ir::SymShape attr_dims(const ir::Attrs& attrs, const std::string& name);
/// As attr_ints.
ir::SymShape attr_dims(const ir::Attrs& attrs, const std::string& name, size_t count, int64_t fallback,
                       int64_t low, int64_t high);
/// The attribute, or `count` times `fallback`; its length must be `count`, its values in [low, high].
ir::Ints attr_ints(const ir::Attrs& attrs, const std::string& name, size_t count, int64_t fallback,
                   int64_t low, int64_t high);

/// `axis` from the front; allowed is [-rank, rank).
size_t normal_axis(int64_t axis, size_t rank);
/// The `axes` attribute as sorted distinct axes; all axes when it is missing.
std::vector<size_t> normal_axes(const ir::Attrs& attrs, size_t rank);
/// Largest kernel extent, stride, dilation and pad: sums and products of two of them cannot overflow.
inline constexpr int64_t kMaxWindow = (int64_t{1} << 30) - 1;

}  // namespace tensormill::ops
