#include "compiler/build/missing.h"

#include <algorithm>

#include "compiler/build/rows.h"

namespace tensormill::build {

namespace {

/// Of a kind: as many as a graph that is shown has nodes.
constexpr size_t kMostPlaces = 10'000;

}  // namespace

bool may_stay_unread(std::span<const UnreadRow> rows, std::string_view op, std::string_view option) {
  return std::any_of(rows.begin(), rows.end(), [&](const UnreadRow& row) {
    return (row.op == op || row.op == "*") && row.option == option;
  });
}

std::string reason_of(std::span<const RefusedRow> rows, std::string_view op) {
  const RefusedRow* row = find_in(rows, &RefusedRow::op, op);
  return row == nullptr ? std::string() : std::string(row->why);
}

std::string numbered_node(const char* noun, size_t index, std::string_view op, const std::string& label) {
  return std::string(noun) + " " + std::to_string(index) + ", " + std::string(op) + " \"" + label + "\"";
}

void Missing::add(const NodePlace& node, const std::string& why) {
  const std::string kind = node.what + (why.empty() ? "" : ": " + why);
  Row& row = rows_[kind];
  if (row.paths.size() < kMostPlaces) row.paths.insert(node.path.empty() ? node.label : node.path);
  if (row.count++ > 0) return;
  row.reason = node.what + ": " + (why.empty() ? "not implemented" : why);
  row.label = node.label;
  row.found = node.found;
  order_.push_back(kind);
}

std::vector<ErrorDetail> Missing::details() const {
  std::vector<ErrorDetail> all;
  for (const std::string& what : order_) {
    const Row& row = rows_.at(what);
    all.push_back({row.label, what + ", " + std::to_string(row.count) + " " + place_ +
                                  (row.count == 1 ? "" : "s") + (row.found.empty() ? "" : ", " + row.found)});
  }
  return all;
}

std::vector<ErrorDetail> Missing::places() const {
  std::vector<ErrorDetail> all;
  for (const std::string& kind : order_) {
    const Row& row = rows_.at(kind);
    for (const std::string& path : row.paths) all.push_back({path, row.reason});
  }
  return all;
}

void Missing::throw_all() const {
  const std::vector<ErrorDetail> all = details();
  std::string message = std::to_string(all.size()) + " " + noun_ +
                        (all.size() == 1 ? " is not supported:" : "s are not supported:");
  for (const ErrorDetail& detail : all)
    message += " " + detail.detail + ", first \"" + detail.pointer + "\";";
  message.pop_back();
  throw MissingError(message, all, places());
}

void Missing::check() const {
  if (!empty()) throw_all();
}

}  // namespace tensormill::build
