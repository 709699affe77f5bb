/// Copies a catalog of one kind into one of another: every row of every table, by its key, in batches that
/// are each durable. A copy that was stopped goes on when it is called again. Thread-safety: one thread;
/// nobody else writes to either side.
#pragma once

#include <cstdint>

#include "storage/catalog/sql_db.h"

namespace tensormill::storage {

struct CatalogCopy {
  int64_t rows = 0;    ///< of the whole catalog
  int64_t copied = 0;  ///< that were not there yet
};

/// One side of a copy: a database, and how a transaction is made.
class CopySide {
public:
  virtual ~CopySide() = default;
  virtual SqlDb& db() = 0;
  virtual void begin() = 0;
  virtual void commit() = 0;
};

/// Copies and then compares both sides, row by row. Both have their tables. No catalog is opened from the
/// target until end_copy was called. Throws Error(kConflict) when `to` holds a catalog that this is no copy
/// of, Error(kCorrupt), naming the table, when they differ at the end.
CatalogCopy copy_catalog(CopySide& from, CopySide& to);
void end_copy(CopySide& to);

}  // namespace tensormill::storage
