/// SQLite's file system over an Env, so that whatever holds for the Env (a power cut, a full disk) holds for
/// the database, its write-ahead log included. For one connection; several of one process to one database
/// share a SqliteWalIndex, which has their locks. Other processes are locked out by the catalog's own lock.
/// Thread-safety: the registration is; the files are used by one connection at a time.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/error.h"
#include "storage/catalog/sqlite_wal_index.h"
#include "storage/env/env.h"

struct sqlite3_vfs;

namespace tensormill::storage {

class SqliteVfs {
public:
  SqliteVfs(Env& env, std::shared_ptr<SqliteWalIndex> index);
  /// All connections that use it must be closed.
  ~SqliteVfs();
  SqliteVfs(const SqliteVfs&) = delete;
  SqliteVfs& operator=(const SqliteVfs&) = delete;
  /// For sqlite3_open_v2.
  const std::string& name() const { return name_; }
  /// The Env's error behind the latest SQLITE_IOERR, and forgets it; null when there was none.
  std::unique_ptr<Error> take_error();

  struct State;

private:
  std::unique_ptr<State> state_;
  std::string name_;
  std::unique_ptr<sqlite3_vfs> vfs_;
};

}  // namespace tensormill::storage
