#include "runtime/host_ops/text_io.h"

#include <cstring>
#include <string>

#include "runtime/base/error.h"

namespace tensormill::host_ops {

void require_text(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::kInvalidPackage, std::string("a host step on strings has ") + what);
}

Texts texts_of(const HostCall& call, size_t index) {
  const TensorView& view = call.inputs[index];
  require_text(view.dtype == kString && !view.shape.empty() && view.shape.back() > 0,
               "an operand without strings");
  return Texts(view);
}

TextWriter::TextWriter(const HostCall& call, size_t index, int64_t count)
    : data_(static_cast<char*>(call.outputs[index])), count_(count) {
  const auto bytes = static_cast<int64_t>(call.output_bytes[index]);
  require_text(count == 0 ? bytes == 0 : bytes % count == 0, "a result of another size");
  width_ = count == 0 ? 0 : bytes / count;
  if (bytes != 0) std::memset(data_, 0, static_cast<size_t>(bytes));
}

void TextWriter::put(int64_t index, std::string_view text) {
  require_text(index < count_ && static_cast<int64_t>(text.size()) <= width_, "a result of another size");
  text.copy(data_ + index * width_, text.size());
}

size_t letter_bytes(std::string_view text) {
  size_t bytes = 1;
  while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
  return bytes;
}

int64_t letters_of(std::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); text.remove_prefix(letter_bytes(text))) ++count;
  return count;
}

}  // namespace tensormill::host_ops
