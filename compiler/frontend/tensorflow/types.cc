#include <array>

#include "compiler/build/rows.h"
#include "compiler/frontend/tensorflow/loaded_model.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::tensorflow {

namespace {

struct DataTypeRow {
  DataType type;
  std::string_view name;
  int64_t bytes;
  std::optional<DType> dtype;  ///< of tensors
};
constexpr std::array kDataTypes = {
    DataTypeRow{DataType::kFloat, "float32", 4, DType::kFloat32},
    DataTypeRow{DataType::kDouble, "float64", 8, DType::kFloat64},
    DataTypeRow{DataType::kInt32, "int32", 4, DType::kInt32},
    DataTypeRow{DataType::kUInt8, "uint8", 1, DType::kUInt8},
    DataTypeRow{DataType::kInt16, "int16", 2, DType::kInt16},
    DataTypeRow{DataType::kInt8, "int8", 1, DType::kInt8},
    DataTypeRow{DataType::kString, "string", 0, kString},
    DataTypeRow{DataType::kComplex64, "complex64", 8, std::nullopt},
    DataTypeRow{DataType::kInt64, "int64", 8, DType::kInt64},
    DataTypeRow{DataType::kBool, "bool", 1, DType::kBool},
    DataTypeRow{DataType::kQInt8, "qint8", 1, DType::kInt8},
    DataTypeRow{DataType::kQUInt8, "quint8", 1, DType::kUInt8},
    DataTypeRow{DataType::kQInt32, "qint32", 4, DType::kInt32},
    DataTypeRow{DataType::kBFloat16, "bfloat16", 2, DType::kBFloat16},
    DataTypeRow{DataType::kQInt16, "qint16", 2, DType::kInt16},
    DataTypeRow{DataType::kQUInt16, "quint16", 2, DType::kUInt16},
    DataTypeRow{DataType::kUInt16, "uint16", 2, DType::kUInt16},
    DataTypeRow{DataType::kComplex128, "complex128", 16, std::nullopt},
    DataTypeRow{DataType::kHalf, "float16", 2, DType::kFloat16},
    DataTypeRow{DataType::kResource, "resource", 0, std::nullopt},
    DataTypeRow{DataType::kVariant, "variant", 0, std::nullopt},
    DataTypeRow{DataType::kUInt32, "uint32", 4, DType::kUInt32},
    DataTypeRow{DataType::kUInt64, "uint64", 8, DType::kUInt64},
    DataTypeRow{DataType::kFloat8E5M2, "float8e5m2", 1, std::nullopt},
    DataTypeRow{DataType::kFloat8E4M3FN, "float8e4m3fn", 1, std::nullopt},
    DataTypeRow{DataType::kInt4, "int4", 1, std::nullopt},
    DataTypeRow{DataType::kUInt4, "uint4", 1, std::nullopt},
    DataTypeRow{DataType::kInt2, "int2", 1, std::nullopt},
    DataTypeRow{DataType::kUInt2, "uint2", 1, std::nullopt},
};

const DataTypeRow* data_type_row(DataType type) {
  return build::find_in(kDataTypes, &DataTypeRow::type, type);
}

}  // namespace

std::string_view type_name(DataType type) {
  const DataTypeRow* row = data_type_row(type);
  return row == nullptr ? std::string_view() : row->name;
}

DataType type_named(std::string_view name) {
  const DataTypeRow* row = build::find_in(kDataTypes, &DataTypeRow::name, name);
  return row == nullptr ? DataType::kInvalid : row->type;
}

int64_t type_bytes(DataType type) {
  const DataTypeRow* row = data_type_row(type);
  return row == nullptr ? 0 : row->bytes;
}

std::optional<DType> dtype_of(DataType type) {
  const DataTypeRow* row = data_type_row(type);
  return row == nullptr ? std::nullopt : row->dtype;
}

}  // namespace tensormill::frontend::tensorflow
