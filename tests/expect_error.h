/// What an action that must fail says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/error.h"

namespace tensormill {

/// The action throws an Error of this code whose message holds `text`.
template <typename Action>
void expect_error(ErrorCode code, const std::string& text, Action&& action) {
  try {
    action();
    ADD_FAILURE() << "no error, expected " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_THAT(error.message(), testing::HasSubstr(text));
  }
}

}  // namespace tensormill
