/// What a model's file says for people of one of its inputs or outputs. Thread-safety: values, pure
/// functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/json_fwd.h"

namespace tensormill {

struct ValueNotes {
  /// Of an input that is a picture: a sample x of 0 to 255 becomes (x - mean) / std, by channel, or one for
  /// all. Both empty or neither.
  std::vector<double> mean, std;
  std::vector<std::string> labels;  ///< of an output: the names of its classes; UTF-8
  bool empty() const { return mean.empty() && labels.empty(); }
  bool operator==(const ValueNotes&) const = default;
};
/// By the name of an input or output.
using NotesByName = std::map<std::string, ValueNotes>;

/// Labels that a model may carry: how many, and of how many bytes.
inline constexpr size_t kMostNotedLabels = size_t{1} << 16;
inline constexpr size_t kMostNotedBytes = size_t{1} << 20;

/// {"mean": [127.5], "std": [127.5], "labels": ["cat"]}: what there is of it.
Json notes_to_json(const ValueNotes& notes);
/// Throws Error(kInvalidJson) for what is no such object, or has a std of 0.
ValueNotes notes_from_json(const Json& json);

}  // namespace tensormill
