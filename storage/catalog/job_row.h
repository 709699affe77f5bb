/// Reading job rows. Thread-safety: pure functions.
#pragma once

#include <string_view>

#include "storage/catalog/rows.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {

/// Columns in the order that job_from reads them.
inline constexpr std::string_view kJobColumns =
    "seq, id, kind, subject, action_key, state, request, resolved, progress, result, error, attempt, "
    "max_attempts, "
    "priority, submitters, cancel_requested, owner, lease_until_ms, not_before_ms, created_ms, started_ms, "
    "finished_ms, log, package, submitter, losses";

JobRow job_from(const SqlStatement& row);

}  // namespace tensormill::storage
