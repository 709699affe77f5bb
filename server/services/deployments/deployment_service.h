/// Deployments: what the catalog says shall serve, and the packages that do. A version is loaded on a thread
/// of its own while the ones before it go on serving; then it becomes the default, and versions past
/// keep_versions are unloaded after their last request. The row is written before a load begins, so that a
/// package that kills the process is found out at the next start.
///
/// Where several processes share the catalog (`replica`), the row says what all of them shall serve, and is
/// changed by requests alone, each only if it is still as this process knows it; what this one has made of it
/// is a row of its own (storage::ObservedRow). A PUT is loaded by the process that took it; the others follow
/// once that has succeeded, and go on serving what they had until they are ready. The load of a process that
/// is lost is taken up by another. Thread-safety: as services::DeploymentService.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/services/deployment_service.h"
#include "runtime/base/error.h"
#include "runtime/base/value_notes.h"
#include "server/services/deployments/deployment_rows.h"
#include "server/services/deployments/executor_host.h"
#include "server/services/deployments/traffic_split.h"
#include "server/services/jobs/crash_mark.h"
#include "server/services/store/package_archive.h"
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
  int64_t max_pixels = 50'000'000;               ///< of all pictures of a request
  RunMembersApart run_apart = {};                ///< for shapes that no plan of a package takes, if any
  LoadIsolated load_isolated = {};               ///< for `isolation: process`; none: that is refused
  /// Throws where a package must not be mapped; none: all may.
  std::function<void(const storage::PackageRow&)> admit = {};
  CrashMark* crash_mark = nullptr;  ///< none: no load is known to have crashed the process
  std::string build = {};           ///< of this program; another one's crashes are forgotten
  std::string replica = {};  ///< name of this process among those that share the catalog; "": it is alone
  std::vector<std::string> labels = {};  ///< of this process
  std::chrono::milliseconds idle_look{
      0};  ///< between looks at what is loaded on demand; 0: rest_idle() is called
};

class DeploymentServiceImpl final : public services::DeploymentService {
public:
  DeploymentServiceImpl(storage::BlobStore& blobs, storage::Catalog& catalog, ExecutorHost& host,
                        DeploymentOptions options = {});
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
  /// Makes what serves here what the catalog says now, where other processes may have changed it: shows it at
  /// once, then loads what is new, and takes up loads of processes that are lost. Costs one look where
  /// nothing has changed. Throws what the catalog throws; what is loaded goes on serving.
  void follow();
  /// Other processes may have changed what a PUT waits for.
  void changed_elsewhere();
  /// Unloads what is loaded on demand and idle since its time before `now`.
  void rest_idle(std::chrono::steady_clock::time_point now);

  services::PutResult put(const std::string& name, const services::DeploymentSpec& spec,
                          const services::CallContext& context) override;
  services::PutResult set_weights(const std::string& name, const services::VersionWeights& weights,
                                  const services::CallContext& context) override;
  services::PutResult rollback(const std::string& name, const services::CallContext& context) override;
  services::Page<services::Deployment> list(const services::PageQuery& page) override;
  services::Deployment get(const std::string& name) override;
  bool has(const std::string& name) override;
  services::DeploymentSpec spec(const std::string& name, const std::string& version) override;
  bool is_quick(const std::string& name) override;
  uint64_t largest_inputs(const std::string& name) override;
  std::vector<std::string> elsewhere(const std::string& name, const std::string& version) override;
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
  bool takes_pictures(const std::string& name, const std::string& version) override;
  void infer_pictures(const std::string& name, const std::string& version, services::PictureFiles pictures,
                      const services::RunOptions& options, const services::CallContext& context,
                      services::Done<services::RunResult> done) override;
  void classify(const std::string& name, std::string_view image, int top,
                const services::CallContext& context, services::Done<services::ClassifyResult> done) override;

private:
  struct LastUse {
    std::atomic<std::chrono::steady_clock::rep> ticks{0};
  };
  /// Immutable once it stands in an entry.
  struct Version {
    services::DeploymentSpec spec;
    services::DeploymentState state = services::DeploymentState::kLoading;
    std::string reason;
    int crashed_loads = 0;    ///< one after the other, in which the process crashed
    bool load_begun = false;  ///< durable before a load begins
    bool fails_here = false;  ///< failed in this process, which says nothing of others
    bool rests = false;       ///< unloaded by its placement, which says nothing of others either
    bool demanded = false;    ///< somebody waits for this load
    std::shared_ptr<LastUse> last_use = {};         ///< of what is loaded on demand
    std::vector<services::TensorSpec> inputs = {};  ///< of one that rests, as it was when it was loaded
    std::vector<services::TensorSpec> outputs = {};
    std::vector<std::string> labels;
    ValueNotes picture;                      ///< what the model says of its first input
    std::shared_ptr<HostedPackage> package;  ///< set when ready
  };
  using VersionPtr = std::shared_ptr<const Version>;
  /// One name. Immutable once it stands in the map: a change is a new entry.
  struct Entry {
    services::Timestamp created_at;
    std::map<int, VersionPtr> versions;
    int default_version = 0;  ///< 0: none
    VersionPtr loading;       ///< of a PUT; takes the place of the version of its number when it is ready
    std::string loader;       ///< the replica that loads it
    int64_t revision = 0;     ///< of the row, where several processes share it
    VersionPtr retained;      ///< serves in place of the default one while that is not ready here
    services::VersionWeights weights;                       ///< empty: the default one has all requests
    std::shared_ptr<TrafficSplit> split;                    ///< of the weights, none where they are empty
    std::optional<services::DeploymentSpec> previous = {};  ///< of what had all requests before
    std::vector<storage::RepeatKey> asked = {};             ///< as DesiredDeployment::asked
  };
  using EntryPtr = std::shared_ptr<const Entry>;
  using TimePoint = std::chrono::steady_clock::time_point;
  /// What a PUT waits for.
  struct Ticket {
    bool done = false;
    bool acknowledged = false;  ///< 202 was answered: a failure is stored and shown
    bool is_elsewhere = false;  ///< another replica loads it
    std::optional<Error> error;
  };

  EntryPtr find(const std::string& name);
  EntryPtr require(const std::string& name);
  /// Throws Error(kUnavailable) while this replica has not seen yet what is deployed.
  void require_known() const;
  /// Null when it is not there; `version` "": the default one.
  static VersionPtr find_version(const Entry& entry, const std::string& version);
  VersionPtr require_ready(const std::string& name, const std::string& version);
  /// As above for a request that comes now: where it names no version, it takes its place among those that
  /// the weights spread.
  VersionPtr require_next(const std::string& name, const std::string& version);
  /// As above, by what the request says of sequences. Throws Error(kNotSupported) where there are none.
  VersionPtr require_for(const std::string& name, const std::string& version,
                         const services::RunOptions& options);
  /// The files' pictures as rows of the version's only input. Between two of them it looks whether anybody
  /// still waits.
  services::NamedTensors decoded(const Version& version, const services::PictureFiles& pictures,
                                 const services::CallContext& context, std::optional<TimePoint> deadline);
  /// Throws Error(kInvalidArgument) where the version's package takes no pictures and shall.
  static void check_pictures(const Version& version);
  /// Those of the weights that are ready here, by number; one that is not ready leaves its part to the
  /// others.
  static std::map<int, VersionPtr> sharing(const Entry& entry);
  void set(const std::string& name, EntryPtr entry);
  /// What shall serve, and what does here; with the new revision. Throws Error(kConflict) when another
  /// process has changed it. With it the requests of `done` are noted as done.
  void store(const std::string& name, Entry& entry, const std::vector<storage::RepeatKey>& done = {});
  void store_new(const std::string& name, Entry& entry, const services::DeploymentSpec& spec);
  /// What serves here alone.
  void store_local(const std::string& name, Entry& entry);
  void remove_row(const std::string& name, const Entry& entry);
  bool is_replica() const { return !options_.replica.empty(); }
  /// The version that answers for the name; null when there is none.
  static VersionPtr serving(const Entry& entry);

  void check(const services::DeploymentSpec& spec);
  /// As put(), of a request that may come again once this is done.
  services::PutResult put_once(const std::string& name, const services::DeploymentSpec& spec,
                               const storage::RepeatKey& asked, const std::stop_token& cancelled);
  /// The request is done, too, when what is loading is ready.
  void ask_also(const std::string& name, const storage::RepeatKey& asked);
  static void check_weights(const EntryPtr& before, const services::DeploymentSpec& spec);
  std::vector<std::string> read_labels(const services::DeploymentSpec& spec);
  /// The version, ready. Throws Error with the stage in front.
  VersionPtr load(const services::DeploymentSpec& spec);
  VersionPtr try_load(const services::DeploymentSpec& spec, std::optional<Error>& error);
  /// As above; what is loaded on demand and used least goes where memory is short.
  VersionPtr load_with_room(const services::DeploymentSpec& spec, std::optional<Error>& error);
  void begin_load(const std::string& name, const VersionPtr& version, const std::shared_ptr<Ticket>& ticket);
  void end_load(const std::string& name, const VersionPtr& version, Ticket& ticket, const VersionPtr& loaded,
                const std::optional<Error>& error);
  void settle(const std::string& name, const Entry& before, const VersionPtr& version, VersionPtr loaded,
              const std::optional<Error>& error, bool keep_failure);
  void settle_again(const std::string& name, const VersionPtr& version, const VersionPtr& loaded,
                    const std::optional<Error>& error, bool keep_failure);
  void restore_version(const std::string& name, int number, bool demanded = false);
  // Placement (deployment_placement.cc).
  bool belongs_here(const services::DeploymentSpec& spec) const;
  /// Throws where no process can be what it asks for.
  void check_placement(const services::DeploymentSpec& spec) const;
  /// Null where the version is to be loaded; else what stands in its place.
  VersionPtr resting(const Version& version, bool demanded) const;
  VersionPtr rest(const Version& version, const std::string& reason) const;
  /// Loads what the request needs and is loaded on demand. Throws what keeps it from that.
  void wake(const std::string& name, const std::string& version);
  void wake_version(const std::string& name, int number);
  /// Unloads what was used least lately of all that is loaded on demand; false where there is none.
  bool rest_one();
  bool rest_version(const std::string& name, int number, const VersionPtr& version);
  static void touch(const Version& version);
  /// Addresses of others that have `version` ready; of one with sequences that of the one that answers, or
  /// none where that is this process.
  std::vector<std::string> replicas_with(const std::string& name, const Entry& entry, const Version& version);
  void replace_failed_default(const std::string& name);
  void restore_loading(const std::string& name, VersionPtr version);
  /// A load that was ended by stop_loading(): as before it began.
  void put_off(const std::string& name, const Entry& before, const VersionPtr& version);
  static services::Deployment describe(const std::string& name, const Entry& entry);
  services::Deployment with_replicas(services::Deployment deployment);
  /// Who answers from now on; `before` is the entry as it was.
  static void move_traffic(Entry& entry, const Entry& before, const services::VersionWeights& weights,
                           int only);
  /// As the row has it; a split that goes on as before counts on.
  static void show_traffic(Entry& entry, const DesiredDeployment& desired, const EntryPtr& before);
  /// Stored and visible; answers once the other replicas have it.
  services::PutResult apply_traffic(const std::string& name, const services::VersionWeights& weights,
                                    int only, const storage::RepeatKey& asked,
                                    std::unique_lock<std::mutex>& change, const std::stop_token& cancelled);
  services::PutResult put_result(const std::string& name, bool created, bool done,
                                 std::unique_lock<std::mutex>& change, const std::stop_token& cancelled);

  // Loads that crashed the process before this one (deployment_crashes.cc). With changes_ held, down to the
  // line:
  /// A load that it had begun, and of whose end it did not tell.
  struct BegunLoad {
    std::string deployment;
    int number = 0;
    std::string package;
    bool is_put = false;  ///< Entry::loading
  };
  /// Where that process crashed, counts the one of its loads that was under way; where there were several, it
  /// is not known which of them it was, and none is blamed. Then the mark goes.
  void blame_load_of(const std::vector<BegunLoad>& begun);
  /// Durably, and once.
  void count_crash(const BegunLoad& load);
  // Of several processes:
  /// Tells what serves here. Throws what the catalog throws; follow() tells it then.
  storage::ObservedRow observed_row(const std::string& name, const Entry& entry) const;
  void observe(const std::string& name, const Entry& entry);
  /// Writes some of the observed rows that are not written yet, in one transaction; false when none is left.
  bool observe_some();
  void observe_or_later(const std::string& name, const Entry& entry);
  /// What `before` has of it where that is still so.
  static VersionPtr version_of(const DesiredVersion& wanted, const EntryPtr& before, int number);
  Entry entry_of(const storage::DeploymentRow& row, const EntryPtr& before) const;
  void settle_ticket(const std::string& name, const Entry& entry);
  void show(const storage::DeploymentRow& row);
  void forget(const std::string& name);
  /// As the catalog has it now.
  void refresh(const std::string& name);
  /// Counts what the rows that this process left say of its crashes.
  void count_crashes();
  /// Until all replicas that live have followed; false when they have not within `ready_wait`.
  bool wait_for_replicas(const std::string& name, std::unique_lock<std::mutex>& change,
                         const std::stop_token& cancelled);
  // ----
  std::vector<std::pair<std::string, EntryPtr>> entries();
  void take_up_lost_loads();
  void load_wanted();
  std::vector<services::ReplicaState> replica_states(const std::string& name);
  bool have_followed(const std::string& name);

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
  std::string seen_;  ///< the mark of the catalog's deployments that were last followed; with changes_
  std::atomic<bool> is_known_{false};             ///< what the catalog holds has been shown once
  std::set<std::pair<std::string, int>> waking_;  ///< loads on demand under way; with changes_
  /// Who has what is not here, as it was a moment ago.
  struct Known {
    std::chrono::steady_clock::time_point when;
    std::vector<std::string> addresses;
  };
  std::mutex known_mutex_;
  std::map<std::pair<std::string, int>, Known> known_;
  std::set<std::string> unobserved_;  ///< names whose observed row is to be written; with changes_
  std::atomic<uint64_t> notices_{0};  ///< counts changed_elsewhere()
  std::jthread idler_;                ///< last: it uses all of the above
};

}  // namespace tensormill::server
