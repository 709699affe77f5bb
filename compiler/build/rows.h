/// Rows of the tables that formats are written down in. Thread-safety: pure functions.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/build/op_builder.h"

namespace tensormill::build {

/// The first row whose `member` is `key`; null where there is none.
template <typename Rows, typename Member, typename Key>
auto find_in(const Rows& rows, Member member, const Key& key) {
  const auto row =
      std::find_if(std::begin(rows), std::end(rows), [&](const auto& each) { return each.*member == key; });
  return row == std::end(rows) ? nullptr : &*row;
}

/// A number that stands for a type of elements in a format's files.
struct NumberedType {
  int64_t number;
  DType dtype;
};
std::optional<DType> dtype_numbered(std::span<const NumberedType> types, int64_t number);

/// A name that operators of a model have, and that of the graph's operator that they are.
struct OpName {
  std::string_view model;
  const char* graph;
};
/// The graph's name of the operator `op`, which is one of these: throws as OpBuilder::invalid.
const char* graph_name(const OpBuilder& builder, std::span<const OpName> names, std::string_view op);

/// What stands between the blanks of a text.
std::vector<std::string_view> words_of(std::string_view text);

/// A long table whose rows are read once, and found by one of their texts.
template <typename Row>
class ReadRows {
public:
  /// read() makes a row of one of `table`.
  template <typename Table, typename Read, typename Key>
  ReadRows(const Table& table, const Read& read, Key Row::*key) {
    for (const auto& each : table) rows_.push_back(read(each));
    for (const Row& row : rows_) by_key_.emplace(row.*key, &row);
  }
  ReadRows(const ReadRows&) = delete;
  ReadRows& operator=(const ReadRows&) = delete;

  const std::vector<Row>& all() const { return rows_; }
  /// Null where there is none.
  const Row* find(std::string_view key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : found->second;
  }

private:
  std::vector<Row> rows_;
  std::map<std::string_view, const Row*> by_key_;
};

}  // namespace tensormill::build
