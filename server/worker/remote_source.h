/// A server as where jobs come from, for a pool of a worker's threads. Thread-safety: as jobs::JobSource;
/// what else there is, all methods from many threads.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/jobs/job_source.h"
#include "server/services/workers/worker_finish.h"
#include "server/worker/server_link.h"
#include "storage/blob/blob_store.h"

namespace tensormill::worker {

struct RemoteSourceOptions {
  std::string name;
  std::vector<std::string> labels;
  std::string compiler;  ///< driver::compiler_build()
  Json facts = Json::object();
  std::function<Json()> status;  ///< figures that go along; must not throw
  std::string folder;            ///< WorkerPoolOptions::folder, where the logs are
  /// How long the end of a lease is tried to be reported to a server that is unreachable.
  std::chrono::milliseconds patience{600'000};
  std::function<void(const std::string&)> tell;  ///< one line for whoever looks after the worker
  /// A lease that was carried here: the only one there is. No server is called.
  std::optional<Json> carried = std::nullopt;
  /// Gets the end of that lease, `size` bytes of a file.
  std::function<void(const std::string& lease, int fd, uint64_t size)> deliver = {};
};

/// What a lease said, besides the job.
struct LeasedItem {
  std::string lease;
  std::string verb;
  std::map<std::string, Digest> inputs;
  std::optional<Json> tuned;
};

class RemoteSource final : public jobs::JobSource {
public:
  /// All borrowed. `blobs` is the pool's store: what attempts make is there until it is reported.
  RemoteSource(ServerLink& link, storage::BlobStore& blobs, RemoteSourceOptions options);

  void take_up(std::chrono::milliseconds backoff) override;
  std::optional<storage::JobRow> claim(const std::vector<std::string>& kinds, const std::string& owner,
                                       std::chrono::milliseconds lease, const std::stop_token& stop) override;
  storage::HeartbeatResult heartbeat(const storage::JobClaim& claim, std::chrono::milliseconds lease,
                                     const std::optional<std::string>& progress,
                                     const std::vector<storage::JobEventRow>& events) override;
  bool finish(const storage::JobClaim& claim, const storage::JobFinish& finish) override;
  bool release(const storage::JobClaim& claim, const storage::JobRelease& release) override;
  bool is_cancelled(const storage::JobClaim&) override { return false; }
  /// The keeper of leases kills, which hears of a cancel with a heartbeat.
  void set_kill(const std::string&, std::function<void()>) override {}
  void clear_kill(const std::string& id) override;
  void pause(const std::stop_token& stop) override;

  /// The item of a job that was claimed here and has not ended.
  LeasedItem item(const std::string& job);
  /// What records say, now that the kernels are known; `resolved` is what the server makes of it.
  Json settle(const std::string& job, const std::vector<std::string>& kernels, Json& resolved);
  /// Why the server will have no work of this worker, whatever it does; "" while it will.
  std::string refusal();
  /// Called once, from any thread, when there is such a reason.
  void on_refusal(std::function<void()> tell) { on_refusal_ = std::move(tell); }
  /// From here on claims give nothing. The server is to answer those that wait: what one brings all the
  /// same is given back. Returns when none waits any more, or after a while.
  void leave();
  /// Nothing runs here any more: what the server believes otherwise is queued again.
  void tell_end();
  /// Gives up reporting the ends of leases to a server that is unreachable.
  void give_up();

private:
  struct Live {
    LeasedItem item;
    std::string log;               ///< path
    uint64_t log_read = 0;         ///< bytes of it that the server has
    int64_t log_offset = 0;        ///< where the next part begins in the server's
    bool gone = false;             ///< the server has said that the lease is over
    std::optional<Json> progress;  ///< that a server that was unreachable has not heard, as the events
    Json events = Json::array();
  };
  storage::JobRow read_lease(const Json& lease, const std::vector<std::string>& kinds,
                             const std::string& owner);
  std::optional<storage::JobRow> claim_carried(const std::vector<std::string>& kinds,
                                               const std::string& owner, const std::stop_token& stop);
  Json ask(const std::vector<std::string>& kinds, bool is_fresh, const std::stop_token& stop);
  /// What the server did not hear is for the next heartbeat.
  storage::HeartbeatResult keep(const storage::JobClaim& claim, Json& beat);
  storage::HeartbeatResult took(const storage::JobClaim& claim, const Json& beat, uint64_t bytes,
                                const Json& answer);
  /// The next part of the log, whose text has as many bytes as the file's.
  std::string next_log(Live& live, uint64_t& bytes);
  bool end(const storage::JobClaim& claim, server::WorkerEnd end, const std::optional<Digest>& log,
           const storage::PackageRow* package);
  bool send_end(const std::string& lease, const server::WorkerEnd& end,
                const std::function<void(int)>& write_rest);
  bool keep_trying(const std::string& lease, int fd, uint64_t size);
  void refuse(const Error& error);

  ServerLink& link_;
  storage::BlobStore& blobs_;
  const RemoteSourceOptions options_;
  std::function<void()> on_refusal_;
  std::mutex fresh_mutex_;
  bool fresh_ = true;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, Live> live_;  ///< by job
  std::stop_source given_up_;
  std::string refusal_;
  int failures_ = 0;  ///< in a row
  bool is_leaving_ = false;
  bool has_carried_ = false;  ///< it was claimed
  int asking_ = 0;            ///< claims that wait for the server's answer
};

}  // namespace tensormill::worker
