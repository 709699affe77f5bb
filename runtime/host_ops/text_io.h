/// How host steps read and store strings. Thread-safety: pure functions; a writer belongs to one thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/text.h"
#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

/// The plan may be a stranger's: Error(kInvalidPackage) for what no compiler writes.
void require_text(bool holds, const char* what);
/// The strings of an operand.
Texts texts_of(const HostCall& call, size_t index);

template <typename T>
T* storage(const HostCall& call, size_t index, int64_t count) {
  require_text(call.output_bytes[index] == static_cast<size_t>(count) * sizeof(T),
               "a result of another size");
  return static_cast<T*>(call.outputs[index]);
}

/// Strings of one width; a string that is too long is a bug of the compiler, or of a stranger's plan.
class TextWriter {
public:
  TextWriter(const HostCall& call, size_t index, int64_t count);
  void put(int64_t index, std::string_view text);

private:
  char* data_;
  int64_t count_, width_ = 0;
};

/// Bytes of the UTF-8 letter at the start of `text`, which is not empty.
size_t letter_bytes(std::string_view text);
int64_t letters_of(std::string_view text);

}  // namespace tensormill::host_ops
