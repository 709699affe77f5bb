/// The bytes of mod.params: segments at their offsets and zeros between, whatever pieces they are written in.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "compiler/package/writer.h"
#include "runtime/base/file.h"

namespace tensormill::driver_test {
namespace {

constexpr int64_t kPiece = int64_t{2} << 20;

Tensor counted(int64_t bytes, int64_t first) {
  Tensor tensor(DType::kUInt8, {bytes});
  auto* data = static_cast<uint8_t*>(tensor.data());
  for (int64_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>((first + i) % 251);
  return tensor;
}

/// Segments of `sizes`, with a gap of 64 bytes before each, and what the file must hold.
void expect_written(const std::vector<int64_t>& sizes) {
  std::vector<plan::ParamSegment> segments;
  std::string expected;
  for (const int64_t size : sizes) {
    expected.append(64, '\0');
    const int64_t offset = static_cast<int64_t>(expected.size());
    segments.push_back({offset, counted(size, offset)});
    expected.append(static_cast<const char*>(segments.back().tensor.data()), static_cast<size_t>(size));
  }
  expected.append(7, '\0');
  const std::string path = testing::TempDir() + "params-" + std::to_string(::getpid());
  {
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    ASSERT_TRUE(file.valid());
    package::write_params(file.get(), segments, static_cast<int64_t>(expected.size()), "mod.params");
  }
  EXPECT_TRUE(read_file(path) == expected);
  std::filesystem::remove(path);
}

TEST(WriteParams, EndsWithinAPiece) { expect_written({5}); }
TEST(WriteParams, EndsWithAPiece) { expect_written({kPiece - 64 - 7}); }
TEST(WriteParams, SegmentsLieAcrossPieces) { expect_written({kPiece - 100, 2 * kPiece, 3}); }

}  // namespace
}  // namespace tensormill::driver_test
