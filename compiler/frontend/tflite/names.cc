#include <algorithm>
#include <array>

#include "compiler/frontend/tflite/model.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::tflite {

namespace {

struct TypeRow {
  std::string_view name;
  int bits;
};
constexpr std::array kTypes = {
    TypeRow{"float32", 32},     TypeRow{"float16", 16},   TypeRow{"int32", 32},
    TypeRow{"uint8", 8},        TypeRow{"int64", 64},     TypeRow{"string", 0},
    TypeRow{"bool", 8},         TypeRow{"int16", 16},     TypeRow{"complex64", 64},
    TypeRow{"int8", 8},         TypeRow{"float64", 64},   TypeRow{"complex128", 128},
    TypeRow{"uint64", 64},      TypeRow{"resource", 0},   TypeRow{"variant", 0},
    TypeRow{"uint32", 32},      TypeRow{"uint16", 16},    TypeRow{"int4", 4},
    TypeRow{"bfloat16", 16},    TypeRow{"int2", 2},       TypeRow{"uint4", 4},
    TypeRow{"float8e4m3fn", 8}, TypeRow{"float8e5m2", 8},
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

std::string_view builtin_name(int32_t code) {
  const auto* row = std::find_if(std::begin(kOperators), std::end(kOperators),
                                 [&](const OperatorRow& known) { return known.code == code; });
  return row == std::end(kOperators) ? std::string_view() : row->name;
}

std::optional<int32_t> builtin_code(std::string_view name) {
  for (const OperatorRow& row : kOperators)
    if (row.name == name) return row.code;
  return std::nullopt;
}

std::string operator_name(const OperatorCode& code) {
  if (builtin_name(code.builtin) == "CUSTOM") return std::string(code.custom);
  const std::string_view name = builtin_name(code.builtin);
  return name.empty() ? "BUILTIN_" + std::to_string(code.builtin) : std::string(name);
}

}  // namespace tensormill::frontend::tflite
