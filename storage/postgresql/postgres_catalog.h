/// The catalog in a PostgreSQL database, which many processes may have open. Leases go by the database's
/// clock; what is looked for and then written is one serializable transaction, run again where another came
/// between; a claim takes the first row that nobody else is about to take. Errors: Error(kUnavailable),
/// beside those of Catalog, while the database cannot be reached. Thread-safety: as Catalog.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "storage/catalog/sql_catalog.h"
#include "storage/postgresql/pg_pool.h"

namespace tensormill::storage {

class PgWatch;

class PostgresCatalog final : public SqlCatalog {
public:
  /// Connects, makes the tables when there are none, and brings them up to date. Throws Error(kUsage) for a
  /// URL that is not allowed (pg_url.h), Error(kNotSupported) for tables that this program is too old for or
  /// where there is no libpq.
  explicit PostgresCatalog(PgOptions options);
  ~PostgresCatalog() override;

  /// Made with the tables; a copy of them has the same.
  const std::string& id() const { return id_; }

  std::unique_ptr<CatalogWatch> watch(std::function<void()> changed) override;
  int64_t last_event_position() override;
  /// The database guards its tables itself; this finds what can no longer be read.
  uint64_t database_bytes() override;
  std::vector<std::string> check() override;

private:
  void run_write(Isolation isolation, const Work& work) override;
  void run_read(const Work& work) override;
  void add_event(SqlDb& db, const std::string& job, const JobEventRow& event, bool first) override;
  std::string_view settled_events() const override { return settled_; }
  bool is_shared() const override { return true; }
  std::string_view next_moment() const override { return "nextval('moments')"; }
  void tell_others() override;
  void try_write(Isolation isolation, const Work& work, bool& committing);

  PgPool pool_;
  std::string id_;
  /// Serializable transactions of one process would mostly make each other run again.
  std::mutex serial_;
  int64_t event_offset_ = 0;
  std::string fence_;    ///< SQL of the least position that may not be settled
  std::string settled_;  ///< SQL of the condition
  std::mutex watch_mutex_;
  PgWatch* watch_ = nullptr;
};

}  // namespace tensormill::storage
