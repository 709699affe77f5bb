#include "storage/catalog/sqlite_catalog.h"

#include <chrono>
#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/migrations.h"
#include "storage/catalog/sqlite_db.h"
#include "storage/catalog/sqlite_readers.h"

namespace tensormill::storage {
namespace {

int64_t system_now_ms() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

constexpr std::string_view kModelColumns = "SELECT seq, id, facts, created_ms, owner, bytes FROM models ";

}  // namespace

SqliteCatalog::SqliteCatalog(Env& env, const std::string& path, SqliteCatalogOptions options)
    : lock_(env.lock(path + ".lock")) {
  if (!options.now_ms) options.now_ms = system_now_ms;
  const auto index = std::make_shared<SqliteWalIndex>();
  db_ = std::make_unique<SqliteDb>(env, path, options.now_ms, options.checkpoint_pages, index);
  migrate(*db_);
  readers_ = std::make_unique<SqliteReaders>(env, path, std::move(options.now_ms), index);
}

SqliteCatalog::~SqliteCatalog() = default;

bool SqliteCatalog::insert_model(const ModelRow& model) {
  const int64_t added = db_->run(
      "INSERT INTO models(id, facts, created_ms, owner, bytes) VALUES(?, ?, now_ms(), ?, ?) "
      "ON CONFLICT(id) DO NOTHING",
      model.id, model.facts, model.owner, static_cast<int64_t>(model.bytes));
  if (added == 0) return false;
  for (size_t i = 0; i < model.blobs.size(); ++i) {
    db_->run("INSERT INTO model_blobs(model, position, digest) VALUES(?, ?, ?)", model.id,
             static_cast<int64_t>(i), model.blobs[i]);
  }
  return true;
}

ModelRow SqliteCatalog::read_model(SqliteDb& db, const Statement& row) {
  ModelRow model{row.digest(1),  {},          row.text(2),
                 row.integer(3), row.text(4), static_cast<uint64_t>(row.integer(5))};
  const auto blobs = db.query("SELECT digest FROM model_blobs WHERE model = ? ORDER BY position", model.id);
  while (blobs->step()) model.blobs.push_back(blobs->digest(0));
  return model;
}

bool SqliteCatalog::put_model(const ModelRow& model, const std::optional<NameChange>& name) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  const bool is_new = insert_model(model);
  if (name) point_name(*name, model.id);
  transaction.commit();
  return is_new;
}

std::optional<ModelRow> SqliteCatalog::find_model(const Digest& id) {
  const SqliteReaders::Turn db(*readers_);
  const auto row = db->query(std::string(kModelColumns) + "WHERE id = ?", id);
  if (!row->step()) return std::nullopt;
  return read_model(*db, *row);
}

Page<ModelRow> SqliteCatalog::list_models(const PageRequest& page) {
  const SqliteReaders::Turn db(*readers_);
  const auto row = db->query(std::string(kModelColumns) + "WHERE seq < ? ORDER BY seq DESC LIMIT ?",
                             before(page), static_cast<int64_t>(page.limit) + 1);
  Page<ModelRow> result;
  int64_t last = 0;
  while (row->step()) {
    if (result.items.size() == static_cast<size_t>(page.limit)) {
      result.next = last;
      break;
    }
    result.items.push_back(read_model(*db, *row));
    last = row->integer(0);
  }
  return result;
}

bool SqliteCatalog::remove_model(const Digest& id) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  const auto name = db_->query("SELECT name FROM names WHERE id = ? ORDER BY name", id);
  if (name->step()) throw Error(ErrorCode::kInUse, id.text() + " is named " + name->text(0));
  const auto job =
      db_->query("SELECT id FROM jobs WHERE subject = ? AND state IN ('queued', 'running') ORDER BY seq", id);
  if (job->step()) throw Error(ErrorCode::kInUse, id.text() + " is used by job " + job->text(0));
  const bool removed = db_->run("DELETE FROM models WHERE id = ?", id) != 0;
  transaction.commit();
  return removed;
}

void SqliteCatalog::point_name(const NameChange& name, const Digest& id) {
  const auto row = db_->query("SELECT id FROM names WHERE kind = ? AND name = ?", name.kind, name.name);
  if (row->step()) {
    const Digest current = row->digest(0);
    if (current == id) return;
    if (!name.replace) {
      throw Error(ErrorCode::kNameTaken, name.kind + " name " + name.name + " points at " + current.text() +
                                             ", not at " + id.text());
    }
  }
  db_->run(
      "INSERT INTO names(kind, name, id, updated_ms) VALUES(?, ?, ?, now_ms()) "
      "ON CONFLICT(kind, name) DO UPDATE SET id = excluded.id, updated_ms = excluded.updated_ms",
      name.kind, name.name, id);
}

void SqliteCatalog::set_name(const NameChange& name, const Digest& id) {
  const std::lock_guard lock(mutex_);
  Transaction transaction(*db_);
  point_name(name, id);
  transaction.commit();
}

std::optional<Digest> SqliteCatalog::find_name(const std::string& kind, const std::string& name) {
  const SqliteReaders::Turn db(*readers_);
  const auto row = db->query("SELECT id FROM names WHERE kind = ? AND name = ?", kind, name);
  if (!row->step()) return std::nullopt;
  return row->digest(0);
}

std::vector<NameRow> SqliteCatalog::list_names(const std::string& kind) {
  const SqliteReaders::Turn db(*readers_);
  const auto row =
      db->query("SELECT kind, name, id, updated_ms FROM names WHERE kind = ? ORDER BY name", kind);
  std::vector<NameRow> names;
  while (row->step()) names.push_back({row->text(0), row->text(1), row->digest(2), row->integer(3)});
  return names;
}

std::vector<std::string> SqliteCatalog::names_of(const std::string& kind, const Digest& id) {
  const SqliteReaders::Turn db(*readers_);
  const auto row = db->query("SELECT name FROM names WHERE kind = ? AND id = ? ORDER BY name", kind, id);
  std::vector<std::string> names;
  while (row->step()) names.push_back(row->text(0));
  return names;
}

bool SqliteCatalog::remove_name(const std::string& kind, const std::string& name) {
  const std::lock_guard lock(mutex_);
  return db_->run("DELETE FROM names WHERE kind = ? AND name = ?", kind, name) != 0;
}

std::vector<Digest> SqliteCatalog::referenced_blobs() {
  const SqliteReaders::Turn db(*readers_);
  const auto row = db->query(
      "SELECT digest FROM model_blobs UNION SELECT digest FROM package_members UNION SELECT id FROM packages "
      "UNION SELECT digest FROM deployment_blobs UNION SELECT log FROM jobs WHERE log IS NOT NULL ORDER BY "
      "1");
  std::vector<Digest> blobs;
  while (row->step()) blobs.push_back(row->digest(0));
  return blobs;
}

std::vector<Digest> SqliteCatalog::referenced_among(const std::vector<Digest>& blobs) {
  const SqliteReaders::Turn db(*readers_);
  std::vector<Digest> named;
  for (const Digest& blob : blobs) {
    // Each part finds a row by an index.
    const auto row = db->query(
        "SELECT EXISTS(SELECT 1 FROM model_blobs WHERE digest = ?1) OR "
        "EXISTS(SELECT 1 FROM package_members WHERE digest = ?1) OR EXISTS(SELECT 1 FROM packages WHERE id = "
        "?1) OR "
        "EXISTS(SELECT 1 FROM deployment_blobs WHERE digest = ?1) OR EXISTS(SELECT 1 FROM jobs WHERE log = "
        "?1)",
        blob);
    if (row->step() && row->integer(0) != 0) named.push_back(blob);
  }
  return named;
}

std::vector<std::string> SqliteCatalog::check() {
  const SqliteReaders::Turn db(*readers_);
  std::vector<std::string> problems;
  const auto row = db->query("PRAGMA integrity_check");
  while (row->step()) {
    if (row->text(0) != "ok") problems.push_back("catalog: " + row->text(0));
  }
  const auto broken = db->query("PRAGMA foreign_key_check");
  while (broken->step()) problems.push_back("catalog: a row of " + broken->text(0) + " belongs to nothing");
  return problems;
}

}  // namespace tensormill::storage
