/// Models: import, names, facts. A model is immutable and identified by the digest of its bytes; a name is a
/// movable pointer to an id.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/http/body.h"
#include "api/services/common.h"
#include "runtime/base/digest.h"

namespace tensormill::services {

struct ModelInfo {
  Digest id;
  std::string name;                ///< the name that was asked for, else the first one, else ""
  std::vector<std::string> names;  ///< all names that point here, sorted
  std::string format;              ///< a name of ServerInfo::model_formats
  uint64_t size = 0;               ///< bytes as uploaded
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
  std::vector<std::pair<std::string, int64_t>> ops;  ///< operator and count, sorted by name
  int64_t parameters = 0;                            ///< elements of all weights
  Timestamp created_at;
};

struct ImportOptions {
  std::string name;                   ///< valid name, checked by api/
  std::string format;                 ///< the same, checked by api/; "": find out
  bool replace = false;               ///< move the name when it points at other bytes
  std::optional<std::string> upload;  ///< id of a finished upload whose bytes to take instead of the body
};

struct ImportResult {
  ModelInfo model;
  bool created = false;  ///< false: the bytes were here and the name pointed at them already
};

enum class GraphStage { kImported, kOptimized };

/// Thread-safety: all methods from many threads.
class ModelService {
public:
  virtual ~ModelService() = default;
  /// Streams `bytes` to disk at the pace of the disk, imports in a child process and publishes, or leaves
  /// nothing behind. Errors of `bytes` (limit, stall, disconnect) pass through. Throws Error(kInvalidModel),
  /// Error(kOperatorNotImplemented) with one detail for each node and the readable part of the model in
  /// extra_json, Error(kNameTaken), Error(kDiskFull), Error(kQuotaExceeded). Should check kNameTaken as early
  /// as it can.
  virtual ImportResult import_model(const ImportOptions& options, http::BodySource& bytes,
                                    const CallContext& context) = 0;
  /// By creation, newest first.
  virtual Page<ModelInfo> list(const PageQuery& page) = 0;
  /// `reference` is a name or an id ("sha256:…"). Throws Error(kNotFound).
  virtual ModelInfo get(const std::string& reference) = 0;
  /// By name: removes the pointer. By id: removes the model; Error(kInUse) while it is named or used.
  virtual void remove(const std::string& reference) = 0;
  /// JSON text of the graph. Throws Error(kNotFound), Error(kUnavailable) when too much of the kind is going
  /// on.
  virtual std::string graph_json(const std::string& reference, GraphStage stage,
                                 const CallContext& context) = 0;
};

}  // namespace tensormill::services
