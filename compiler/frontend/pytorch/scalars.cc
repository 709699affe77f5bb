#include <array>
#include <cstring>

#include "compiler/build/rows.h"
#include "compiler/frontend/pytorch/model.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch {

namespace {

struct ScalarRow {
  ScalarType type;
  std::string_view name;
  int64_t bytes;
};
constexpr std::array kScalars = {
    ScalarRow{ScalarType::kUInt8, "uint8", 1},
    ScalarRow{ScalarType::kInt8, "int8", 1},
    ScalarRow{ScalarType::kInt16, "int16", 2},
    ScalarRow{ScalarType::kInt32, "int32", 4},
    ScalarRow{ScalarType::kInt64, "int64", 8},
    ScalarRow{ScalarType::kFloat16, "float16", 2},
    ScalarRow{ScalarType::kFloat32, "float32", 4},
    ScalarRow{ScalarType::kFloat64, "float64", 8},
    ScalarRow{ScalarType::kComplex32, "complex32", 4},
    ScalarRow{ScalarType::kComplex64, "complex64", 8},
    ScalarRow{ScalarType::kComplex128, "complex128", 16},
    ScalarRow{ScalarType::kBool, "bool", 1},
    ScalarRow{ScalarType::kBFloat16, "bfloat16", 2},
    ScalarRow{ScalarType::kUInt16, "uint16", 2},
    ScalarRow{ScalarType::kFloat8E4M3FN, "float8e4m3fn", 1},
    ScalarRow{ScalarType::kFloat8E5M2, "float8e5m2", 1},
    ScalarRow{ScalarType::kFloat8E4M3FNUZ, "float8e4m3fnuz", 1},
    ScalarRow{ScalarType::kFloat8E5M2FNUZ, "float8e5m2fnuz", 1},
    ScalarRow{ScalarType::kFloat8E8M0FNU, "float8e8m0fnu", 1},
    ScalarRow{ScalarType::kUInt32, "uint32", 4},
    ScalarRow{ScalarType::kUInt64, "uint64", 8},
};

const ScalarRow* scalar_row(ScalarType type) { return build::find_in(kScalars, &ScalarRow::type, type); }

}  // namespace

std::string_view scalar_name(ScalarType type) {
  const ScalarRow* row = scalar_row(type);
  return row == nullptr ? std::string_view() : row->name;
}

int64_t scalar_bytes(ScalarType type) {
  const ScalarRow* row = scalar_row(type);
  return row == nullptr ? 0 : row->bytes;
}

std::string contiguous_bytes(const StoredTensor& tensor, uint64_t max_bytes) {
  const auto bytes = static_cast<uint64_t>(scalar_bytes(tensor.dtype));
  const size_t rank = tensor.sizes.size();
  uint64_t total = bytes;
  for (const int64_t size : tensor.sizes)
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(size), &total) || total > max_bytes)
      throw Error(ErrorCode::kTooLarge, "a tensor has more than " + std::to_string(max_bytes) + " bytes");
  std::string made(total, '\0');
  if (total == 0) return made;
  std::vector<int64_t> index(rank);
  int64_t place = tensor.offset;
  for (uint64_t at = 0; at < total; at += bytes) {
    std::memcpy(made.data() + at, tensor.storage.data() + static_cast<uint64_t>(place) * bytes, bytes);
    for (size_t i = rank; i-- > 0;) {
      place += tensor.strides[i];
      if (++index[i] < tensor.sizes[i]) break;
      place -= tensor.strides[i] * tensor.sizes[i];
      index[i] = 0;
    }
  }
  return made;
}

}  // namespace tensormill::frontend::pytorch
