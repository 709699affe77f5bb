/// PostgreSQL's client library, loaded when it is first needed: a process whose catalog is a file neither
/// maps nor needs it. Thread-safety: pure functions; a connection belongs to one thread at a time.
#pragma once

#include <libpq-fe.h>

namespace tensormill::storage {

/// The functions of libpq.def, by their own names.
struct Libpq {
#define TM_LIBPQ(name) decltype(&::name) name = nullptr;
#include "storage/postgresql/libpq.def"
#undef TM_LIBPQ
};

/// Loads libpq.so.5 at the first call. Throws Error(kNotSupported) naming the package where it is not
/// installed or lacks a function.
const Libpq& libpq();

}  // namespace tensormill::storage
