#include "api/services/job_service.h"

#include <algorithm>
#include <array>

namespace tensormill::services {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"queued", "running", "succeeded", "failed", "cancelled"};

}  // namespace

std::string_view job_state_name(JobState state) { return kNames[static_cast<size_t>(state)]; }

std::optional<JobState> job_state_from_name(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<JobState>(i);
  }
  return std::nullopt;
}

bool is_final(JobState state) { return state != JobState::kQueued && state != JobState::kRunning; }

std::string_view job_verdict(const JobError& error) {
  const auto is_of_labels = [](const ErrorDetail& detail) { return detail.pointer == kOnWhat; };
  switch (error.code) {
    case ErrorCode::kWrongAnswer:
      return "wrong_answer";
    case ErrorCode::kDeadlineExceeded:
      return std::any_of(error.details.begin(), error.details.end(), is_of_labels) ? "timed_out_in_queue"
                                                                                   : "timed_out";
    case ErrorCode::kUnavailable:  // of what a job needs it waits for the return
      return "device_lost";
    case ErrorCode::kJobFailed:
      return "crashed";
    case ErrorCode::kMemoryBudget:
      return "out_of_memory";
    default:
      return error_code_info(error.code).http_status < 500 ? "refused" : "failed";
  }
}

}  // namespace tensormill::services
