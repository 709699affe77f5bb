/// Labels: what distinguishes workers and what a job may ask of one: "board=rpi4". A text of several is
/// sorted, each once, with commas between. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensormill::http {

/// As many as one worker, or one job, may name: each set of a worker's is looked for in the queue.
inline constexpr size_t kMaxLabels = 6;

/// NAME=VALUE, of 1 to 64 letters, digits, '.', '_' and '-' each.
bool is_label(std::string_view text);
/// "b=2,a=1" -> {"a=1","b=2"}; {} for "". Throws Error(kInvalidArgument) for what is no label, a name that is
/// there twice, more than kMaxLabels.
std::vector<std::string> parse_labels(std::string_view text);
/// The text of sorted labels.
std::string join_labels(const std::vector<std::string>& labels);
/// The texts of all sets that can be made of sorted labels, "" among them.
std::vector<std::string> label_sets(const std::vector<std::string>& labels);

}  // namespace tensormill::http
