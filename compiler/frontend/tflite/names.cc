#include <array>

#include "compiler/build/rows.h"
#include "compiler/frontend/tflite/loaded_model.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::tflite {

namespace {

struct TypeRow {
  std::string_view name;
  int bits;
  std::optional<DType> dtype;  ///< of tensors
};
constexpr std::array kTypes = {
    TypeRow{"float32", 32, DType::kFloat32},   TypeRow{"float16", 16, DType::kFloat16},
    TypeRow{"int32", 32, DType::kInt32},       TypeRow{"uint8", 8, DType::kUInt8},
    TypeRow{"int64", 64, DType::kInt64},       TypeRow{"string", 0, kString},
    TypeRow{"bool", 8, DType::kBool},          TypeRow{"int16", 16, DType::kInt16},
    TypeRow{"complex64", 64, std::nullopt},    TypeRow{"int8", 8, DType::kInt8},
    TypeRow{"float64", 64, DType::kFloat64},   TypeRow{"complex128", 128, std::nullopt},
    TypeRow{"uint64", 64, DType::kUInt64},     TypeRow{"resource", 0, std::nullopt},
    TypeRow{"variant", 0, std::nullopt},       TypeRow{"uint32", 32, DType::kUInt32},
    TypeRow{"uint16", 16, DType::kUInt16},     TypeRow{"int4", 4, DType::kInt8},
    TypeRow{"bfloat16", 16, DType::kBFloat16}, TypeRow{"int2", 2, DType::kInt8},
    TypeRow{"uint4", 4, DType::kUInt8},        TypeRow{"float8e4m3fn", 8, std::nullopt},
    TypeRow{"float8e5m2", 8, std::nullopt},
};

struct OperatorRow {
  std::string_view name;
  int32_t code;
};
constexpr OperatorRow kOperators[] = {
#define TFL_OPERATOR(name, code) {#name, code},
#include "compiler/frontend/tflite/operators.def"
#undef TFL_OPERATOR
};

const TypeRow& row_of(TensorType type) { return kTypes.at(static_cast<size_t>(type)); }

}  // namespace

std::string_view type_name(TensorType type) { return row_of(type).name; }
int type_bits(TensorType type) { return row_of(type).bits; }
std::optional<DType> dtype_of(TensorType type) { return row_of(type).dtype; }

std::string_view builtin_name(int32_t code) {
  const OperatorRow* row = build::find_in(kOperators, &OperatorRow::code, code);
  return row == nullptr ? std::string_view() : row->name;
}

std::string operator_name(const OperatorCode& code) {
  if (builtin_name(code.builtin) == "CUSTOM") return std::string(code.custom);
  const std::string_view name = builtin_name(code.builtin);
  return name.empty() ? "BUILTIN_" + std::to_string(code.builtin) : std::string(name);
}

}  // namespace tensormill::frontend::tflite
