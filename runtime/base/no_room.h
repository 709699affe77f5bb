/// What a run throws that needs more capacity than its plan has. Thread-safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill {

/// Error(kTensorData): there are more iterations of a loop, or elements along an axis whose extent data
/// decides, than the plan has capacity for. Runs of packages that have more begin again with it (kLoopRoom).
class NoRoom : public Error {
public:
  /// `wanted` of something of which there is capacity for `had`; nothing: how many there are is not known
  /// yet. `rooms`: what `had` is made of, bit i for capacity i; none: no capacity is too small.
  NoRoom(std::string message, int64_t had, std::optional<int64_t> wanted, uint64_t rooms)
      : Error(ErrorCode::kTensorData, std::move(message)), had_(had), wanted_(wanted), rooms_(rooms) {}
  int64_t had() const { return had_; }
  std::optional<int64_t> wanted() const { return wanted_; }
  uint64_t rooms() const { return rooms_; }

private:
  int64_t had_;
  std::optional<int64_t> wanted_;
  uint64_t rooms_;
};

}  // namespace tensormill
