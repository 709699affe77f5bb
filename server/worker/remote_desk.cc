#include "server/worker/remote_desk.h"

#include <unistd.h>

#include <array>

#include "runtime/base/error.h"
#include "runtime/package/metadata.h"
#include "server/services/jobs/compile_action.h"

namespace tensormill::worker {
namespace {

/// A file that goes with the object, unless it was moved away.
class PartFile {
public:
  explicit PartFile(std::string path) : path_(std::move(path)) {}
  ~PartFile() { ::unlink(path_.c_str()); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

Digest input_of(const LeasedItem& item, const std::string& name) {
  const auto found = item.inputs.find(name);
  if (found == item.inputs.end()) throw Error(ErrorCode::kNotFound, "the lease has no " + name);
  return found->second;
}

}  // namespace

std::shared_ptr<const storage::Blob> RemoteDesk::fetch(jobs::JobContext& context, const std::string& lease,
                                                       const Digest& digest) {
  if (auto blob = cache_.open(digest, storage::BlobForm::kPlain, true)) return blob;
  const PartFile part(cache_.temporary());
  link_.get_file("/v1/workers/leases/" + lease + "/blobs/" + digest.text(), part.path(), max_bytes_,
                 [&] { context.keep_alive(); });
  try {
    return cache_.admit(part.path(), digest, storage::BlobForm::kPlain, true);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) throw;
    throw Error(ErrorCode::kDigestMismatch, "the server sent other bytes for the blob " + digest.text());
  }
}

std::shared_ptr<const storage::Blob> RemoteDesk::open_model(jobs::JobContext& context, const Json&) {
  const LeasedItem item = source_.item(context.job().id);
  return fetch(context, item.lease, input_of(item, "model"));
}

server::Tuned RemoteDesk::tuned(jobs::JobContext& context, Json& resolved,
                                const std::vector<std::string>& kernels) {
  const LeasedItem item = source_.item(context.job().id);
  const Json tuned = server::has_pending_records(resolved) || !item.tuned
                         ? source_.settle(context.job().id, kernels, resolved)
                         : *item.tuned;
  try {
    return server::tuned_from_json(tuned);
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kInvalidRecords, std::string("the lease's tuning records: ") + error.what());
  }
}

std::shared_ptr<const storage::Blob> RemoteDesk::open_inputs(jobs::JobContext& context, const Json&) {
  const LeasedItem item = source_.item(context.job().id);
  return fetch(context, item.lease, input_of(item, "inputs"));
}

std::shared_ptr<const storage::Blob> RemoteDesk::open_blob(jobs::JobContext& context, const Json&,
                                                           const std::string& name) {
  const LeasedItem item = source_.item(context.job().id);
  return fetch(context, item.lease, input_of(item, name));
}

server::MemberBlobs RemoteDesk::open_members(jobs::JobContext& context, const Json&) {
  const LeasedItem item = source_.item(context.job().id);
  constexpr std::array<std::string_view, 4> kMembers = {package::kMetadataMember, package::kPlanMember,
                                                        package::kCodeMember, package::kParamsMember};
  server::MemberBlobs members;
  for (const std::string_view name : kMembers)
    members[std::string(name)] = fetch(context, item.lease, input_of(item, std::string(name)));
  return members;
}

}  // namespace tensormill::worker
