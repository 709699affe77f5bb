// Packages and deployments.
#include <map>
#include <utility>

#include "runtime/base/error.h"
#include "storage/catalog/sql_catalog.h"
#include "storage/catalog/sql_db.h"

namespace tensormill::storage {
namespace {

constexpr std::string_view kPackageColumns =
    "SELECT seq, id, archive, archive_bytes, facts, created_ms, last_used_ms, pinned, owner, model, "
    "target FROM packages ";
constexpr std::string_view kDeploymentColumns =
    "SELECT name, desired, versions, updated_ms, revision FROM deployments ";

void keep_metadata(SqlDb& db, const Digest& package, const std::string& text) {
  if (text.empty()) return;
  db.post(
      "INSERT INTO package_metadata(package, text) SELECT id, ? FROM packages WHERE id = ? ON CONFLICT DO "
      "NOTHING",
      text, package);
}

}  // namespace

bool SqlCatalog::insert_package(SqlDb& db, const PackageRow& package) {
  const int64_t added = db.run(
      "INSERT INTO packages(id, archive, archive_bytes, facts, created_ms, last_used_ms, pinned, owner, "
      "model, "
      "target) VALUES(?, ?, ?, ?, now_ms(), now_ms(), ?, ?, ?, ?) ON CONFLICT(id) DO NOTHING",
      package.id, package.archive, static_cast<int64_t>(package.archive_bytes), package.facts,
      static_cast<int64_t>(package.pinned), package.owner, package.model, package.target);
  keep_metadata(db, package.id, package.metadata);
  if (added == 0) {
    db.post("UPDATE packages SET last_used_ms = now_ms() WHERE id = ?", package.id);
    // What the id says nothing of, such as a signature, may have come only now.
    for (const MemberRow& member : package.members) {
      const auto size = static_cast<int64_t>(member.size);
      if (db.run("UPDATE package_members SET digest = ?, size = ? WHERE package = ? AND name = ?",
                 member.digest, size, package.id, member.name) > 0)
        continue;
      db.post(
          "INSERT INTO package_members(package, position, name, digest, size) SELECT ?, "
          "COALESCE(MAX(position), "
          "-1) + 1, ?, ?, ? FROM package_members WHERE package = ?",
          package.id, member.name, member.digest, size, package.id);
    }
    return false;
  }
  std::vector<Digest> named = {package.id};
  for (const MemberRow& member : package.members) named.push_back(member.digest);
  touch_named(db, named);
  for (size_t i = 0; i < package.members.size(); ++i) {
    const MemberRow& member = package.members[i];
    db.post("INSERT INTO package_members(package, position, name, digest, size) VALUES(?, ?, ?, ?, ?)",
            package.id, static_cast<int64_t>(i), member.name, member.digest,
            static_cast<int64_t>(member.size));
  }
  return true;
}

PackageRow SqlCatalog::read_package(const SqlStatement& row) {
  PackageRow package{row.digest(1),  {},
                     row.digest(2),  static_cast<uint64_t>(row.integer(3)),
                     row.text(4),    row.integer(5),
                     row.integer(6), row.integer(7) != 0,
                     row.text(8),    row.text(9),
                     row.text(10)};
  return package;
}

void SqlCatalog::read_members(SqlDb& db, PackageRow& package) {
  const auto member = db.query(
      "SELECT name, digest, size FROM package_members WHERE package = ? ORDER BY position", package.id);
  while (member->step())
    package.members.push_back(
        {member->text(0), member->digest(1), static_cast<uint64_t>(member->integer(2))});
}

bool SqlCatalog::put_package(const PackageRow& package) {
  return write([&](SqlDb& db) -> bool {
    const bool is_new = insert_package(db, package);
    return is_new;
  });
}

std::optional<PackageRow> SqlCatalog::find_package(const Digest& id) {
  return read([&](SqlDb& db) -> std::optional<PackageRow> {
    const auto row = db.query(std::string(kPackageColumns) + "WHERE id = ?", id);
    if (!row->step()) return std::nullopt;
    PackageRow package = read_package(*row);
    read_members(db, package);
    return package;
  });
}

Page<PackageRow> SqlCatalog::list_packages(const PackageFilter& filter, const PageRequest& page) {
  return read([&](SqlDb& db) -> Page<PackageRow> {
    // Only the conditions that there are, so that each has its index.
    std::string conditions = "WHERE seq < ? ";
    if (!filter.model.empty()) conditions += "AND model = ? ";
    if (!filter.target.empty()) conditions += "AND target = ? ";
    const auto row =
        db.query(std::string(kPackageColumns) + conditions + "ORDER BY seq DESC LIMIT ?", before(page));
    if (!filter.model.empty()) row->bind(filter.model);
    if (!filter.target.empty()) row->bind(filter.target);
    row->bind(static_cast<int64_t>(page.limit) + 1);
    Page<PackageRow> result;
    int64_t last = 0;
    while (row->step()) {
      if (result.items.size() == static_cast<size_t>(page.limit)) {
        result.next = last;
        break;
      }
      result.items.push_back(read_package(*row));
      last = row->integer(0);
    }
    return result;
  });
}

std::map<Digest, std::string> SqlCatalog::package_metadata(const std::vector<Digest>& packages) {
  if (packages.empty()) return {};
  return read([&](SqlDb& db) -> std::map<Digest, std::string> {
    const auto row = db.query("SELECT package, text FROM package_metadata WHERE package IN (" +
                              marks(packages.size()) + ")");
    for (const Digest& package : packages) row->bind(package);
    std::map<Digest, std::string> texts;
    while (row->step()) texts[row->digest(0)] = row->text(1);
    return texts;
  });
}

void SqlCatalog::put_package_metadata(const std::map<Digest, std::string>& metadata) {
  if (metadata.empty()) return;
  write(Isolation::kRows, [&](SqlDb& db) {
    for (const auto& [package, text] : metadata) keep_metadata(db, package, text);
  });
}

bool SqlCatalog::touch_package(const Digest& id) {
  return write([&](SqlDb& db) -> bool {
    return db.run("UPDATE packages SET last_used_ms = now_ms() WHERE id = ?", id) != 0;
  });
}

bool SqlCatalog::pin_package(const Digest& id, bool pinned) {
  return write([&](SqlDb& db) -> bool {
    return db.run("UPDATE packages SET pinned = ? WHERE id = ?", static_cast<int64_t>(pinned), id) != 0;
  });
}

bool SqlCatalog::remove_package(const Digest& id) {
  return write([&](SqlDb& db) -> bool {
    const auto name = db.query("SELECT name FROM names WHERE id = ? ORDER BY name", id);
    if (name->step()) throw Error(ErrorCode::kInUse, id.text() + " is named " + name->text(0));
    const auto use =
        db.query("SELECT deployment FROM deployment_packages WHERE package = ? ORDER BY deployment", id);
    if (use->step()) throw Error(ErrorCode::kInUse, id.text() + " is used by deployment " + use->text(0));
    const auto pinned = db.query("SELECT id FROM packages WHERE id = ? AND pinned <> 0", id);
    if (pinned->step()) throw Error(ErrorCode::kInUse, id.text() + " is pinned");
    const auto job = db.query("SELECT id FROM jobs WHERE needs = ? AND state IN ('queued', 'running')", id);
    if (job->step()) throw Error(ErrorCode::kInUse, id.text() + " is used by job " + job->text(0));
    const bool removed = db.run("DELETE FROM packages WHERE id = ?", id) != 0;
    return removed;
  });
}

int64_t SqlCatalog::expire_packages(int64_t unused_ms) {
  return write([&](SqlDb& db) -> int64_t {
    return db.run(
        "DELETE FROM packages WHERE pinned = 0 AND last_used_ms < now_ms() - ? AND id NOT IN (SELECT id FROM "
        "names) AND id NOT IN (SELECT package FROM deployment_packages) AND id NOT IN (SELECT needs FROM "
        "jobs "
        "WHERE needs IS NOT NULL AND state IN ('queued', 'running'))",
        unused_ms);
  });
}

void SqlCatalog::require_revision(SqlDb& db, const std::string& name, const std::optional<int64_t>& after) {
  if (!after) return;
  const auto found = db.query("SELECT revision FROM deployments WHERE name = ?", name);
  if ((found->step() ? found->integer(0) : 0) != *after)
    throw Error(ErrorCode::kConflict, "deployment \"" + name + "\" was changed by another process meanwhile");
}

int64_t SqlCatalog::put_deployment(const DeploymentRow& deployment, std::optional<int64_t> after,
                                   const std::vector<RepeatKey>& done) {
  const int64_t revision = write([&](SqlDb& db) -> int64_t {
    require_revision(db, deployment.name, after);
    int64_t changed = 0;
    {
      const auto row = db.query(
          "INSERT INTO deployments(name, desired, versions, updated_ms, revision) VALUES(?, ?, ?, "
          "now_ms(), " +
              std::string(next_moment()) +
              ") ON CONFLICT(name) DO UPDATE SET desired = excluded.desired, versions = excluded.versions, "
              "updated_ms = excluded.updated_ms, revision = excluded.revision RETURNING revision",
          deployment.name, deployment.desired, deployment.versions);
      if (row->step()) changed = row->integer(0);
      while (row->step()) continue;
    }
    for (const Digest& package : deployment.packages) {
      // What it used before cannot have been removed, but for catalogs of a version that did not look here.
      const auto used = db.query("SELECT 1 FROM deployment_packages WHERE deployment = ? AND package = ?",
                                 deployment.name, package);
      if (!used->step()) require_row(db, "packages", "package", package);
    }
    db.post("DELETE FROM deployment_packages WHERE deployment = ?", deployment.name);
    for (const Digest& package : deployment.packages) {
      db.post("INSERT INTO deployment_packages(deployment, package) VALUES(?, ?) ON CONFLICT DO NOTHING",
              deployment.name, package);
    }
    touch_named(db, deployment.blobs);
    db.post("DELETE FROM deployment_blobs WHERE deployment = ?", deployment.name);
    for (const Digest& blob : deployment.blobs) {
      db.post("INSERT INTO deployment_blobs(deployment, digest) VALUES(?, ?) ON CONFLICT DO NOTHING",
              deployment.name, blob);
    }
    for (const RepeatKey& repeat : done) note_done(db, repeat);
    return changed;
  });
  tell_others();
  return revision;
}

DeploymentRow SqlCatalog::read_deployment(SqlDb& db, const SqlStatement& row) {
  DeploymentRow deployment{row.text(0), row.text(1), row.text(2), {}, row.integer(3), {}, row.integer(4)};
  const auto use = db.query("SELECT package FROM deployment_packages WHERE deployment = ? ORDER BY package",
                            deployment.name);
  while (use->step()) deployment.packages.push_back(use->digest(0));
  const auto blob =
      db.query("SELECT digest FROM deployment_blobs WHERE deployment = ? ORDER BY digest", deployment.name);
  while (blob->step()) deployment.blobs.push_back(blob->digest(0));
  return deployment;
}

std::optional<DeploymentRow> SqlCatalog::find_deployment(const std::string& name) {
  return read([&](SqlDb& db) -> std::optional<DeploymentRow> {
    const auto row = db.query(std::string(kDeploymentColumns) + "WHERE name = ?", name);
    if (!row->step()) return std::nullopt;
    return read_deployment(db, *row);
  });
}

std::vector<DeploymentRow> SqlCatalog::list_deployments() {
  return read([](SqlDb& db) -> std::vector<DeploymentRow> {
    std::vector<DeploymentRow> deployments;
    {
      const auto row = db.query(std::string(kDeploymentColumns) + "ORDER BY name");
      while (row->step())
        deployments.push_back(
            {row->text(0), row->text(1), row->text(2), {}, row->integer(3), {}, row->integer(4)});
    }
    // In three statements, however many there are.
    const auto add = [&](std::string_view sql, std::vector<Digest> DeploymentRow::*member) {
      const auto row = db.query(sql);
      auto at = deployments.begin();
      while (row->step()) {
        const std::string name = row->text(0);
        while (at != deployments.end() && at->name < name) ++at;
        if (at != deployments.end() && at->name == name) ((*at).*member).push_back(row->digest(1));
      }
    };
    add("SELECT deployment, package FROM deployment_packages ORDER BY deployment, package",
        &DeploymentRow::packages);
    add("SELECT deployment, digest FROM deployment_blobs ORDER BY deployment, digest", &DeploymentRow::blobs);
    return deployments;
  });
}

std::map<Digest, std::vector<std::string>> SqlCatalog::deployments_of(const std::vector<Digest>& packages) {
  if (packages.empty()) return {};
  return read([&](SqlDb& db) -> std::map<Digest, std::vector<std::string>> {
    const auto row = db.query("SELECT package, deployment FROM deployment_packages WHERE package IN (" +
                              marks(packages.size()) + ") ORDER BY package, deployment");
    for (const Digest& package : packages) row->bind(package);
    std::map<Digest, std::vector<std::string>> names;
    while (row->step()) names[row->digest(0)].push_back(row->text(1));
    return names;
  });
}

int64_t SqlCatalog::count_deployments() {
  return read([](SqlDb& db) -> int64_t {
    const auto row = db.query("SELECT COUNT(*) FROM deployments");
    row->step();
    return row->integer(0);
  });
}

std::vector<std::pair<std::string, int64_t>> SqlCatalog::deployment_revisions() {
  return read([](SqlDb& db) -> std::vector<std::pair<std::string, int64_t>> {
    const auto row = db.query("SELECT name, revision FROM deployments ORDER BY name");
    std::vector<std::pair<std::string, int64_t>> revisions;
    while (row->step()) revisions.emplace_back(row->text(0), row->integer(1));
    return revisions;
  });
}

bool SqlCatalog::remove_deployment(const std::string& name, std::optional<int64_t> after) {
  const bool removed = write([&](SqlDb& db) -> bool {
    require_revision(db, name, after);
    return db.run("DELETE FROM deployments WHERE name = ?", name) != 0;
  });
  if (removed) tell_others();
  return removed;
}

std::string SqlCatalog::deployments_mark() {
  return read([](SqlDb& db) -> std::string {
    const auto row = db.query("SELECT COUNT(*), COALESCE(MAX(revision), 0) FROM deployments");
    row->step();
    return std::to_string(row->integer(0)) + "/" + std::to_string(row->integer(1));
  });
}

}  // namespace tensormill::storage
