/// Shapes of tensors and the free dimensions of a model's signature.
/// Thread-safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/dtype.h"

namespace tensormill {

/// Extents, outermost first; {} is a scalar. Extents are >= 0; an extent of 0 makes the tensor empty.
using Shape = std::vector<int64_t>;

/// Largest number of bytes that a single tensor may have (2^40): products past it are errors, never wraps.
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;

/// Product of the extents. Throws Error(kInvalidTensor) for a negative extent or a product past
/// kMaxTensorBytes.
int64_t num_elements(const Shape& shape);
/// num_elements × element size, checked the same way.
int64_t num_bytes(const Shape& shape, DType dtype);
/// "[1,3,224,224]"
std::string to_string(const Shape& shape);
/// Row-major strides in elements.
Shape row_major_strides(const Shape& shape);
/// Numpy's multidirectional broadcast of two shapes. Throws Error(kInvalidModel) naming both.
Shape broadcast_shapes(const Shape& a, const Shape& b);

/// One dimension of a model's signature: an extent, or the name of a free dimension ("N"; "" is anonymous,
/// shown as -1).
using Dim = std::variant<int64_t, std::string>;
using DimShape = std::vector<Dim>;
/// "[N,3,224,224]"
std::string to_string(const DimShape& shape);
/// The shape, when all dims are extents; throws Error(kShapeRequired) naming the free ones otherwise.
Shape concrete_shape(const DimShape& shape);

}  // namespace tensormill
