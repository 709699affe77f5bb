/// Broken copies of models: each is imported, or refused by an error that says what is wrong; nothing else
/// happens. Thread-safety: pure functions.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <string>

#include "runtime/base/error.h"

namespace tensormill::frontend {

/// Imports the copy of that number, which it makes of what `random` says. Throws Error.
using ImportCopy = std::function<void(size_t copy, std::mt19937& random)>;

/// Some copies are imported, and some refused: as broken models are, or by one of the codes `others`.
inline void expect_imported_or_refused(size_t copies, uint32_t seed, const ImportCopy& import_copy,
                                       const std::set<ErrorCode>& others = {}) {
  std::set<ErrorCode> refusals = {ErrorCode::kInvalidModel, ErrorCode::kNotSupported,
                                  ErrorCode::kOperatorNotImplemented, ErrorCode::kTooLarge,
                                  ErrorCode::kMemoryBudget};
  refusals.insert(others.begin(), others.end());
  std::mt19937 random(seed);
  size_t imported = 0, refused = 0;
  for (size_t i = 0; i < copies; ++i) {
    SCOPED_TRACE("copy " + std::to_string(i));
    try {
      import_copy(i, random);
      ++imported;
    } catch (const Error& error) {
      EXPECT_EQ(refusals.count(error.code()), 1u) << error.message();
      ++refused;
    }
  }
  EXPECT_GT(imported, 0u);
  EXPECT_GT(refused, 0u);
}

}  // namespace tensormill::frontend
