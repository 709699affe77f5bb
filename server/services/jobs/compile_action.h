/// The resolved form of a compilation, over which its action key is: model, canonical target, options, and
/// for each kernel that has one the record that is used. `tuning_records` of the form is [] for none,
/// {"kernels":{KEY:{"record":ID} or {"reason":TEXT}},"algorithms":{LAYER:{RULE:ALGORITHM}}} (the second
/// member where records decide about a layer: driver::LayerAlgorithms), or, as long as nobody has seen the
/// model's kernels under these options, {"pending":{"from":"auto" or a set's id,"state":DIGEST}}.
/// Thread-safety: pure functions of their arguments and the catalog.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/json_fwd.h"
#include "server/services/jobs/tuning_records.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

std::string action_key(const Json& resolved);

/// Sets `tuning_records` for a request of records `from` ("auto", a set's id, nothing). Throws
/// Error(kNotFound) for a set that is not there.
void resolve_records(TuningRecords& records, storage::Catalog& catalog,
                     const std::optional<std::string>& from, Json& resolved);

bool has_pending_records(const Json& resolved);
/// Replaces what is pending, now that the kernels are known; of records that were measured at `place`, where
/// that is not this machine.
void settle_records(TuningRecords& records, Json& resolved, const std::vector<std::string>& kernels,
                    const TuningPlace* place = nullptr);
/// The schedules and algorithms that a settled form names. A record that is gone is replaced in the form by
/// the reason.
Tuned tuned_of(TuningRecords& records, Json& resolved);
/// Keeps the keys of all kernels that this model may have under these options, those of its layers' other
/// algorithms too, for later submissions.
void remember_kernels(storage::Catalog& catalog, const Json& resolved, std::vector<std::string> kernels);

}  // namespace tensormill::server
