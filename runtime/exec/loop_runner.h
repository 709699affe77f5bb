/// The two steps of a loop, as runtime/package/loops.h says. Thread-safety: as the executor that owns it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/package/loops.h"

namespace tensormill::exec {

/// One loop over buffers that have their addresses. Nothing is checked but how many parts there are places
/// for: validate_plan has checked the rest.
class LoopRunner {
public:
  using AddressOf = std::function<void*(int32_t buffer)>;
  /// `staged`: memory of package::staged_bytes, or null for none.
  LoopRunner(const package::ExecPlan& plan, package::Loop loop, const AddressOf& address, std::byte* staged);
  LoopRunner(LoopRunner&&) = default;
  LoopRunner& operator=(LoopRunner&&) = default;

  const package::Loop& loop() const { return loop_; }
  int64_t trip() const { return trip_; }  ///< of the iteration that runs, from 0
  /// Runs the loop's first step, or its last one; returns the step that is next. Throws
  /// Error(kTensorData) where there are more iterations than places for their parts.
  size_t begin();
  size_t end();
  /// Is in the iteration that `other` is in, of the same loop with other addresses.
  void take_over(const LoopRunner& other) {
    trip_ = other.trip_;
    limit_ = other.limit_;
  }

private:
  struct Copy {
    const std::byte* from;
    std::byte* to;
    size_t bytes;
  };
  /// Row i of `whole`, of `bytes` each, and the one row.
  struct Row {
    std::byte* whole;
    std::byte* row;
    size_t bytes;
  };

  void find_limit();
  size_t next_iteration(bool goes_on);
  size_t leave();
  [[noreturn]] void refuse_more() const;

  package::Loop loop_;
  const int64_t* max_trips_ = nullptr;
  const uint8_t *first_condition_ = nullptr, *next_condition_ = nullptr;
  int64_t *iteration_ = nullptr, *trips_ = nullptr;
  std::vector<Copy> enter_, leave_;
  std::vector<Copy> stage_, next_;  ///< what would be overwritten before it is read is staged first
  std::vector<Row> rows_, parts_;
  int64_t scanned_extent_ = INT64_MAX, stacked_extent_ = INT64_MAX;
  int64_t trip_ = 0, limit_ = 0;
};

}  // namespace tensormill::exec
