#include "storage/catalog/rows.h"

#include <array>
#include <utility>

namespace tensormill::storage {
namespace {

constexpr std::array<std::pair<JobState, std::string_view>, 5> kStates = {{
    {JobState::kQueued, "queued"},
    {JobState::kRunning, "running"},
    {JobState::kSucceeded, "succeeded"},
    {JobState::kFailed, "failed"},
    {JobState::kCancelled, "cancelled"},
}};

}  // namespace

std::string_view job_state_name(JobState state) {
  for (const auto& [value, name] : kStates) {
    if (value == state) return name;
  }
  return "";
}

std::optional<JobState> job_state_from_name(std::string_view name) {
  for (const auto& [value, text] : kStates) {
    if (text == name) return value;
  }
  return std::nullopt;
}

bool is_final(JobState state) { return state != JobState::kQueued && state != JobState::kRunning; }

}  // namespace tensormill::storage
