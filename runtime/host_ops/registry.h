/// Steps that cannot be kernels: results whose shape depends on data, sequences, control flow. Each is one
/// function and one row of host_ops.def.
/// Thread-safety: they are pure functions, but for those of an executor's growing buffers, and may be called
/// from several threads at once.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "runtime/base/tensor.h"

namespace tensormill::host_ops {

class GrowingBuffers;
/// A host step's attributes, read from their text.
struct ReadAttributes;

struct HostCall {
  std::span<const TensorView> inputs;
  std::span<void* const> outputs;        ///< storage of the sizes that the memory plan gives
  std::span<const size_t> output_bytes;  ///< of each; a function that needs another size throws
  std::string_view attributes;           ///< JSON text, or ""
  bool common_pictures = false;          ///< no other picture's file is decoded (image::PictureFiles)
  GrowingBuffers* growing = nullptr;     ///< of the executor; null where there is none
  const ReadAttributes* read = nullptr;  ///< the attributes, where they were read before
};

/// For all calls with this text. Null where it is no object, of which the step says so when it runs, or long:
/// such as a vocabulary, which nobody should keep twice.
std::shared_ptr<const ReadAttributes> read_attributes(std::string_view text);

using HostFunction = void (*)(const HostCall& call);

/// Null when there is no such row.
HostFunction find_host_op(std::string_view name);

}  // namespace tensormill::host_ops
