#include "runtime/base/sha256.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "runtime/base/digest.h"

namespace tensormill {
namespace {

TEST(Sha256, AnswersTheStandardsExamples) {
  Sha256 hasher;
  hasher.update("abc");
  EXPECT_EQ(Digest(hasher.finish()).hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Digest(hasher.finish()).hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, EqualsTheSystemsLibraryForEveryLengthInAnyPieces) {
  std::mt19937 random(1);
  std::string bytes;
  for (int length = 0; length < 300; ++length) {
    Sha256 hasher;
    for (size_t at = 0; at < bytes.size();) {
      const size_t piece = std::min<size_t>(1 + random() % 97, bytes.size() - at);
      hasher.update(std::string_view(bytes).substr(at, piece));
      at += piece;
    }
    EXPECT_EQ(Digest(hasher.finish()), Digest::of(bytes)) << length;
    bytes += static_cast<char>(random() % 256);
  }
}

}  // namespace
}  // namespace tensormill
