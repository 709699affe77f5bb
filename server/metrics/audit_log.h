/// Who changed what: one JSON object a line, appended to a file of its own, with the fields ts, request_id,
/// caller, peer, client, method, target and status. Thread-safety: all methods from many threads.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/file.h"
#include "server/metrics/request_log.h"

namespace tensormill::metrics {

class AuditLog {
public:
  /// Appends to `path`, made readable by its owner alone when it is not there; "": keeps nothing. Throws
  /// Error(kUsage) naming the file.
  explicit AuditLog(const std::string& path);
  /// Writes a line when the request may have changed something or was refused for want of a right. Inferences
  /// change nothing. One write() a line, so that lines stay whole; false when the disk took none.
  bool answered(const AnsweredRequest& request) noexcept;
  /// Whether answered() writes a line.
  static bool is_audited(const AnsweredRequest& request);

private:
  FileDescriptor file_;
};

}  // namespace tensormill::metrics
