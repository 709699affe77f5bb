/// Helpers of the storage tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "runtime/base/error.h"

/// `statement` throws tensormill::Error of this code.
#define EXPECT_ERROR(statement, expected_code)                                \
  do {                                                                        \
    try {                                                                     \
      (void)(statement);                                                      \
      ADD_FAILURE() << #statement " throws nothing";                          \
    } catch (const ::tensormill::Error& caught_error) {                       \
      EXPECT_EQ(caught_error.code(), (expected_code)) << caught_error.what(); \
    }                                                                         \
  } while (false)

namespace tensormill::storage {

/// A fresh folder that goes with the object.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "storage-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw_errno(errno, "cannot make " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

}  // namespace tensormill::storage
