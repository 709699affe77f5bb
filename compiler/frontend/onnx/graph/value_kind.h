/// What a value of a model is. Thread-safety: a value.
#pragma once

#include <cstdint>

namespace tensormill::frontend::onnx {

enum class ValueKind : uint8_t {
  kTensor,
  kSequence,          ///< of tensors
  kOptional,          ///< a tensor or nothing
  kOptionalSequence,  ///< a sequence of tensors or nothing
  kMap,               ///< from integers or strings to scalars
  kOther,             ///< sparse tensors, nested sequences and sequences of maps
};

/// Behind the name of an output: the extents of a sequence's elements, and whether there is an optional
/// value.
inline constexpr const char* kExtentsOf = ".extents";
inline constexpr const char* kPresenceOf = ".present";

}  // namespace tensormill::frontend::onnx
