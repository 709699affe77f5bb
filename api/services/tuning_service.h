/// Tuning records: what was measured of kernels, shared by all models of the store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "api/http/body.h"
#include "api/services/common.h"
#include "runtime/base/digest.h"

namespace tensormill::services {

struct TuningImport {
  Digest id;            ///< of the set: the digest of its records' lines
  int64_t records = 0;  ///< in the set
  int64_t added = 0;    ///< of these, new in the store
  int64_t tasks = 0;    ///< distinct kernels
  bool created = false;
};

struct TuningQuery {
  std::string model;   ///< name or id of a model that was tuned; "" = all
  std::string target;  ///< canonical; "" = all
};

/// Answers of many records are streams of JSON lines. Thread-safety: all methods from many threads.
class TuningService {
public:
  virtual ~TuningService() = default;
  /// `text` is JSON lines. Imported records are used where their set is named, and by "auto" only once they
  /// were measured again here. Throws Error(kInvalidRecords) with the line's number for what cannot be read,
  /// for no records at all, and unless `foreign` for records of another kind of CPU.
  virtual TuningImport import_records(std::string_view text, bool foreign) = 0;
  virtual std::shared_ptr<http::ResponseStream> list(const TuningQuery& query) = 0;
  /// The set's records. Throws Error(kNotFound).
  virtual std::shared_ptr<http::ResponseStream> get(const std::string& id) = 0;
  /// Removes the set and the records that no other set has. Throws Error(kNotFound).
  virtual void remove(const std::string& id) = 0;
};

}  // namespace tensormill::services
