/// What a run throws that needs more room than its plan has. Thread-safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill {

/// Error(kTensorData): there are more iterations of a loop, or elements along an axis whose extent data
/// decides, than the plan has room for. Runs of packages that have more room begin again with it (kLoopRoom).
class NoRoom : public Error {
public:
  /// `wanted` of something of which there is room for `had`; nothing: how many there are is not known yet.
  NoRoom(std::string message, int64_t had, std::optional<int64_t> wanted)
      : Error(ErrorCode::kTensorData, std::move(message)), had_(had), wanted_(wanted) {}
  int64_t had() const { return had_; }
  std::optional<int64_t> wanted() const { return wanted_; }

private:
  int64_t had_;
  std::optional<int64_t> wanted_;
};

}  // namespace tensormill
