#include "storage/postgresql/copy_catalog.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/error.h"

namespace tensormill::storage {
namespace {

/// Rows of a transaction, and of a statement.
constexpr int64_t kBatch = 500;
constexpr size_t kTogether = 50;

struct Table {
  std::string_view name;
  /// With commas; a column whose name ends in ':' is a number.
  std::string_view columns;
  /// How many of the columns, from the first, are the key.
  size_t key;
};

/// What is belonged to comes before what belongs to it.
constexpr std::array<Table, 22> kCopied = {{
    {"models", "seq:,id,facts,created_ms:,owner,bytes:", 1},
    {"model_blobs", "model,position:,digest", 2},
    {"names", "kind,name,id,updated_ms:", 2},
    {"packages", "seq:,id,archive,archive_bytes:,facts,created_ms:,last_used_ms:,pinned:,owner,model,target",
     1},
    {"package_members", "package,position:,name,digest,size:", 2},
    {"package_metadata", "package,text", 1},
    {"deployments", "name,desired,versions,updated_ms:", 1},
    {"deployment_packages", "deployment,package", 2},
    {"deployment_blobs", "deployment,digest", 2},
    {"jobs",
     "seq:,id,kind,subject,action_key,live_key,state,request,resolved,progress,result,error,attempt:,"
     "max_attempts:,priority:,submitters:,cancel_requested:,owner,lease_until_ms:,not_before_ms:,created_ms:,"
     "started_ms:,finished_ms:,log,package,submitter,needs,demand",
     1},
    {"job_events", "job,seq:,type,data,position:", 2},
    {"job_submitters", "job,caller,wanted:", 2},
    {"job_needs", "job,kind,digest,kept:", 3},
    {"idempotency", "key,request_hash,job,created_ms:", 1},
    {"answers", "caller,key,request_hash,answer,created_ms:", 2},
    {"tuning_records",
     "seq:,id,task,target,cpu,threads:,generator,imported:,job,time_ns:,final:,line,created_ms:", 1},
    {"tuning_sets", "seq:,id,subject,created_ms:", 1},
    {"tuning_set_records", "tuning_set,record", 2},
    {"facts", "key,value,created_ms:", 1},
    {"workers", "name,caller,facts,status,state,created_ms:,seen_ms:", 1},
    {"api_keys", "name,scopes,hash,created_ms:,expires_ms:", 1},
    {"audit", "seq:,ts_ms:,request_id,caller,peer,client,method,target,status:", 1},
}};

struct Column {
  std::string name;
  bool is_number = false;
};

std::vector<Column> columns_of(const Table& table) {
  std::vector<Column> columns;
  for (size_t begin = 0; begin < table.columns.size();) {
    const size_t end = std::min(table.columns.find(',', begin), table.columns.size());
    std::string name(table.columns.substr(begin, end - begin));
    const bool is_number = name.back() == ':';
    if (is_number) name.pop_back();
    columns.push_back({std::move(name), is_number});
    begin = end + 1;
  }
  return columns;
}

std::string names_of(const std::vector<Column>& columns, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + columns[i].name;
  return text;
}

struct Value {
  std::optional<std::string> text = std::nullopt;
  std::optional<int64_t> number = std::nullopt;
};
using Row = std::vector<Value>;

void bind(SqlStatement& statement, const Value& value, bool is_number) {
  if (is_number) {
    statement.bind(value.number);
  } else {
    statement.bind(value.text);
  }
}

/// The rows of a table in the order of its key, batch by batch.
class Reader {
public:
  Reader(SqlDb& db, const Table& table) : db_(db), table_(table), columns_(columns_of(table)) {}

  /// Empty at the end.
  std::vector<Row> next() {
    std::string sql = "SELECT " + names_of(columns_, columns_.size()) + " FROM " + std::string(table_.name);
    if (!last_.empty())
      sql += " WHERE (" + names_of(columns_, table_.key) + ") > (" + marks(table_.key) + ")";
    const auto statement = db_.query(sql + " ORDER BY " + names_of(columns_, table_.key) + " LIMIT ?");
    for (size_t i = 0; i < last_.size(); ++i) bind(*statement, last_[i], columns_[i].is_number);
    statement->bind(kBatch);
    std::vector<Row> rows;
    while (statement->step()) rows.push_back(read(*statement));
    if (!rows.empty()) last_.assign(rows.back().begin(), rows.back().begin() + static_cast<long>(table_.key));
    return rows;
  }
  const std::vector<Column>& columns() const { return columns_; }

private:
  Row read(const SqlStatement& statement) const {
    Row row;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const int column = static_cast<int>(i);
      Value value;
      if (!statement.is_null(column)) {
        if (columns_[i].is_number) {
          value.number = statement.integer(column);
        } else {
          value.text = statement.text(column);
        }
      }
      row.push_back(std::move(value));
    }
    return row;
  }

  SqlDb& db_;
  const Table& table_;
  const std::vector<Column> columns_;
  Row last_;
};

/// Returns how many were not there yet.
int64_t insert_rows(SqlDb& db, const Table& table, const std::vector<Column>& columns,
                    std::span<const Row> rows) {
  std::string sql =
      "INSERT INTO " + std::string(table.name) + "(" + names_of(columns, columns.size()) + ") VALUES";
  for (size_t i = 0; i < rows.size(); ++i) sql += (i == 0 ? "(" : ", (") + marks(columns.size()) + ")";
  const auto statement = db.query(sql + " ON CONFLICT DO NOTHING");
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) bind(*statement, row[i], columns[i].is_number);
  }
  while (statement->step()) continue;
  return db.changes();
}

int64_t copy_table(CopySide& from, CopySide& to, const Table& table) {
  Reader reader(from.db(), table);
  int64_t copied = 0;
  while (true) {
    const std::vector<Row> rows = reader.next();
    if (rows.empty()) return copied;
    to.begin();
    for (size_t first = 0; first < rows.size(); first += kTogether) {
      const size_t count = std::min(kTogether, rows.size() - first);
      copied += insert_rows(to.db(), table, reader.columns(), std::span(rows).subspan(first, count));
    }
    to.commit();
  }
}

struct TableDigest {
  int64_t rows = 0;
  Digest digest;
};

TableDigest digest_of(SqlDb& db, const Table& table) {
  Reader reader(db, table);
  Hasher hasher;
  int64_t count = 0;
  const auto add = [&](const std::string& text) {
    hasher.update(std::to_string(text.size()) + ":");
    hasher.update(text);
  };
  for (std::vector<Row> rows = reader.next(); !rows.empty(); rows = reader.next()) {
    for (const Row& row : rows) {
      for (const Value& value : row) {
        if (value.number) {
          add("n" + std::to_string(*value.number));
        } else if (value.text) {
          add("t" + *value.text);
        } else {
          add("");
        }
      }
    }
    count += static_cast<int64_t>(rows.size());
  }
  return {count, hasher.finish()};
}

std::optional<int64_t> counter(SqlDb& db, const std::string& name) {
  const auto row = db.query("SELECT value FROM counters WHERE name = ?", name);
  return row->step() ? std::optional(row->integer(0)) : std::nullopt;
}

void set_counter(SqlDb& db, const std::string& name, int64_t value) {
  db.run(
      "INSERT INTO counters(name, value) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
      name, value);
}

/// A target with rows is one that was begun.
void begin_copy(CopySide& to) {
  if (counter(to.db(), "copying")) return;
  for (const Table& table : kCopied) {
    const auto row = to.db().query("SELECT 1 FROM " + std::string(table.name) + " LIMIT 1");
    if (row->step()) {
      throw Error(ErrorCode::kConflict,
                  "the target holds a catalog already: there are rows in " + std::string(table.name));
    }
  }
  to.begin();
  set_counter(to.db(), "copying", 1);
  to.commit();
}

int64_t single(SqlDb& db, const std::string& sql) {
  const auto row = db.query(sql);
  return row->step() ? row->integer(0) : 0;
}

}  // namespace

CatalogCopy copy_catalog(CopySide& from, CopySide& to) {
  begin_copy(to);
  CatalogCopy result;
  for (const Table& table : kCopied) {
    try {
      result.copied += copy_table(from, to, table);
    } catch (Error& error) {
      error.add_context("copying table " + std::string(table.name));
      throw;
    }
  }
  for (const Table& table : kCopied) {
    const TableDigest source = digest_of(from.db(), table);
    const TableDigest target = digest_of(to.db(), table);
    if (source.digest != target.digest) {
      throw Error(ErrorCode::kCorrupt, "table " + std::string(table.name) + " has " +
                                           std::to_string(source.rows) + " rows in the source and " +
                                           std::to_string(target.rows) + " in the target, which differ");
    }
    result.rows += source.rows;
  }
  to.begin();
  set_counter(to.db(), "audit", single(to.db(), "SELECT COUNT(*) FROM audit"));
  // Where a counter gives places, it goes on behind the last one.
  if (counter(to.db(), "job_events"))
    set_counter(to.db(), "job_events", single(to.db(), "SELECT COALESCE(MAX(position), 0) FROM job_events"));
  to.commit();
  return result;
}

void end_copy(CopySide& to) {
  to.begin();
  to.db().run("DELETE FROM counters WHERE name = 'copying'");
  to.commit();
}

}  // namespace tensormill::storage
