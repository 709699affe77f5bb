#include "runtime/base/shape.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill {

int64_t num_elements(const Shape& shape) {
  int64_t product = 1;
  for (int64_t extent : shape) {
    if (extent < 0)
      throw Error(ErrorCode::kInvalidTensor, "shape " + to_string(shape) + " has a negative extent");
  }
  // An extent of zero empties the tensor however large the others are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (int64_t extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product) || product > kMaxTensorBytes) {
      throw Error(ErrorCode::kInvalidTensor, "shape " + to_string(shape) + " has more than " +
                                                 std::to_string(kMaxTensorBytes) + " elements");
    }
  }
  return product;
}

int64_t num_bytes(const Shape& shape, DType dtype) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(num_elements(shape), static_cast<int64_t>(dtype_bytes(dtype)), &bytes) ||
      bytes > kMaxTensorBytes) {
    throw Error(ErrorCode::kInvalidTensor, "shape " + to_string(shape) + " needs more than " +
                                               std::to_string(kMaxTensorBytes) + " bytes");
  }
  return bytes;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ",";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * shape[i - 1];
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (left != right && left != 1 && right != 1) {
      throw Error(ErrorCode::kInvalidModel,
                  "shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
    }
    result[rank - 1 - i] = left == 1 ? right : left;
  }
  return result;
}

std::string to_string(const DimShape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ",";
    if (const int64_t* extent = std::get_if<int64_t>(&shape[i])) {
      text += std::to_string(*extent);
    } else {
      const std::string& name = std::get<std::string>(shape[i]);
      text += name.empty() ? "-1" : name;
    }
  }
  return text + "]";
}

Shape concrete_shape(const DimShape& shape) {
  Shape result;
  for (const Dim& dim : shape) {
    const int64_t* extent = std::get_if<int64_t>(&dim);
    if (extent == nullptr) {
      throw Error(ErrorCode::kShapeRequired,
                  "shape " + to_string(shape) + " has a free dimension; bind it with input_shapes");
    }
    result.push_back(*extent);
  }
  return result;
}

}  // namespace tensormill
