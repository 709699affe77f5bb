#include "runtime/base/base64.h"

#include <gtest/gtest.h>

#include "tests/expect_error.h"

namespace tensormill {
namespace {

TEST(Base64, ReadsBothAlphabetsWithAndWithoutTheEnd) {
  EXPECT_EQ(from_base64("", ErrorCode::kInvalidArgument), "");
  EXPECT_EQ(from_base64("Zg==", ErrorCode::kInvalidArgument), "f");
  EXPECT_EQ(from_base64("Zm8", ErrorCode::kInvalidArgument), "fo");
  EXPECT_EQ(from_base64("Zm9v", ErrorCode::kInvalidArgument), "foo");
  EXPECT_EQ(from_base64("+/-_", ErrorCode::kInvalidArgument), "\xfb\xff\xbf");
}

TEST(Base64, WhatIsNoneIsTheCallersError) {
  expect_error(ErrorCode::kInvalidModel, "letter 2", [] { from_base64("Zm v", ErrorCode::kInvalidModel); });
  expect_error(ErrorCode::kInvalidArgument, "cut off",
               [] { from_base64("Zm9vZ", ErrorCode::kInvalidArgument); });
}

}  // namespace
}  // namespace tensormill
