#include "compiler/ops/type_rules.h"

#include <algorithm>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/model_step.h"

namespace tensormill::ops {
namespace {

/// Of symbolic extents the hints: sizes are checked again when shapes bind.
void check_shape(DType dtype, const ir::SymShape& shape) {
  int64_t bytes = static_cast<int64_t>(dtype_bytes(dtype));
  for (const int64_t extent : shape.hints()) {
    if (extent < 0) fail("shape " + to_string(shape) + " has the negative extent " + std::to_string(extent));
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes) || bytes > kMaxTensorBytes) {
      fail("shape " + to_string(shape) + " of " + std::string(dtype_name(dtype)) + " needs more than " +
           std::to_string(kMaxTensorBytes) + " bytes");
    }
  }
}

template <typename T>
const T* find_attr(const ir::Attrs& attrs, const std::string& name) {
  const auto found = attrs.all().find(name);
  if (found == attrs.all().end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) fail("attribute " + name + " is of the wrong kind");
  return value;
}

/// The number, or the list, as a symbolic one; null when it is missing.
template <typename Symbolic, typename Plain>
std::optional<Symbolic> find_symbolic(const ir::Attrs& attrs, const std::string& name) {
  const auto found = attrs.all().find(name);
  if (found == attrs.all().end()) return std::nullopt;
  if (const Symbolic* value = std::get_if<Symbolic>(&found->second)) return *value;
  return Symbolic(*find_attr<Plain>(attrs, name));
}

template <typename T>
const T& require_attr(const ir::Attrs& attrs, const std::string& name) {
  const T* value = find_attr<T>(attrs, name);
  if (value == nullptr) fail("attribute " + name + " is missing");
  return *value;
}

}  // namespace

void fail(const std::string& message) { throw Error(ErrorCode::kInvalidModel, message); }

bool has_input(const ir::InferContext& context, size_t index) {
  return index < context.inputs.size() && context.inputs[index] != nullptr;
}

const ir::ValueType& input(const ir::InferContext& context, size_t index) {
  if (!has_input(context, index)) fail("input " + std::to_string(index) + " is missing");
  const ir::ValueType& type = *context.inputs[index];
  check_shape(type.dtype, type.shape);
  return type;
}

const ir::ValueType& input_of(const ir::InferContext& context, size_t index, DTypeSet allowed) {
  const ir::ValueType& type = input(context, index);
  if ((set_of(type.dtype) & allowed) != 0) return type;
  std::string names;
  for (const DTypeInfo& row : all_dtypes()) {
    if ((set_of(row.dtype) & allowed) != 0) names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  fail("input " + std::to_string(index) + " has dtype " + std::string(dtype_name(type.dtype)) +
       ", expected one of " + names);
}

const ir::ValueType& input_like_first(const ir::InferContext& context, size_t index) {
  return input_of(context, index, set_of(input(context, 0).dtype));
}

ir::ValueType made_type(DType dtype, ir::SymShape shape) {
  check_shape(dtype, shape);
  if (static_cast<int64_t>(shape.size()) > kMaxTensorRank)
    fail("rank " + std::to_string(shape.size()) + ", there may be " + std::to_string(kMaxTensorRank) +
         " axes");
  return {dtype, std::move(shape)};
}

Shape broadcast_checked(const Shape& a, const Shape& b) {
  Shape result = broadcast_shapes(a, b);
  check_shape(DType::kBool, result);
  return result;
}

ir::SymShape broadcast_checked(const ir::SymShape& a, const ir::SymShape& b) {
  ir::SymShape result = broadcast_shapes(a, b);
  check_shape(DType::kBool, result);
  return result;
}

int64_t attr_int(const ir::Attrs& attrs, const std::string& name) { return attr_dim(attrs, name); }

int64_t attr_int(const ir::Attrs& attrs, const std::string& name, int64_t fallback) {
  return attr_dim(attrs, name, fallback);
}

ir::SymInt attr_dim(const ir::Attrs& attrs, const std::string& name) {
  const std::optional<ir::SymInt> value = find_symbolic<ir::SymInt, int64_t>(attrs, name);
  if (!value) fail("attribute " + name + " is missing");
  return *value;
}

ir::SymInt attr_dim(const ir::Attrs& attrs, const std::string& name, int64_t fallback) {
  return find_symbolic<ir::SymInt, int64_t>(attrs, name).value_or(fallback);
}

bool attr_bool(const ir::Attrs& attrs, const std::string& name, bool fallback) {
  return attr_int(attrs, name, fallback ? 1 : 0) != 0;
}

double attr_float(const ir::Attrs& attrs, const std::string& name, double fallback) {
  const double* value = find_attr<double>(attrs, name);
  return value == nullptr ? fallback : *value;
}

std::string attr_string(const ir::Attrs& attrs, const std::string& name, const std::string& fallback) {
  const std::string* value = find_attr<std::string>(attrs, name);
  return value == nullptr ? fallback : *value;
}

DType attr_dtype(const ir::Attrs& attrs, const std::string& name) { return require_attr<DType>(attrs, name); }

ir::Ints attr_ints(const ir::Attrs& attrs, const std::string& name) {
  return ir::Ints(attr_dims(attrs, name));
}

ir::Ints attr_ints(const ir::Attrs& attrs, const std::string& name, size_t count, int64_t fallback,
                   int64_t low, int64_t high) {
  return ir::Ints(attr_dims(attrs, name, count, fallback, low, high));
}

ir::SymShape attr_dims(const ir::Attrs& attrs, const std::string& name) {
  const auto values = find_symbolic<ir::SymShape, std::vector<int64_t>>(attrs, name);
  if (!values) fail("attribute " + name + " is missing");
  return *values;
}

ir::SymShape attr_dims(const ir::Attrs& attrs, const std::string& name, size_t count, int64_t fallback,
                       int64_t low, int64_t high) {
  const auto values =
      find_symbolic<ir::SymShape, std::vector<int64_t>>(attrs, name).value_or(ir::SymShape(count, fallback));
  if (values.size() != count) {
    fail("attribute " + name + " has " + std::to_string(values.size()) + " values, expected " +
         std::to_string(count));
  }
  for (const ir::SymInt& value : values) {
    // Of symbolic ones the hints: sizes are checked again when shapes bind.
    if (value.hint() < low || value.hint() > high) {
      fail("attribute " + name + " has the value " + to_string(value) + ", expected " + std::to_string(low) +
           " to " + std::to_string(high));
    }
  }
  return values;
}

size_t normal_axis(int64_t axis, size_t rank) {
  const int64_t signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    fail("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank));
  }
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::vector<size_t> normal_axes(const ir::Attrs& attrs, size_t rank) {
  std::vector<size_t> axes;
  const std::vector<int64_t>* given = find_attr<std::vector<int64_t>>(attrs, "axes");
  if (given == nullptr) {
    for (size_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
    return axes;
  }
  for (const int64_t axis : *given) axes.push_back(normal_axis(axis, rank));
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) fail("axis " + std::to_string(*twice) + " is named twice");
  return axes;
}

}  // namespace tensormill::ops
