#include "storage/catalog/sql_catalog.h"

#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kModelColumns = "SELECT seq, id, facts, created_ms, owner, bytes FROM models ";

/// Of job_needs beside its job: what that may still read, also when it is tried again.
constexpr std::string_view kNeededBlob =
    "WHERE job_needs.kind = 'blob' AND (kept <> 0 OR state IN ('queued', 'running'))";

std::string select_referenced() {
  return "SELECT digest FROM model_blobs UNION SELECT digest FROM package_members UNION SELECT id FROM "
         "packages "
         "UNION SELECT digest FROM deployment_blobs UNION SELECT log FROM jobs WHERE log IS NOT NULL "
         "UNION SELECT digest FROM job_needs JOIN jobs ON jobs.id = job_needs.job " +
         std::string(kNeededBlob);
}

}  // namespace

bool SqlCatalog::insert_model(SqlDb& db, const ModelRow& model) {
  const int64_t added = db.run(
      "INSERT INTO models(id, facts, created_ms, owner, bytes) VALUES(?, ?, now_ms(), ?, ?) "
      "ON CONFLICT(id) DO NOTHING",
      model.id, model.facts, model.owner, static_cast<int64_t>(model.bytes));
  if (added == 0) return false;
  touch_named(db, model.blobs);
  for (size_t i = 0; i < model.blobs.size(); ++i) {
    db.post("INSERT INTO model_blobs(model, position, digest) VALUES(?, ?, ?)", model.id,
            static_cast<int64_t>(i), model.blobs[i]);
  }
  return true;
}

ModelRow SqlCatalog::read_model(SqlDb& db, const SqlStatement& row) {
  ModelRow model{row.digest(1),  {},          row.text(2),
                 row.integer(3), row.text(4), static_cast<uint64_t>(row.integer(5))};
  const auto blobs = db.query("SELECT digest FROM model_blobs WHERE model = ? ORDER BY position", model.id);
  while (blobs->step()) model.blobs.push_back(blobs->digest(0));
  return model;
}

bool SqlCatalog::put_model(const ModelRow& model, const std::optional<NameChange>& name) {
  return write([&](SqlDb& db) -> bool {
    const bool is_new = insert_model(db, model);
    if (name) point_name(db, *name, model.id);
    return is_new;
  });
}

std::optional<ModelRow> SqlCatalog::find_model(const Digest& id) {
  return read([&](SqlDb& db) -> std::optional<ModelRow> {
    const auto row = db.query(std::string(kModelColumns) + "WHERE id = ?", id);
    if (!row->step()) return std::nullopt;
    return read_model(db, *row);
  });
}

Page<ModelRow> SqlCatalog::list_models(const PageRequest& page) {
  return read([&](SqlDb& db) -> Page<ModelRow> {
    const auto row = db.query(std::string(kModelColumns) + "WHERE seq < ? ORDER BY seq DESC LIMIT ?",
                              before(page), static_cast<int64_t>(page.limit) + 1);
    Page<ModelRow> result;
    int64_t last = 0;
    while (row->step()) {
      if (result.items.size() == static_cast<size_t>(page.limit)) {
        result.next = last;
        break;
      }
      result.items.push_back(read_model(db, *row));
      last = row->integer(0);
    }
    return result;
  });
}

bool SqlCatalog::remove_model(const Digest& id) {
  return write([&](SqlDb& db) -> bool {
    const auto name = db.query("SELECT name FROM names WHERE id = ? ORDER BY name", id);
    if (name->step()) throw Error(ErrorCode::kInUse, id.text() + " is named " + name->text(0));
    const auto job = db.query(
        "SELECT id FROM jobs WHERE state IN ('queued', 'running') AND (subject = ? OR id IN (SELECT job FROM "
        "job_needs WHERE digest = ? AND kind = 'model')) ORDER BY seq",
        id, id);
    if (job->step()) throw Error(ErrorCode::kInUse, id.text() + " is used by job " + job->text(0));
    const bool removed = db.run("DELETE FROM models WHERE id = ?", id) != 0;
    return removed;
  });
}

void SqlCatalog::point_name(SqlDb& db, const NameChange& name, const Digest& id) {
  const auto row = db.query("SELECT id FROM names WHERE kind = ? AND name = ?", name.kind, name.name);
  if (row->step()) {
    const Digest current = row->digest(0);
    if (current == id) return;
    if (!name.replace) {
      throw Error(ErrorCode::kNameTaken, name.kind + " name " + name.name + " points at " + current.text() +
                                             ", not at " + id.text());
    }
  }
  db.post(
      "INSERT INTO names(kind, name, id, updated_ms) VALUES(?, ?, ?, now_ms()) "
      "ON CONFLICT(kind, name) DO UPDATE SET id = excluded.id, updated_ms = excluded.updated_ms",
      name.kind, name.name, id);
}

void SqlCatalog::set_name(const NameChange& name, const Digest& id) {
  return write([&](SqlDb& db) { point_name(db, name, id); });
}

std::optional<Digest> SqlCatalog::find_name(const std::string& kind, const std::string& name) {
  return read([&](SqlDb& db) -> std::optional<Digest> {
    const auto row = db.query("SELECT id FROM names WHERE kind = ? AND name = ?", kind, name);
    if (!row->step()) return std::nullopt;
    return row->digest(0);
  });
}

std::vector<NameRow> SqlCatalog::list_names(const std::string& kind) {
  return read([&](SqlDb& db) -> std::vector<NameRow> {
    const auto row =
        db.query("SELECT kind, name, id, updated_ms FROM names WHERE kind = ? ORDER BY name", kind);
    std::vector<NameRow> names;
    while (row->step()) names.push_back({row->text(0), row->text(1), row->digest(2), row->integer(3)});
    return names;
  });
}

std::vector<std::string> SqlCatalog::names_of(const std::string& kind, const Digest& id) {
  return read([&](SqlDb& db) -> std::vector<std::string> {
    const auto row = db.query("SELECT name FROM names WHERE kind = ? AND id = ? ORDER BY name", kind, id);
    std::vector<std::string> names;
    while (row->step()) names.push_back(row->text(0));
    return names;
  });
}

bool SqlCatalog::remove_name(const std::string& kind, const std::string& name) {
  return write([&](SqlDb& db) -> bool {
    return db.run("DELETE FROM names WHERE kind = ? AND name = ?", kind, name) != 0;
  });
}

std::vector<Digest> SqlCatalog::referenced_blobs() {
  return read([&](SqlDb& db) -> std::vector<Digest> {
    const auto row = db.query(select_referenced() + " ORDER BY 1");
    std::vector<Digest> blobs;
    while (row->step()) blobs.push_back(row->digest(0));
    return blobs;
  });
}

uint64_t SqlCatalog::count_referenced_blobs() {
  return read([&](SqlDb& db) -> uint64_t {
    const auto row = db.query("SELECT COUNT(*) FROM (" + select_referenced() + ") AS named");
    return row->step() ? static_cast<uint64_t>(row->integer(0)) : 0;
  });
}

std::vector<Digest> SqlCatalog::models_among(const std::vector<Digest>& ids) {
  if (ids.empty()) return {};
  return read([&](SqlDb& db) -> std::vector<Digest> {
    const auto row = db.query("SELECT id FROM models WHERE id IN (" + marks(ids.size()) + ") ORDER BY id");
    for (const Digest& id : ids) row->bind(id);
    std::vector<Digest> models;
    while (row->step()) models.push_back(row->digest(0));
    return models;
  });
}

std::vector<Digest> SqlCatalog::referenced_among(const std::vector<Digest>& blobs) {
  return read([&](SqlDb& db) -> std::vector<Digest> {
    std::vector<Digest> named;
    for (const Digest& blob : blobs) {
      // Each part finds a row by an index.
      const auto row = db.query(
          "SELECT EXISTS(SELECT 1 FROM model_blobs WHERE digest = ?) OR "
          "EXISTS(SELECT 1 FROM package_members WHERE digest = ?) OR EXISTS(SELECT 1 FROM packages WHERE id "
          "= ?) "
          "OR EXISTS(SELECT 1 FROM deployment_blobs WHERE digest = ?) OR EXISTS(SELECT 1 FROM jobs WHERE log "
          "= ?) OR EXISTS(SELECT 1 FROM job_needs JOIN jobs ON jobs.id = job_needs.job " +
              std::string(kNeededBlob) + " AND digest = ?)",
          blob, blob, blob, blob, blob, blob);
      if (row->step() && row->integer(0) != 0) named.push_back(blob);
    }
    return named;
  });
}

}  // namespace tensormill::storage
