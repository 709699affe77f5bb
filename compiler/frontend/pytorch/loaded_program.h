/// A .pt2 file that is read once and imported at many shapes. Thread-safety: all functions may be called at
/// once.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "compiler/frontend/pytorch/model.h"
#include "runtime/base/file.h"
#include "runtime/base/tensor.h"

namespace tensormill::frontend::pytorch {

/// The type in which tensors have such elements here; nothing for complex numbers and float8.
std::optional<DType> dtype_of(ScalarType type);
/// The type of the parts of complex numbers; nothing for other types, and for complex32.
std::optional<DType> part_type(ScalarType type);

/// Whether the elements lie row after row, none apart.
bool lies_in_rows(const StoredTensor& tensor);

class LoadedProgram {
public:
  /// Throws as read_program.
  explicit LoadedProgram(std::shared_ptr<const MappedFile> file);
  /// What a file says that was read by another reader.
  LoadedProgram(std::shared_ptr<const MappedFile> file, Program program);
  const Program& program() const { return program_; }

  /// A parameter, buffer or constant in row-major order: mapped where it lies so and aligned. Complex
  /// elements are pairs along a last axis of 2. Throws Error(kNotSupported) for elements of a type that no
  /// tensor has, Error(kTooLarge).
  Tensor constant(const StoredTensor& stored) const;

private:
  /// `stored`, or what stands for it.
  Tensor read(const StoredTensor& tensor, const StoredTensor& stored) const;

  std::shared_ptr<const MappedFile> file_;
  Program program_;
  mutable std::mutex mutex_;
  mutable std::map<const StoredTensor*, Tensor> made_;
};

}  // namespace tensormill::frontend::pytorch
