#include "storage/catalog/sqlite_vfs.h"

#include <sqlite3.h>

#include <cstring>
#include <new>
#include <utility>

namespace tensormill::storage {

struct SqliteVfs::State {
  Env* env = nullptr;
  std::shared_ptr<SqliteWalIndex> index;
  std::unique_ptr<Error> error;
};

namespace {

using State = SqliteVfs::State;

/// What SQLite allocates for an open file: its own head, then what is ours.
struct VfsFile {
  sqlite3_file base;
  State* state;
  EnvFile* file;
  std::string* path;
  bool sync_folder;  ///< the file is new: its name becomes durable at the first sync
  bool remove_at_close;
  SqliteWalIndex::Owner locks;  ///< of the database itself; other files have none
};

VfsFile* as_file(sqlite3_file* file) { return reinterpret_cast<VfsFile*>(file); }
State& state_of(sqlite3_vfs* vfs) { return *static_cast<State*>(vfs->pAppData); }

/// Runs `body`; no exception may cross SQLite's C frames, so an Error is kept for SqliteVfs::take_error.
template <typename Body>
int guarded(State& state, int failure, Body body) {
  try {
    return body();
  } catch (const Error& error) {
    state.error = std::make_unique<Error>(error);
    return error.code() == ErrorCode::kDiskFull ? SQLITE_FULL : failure;
  } catch (const std::bad_alloc&) {
    return SQLITE_NOMEM;
  }
}

SqliteWalIndex& index_of(VfsFile& file) { return *file.state->index; }

int file_close(sqlite3_file* base) {
  VfsFile* file = as_file(base);
  index_of(*file).unlock_file(file->locks, SQLITE_LOCK_NONE);
  delete file->file;
  file->file = nullptr;
  int rc = SQLITE_OK;
  if (file->remove_at_close) {
    rc = guarded(*file->state, SQLITE_IOERR_CLOSE, [&] {
      file->state->env->remove_file(*file->path);
      return SQLITE_OK;
    });
  }
  delete file->path;
  file->path = nullptr;
  return rc;
}

int file_read(sqlite3_file* base, void* target, int count, sqlite3_int64 offset) {
  VfsFile* file = as_file(base);
  return guarded(*file->state, SQLITE_IOERR_READ, [&] {
    const auto size = static_cast<size_t>(count);
    const size_t got =
        file->file->read(static_cast<uint64_t>(offset), {static_cast<std::byte*>(target), size});
    if (got == size) return SQLITE_OK;
    std::memset(static_cast<char*>(target) + got, 0, size - got);
    return SQLITE_IOERR_SHORT_READ;
  });
}

int file_write(sqlite3_file* base, const void* bytes, int count, sqlite3_int64 offset) {
  VfsFile* file = as_file(base);
  return guarded(*file->state, SQLITE_IOERR_WRITE, [&] {
    file->file->write(static_cast<uint64_t>(offset),
                      std::string_view(static_cast<const char*>(bytes), static_cast<size_t>(count)));
    return SQLITE_OK;
  });
}

int file_truncate(sqlite3_file* base, sqlite3_int64 size) {
  VfsFile* file = as_file(base);
  return guarded(*file->state, SQLITE_IOERR_TRUNCATE, [&] {
    file->file->truncate(static_cast<uint64_t>(size));
    return SQLITE_OK;
  });
}

int file_sync(sqlite3_file* base, int) {
  VfsFile* file = as_file(base);
  return guarded(*file->state, SQLITE_IOERR_FSYNC, [&] {
    file->file->sync();
    if (file->sync_folder) {
      file->state->env->sync_folder(parent_folder(*file->path));
      file->sync_folder = false;
    }
    return SQLITE_OK;
  });
}

int file_size(sqlite3_file* base, sqlite3_int64* size) {
  VfsFile* file = as_file(base);
  return guarded(*file->state, SQLITE_IOERR_FSTAT, [&] {
    *size = static_cast<sqlite3_int64>(file->file->size());
    return SQLITE_OK;
  });
}

int file_lock(sqlite3_file* base, int level) {
  VfsFile* file = as_file(base);
  return index_of(*file).lock_file(file->locks, level) ? SQLITE_OK : SQLITE_BUSY;
}

int file_unlock(sqlite3_file* base, int level) {
  VfsFile* file = as_file(base);
  index_of(*file).unlock_file(file->locks, level);
  return SQLITE_OK;
}

int file_check_reserved(sqlite3_file* base, int* result) {
  *result = index_of(*as_file(base)).is_reserved() ? 1 : 0;
  return SQLITE_OK;
}

int file_map(sqlite3_file* base, int region, int bytes, int extend, void volatile** target) {
  VfsFile* file = as_file(base);
  return guarded(*file->state, SQLITE_IOERR_SHMMAP, [&] {
    *target = index_of(*file).map(file->locks, static_cast<size_t>(region), static_cast<size_t>(bytes),
                                  extend != 0);
    return SQLITE_OK;
  });
}

int file_lock_slots(sqlite3_file* base, int first, int count, int flags) {
  VfsFile* file = as_file(base);
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    index_of(*file).unlock(file->locks, first, count);
    return SQLITE_OK;
  }
  const bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
  return index_of(*file).lock(file->locks, first, count, exclusive) ? SQLITE_OK : SQLITE_BUSY;
}

void file_barrier(sqlite3_file* base) { index_of(*as_file(base)).barrier(); }

int file_unmap(sqlite3_file* base, int) {
  VfsFile* file = as_file(base);
  index_of(*file).unmap(file->locks);
  return SQLITE_OK;
}

int file_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int file_sector_size(sqlite3_file*) { return 4096; }
int file_characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

const sqlite3_io_methods kFileMethods = {
    2, file_close, file_read, file_write, file_truncate, file_sync, file_size, file_lock, file_unlock,
    file_check_reserved, file_control, file_sector_size, file_characteristics, file_map, file_lock_slots,
    file_barrier, file_unmap,
    // Mapping of the file itself belongs to a later version of the table.
    nullptr, nullptr};

int vfs_open(sqlite3_vfs* vfs, const char* path, sqlite3_file* base, int flags, int* flags_out) {
  State& state = state_of(vfs);
  VfsFile* file = as_file(base);
  *file = VfsFile{};
  // Nameless temporary files do not occur: temp_store is MEMORY.
  if (path == nullptr) return SQLITE_CANTOPEN;
  return guarded(state, SQLITE_CANTOPEN, [&] {
    const bool creates = (flags & SQLITE_OPEN_CREATE) != 0 && !state.env->exists(path);
    OpenMode mode = (flags & SQLITE_OPEN_READWRITE) != 0 ? OpenMode::kWrite : OpenMode::kRead;
    if (creates) mode = OpenMode::kCreate;
    file->file = state.env->open(path, mode).release();
    file->path = std::make_unique<std::string>(path).release();  // freed by file_close
    file->state = &state;
    file->sync_folder = creates;
    file->remove_at_close = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
    file->base.pMethods = &kFileMethods;
    if (flags_out != nullptr) *flags_out = flags;
    return SQLITE_OK;
  });
}

int vfs_delete(sqlite3_vfs* vfs, const char* path, int sync_folder) {
  State& state = state_of(vfs);
  return guarded(state, SQLITE_IOERR_DELETE, [&] {
    if (!state.env->remove_file(path)) return SQLITE_IOERR_DELETE_NOENT;
    if (sync_folder != 0) state.env->sync_folder(parent_folder(path));
    return SQLITE_OK;
  });
}

int vfs_access(sqlite3_vfs* vfs, const char* path, int flags, int* result) {
  State& state = state_of(vfs);
  return guarded(state, SQLITE_IOERR_ACCESS, [&] {
    *result = state.env->exists(path) ? 1 : 0;
    // An empty file is as good as none, as in SQLite's own file system.
    if (*result != 0 && flags == SQLITE_ACCESS_EXISTS && state.env->file_size(path) == 0) *result = 0;
    return SQLITE_OK;
  });
}

int vfs_full_path(sqlite3_vfs*, const char* path, int size, char* target) {
  sqlite3_snprintf(size, target, "%s", path);
  return SQLITE_OK;
}

sqlite3_vfs* system_vfs() { return sqlite3_vfs_find("unix"); }

int vfs_randomness(sqlite3_vfs*, int count, char* target) {
  return system_vfs()->xRandomness(system_vfs(), count, target);
}
int vfs_sleep(sqlite3_vfs*, int microseconds) { return system_vfs()->xSleep(system_vfs(), microseconds); }
int vfs_time(sqlite3_vfs*, double* julian_day) {
  return system_vfs()->xCurrentTime(system_vfs(), julian_day);
}
int vfs_last_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

SqliteVfs::SqliteVfs(Env& env, std::shared_ptr<SqliteWalIndex> index) : state_(std::make_unique<State>()) {
  TM_CHECK(system_vfs() != nullptr || sqlite3_initialize() == SQLITE_OK, "sqlite cannot start");
  state_->env = &env;
  state_->index = std::move(index);
  // One registration an object; its address makes the name unique.
  name_ = "env-" + std::to_string(reinterpret_cast<uintptr_t>(this));
  vfs_ = std::make_unique<sqlite3_vfs>();
  *vfs_ = sqlite3_vfs{};
  vfs_->iVersion = 1;
  vfs_->szOsFile = sizeof(VfsFile);
  vfs_->mxPathname = 4096;
  vfs_->zName = name_.c_str();
  vfs_->pAppData = state_.get();
  vfs_->xOpen = vfs_open;
  vfs_->xDelete = vfs_delete;
  vfs_->xAccess = vfs_access;
  vfs_->xFullPathname = vfs_full_path;
  vfs_->xRandomness = vfs_randomness;
  vfs_->xSleep = vfs_sleep;
  vfs_->xCurrentTime = vfs_time;
  vfs_->xGetLastError = vfs_last_error;
  TM_CHECK(sqlite3_vfs_register(vfs_.get(), 0) == SQLITE_OK, "sqlite refuses the file system");
}

SqliteVfs::~SqliteVfs() { sqlite3_vfs_unregister(vfs_.get()); }

std::unique_ptr<Error> SqliteVfs::take_error() { return std::exchange(state_->error, nullptr); }

}  // namespace tensormill::storage
