#include "server/services/jobs/child_runner.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "runtime/base/error.h"

namespace tensormill::server {

namespace {

/// A folder for as long as its child lives.
class Folder {
public:
  explicit Folder(std::string path) : path_(std::move(path)) {
    std::error_code failed;
    std::filesystem::create_directories(path_, failed);
    if (failed) throw_errno(failed.value(), "cannot create " + path_);
  }
  ~Folder() {
    std::error_code ignored;  // what stays is removed at the next start
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

}  // namespace

ChildRunner::ChildRunner(std::string folder, jobs::ChildSlots& slots,
                         std::shared_ptr<const jobs::ChildPolicy> policy)
    : folder_(std::move(folder)), slots_(slots), policy_(std::move(policy)) {
  std::error_code failed;
  std::filesystem::remove_all(folder_, failed);
  if (!failed) std::filesystem::create_directories(folder_, failed);
  if (failed) throw_errno(failed.value(), "cannot empty " + folder_);
}

std::string ChildRunner::run(jobs::ChildSpec spec, const std::stop_token& cancelled,
                             Clock::time_point deadline) {
  return run(
      spec.limits.data_bytes, [&spec] { return std::move(spec); }, cancelled, deadline);
}

std::string ChildRunner::run(uint64_t memory, const std::function<jobs::ChildSpec()>& make,
                             const std::stop_token& cancelled, Clock::time_point deadline) {
  const jobs::ChildSlots::SlotPtr slot = slots_.for_request(memory, cancelled, deadline);
  jobs::ChildSpec spec = make();
  const Folder folder(folder_ + "/" + std::to_string(next_.fetch_add(1)));
  spec.folder = folder.path();
  spec.policy = policy_;
  jobs::ChildProcess child(spec);
  const std::stop_callback on_cancel(cancelled, [&child] { child.cancel(); });
  std::optional<jobs::ChildOutcome> outcome;
  while (!outcome) {
    outcome = child.poll(std::chrono::seconds(1), [](const std::string&, const std::string&) {});
  }
  if (outcome->end == jobs::ChildEnd::kOk) return outcome->result;
  if (outcome->end == jobs::ChildEnd::kCancelled) {
    throw Error(ErrorCode::kCancelled, "the client has gone");
  }
  TM_CHECK(outcome->error.has_value(), "a child failed without an error");
  throw *outcome->error;
}

}  // namespace tensormill::server
