/// What a value of a model is. Thread-safety: a value.
#pragma once

#include <cstdint>

namespace tensormill::frontend::onnx {

enum class ValueKind : uint8_t {
  kTensor,
  kSequence,          ///< of tensors
  kOptional,          ///< a tensor or nothing
  kOptionalSequence,  ///< a sequence of tensors or nothing
  kOther,             ///< maps, sparse tensors and nested sequences
};

}  // namespace tensormill::frontend::onnx
