#include "compiler/frontend/pytorch/script/schemas.h"

#include <map>

#include "compiler/build/rows.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch::script {

namespace {

struct RawSchema {
  const char *target, *arguments, *results;
};
constexpr RawSchema kSchemas[] = {
#define TS_SCHEMA(target, arguments, results) {target, arguments, results},
#include "compiler/frontend/pytorch/script/schemas.def"
#undef TS_SCHEMA
};

std::vector<std::string> words_of(std::string_view text) {
  const std::vector<std::string_view> words = build::words_of(text);
  return {words.begin(), words.end()};
}

using Table = std::map<std::string, std::vector<Schema>, std::less<>>;

const Table& table() {
  static const Table made = [] {
    std::map<std::string_view, const RawSchema*> raw;
    for (const RawSchema& each : kSchemas) raw.emplace(each.target, &each);
    Table all;
    for (const OpRow& row : all_rows()) {
      Schema schema;
      schema.row = &row;
      if (const auto found = raw.find(row.target); found != raw.end()) {
        schema.arguments = words_of(found->second->arguments);
        schema.results = words_of(found->second->results);
      }
      all[row.target.substr(0, row.target.rfind('.'))].push_back(std::move(schema));
    }
    return all;
  }();
  return made;
}

}  // namespace

const std::vector<Schema>& schemas_of(std::string_view name) {
  static const std::vector<Schema> none;
  const auto found = table().find(name);
  return found == table().end() ? none : found->second;
}

const Schema& schema_of(const OpRow& row) {
  for (const Schema& each : schemas_of(row.target.substr(0, row.target.rfind('.'))))
    if (each.row == &row) return each;
  throw Error(ErrorCode::kInternal, "operator " + row.target + " has no schema");
}

}  // namespace tensormill::frontend::pytorch::script
