/// Deployments: what the catalog says shall serve, and the packages that do. A version is loaded on a thread
/// of its own while the ones before it go on serving; then it becomes the default, and versions past
/// keep_versions are unloaded after their last request. The row is written before a load begins, so that a
/// package that kills the process is found out at the next start. Thread-safety: as
/// services::DeploymentService.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "api/services/deployment_service.h"
#include "runtime/base/error.h"
#include "server/services/crash_mark.h"
#include "server/services/deployment_rows.h"
#include "server/services/executor_host.h"
#include "server/services/package_archive.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

/// As RunApart, of the package of these members.
using RunMembersApart =
    std::function<services::RunResult(const MemberBlobs& members, const services::NamedTensors& inputs,
                                      const services::RunOptions& options, const std::stop_token& cancelled)>;

/// Loads the package of these members into a process of its own; throws as ExecutorHost::load.
using LoadIsolated =
    std::function<std::shared_ptr<HostedPackage>(const MemberBlobs& members, const HostOptions& options)>;

struct DeploymentOptions {
  std::chrono::milliseconds ready_wait{60'000};  ///< a PUT waits so long for its load
  int max_loads = 4;                             ///< at once; past it Error(kUnavailable)
  int64_t max_pixels = 50'000'000;               ///< of a picture to classify
  RunMembersApart run_apart = {};                ///< for shapes that no plan of a package takes, if any
  LoadIsolated load_isolated = {};               ///< for `isolation: process`; none: that is refused
  CrashMark* crash_mark = nullptr;               ///< none: no load is known to have crashed the process
  std::string build = {};                        ///< of this program; another one's crashes are forgotten
};

class DeploymentServiceImpl final : public services::DeploymentService {
public:
  DeploymentServiceImpl(storage::BlobStore& blobs, storage::Catalog& catalog, ExecutorHost& host,
                        DeploymentOptions options = {})
      : blobs_(blobs), catalog_(catalog), host_(host), options_(options) {}
  /// Waits for loads under way.
  ~DeploymentServiceImpl() override;
  DeploymentServiceImpl(const DeploymentServiceImpl&) = delete;
  DeploymentServiceImpl& operator=(const DeploymentServiceImpl&) = delete;

  /// Shows all that the catalog holds as loading. Before any other call.
  void adopt();
  /// Loads what adopt() showed, one after the other. A version that cannot be loaded, or whose load crashed
  /// the process twice, is failed and says why; the newest ready version becomes the default in its place and
  /// says so. After stop_loading() it ends early.
  void restore();
  /// Loads under way end soon, and those versions are loaded by the next process.
  void stop_loading() { stop_.request_stop(); }

  services::PutResult put(const std::string& name, const services::DeploymentSpec& spec,
                          const services::CallContext& context) override;
  services::Page<services::Deployment> list(const services::PageQuery& page) override;
  services::Deployment get(const std::string& name) override;
  bool has(const std::string& name) override;
  services::DeploymentSpec spec(const std::string& name, const std::string& version) override;
  bool is_quick(const std::string& name) override;
  std::shared_ptr<void> admit(const std::string& name, const std::string& version) override;
  std::shared_ptr<void> input_room(const std::string& name, const std::string& version,
                                   size_t bytes) override;
  std::vector<services::InferStatistics> statistics(const std::string& name,
                                                    const std::string& version) override;
  void unload(const std::string& name) override;
  void load(const std::string& name) override;
  void remove(const std::string& name, const std::optional<std::string>& version,
              const services::CallContext& context) override;
  void infer(const std::string& name, const std::string& version, services::NamedTensors inputs,
             const services::RunOptions& options, const services::CallContext& context,
             services::Done<services::RunResult> done) override;
  void classify(const std::string& name, std::string_view image, int top,
                const services::CallContext& context, services::Done<services::ClassifyResult> done) override;

private:
  /// Immutable once it stands in an entry.
  struct Version {
    services::DeploymentSpec spec;
    services::DeploymentState state = services::DeploymentState::kLoading;
    std::string reason;
    int crashed_loads = 0;    ///< one after the other, in which the process crashed
    bool load_begun = false;  ///< durable before a load begins
    std::vector<std::string> labels;
    std::shared_ptr<HostedPackage> package;  ///< set when ready
  };
  using VersionPtr = std::shared_ptr<const Version>;
  /// One name. Immutable once it stands in the map: a change is a new entry.
  struct Entry {
    services::Timestamp created_at;
    std::map<int, VersionPtr> versions;
    int default_version = 0;  ///< 0: none
    VersionPtr loading;       ///< of a PUT; takes the place of the version of its number when it is ready
  };
  using EntryPtr = std::shared_ptr<const Entry>;
  /// What a PUT waits for.
  struct Ticket {
    bool done = false;
    bool acknowledged = false;  ///< 202 was answered: a failure is kept and shown
    std::optional<Error> error;
  };

  EntryPtr find(const std::string& name);
  EntryPtr require(const std::string& name);
  /// Null when it is not there; `version` "": the default one.
  static VersionPtr find_version(const Entry& entry, const std::string& version);
  VersionPtr require_ready(const std::string& name, const std::string& version);
  void set(const std::string& name, EntryPtr entry);
  void store(const std::string& name, const Entry& entry);
  void store_new(const std::string& name, const Entry& entry, const services::DeploymentSpec& spec);

  void check(const services::DeploymentSpec& spec);
  std::vector<std::string> read_labels(const services::DeploymentSpec& spec);
  /// The version, ready. Throws Error with the stage in front.
  VersionPtr load(const services::DeploymentSpec& spec);
  VersionPtr try_load(const services::DeploymentSpec& spec, std::optional<Error>& error);
  void begin_load(const std::string& name, const VersionPtr& version, const std::shared_ptr<Ticket>& ticket);
  void end_load(const std::string& name, const VersionPtr& version, Ticket& ticket, VersionPtr loaded,
                const std::optional<Error>& error);
  void settle(const std::string& name, const Entry& before, const VersionPtr& version, VersionPtr loaded,
              const std::optional<Error>& error, bool keep_failure);
  void restore_version(const std::string& name, int number);
  void replace_failed_default(const std::string& name);
  void restore_loading(const std::string& name, VersionPtr version);
  /// A load that was ended by stop_loading(): as before it began.
  void put_off(const std::string& name, const Entry& before, const VersionPtr& version);
  static services::Deployment describe(const std::string& name, const Entry& entry);

  storage::BlobStore& blobs_;
  storage::Catalog& catalog_;
  ExecutorHost& host_;
  const DeploymentOptions options_;
  std::stop_source stop_;
  std::mutex changes_;  ///< guards changes of what is deployed and the tickets; never held while loading
  std::condition_variable_any ended_;  ///< a load has, with changes_
  std::map<std::string, std::shared_ptr<Ticket>> tickets_;
  std::shared_mutex mutex_;  ///< guards the map alone, for the moment of a look or a swap
  std::map<std::string, EntryPtr> live_;
  struct Loader {
    std::shared_ptr<Ticket> ticket;
    std::thread thread;
  };
  std::list<Loader> loaders_;
};

}  // namespace tensormill::server
