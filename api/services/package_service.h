/// Compiled packages: metadata, archive, dumped code, one-off runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http/body.h"
#include "api/services/common.h"
#include "runtime/base/digest.h"

namespace tensormill::services {

struct PackageInfo {
  Digest id;              ///< of the canonical metadata.json
  Digest archive_digest;  ///< of the tar
  uint64_t archive_size = 0;
  std::string metadata_json;  ///< metadata.json as it is in the archive
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  Timestamp created_at;
  std::vector<std::string> deployments;  ///< names that use it, sorted
};

struct Archive {
  std::shared_ptr<http::Content> content;  ///< the deterministic tar; never null
  Digest digest;                           ///< of the tar without its signature
};

struct ImportedPackage {
  PackageInfo package;
  bool created = false;  ///< false: it was here already
};

enum class CodeStage { kRelay, kTe, kTir, kLl, kAsm };

/// What to feed a run with.
enum class FillMode { kZeros, kOnes, kRandom };

inline constexpr int kDefaultPriority = 5;
inline constexpr int kLowestPriority = 10;

/// Which request of which sequence it is.
struct SequencePart {
  std::string id;
  bool is_number = false;  ///< "7" and 7 are two sequences
  bool start = false, end = false;
};

struct RunOptions {
  std::optional<FillMode> fill_mode;  ///< for inputs that are not given; nothing: all must be given
  uint64_t seed = 0;
  int repeat = 1;  ///< repeat × number <= 1000, checked by api/
  int number = 1;
  bool profile = false;
  std::optional<std::chrono::microseconds> timeout;  ///< for all of it; the server's own limit holds too
  int priority = kDefaultPriority;                   ///< 1 is served first, kLowestPriority last
  std::optional<SequencePart> sequence = {};         ///< of deployments that have sequences
  std::string on = {};  ///< labels (api/http/labels.h) of the worker that runs it; "": here
};

struct RunResult {
  NamedTensors outputs;  ///< in the model's order
  Timing timing;
  std::string version;     ///< of the deployment that answered; "" for a run of a package
  int64_t batch_rows = 1;  ///< of the run that this was part of
  std::shared_ptr<const std::vector<std::string>> labels;  ///< of the deployment; may be null
  bool decoupled = false;  ///< the deployment's: rows of the outputs may be answered one by one
};

struct PackageQuery {
  PageQuery page;
  std::string model;   ///< name or id; "" = all
  std::string target;  ///< canonical form; "" = all
};

enum class BundleForm { kShared, kStatic };

struct BundleOptions {
  BundleForm form = BundleForm::kStatic;
  std::string name = "model";  ///< of its files, and of its function
};

/// `id` is the text of a digest; one that is malformed or not here: Error(kNotFound).
/// Thread-safety: all methods from many threads.
class PackageService {
public:
  virtual ~PackageService() = default;
  /// Newest first.
  virtual Page<PackageInfo> list(const PackageQuery& query) = 0;
  virtual PackageInfo get(const std::string& id) = 0;
  /// Signed: with this store's signature behind it; Error(kNotSupported) when it has no key.
  virtual Archive archive(const std::string& id, bool is_signed) = 0;
  /// A signed archive, streamed to disk. Throws Error(kForeignCode) unless a trusted store signed these
  /// bytes, Error(kInvalidPackage), Error(kDiskFull), Error(kQuotaExceeded).
  virtual ImportedPackage import_package(http::BodySource& bytes, const CallContext& context) = 0;
  /// The text of a stage, as the compile wrote it: of the whole package, kernel by kernel.
  virtual std::shared_ptr<http::Content> code(const std::string& id, CodeStage stage) = 0;
  /// The package with its executor as one library and its headers, in a tar. Throws Error(kNotSupported)
  /// where the form is not made for the package's target, Error(kUnavailable) when too many wait for a child.
  virtual std::shared_ptr<http::Content> bundle(const std::string& id, const BundleOptions& options,
                                                const CallContext& context) = 0;
  /// Throws Error(kInUse) while deployed.
  virtual void remove(const std::string& id) = 0;
  /// Asks before the inputs of a run are read whether it would be taken now. Throws Error(kNotFound),
  /// Error(kUnavailable) when too many wait for a child.
  virtual void require_room(const std::string& /*id*/) {}
  /// Runs in a runner child. Inputs that are not given are filled as the options say. Throws
  /// Error(kInvalidTensor) naming the tensor and both shapes or dtypes, Error(kTensorData),
  /// Error(kMemoryBudget), Error(kDeadlineExceeded) past 30 s, which says whether it ran by then.
  virtual RunResult run(const std::string& id, NamedTensors inputs, const RunOptions& options,
                        const CallContext& context) = 0;
};

}  // namespace tensormill::services
