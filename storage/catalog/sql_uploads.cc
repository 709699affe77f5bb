// Uploads, live logs and observed deployments: what processes that share a catalog keep as rows.
#include "runtime/base/error.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {
namespace {

/// created_ms is UploadRow::since_ms: when an upload was begun stands in its id.
constexpr std::string_view kUploadColumns =
    "SELECT id, owner, key, created_ms, chunk_bytes, blob, blob_bytes FROM uploads ";

UploadRow upload_from(const SqlStatement& row) {
  return {row.text(0),
          row.text(1),
          row.text(2),
          row.integer(3),
          static_cast<uint64_t>(row.integer(4)),
          row.optional_digest(5),
          static_cast<uint64_t>(row.integer(6))};
}

ObservedRow observed_from(const SqlStatement& row) {
  return {row.text(0), row.text(1), row.integer(2), row.text(3), row.integer(4) != 0};
}

constexpr std::string_view kObservedColumns =
    "SELECT deployment, replica, revision, state, CASE WHEN EXISTS(SELECT 1 FROM replicas WHERE name = "
    "observed.replica AND lease_until_ms >= now_ms()) THEN 1 ELSE 0 END FROM observed ";

/// Bytes of the attempt's log.
int64_t log_end(SqlDb& db, const std::string& job, int attempt) {
  const auto last = db.query(
      "SELECT position, text FROM job_logs WHERE job = ? AND attempt = ? ORDER BY position DESC LIMIT 1", job,
      static_cast<int64_t>(attempt));
  return last->step() ? last->integer(0) + static_cast<int64_t>(last->text(1).size()) : 0;
}

}  // namespace

UploadRow SqlCatalog::begin_upload(const UploadRow& upload, int64_t max_uploads) {
  return write([&](SqlDb& db) -> UploadRow {
    if (!upload.key.empty()) {
      const auto begun = db.query(std::string(kUploadColumns) + "WHERE owner = ? AND key = ? ORDER BY id",
                                  upload.owner, upload.key);
      if (begun->step()) return upload_from(*begun);
    }
    const auto count = db.query("SELECT COUNT(*) FROM uploads");
    count->step();
    if (count->integer(0) >= max_uploads)
      throw Error(ErrorCode::kUnavailable, "there are " + std::to_string(max_uploads) + " uploads already");
    db.post("INSERT INTO uploads(id, owner, key, created_ms, blob, blob_bytes) VALUES(?, ?, ?, ?, NULL, 0)",
            upload.id, upload.owner, upload.key, upload.since_ms);
    return upload;
  });
}

std::optional<UploadRow> SqlCatalog::find_upload(const std::string& id) {
  return read([&](SqlDb& db) -> std::optional<UploadRow> {
    const auto row = db.query(std::string(kUploadColumns) + "WHERE id = ?", id);
    if (!row->step()) return std::nullopt;
    return upload_from(*row);
  });
}

std::vector<UploadRow> SqlCatalog::list_uploads() {
  return read([](SqlDb& db) -> std::vector<UploadRow> {
    const auto row = db.query(std::string(kUploadColumns) + "ORDER BY id");
    std::vector<UploadRow> uploads;
    while (row->step()) uploads.push_back(upload_from(*row));
    return uploads;
  });
}

void SqlCatalog::add_chunk(const std::string& upload, const ChunkRow& chunk) {
  write([&](SqlDb& db) {
    const auto row = db.query(std::string(kUploadColumns) + "WHERE id = ?", upload);
    if (!row->step()) throw Error(ErrorCode::kNotFound, "there is no upload \"" + upload + "\"");
    const UploadRow found = upload_from(*row);
    if (found.blob) throw Error(ErrorCode::kConflict, "upload " + upload + " is finished");
    if (found.size != chunk.begin)
      throw Error(ErrorCode::kRangeNotSatisfiable, "the chunk begins at " + std::to_string(chunk.begin) +
                                                       ", upload " + upload + " has " +
                                                       std::to_string(found.size) + " bytes");
    touch_named(db, std::span(&chunk.digest, 1));
    db.post("INSERT INTO upload_chunks(upload, begin_at, size, digest) VALUES(?, ?, ?, ?)", upload,
            static_cast<int64_t>(chunk.begin), static_cast<int64_t>(chunk.size), chunk.digest);
  });
}

std::vector<ChunkRow> SqlCatalog::list_chunks(const std::string& upload) {
  return read([&](SqlDb& db) -> std::vector<ChunkRow> {
    const auto row = db.query(
        "SELECT begin_at, size, digest FROM upload_chunks WHERE upload = ? ORDER BY begin_at", upload);
    std::vector<ChunkRow> chunks;
    while (row->step())
      chunks.push_back(
          {static_cast<uint64_t>(row->integer(0)), static_cast<uint64_t>(row->integer(1)), row->digest(2)});
    return chunks;
  });
}

bool SqlCatalog::finish_upload(const std::string& id, uint64_t size, const Digest& blob, int64_t since_ms) {
  return write([&](SqlDb& db) -> bool {
    const auto row = db.query(std::string(kUploadColumns) + "WHERE id = ?", id);
    if (!row->step()) return false;
    const UploadRow found = upload_from(*row);
    if (found.blob || found.size != size) return false;
    touch_named(db, std::span(&blob, 1));
    db.post("UPDATE uploads SET blob = ?, blob_bytes = ?, created_ms = ? WHERE id = ?", blob,
            static_cast<int64_t>(size), since_ms, id);
    db.post("DELETE FROM upload_chunks WHERE upload = ?", id);
    return true;
  });
}

bool SqlCatalog::remove_upload(const std::string& id) {
  return write(Isolation::kRows,
               [&](SqlDb& db) -> bool { return db.run("DELETE FROM uploads WHERE id = ?", id) != 0; });
}

UploadSums SqlCatalog::sum_uploads() {
  return read([](SqlDb& db) -> UploadSums {
    const auto row = db.query("SELECT COUNT(*), CAST(COALESCE(SUM(chunk_bytes), 0) AS BIGINT) FROM uploads");
    row->step();
    return {static_cast<uint64_t>(row->integer(0)), static_cast<uint64_t>(row->integer(1))};
  });
}

std::vector<Digest> SqlCatalog::upload_blobs() {
  return read([](SqlDb& db) -> std::vector<Digest> {
    const auto row = db.query(
        "SELECT digest FROM upload_chunks UNION SELECT blob FROM uploads WHERE blob IS NOT NULL ORDER BY 1");
    std::vector<Digest> blobs;
    while (row->step()) blobs.push_back(row->digest(0));
    return blobs;
  });
}

std::optional<int64_t> SqlCatalog::append_log(const std::string& job, int attempt, int64_t position,
                                              std::string_view text) {
  return write(Isolation::kRows, [&](SqlDb& db) -> std::optional<int64_t> {
    if (!db.query("SELECT 1 FROM jobs WHERE id = ? AND attempt = ? AND state = 'running'", job,
                  static_cast<int64_t>(attempt))
             ->step())
      return std::nullopt;
    int64_t end = log_end(db, job, attempt);
    if (end != position) return end;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view part = rest.substr(0, kLogRow);
      rest.remove_prefix(part.size());
      const int64_t added = db.run(
          "INSERT INTO job_logs(job, attempt, position, text) SELECT id, attempt, ?, ? FROM jobs WHERE id = "
          "? "
          "AND attempt = ? AND state = 'running' ON CONFLICT DO NOTHING",
          end, part, job, static_cast<int64_t>(attempt));
      // Another process adds at the same place just now.
      if (added == 0) break;
      end += static_cast<int64_t>(part.size());
    }
    return end;
  });
}

std::string SqlCatalog::read_log(const std::string& job, int attempt, int64_t position, size_t most) {
  return read([&](SqlDb& db) -> std::string {
    const auto number = static_cast<int64_t>(attempt);
    // Rows lie end to end: of those that begin before the part ends, the first is the one that it begins in.
    const auto row = db.query(
        "SELECT position, text FROM job_logs WHERE job = ? AND attempt = ? AND position < ? AND position >= "
        "COALESCE((SELECT MAX(position) FROM job_logs WHERE job = ? AND attempt = ? AND position <= ?), 0) "
        "ORDER BY position",
        job, number, position + static_cast<int64_t>(most), job, number, position);
    std::string part;
    while (row->step()) {
      const int64_t begins = row->integer(0);
      const int64_t next = position + static_cast<int64_t>(part.size());
      if (begins > next) break;
      const std::string text = row->text(1);
      const auto skipped = static_cast<size_t>(next - begins);
      if (skipped < text.size()) part.append(text, skipped, most - part.size());
    }
    return part;
  });
}

void SqlCatalog::put_observed(std::span<const ObservedRow> rows) {
  if (rows.empty()) return;
  write(Isolation::kRows, [&](SqlDb& db) {
    for (const ObservedRow& row : rows)
      db.post(
          "INSERT INTO observed(deployment, replica, revision, state) SELECT name, ?, ?, ? FROM deployments "
          "WHERE name = ? ON CONFLICT(deployment, replica) DO UPDATE SET revision = excluded.revision, state "
          "= excluded.state",
          row.replica, row.revision, row.state, row.deployment);
  });
  tell_others();
}

std::vector<ObservedRow> SqlCatalog::list_observed(const std::string& deployment) {
  return read([&](SqlDb& db) -> std::vector<ObservedRow> {
    const auto row =
        db.query(std::string(kObservedColumns) + "WHERE deployment = ? ORDER BY replica", deployment);
    std::vector<ObservedRow> rows;
    while (row->step()) rows.push_back(observed_from(*row));
    return rows;
  });
}

std::vector<ObservedRow> SqlCatalog::observed_by(const std::string& replica) {
  return read([&](SqlDb& db) -> std::vector<ObservedRow> {
    const auto row =
        db.query(std::string(kObservedColumns) + "WHERE replica = ? ORDER BY deployment", replica);
    std::vector<ObservedRow> rows;
    while (row->step()) rows.push_back(observed_from(*row));
    return rows;
  });
}

}  // namespace tensormill::storage
