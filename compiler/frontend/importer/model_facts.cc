#include "compiler/frontend/importer/model_facts.h"

namespace tensormill::frontend {

ModelFacts model_facts(const std::string& writer, const FileFacts& file) {
  ModelFacts facts;
  facts.producer = writer + file.version;
  facts.ops = file.ops;
  facts.parameters = file.parameters;
  facts.weight_bytes = file.weight_bytes;
  return facts;
}

SignatureValue signature_value(std::string_view name, std::optional<DType> dtype, DimShape shape) {
  SignatureValue value;
  value.name = name;
  value.kind = dtype ? ValueKind::kTensor : ValueKind::kOther;
  value.dtype = dtype.value_or(DType::kUInt8);
  value.shape = std::move(shape);
  return value;
}

}  // namespace tensormill::frontend
