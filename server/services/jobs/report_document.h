/// A report's document, which the events of its job are put together to: a row is one as soon as it is made,
/// so that a report that was cancelled half way has what was made until then. Thread-safety: pure functions
/// of their arguments and the catalog.
#pragma once

#include <cstddef>
#include <string>

#include "compiler/target/target.h"
#include "runtime/base/json_fwd.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

/// The type of the event that has a row.
inline constexpr const char* kReportRow = "row";
/// {"index","row","machine","program"}: made on this machine, `host`, by this program.
std::string report_row_event(size_t index, const Json& row, const target::Target& host);

/// As `tensormill report --json` prints it, with the rows that there are now, and the job's "job" and
/// "state".
Json report_document(storage::Catalog& catalog, const storage::JobRow& job);

}  // namespace tensormill::server
