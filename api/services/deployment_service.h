/// Deployments: durable desired state, one name, versions that serve a package.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/services/common.h"
#include "api/services/package_service.h"
#include "runtime/base/digest.h"

namespace tensormill::services {

/// How a picture becomes the input of a model; every member may be absent.
struct Preprocess {
  std::optional<int> resize;  ///< shorter side, in pixels
  std::optional<int> crop;    ///< side of the centre square
  std::vector<double> mean;   ///< per channel, after scale; 0, 1 or 3 values
  std::vector<double> std;
  std::optional<double> scale;  ///< multiplies bytes; default 1/255
  std::string layout = "NCHW";  ///< or "NHWC"
  std::string color = "rgb";    ///< "rgb", "bgr", "gray"
  bool encoded = false;         ///< KServe v2 shows and takes files of pictures in place of the input
};

/// In which processes a version is loaded, and when.
struct Placement {
  /// "all"; "labels": those that have all of the labels; "demand": each at the first request, until none has
  /// come for `idle_s` seconds or its memory is needed.
  std::string mode = "all";
  std::vector<std::string> labels = {};  ///< of mode "labels"
  int idle_s = 600;
  bool operator==(const Placement&) const = default;
};

/// Requests that belong together, one after another: the control inputs by which the model knows of them,
/// which clients do not send, and the states that a run leaves for the next one. One control of each kind at
/// most, "" where the model has none.
struct SequenceSpec {
  std::string start;  ///< an input that is 1, or true, in a sequence's first request, and 0 in all others
  std::string end;    ///< as above, in its last one
  std::string ready;  ///< 1 whenever there is a request
  std::string id;     ///< the sequence's, a number or a string
  /// By an input the output that it is the value of, at the request before; zeros at the first one.
  std::map<std::string, std::string> states;
  int idle_s = 60;           ///< until a sequence without requests is forgotten
  int max_sequences = 1024;  ///< at once; past it Error(kUnavailable)
  bool operator==(const SequenceSpec&) const = default;
};

/// By a version's number its part: of as many requests as the sum of all, it answers exactly that many.
/// Empty: the default version answers all.
using VersionWeights = std::map<int, int>;

/// PUT /v1/deployments/{name}
struct DeploymentSpec {
  std::string package;        ///< id
  std::string version = "1";  ///< [1-9][0-9]{0,8}
  int keep_versions = 1;      ///< >= 1
  int instances = 1;          ///< 1..64 runs at once, which share run.threads
  int max_batch = 1;          ///< >= 1
  int max_delay_us = 500;
  int max_queue = 64;  ///< 1..65536
  bool warmup = true;
  std::string isolation = "none";
  std::vector<std::string> labels;         ///< by index; may be empty
  std::optional<std::string> labels_blob;  ///< id of a text blob with one label a line
  std::optional<Preprocess> preprocess;
  std::string output = "logits";  ///< or "probabilities"
  /// Of the deployment once this version is ready; no property of the version. Empty: it has all requests.
  VersionWeights weights;
  Placement placement;
  std::optional<SequenceSpec> sequence;  ///< none: each request is by itself
  bool decoupled = false;  ///< in gRPC's streams each row of its outputs is an answer of its own
};

enum class DeploymentState { kLoading, kReady, kUnloading, kUnloaded, kFailed };

/// "loading" …
std::string_view deployment_state_name(DeploymentState state);
std::optional<DeploymentState> deployment_state_from_name(std::string_view name);

struct DeploymentVersion {
  std::string version;
  std::string package;
  DeploymentState state = DeploymentState::kLoading;
  std::string reason;  ///< of a failure: stage and what was wrong; else ""
  int max_batch = 1;   ///< above 1: the first dim of every tensor is the batch's, 1..max_batch, shown as free
  int max_delay_us = 0;
  int instances = 1;
  std::vector<TensorSpec> inputs;  ///< empty unless ready
  std::vector<TensorSpec> outputs;
  std::string layout = {};  ///< of pictures, where the deployment says it: "NCHW" or "NHWC"
  std::optional<SequenceSpec> sequence = {};
  bool takes_pictures = false;  ///< files of pictures, in KServe v2, in place of its input
  bool decoupled = false;
};

/// What one of several processes has of a deployment.
struct ReplicaState {
  std::string replica;                                ///< its name
  DeploymentState state = DeploymentState::kLoading;  ///< of the default version there
  std::string reason;
};

struct Deployment {
  std::string name;
  std::vector<DeploymentVersion> versions;  ///< ascending as numbers
  std::string default_version;              ///< "" while none has been ready
  std::vector<TensorSpec> inputs;           ///< of the default version
  std::vector<TensorSpec> outputs;
  Timestamp created_at;
  std::vector<ReplicaState> replicas = {};  ///< those that live, where several processes serve it
  VersionWeights weights = {};              ///< empty while the default version has all requests
  std::string previous_version = {};        ///< what rollback() goes back to; "": there is none
  std::string previous_package = {};        ///< its package
};

struct PutResult {
  Deployment deployment;
  bool created = false;  ///< the name is new: 201
  bool ready = false;    ///< false: still loading, here or in another replica: 202
};

struct Classification {
  std::string label;  ///< "" without labels
  int64_t index = 0;
  double probability = 0;
};

/// How often something was done and how long it took in all.
struct DurationTotal {
  uint64_t count = 0;
  uint64_t ns = 0;
  void add(uint64_t more_ns) {
    ++count;
    ns += more_ns;
  }
};

/// Executions of one batch size.
struct BatchTotal {
  DurationTotal input;    ///< gathering the rows
  DurationTotal compute;  ///< the run itself
  DurationTotal output;   ///< handing the rows out
};

/// What a version has done since it was loaded.
struct InferStatistics {
  std::string version;
  Timestamp last_inference;      ///< 0 before the first one
  uint64_t inference_count = 0;  ///< rows that were answered
  uint64_t execution_count = 0;  ///< runs, each of a batch of rows
  DurationTotal success;         ///< requests, from their arrival to their answer
  DurationTotal fail;
  DurationTotal queue;
  DurationTotal input;
  DurationTotal compute;
  DurationTotal output;
  std::map<int64_t, BatchTotal> batches;  ///< by rows of the run
  int64_t memory_bytes = 0;               ///< arenas of its executors
};

/// Requests of a span of time, and below which latency a part of those that were answered came. A latency is
/// from the arrival at the service to the answer, and up to 9 % above what was measured.
struct TrafficSpan {
  Timestamp since;
  uint64_t requests = 0;         ///< answered
  uint64_t failed = 0;           ///< refused or failed
  std::optional<double> p50_ms;  ///< none without an answer
  std::optional<double> p95_ms;
  std::optional<double> p99_ms;
};

/// The last hour of a deployment, from this process's memory.
struct Traffic {
  TrafficSpan hour;
  std::vector<TrafficSpan> minutes;  ///< 60, the present one last
};

/// Files of pictures that are the rows of a request's only input.
struct PictureFiles {
  std::string input;
  std::vector<std::string_view> files;
  std::shared_ptr<void> owner;  ///< of their bytes
};

struct ClassifyResult {
  std::vector<Classification> top;
  Timing timing;
  std::string version;  ///< of the deployment that answered
  int64_t batch_rows = 1;
};

/// Thread-safety: all methods from many threads.
class DeploymentService {
public:
  virtual ~DeploymentService() = default;
  /// Returns when the version is ready, or after 60 s while it loads. Throws Error(kInvalidArgument) and the
  /// codes of loading (kInvalidPackage, kCpuFeatureMissing, kMemoryBudget) with stage and reason;
  /// then the previous default still serves. Error(kConflict) while another version of the name loads,
  /// Error(kUnavailable) when too many load.
  virtual PutResult put(const std::string& name, const DeploymentSpec& spec, const CallContext& context) = 0;
  /// How requests that name no version are spread from now on: of as many as the weights' sum, each version
  /// has exactly its weight. The default is the one that has most. What had all requests before is what
  /// rollback() goes back to. Throws Error(kNotFound), Error(kInvalidArgument) for versions that are not
  /// there, Error(kConflict) for those that shall not serve and while one loads.
  virtual PutResult set_weights(const std::string& name, const VersionWeights& weights,
                                const CallContext& context) = 0;
  /// All requests to the version that had them all before, which is loaded again where it is gone. As put();
  /// Error(kConflict) where there was none. With the context's idempotency key it is done once: a call that
  /// comes again tells what the deployment is now.
  virtual PutResult rollback(const std::string& name, const CallContext& context) = 0;
  /// By name.
  virtual Page<Deployment> list(const PageQuery& page) = 0;
  /// Throws Error(kNotFound), as do all below but has().
  virtual Deployment get(const std::string& name) = 0;
  virtual bool has(const std::string& name) = 0;
  /// What the version was put with. Throws Error(kNotFound) for a version that is not there, too.
  virtual DeploymentSpec spec(const std::string& name, const std::string& version) = 0;
  /// Of nothing where there are no statistics.
  virtual Traffic traffic(const std::string& name) {
    get(name);
    return {};
  }
  /// Whether an inference with the default version ends within about a millisecond, as far as those before it
  /// tell, and does not wait for a core now: such a request may run where nothing else waits for long. False
  /// for a name that is not there.
  virtual bool is_quick(const std::string& name) = 0;
  /// Bytes of the largest inputs that the default version has run: a body of no more is an ordinary one. 0
  /// for a name that is not there, and before the first run.
  virtual uint64_t largest_inputs(const std::string& /*name*/) { return 0; }
  /// Asks before the inputs of a request are read or made whether infer() would take it now. Who keeps what
  /// this returns, which may be null, is one of those that max_queue counts, and gives it back before
  /// infer(). Throws Error(kUnavailable) when the queue is full or nothing is ready.
  virtual std::shared_ptr<void> admit(const std::string& /*name*/, const std::string& /*version*/) {
    return nullptr;
  }
  /// Where other processes answer for what is not loaded here and is there, as URLs; empty: this one answers.
  virtual std::vector<std::string> elsewhere(const std::string& /*name*/, const std::string& /*version*/) {
    return {};
  }
  /// Memory for `bytes` bytes of the only input of one row, from which a run that several share can take them
  /// without a copy. Null where there is none, and where infer() will throw: any other memory will do.
  virtual std::shared_ptr<void> input_room(const std::string& /*name*/, const std::string& /*version*/,
                                           size_t /*bytes*/) {
    return nullptr;
  }
  /// Of one version, or of all that are loaded when `version` is "". Error(kUnavailable) for one that is not.
  virtual std::vector<InferStatistics> statistics(const std::string& name, const std::string& version) = 0;
  /// Takes all versions out of memory after their last request and keeps the rows, so that they stay out over
  /// a restart. Error(kConflict) while a version loads.
  virtual void unload(const std::string& name) = 0;
  /// Brings back what unload() took out and what failed; returns when all is ready. Throws the first failure,
  /// as put() does.
  virtual void load(const std::string& name) = 0;
  /// The whole deployment, or one version; Error(kInUse) for the default one while there are others.
  virtual void remove(const std::string& name, const std::optional<std::string>& version,
                      const CallContext& context) = 0;
  /// `version` "": one by the weights, else the default one. `inputs` must be complete unless `options` says
  /// how to fill. Throws, and then tells `done` nothing, or tells it: Error(kInvalidTensor),
  /// Error(kUnavailable) when the queue is full or nothing is ready, Error(kTensorData),
  /// Error(kDeadlineExceeded), Error(kCancelled), and of sequences Error(kInvalidArgument) where the request
  /// names none or one that is not begun here, Error(kConflict) while the request before it runs,
  /// Error(kNotSupported) where the deployment has none.
  virtual void infer(const std::string& name, const std::string& version, NamedTensors inputs,
                     const RunOptions& options, const CallContext& context, Done<RunResult> done) = 0;
  /// Whether an infer_pictures() with these words would find a version that takes files. False for what is
  /// not there.
  virtual bool takes_pictures(const std::string& /*name*/, const std::string& /*version*/) { return false; }
  /// As infer(), of JPEG or PNG files that are decoded as the deployment's `preprocess` says. Throws
  /// Error(kInvalidTensor) for more files than a request may have rows and where the version takes none,
  /// Error(kInvalidImage) naming the picture, also where those up to it have more pixels than one may have,
  /// and as infer().
  virtual void infer_pictures(const std::string& name, const std::string& version, PictureFiles pictures,
                              const RunOptions& options, const CallContext& context,
                              Done<RunResult> done) = 0;
  /// `image` is a JPEG or PNG file, `top` 1..1000. Error(kInvalidImage), and as infer().
  virtual void classify(const std::string& name, std::string_view image, int top, const CallContext& context,
                        Done<ClassifyResult> done) = 0;
};

}  // namespace tensormill::services
