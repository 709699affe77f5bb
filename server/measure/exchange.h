/// What passes between the tuner and the child that runs its candidates: object code and tensors through two
/// memory files, requests and answers as JSON. This is the tuner's side, in whichever process it is.
/// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/tune/measure.h"
#include "runtime/base/file.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::measure {

class Exchange {
public:
  /// Of the code and of the tensors; borrowed.
  Exchange(int code_fd, int tensor_fd) : code_fd_(code_fd), tensor_fd_(tensor_fd) {}
  /// Writes the inputs; the workload is borrowed until the next call.
  void set_workload(const tune::Workload& workload);
  /// Writes the code of all, and has a place for the outputs of each: the requests that ask for their runs.
  std::vector<Json> requests(std::span<const tune::Run> runs, const tune::MeasureOptions& options);
  /// What the answer to the request at `place` means: {"code","overrun","seconds"}, whose outputs are
  /// checked, or {"error","message"} of a child that gave none.
  tune::Measurement read(size_t place, const Json& answer) const;

private:
  struct Region {
    int64_t offset = 0;
    int64_t bytes = 0;
    bool is_output = false;
  };
  tune::Measurement check(size_t place, int32_t code) const;

  int code_fd_;
  int tensor_fd_;
  const tune::Workload* workload_ = nullptr;
  std::vector<Region> regions_;  ///< with the outputs of the request at place 0
  int64_t inputs_end_ = 0;
  int64_t outputs_bytes_ = 0;  ///< from one request's outputs to the next one's
};

/// A part of the tensors' file, as a request names it.
struct NamedBuffer {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool is_output = false;
  uint64_t end() const { return offset + bytes; }
};
/// Of a request that may be a stranger's; none where it names none. Ends do not overflow. Throws
/// Error(kWrongAnswer) for what is no buffer.
std::vector<NamedBuffer> buffers_of(const Json& request);
/// Where the code that it names ends in the code's file, in bytes; 0 where it names none. Throws as above.
uint64_t code_end_of(const Json& request);

/// {"error","message"}
Json failure_json(tune::TrialError error, const std::string& message);

}  // namespace tensormill::measure
