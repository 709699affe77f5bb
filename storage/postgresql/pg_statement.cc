#include <endian.h>

#include <cstring>
#include <utility>

#include "storage/postgresql/pg_connection.h"

namespace tensormill::storage {
namespace {

constexpr Oid kInt8 = 20;

}  // namespace

PgStatement::PgStatement(PgConnection& connection, std::string sql)
    : connection_(connection), sql_(std::move(sql)), result_(nullptr, connection.libpq_.PQclear) {}

void PgStatement::bind_integer(int64_t value) {
  const uint64_t ordered = htobe64(static_cast<uint64_t>(value));
  values_.push_back({kInt8, false, std::string(reinterpret_cast<const char*>(&ordered), sizeof(ordered))});
}

// Without a type: the database takes it from where the text goes, which may hold any bytes or be of
// characters.
void PgStatement::bind_text(std::string_view value) { values_.push_back({0, false, std::string(value)}); }

void PgStatement::bind_null() { values_.push_back({0, true, {}}); }

bool PgStatement::step() {
  if (!ran_) {
    ran_ = true;
    connection_.enqueue(*this, this);
    connection_.flush();
  }
  return ++row_ < connection_.libpq_.PQntuples(result_.get());
}

int64_t PgStatement::integer(int column) const {
  const Libpq& pq = connection_.libpq_;
  const char* bytes = pq.PQgetvalue(result_.get(), row_, column);
  switch (pq.PQgetlength(result_.get(), row_, column)) {
    case 8: {
      uint64_t value = 0;
      std::memcpy(&value, bytes, sizeof(value));
      return static_cast<int64_t>(be64toh(value));
    }
    case 4: {
      uint32_t value = 0;
      std::memcpy(&value, bytes, sizeof(value));
      return static_cast<int32_t>(be32toh(value));
    }
    case 1:
      return *bytes;
    default:
      return 0;  // NULL, as in SQLite
  }
}

std::string PgStatement::text(int column) const {
  const Libpq& pq = connection_.libpq_;
  const int size = pq.PQgetlength(result_.get(), row_, column);
  return {pq.PQgetvalue(result_.get(), row_, column), static_cast<size_t>(size)};
}

bool PgStatement::is_null(int column) const {
  return connection_.libpq_.PQgetisnull(result_.get(), row_, column) != 0;
}

}  // namespace tensormill::storage
