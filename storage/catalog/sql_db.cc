#include "storage/catalog/sql_db.h"

#include "runtime/base/error.h"

namespace tensormill::storage {

Digest SqlStatement::digest(int column) const {
  const std::string value = text(column);
  const std::optional<Digest> digest = Digest::parse(value);
  if (!digest) throw Error(ErrorCode::kCorrupt, "the catalog has \"" + value + "\" in place of a digest");
  return *digest;
}

std::optional<Digest> SqlStatement::optional_digest(int column) const {
  if (is_null(column)) return std::nullopt;
  return digest(column);
}

std::string marks(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += i == 0 ? "?" : ", ?";
  return text;
}

}  // namespace tensormill::storage
