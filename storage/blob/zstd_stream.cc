#include "storage/blob/zstd_stream.h"

#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace tensormill::storage {

void decompress(std::string_view stored, int target, const std::string& name) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  TM_CHECK(context != nullptr, "zstd has no context");
  std::string buffer(ZSTD_DStreamOutSize(), '\0');
  ZSTD_inBuffer input{stored.data(), stored.size(), 0};
  size_t expected = 1;
  bool more = true;
  while (more) {
    ZSTD_outBuffer output{buffer.data(), buffer.size(), 0};
    expected = ZSTD_decompressStream(context.get(), &output, &input);
    if (ZSTD_isError(expected) != 0) {
      throw Error(ErrorCode::kCorrupt, name + ": " + ZSTD_getErrorName(expected));
    }
    write_all(target, std::string_view(buffer.data(), output.pos), name);
    // A full output buffer may hide more that is decoded already, but not at the end of a frame: another call
    // would begin the next one, of which there are no bytes.
    more = input.pos < input.size || (expected != 0 && output.pos == output.size);
  }
  if (expected != 0) throw Error(ErrorCode::kCorrupt, name + ": the zstd frame is cut off");
  if (::lseek(target, 0, SEEK_SET) != 0) throw_errno(errno, "cannot rewind " + name);
}

}  // namespace tensormill::storage
