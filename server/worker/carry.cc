#include "server/worker/carry.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "api/services/worker_service.h"
#include "compiler/driver/compile.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/services/jobs/carried_work.h"

namespace tensormill::worker {
namespace {

/// Files that go with the object, whatever of them was made.
class Parts {
public:
  explicit Parts(std::string begin) : begin_(std::move(begin)) {}
  ~Parts() {
    for (const std::string& path : paths_) ::unlink(path.c_str());
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  const std::string& add() {
    paths_.push_back(begin_ + "." + std::to_string(paths_.size()) + ".part");
    ::unlink(paths_.back().c_str());
    return paths_.back();
  }

private:
  const std::string begin_;
  std::vector<std::string> paths_;
};

}  // namespace

std::string take_item(ServerLink& link, const TakeOptions& options, const std::string& file) {
  const Json answer = link.post("/v1/workers/lease",
                                {{"protocol", services::kWorkerProtocol},
                                 {"name", options.name},
                                 {"verbs", options.verbs},
                                 {"labels", options.labels},
                                 {"compiler", driver::compiler_build()},
                                 {"facts", {{"carries", true}}},
                                 {"wait_s", options.wait_s},
                                 {"hold_s", options.hold_s}},
                                ServerLink::Kind::kPoll);
  if (!answer.is_object() || !answer.contains("lease"))
    throw Error(ErrorCode::kUnavailable, "the server's answer has no lease");
  if (answer["lease"].is_null())
    throw Error(ErrorCode::kNotFound, "the server has nothing to do for " + options.name + " just now");
  server::CarriedItem item;
  item.server = link.url();
  item.lease = answer["lease"];
  Parts parts(file);
  std::vector<std::shared_ptr<const MappedFile>> held;
  std::string lease;
  try {
    item.lease.at("id").get_to(lease);
    for (const auto& [name, input] : item.lease.at("inputs").items()) {
      const auto digest = Digest::parse(input.at("digest").get<std::string>());
      if (!digest) throw Error(ErrorCode::kUnavailable, "the server's lease names an input by no digest");
      const std::string& path = parts.add();
      link.get_file("/v1/workers/leases/" + lease + "/blobs/" + digest->text(), path, options.max_bytes,
                    [] {});
      held.push_back(MappedFile::open(path));
      item.blobs.push_back({*digest, held.back()->bytes()});
    }
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kUnavailable, std::string("the server's lease cannot be read: ") + error.what());
  }
  const std::string made = parts.add();
  {
    const FileDescriptor out(::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!out.valid()) throw_errno(errno, "cannot make " + made);
    write_all(out.get(), server::item_line(item), made);
    for (const auto& part : held) write_all(out.get(), part->text(), made);
    if (::fsync(out.get()) != 0) throw_errno(errno, "cannot write " + made);
  }
  // What does not match is noticed here, where it can be fetched again.
  server::read_item(MappedFile::open(made)->bytes());
  std::filesystem::rename(made, file);
  return lease;
}

}  // namespace tensormill::worker
