/// A bound for what a reader looks at or makes of a file that may name a part of itself many times.
/// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::frontend::wire {

class WorkBudget {
public:
  /// `what`: of what there are at most `allowed`, for the error.
  WorkBudget(std::string what, uint64_t allowed)
      : what_(std::move(what)), allowed_(allowed), left_(allowed) {}
  /// Throws Error(kInvalidModel) where there would be more in all.
  void spend(uint64_t count) {
    if (count > left_)
      throw Error(ErrorCode::kInvalidModel, "the file names more than " + std::to_string(allowed_) + " " +
                                                what_ + ", more than fit into it");
    left_ -= count;
  }

private:
  std::string what_;
  uint64_t allowed_, left_;
};

}  // namespace tensormill::frontend::wire
