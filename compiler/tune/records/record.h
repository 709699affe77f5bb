/// Tuning records: JSON lines, one trial a line. Of a record only the schedule's steps are ever replayed; the
/// rest says what was measured, where, and for which kernel. Records come from strangers: parsing checks
/// every member's type and size, and steps are checked again when they are applied.
/// Thread-safety: values and pure functions; a RecordLog belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/schedule/knob.h"
#include "runtime/base/file.h"

namespace tensormill::tune {

/// How a trial ended; the numbers are AutoTVM's.
enum class TrialError : int {
  kNone = 0,
  kInstantiation = 1,  ///< the steps do not apply
  kCompileHost = 2,    ///< lowering or code generation failed
  kRuntime = 4,        ///< the candidate crashed, or returned an error
  kWrongAnswer = 5,
  kBuildTimeout = 6,
  kRunTimeout = 7,
  kUnknown = 8,
};
std::string_view to_text(TrialError error);

struct Record {
  std::string target;     ///< canonical
  std::string task;       ///< the kernel's symbol without its key: what people read
  std::string args;       ///< shapes and types of the kernel's parameters, for people
  std::string task_key;   ///< 64 hex: plan::Kernel::key
  std::string layer;      ///< 64 hex where the kernel is one of several algorithms of a layer, or ""
  std::string algorithm;  ///< then which (driver/layers.h)
  uint64_t index = 0;     ///< in the task's space
  std::vector<schedule::Knob> knobs;  ///< name and chosen value; the candidates are not stored
  bool final = false;                 ///< measured again, in turns with the default, alone or within a model
  bool is_default = false;            ///< the schedule is the analytic default's
  std::string schedule;               ///< schedule::print
  std::vector<double> seconds;        ///< one per repeat; empty after an error
  TrialError error = TrialError::kNone;
  double all_seconds = 0;    ///< build and run together
  double timestamp = 0;      ///< seconds since 1970
  std::string codegen;       ///< the compiler build that made the code
  std::string space_digest;  ///< of names and candidates of the knobs at the default
  std::string cpu;           ///< target::cpu_fingerprint
  int threads = 1;
  std::vector<float> features;  ///< loop_features of the candidate; empty where unknown or of another version

  /// The middle one of `seconds`; infinity after an error.
  double median_seconds() const;
  /// SHA-256 (hex) of what is replayed and for what: task_key, target and schedule.
  std::string id() const;
};

/// One line without a line feed.
std::string to_line(const Record& record);
/// Throws Error(kInvalidRecords).
Record record_from_line(std::string_view line);
/// Calls `each` with the number (from 1), the text and the record of each line that is not empty. Throws
/// Error(kInvalidRecords) with the line's number, for what `each` throws with that code too.
void each_record(std::string_view text,
                 const std::function<void(int number, std::string_view line, Record record)>& each);
/// All lines of a file; empty lines are skipped. Throws Error(kInvalidRecords) with the line's number.
std::vector<Record> parse_records(std::string_view text);

/// The records of a file that may be damaged: lines that are no records are left out, and `skipped` is called
/// with "line N: " and why for each. Throws Error(kInvalidRecords) with the first reason where no line is a
/// record though there are some.
std::vector<Record> readable_records(std::string_view text,
                                     const std::function<void(const std::string& why)>& skipped);

/// A record file that grows by whole lines, each on disk before append returns.
class RecordLog {
public:
  /// Opens or makes the file, and drops a last line that a crash cut short. Throws Error(kIo).
  explicit RecordLog(const std::string& path);
  void append(const Record& record);

private:
  std::string path_;
  FileDescriptor fd_;
};

}  // namespace tensormill::tune
