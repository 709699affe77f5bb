#include <algorithm>
#include <array>

#include "compiler/frontend/tensorflow/model.h"

namespace tensormill::frontend::tensorflow {

namespace {

struct DataTypeRow {
  DataType type;
  std::string_view name;
  int64_t bytes;
};
constexpr std::array kDataTypes = {
    DataTypeRow{DataType::kFloat, "float32", 4},
    DataTypeRow{DataType::kDouble, "float64", 8},
    DataTypeRow{DataType::kInt32, "int32", 4},
    DataTypeRow{DataType::kUInt8, "uint8", 1},
    DataTypeRow{DataType::kInt16, "int16", 2},
    DataTypeRow{DataType::kInt8, "int8", 1},
    DataTypeRow{DataType::kString, "string", 0},
    DataTypeRow{DataType::kComplex64, "complex64", 8},
    DataTypeRow{DataType::kInt64, "int64", 8},
    DataTypeRow{DataType::kBool, "bool", 1},
    DataTypeRow{DataType::kQInt8, "qint8", 1},
    DataTypeRow{DataType::kQUInt8, "quint8", 1},
    DataTypeRow{DataType::kQInt32, "qint32", 4},
    DataTypeRow{DataType::kBFloat16, "bfloat16", 2},
    DataTypeRow{DataType::kQInt16, "qint16", 2},
    DataTypeRow{DataType::kQUInt16, "quint16", 2},
    DataTypeRow{DataType::kUInt16, "uint16", 2},
    DataTypeRow{DataType::kComplex128, "complex128", 16},
    DataTypeRow{DataType::kHalf, "float16", 2},
    DataTypeRow{DataType::kResource, "resource", 0},
    DataTypeRow{DataType::kVariant, "variant", 0},
    DataTypeRow{DataType::kUInt32, "uint32", 4},
    DataTypeRow{DataType::kUInt64, "uint64", 8},
    DataTypeRow{DataType::kFloat8E5M2, "float8e5m2", 1},
    DataTypeRow{DataType::kFloat8E4M3FN, "float8e4m3fn", 1},
    DataTypeRow{DataType::kInt4, "int4", 1},
    DataTypeRow{DataType::kUInt4, "uint4", 1},
    DataTypeRow{DataType::kInt2, "int2", 1},
    DataTypeRow{DataType::kUInt2, "uint2", 1},
};

const DataTypeRow* data_type_row(DataType type) {
  const auto* row = std::find_if(kDataTypes.begin(), kDataTypes.end(),
                                 [&](const DataTypeRow& each) { return each.type == type; });
  return row == kDataTypes.end() ? nullptr : row;
}

}  // namespace

std::string_view type_name(DataType type) {
  const DataTypeRow* row = data_type_row(type);
  return row == nullptr ? std::string_view() : row->name;
}

DataType type_named(std::string_view name) {
  const auto* row = std::find_if(kDataTypes.begin(), kDataTypes.end(),
                                 [&](const DataTypeRow& each) { return each.name == name; });
  return row == kDataTypes.end() ? DataType::kInvalid : row->type;
}

int64_t type_bytes(DataType type) {
  const DataTypeRow* row = data_type_row(type);
  return row == nullptr ? 0 : row->bytes;
}

}  // namespace tensormill::frontend::tensorflow
