// Replicas, and the blobs that they share.
#include <algorithm>
#include <set>

#include "runtime/base/error.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {
namespace {

/// Of a statement with a digest each.
constexpr size_t kTogether = 500;
/// In place of a form: being stored for the first time.
constexpr int64_t kNoForm = -1;

constexpr std::string_view kLive = "(SELECT id FROM replicas WHERE lease_until_ms >= now_ms())";

BlobRow blob_from(const SqlStatement& row) {
  BlobRow blob{row.digest(0), std::nullopt, static_cast<uint64_t>(row.integer(2))};
  if (row.integer(1) != kNoForm) blob.form = static_cast<int>(row.integer(1));
  return blob;
}

template <typename Function>
void in_groups(std::span<const Digest> blobs, const Function& function) {
  while (!blobs.empty()) {
    const std::span<const Digest> group = blobs.first(std::min(blobs.size(), kTogether));
    blobs = blobs.subspan(group.size());
    function(group, "(" + marks(group.size()) + ")");
  }
}

void bind_all(SqlStatement& statement, std::span<const Digest> blobs) {
  for (const Digest& blob : blobs) statement.bind(blob);
}

}  // namespace

void SqlCatalog::begin_replica(const ReplicaRow& replica, int64_t lease_ms) {
  write(Isolation::kRows, [&](SqlDb& db) {
    // One process at a time has the folder that the name is of: an earlier one has ended, whatever its lease
    // says.
    db.post(
        "UPDATE jobs SET lease_until_ms = 0 WHERE state = 'running' AND owner IN "
        "(SELECT id FROM replicas WHERE name = ? AND id <> ?)",
        replica.name, replica.id);
    db.post("DELETE FROM blob_holds WHERE replica IN (SELECT id FROM replicas WHERE name = ? AND id <> ?)",
            replica.name, replica.id);
    db.post("DELETE FROM replicas WHERE name = ?", replica.name);
    db.post(
        "INSERT INTO replicas(id, name, address, began_ms, lease_until_ms) "
        "VALUES(?, ?, ?, now_ms(), now_ms() + ?)",
        replica.id, replica.name, replica.address, lease_ms);
  });
  tell_others();
}

bool SqlCatalog::renew_replica(const std::string& id, int64_t lease_ms) {
  return write(Isolation::kRows, [&](SqlDb& db) -> bool {
    return db.run("UPDATE replicas SET lease_until_ms = now_ms() + ? WHERE id = ?", lease_ms, id) != 0;
  });
}

void SqlCatalog::end_replica(const std::string& id) {
  write(Isolation::kRows, [&](SqlDb& db) {
    db.post("DELETE FROM blob_holds WHERE replica = ?", id);
    // What it has loaded is forgotten later, with the row: crashes of loads are counted over runs.
    db.post("UPDATE replicas SET lease_until_ms = 0 WHERE id = ?", id);
  });
  tell_others();
}

std::vector<ReplicaRow> SqlCatalog::list_replicas() {
  return read([](SqlDb& db) -> std::vector<ReplicaRow> {
    const auto row = db.query(
        "SELECT id, name, address, began_ms, lease_until_ms, CASE WHEN lease_until_ms >= now_ms() THEN 1 "
        "ELSE "
        "0 END FROM replicas ORDER BY name");
    std::vector<ReplicaRow> replicas;
    while (row->step())
      replicas.push_back(
          {row->text(0), row->text(1), row->text(2), row->integer(3), row->integer(4), row->integer(5) != 0});
    return replicas;
  });
}

int64_t SqlCatalog::expire_replicas(int64_t age_ms) {
  return write(Isolation::kRows, [&](SqlDb& db) -> int64_t {
    constexpr std::string_view kGone = "FROM replicas WHERE lease_until_ms < now_ms() - ?";
    db.post("DELETE FROM blob_holds WHERE replica IN (SELECT id " + std::string(kGone) + ")", age_ms);
    db.post("DELETE FROM observed WHERE replica IN (SELECT name " + std::string(kGone) + ")", age_ms);
    return db.run("DELETE " + std::string(kGone), age_ms);
  });
}

void SqlCatalog::touch_named(SqlDb& db, std::span<const Digest> blobs) {
  if (!requires_blobs_) return;
  const std::set<Digest> named(blobs.begin(), blobs.end());
  const std::vector<Digest> sorted(named.begin(), named.end());
  in_groups(sorted, [&](std::span<const Digest> group, const std::string& list) {
    const auto row =
        db.query("UPDATE blobs SET touched = " + std::string(next_moment()) +
                 " WHERE remover = '' AND form >= 0 AND digest IN " + list + " RETURNING digest");
    bind_all(*row, group);
    std::set<Digest> missing(group.begin(), group.end());
    while (row->step()) missing.erase(row->digest(0));
    if (missing.empty()) return;
    throw Error(ErrorCode::kUnavailable, "blob " + missing.begin()->text() +
                                             " was removed before a row named it, as this process had not "
                                             "renewed its lease; it is to be stored again");
  });
}

std::optional<BlobRow> SqlCatalog::put_blob(const BlobRow& blob) {
  return write(Isolation::kRows, [&](SqlDb& db) -> std::optional<BlobRow> {
    std::optional<BlobRow> before;
    {
      const auto row = db.query("SELECT digest, form, stored_bytes FROM blobs WHERE digest = ? AND form >= 0",
                                blob.digest);
      if (row->step()) before = blob_from(*row);
    }
    db.post("INSERT INTO blobs(digest, form, stored_bytes, touched, remover) VALUES(?, ?, ?, " +
                std::string(next_moment()) +
                ", '') ON CONFLICT(digest) DO UPDATE SET form = excluded.form, stored_bytes = "
                "excluded.stored_bytes",
            blob.digest, blob.form ? static_cast<int64_t>(*blob.form) : kNoForm,
            static_cast<int64_t>(blob.stored_bytes));
    return before;
  });
}

std::optional<BlobRow> SqlCatalog::find_blob(const Digest& digest) {
  return read([&](SqlDb& db) -> std::optional<BlobRow> {
    const auto row = db.query("SELECT digest, form, stored_bytes FROM blobs WHERE digest = ?", digest);
    if (!row->step()) return std::nullopt;
    return blob_from(*row);
  });
}

std::vector<BlobRow> SqlCatalog::list_blobs() {
  return read([](SqlDb& db) -> std::vector<BlobRow> {
    const auto row = db.query("SELECT digest, form, stored_bytes FROM blobs ORDER BY digest");
    std::vector<BlobRow> blobs;
    while (row->step()) blobs.push_back(blob_from(*row));
    return blobs;
  });
}

BlobSums SqlCatalog::sum_blobs() {
  fold_blobs();
  return read([](SqlDb& db) -> BlobSums {
    const auto row = db.query(
        "SELECT CAST(COALESCE(SUM(blobs), 0) AS BIGINT), CAST(COALESCE(SUM(compressed), 0) AS BIGINT), "
        "CAST(COALESCE(SUM(stored_bytes), 0) AS BIGINT) FROM blob_sums");
    row->step();
    return {static_cast<uint64_t>(row->integer(0)), static_cast<uint64_t>(row->integer(1)),
            static_cast<uint64_t>(row->integer(2))};
  });
}

void SqlCatalog::fold_blobs() {
  const bool is_long = read([](SqlDb& db) -> bool {
    const auto row = db.query("SELECT COUNT(*) FROM blob_sums");
    return row->step() && row->integer(0) > kUnfolded;
  });
  if (!is_long) return;
  write(Isolation::kRows, [](SqlDb& db) {
    int64_t blobs = 0, compressed = 0, stored_bytes = 0;
    {
      const auto row = db.query("DELETE FROM blob_sums RETURNING blobs, compressed, stored_bytes");
      while (row->step()) {
        blobs += row->integer(0);
        compressed += row->integer(1);
        stored_bytes += row->integer(2);
      }
    }
    db.post("INSERT INTO blob_sums(blobs, compressed, stored_bytes) VALUES(?, ?, ?)", blobs, compressed,
            stored_bytes);
  });
}

bool SqlCatalog::has_blobs() {
  return read(
      [](SqlDb& db) -> bool { return db.query("SELECT 1 FROM blobs WHERE form >= 0 LIMIT 1")->step(); });
}

bool SqlCatalog::touch_blob(const Digest& digest) {
  return write(Isolation::kRows, [&](SqlDb& db) -> bool {
    return db.run(
               "INSERT INTO blobs(digest, form, stored_bytes, touched, remover) VALUES(?, ?, 0, " +
                   std::string(next_moment()) +
                   ", '') ON CONFLICT(digest) DO UPDATE SET touched = excluded.touched WHERE blobs.remover = "
                   "''",
               digest, kNoForm) != 0;
  });
}

int64_t SqlCatalog::begin_blob_hold(const std::string& replica) {
  return write(Isolation::kRows, [&](SqlDb& db) -> int64_t {
    const auto row = db.query(
        "INSERT INTO blob_holds(id, replica) VALUES(" + std::string(next_moment()) + ", ?) RETURNING id",
        replica);
    if (!row->step()) throw Error(ErrorCode::kCorrupt, "a hold has no number");
    const int64_t hold = row->integer(0);
    while (row->step()) continue;
    return hold;
  });
}

void SqlCatalog::end_blob_hold(int64_t hold) {
  write(Isolation::kRows, [&](SqlDb& db) { db.post("DELETE FROM blob_holds WHERE id = ?", hold); });
}

void SqlCatalog::end_unknown_holds(const std::string& replica, const std::vector<int64_t>& known) {
  write(Isolation::kRows, [&](SqlDb& db) {
    const std::string others = known.empty() ? "" : " AND id NOT IN (" + marks(known.size()) + ")";
    const auto row = db.query("DELETE FROM blob_holds WHERE replica = ?" + others, replica);
    for (const int64_t hold : known) row->bind(hold);
    while (row->step()) continue;
  });
}

std::optional<int64_t> SqlCatalog::oldest_blob_hold(const std::string& replica) {
  return read([&](SqlDb& db) -> std::optional<int64_t> {
    const auto row =
        db.query("SELECT (SELECT MIN(id) FROM blob_holds WHERE replica IN " + std::string(kLive) +
                     "), (SELECT COUNT(*) FROM replicas WHERE id = ? AND lease_until_ms >= now_ms())",
                 replica);
    row->step();
    if (row->integer(1) == 0)
      throw Error(ErrorCode::kUnavailable, "this process has not renewed its lease: it removes nothing");
    if (row->is_null(0)) return std::nullopt;
    return row->integer(0);
  });
}

std::vector<Digest> SqlCatalog::begin_blob_removal(std::span<const Digest> blobs, int64_t oldest,
                                                   const std::string& replica, bool mark) {
  const std::string free =
      " AND touched <= ? AND (remover = '' OR remover NOT IN " + std::string(kLive) + ")";
  const auto work = [&](SqlDb& db) -> std::vector<Digest> {
    std::vector<Digest> unused;
    in_groups(blobs, [&](std::span<const Digest> group, const std::string& list) {
      const auto row =
          db.query(mark ? "UPDATE blobs SET remover = ? WHERE digest IN " + list + free + " RETURNING digest"
                        : "SELECT digest FROM blobs WHERE digest IN " + list + free);
      if (mark) row->bind(replica);
      bind_all(*row, group);
      row->bind(oldest);
      while (row->step()) unused.push_back(row->digest(0));
    });
    std::sort(unused.begin(), unused.end());
    return unused;
  };
  return mark ? write(Isolation::kRows, work) : read(work);
}

void SqlCatalog::end_blob_removal(std::span<const Digest> blobs, std::span<const Digest> gone,
                                  const std::string& replica) {
  write(Isolation::kRows, [&](SqlDb& db) {
    in_groups(gone, [&](std::span<const Digest> group, const std::string& list) {
      const auto row = db.query("DELETE FROM blobs WHERE digest IN " + list + " AND remover = ?");
      bind_all(*row, group);
      row->bind(replica);
      while (row->step()) continue;
    });
    in_groups(blobs, [&](std::span<const Digest> group, const std::string& list) {
      // Some of their bytes may be gone: they are no blobs, and what is left of them goes with a later
      // collection.
      const auto row =
          db.query("UPDATE blobs SET remover = '', form = -1, stored_bytes = 0 WHERE digest IN " + list +
                   " AND remover = ?");
      bind_all(*row, group);
      row->bind(replica);
      while (row->step()) continue;
    });
  });
}

}  // namespace tensormill::storage
