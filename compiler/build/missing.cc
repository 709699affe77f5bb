#include "compiler/build/missing.h"

#include <algorithm>

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

void Missing::add(const std::string& what, const std::string& why, const std::string& label,
                  const std::string& found, const std::string& path) {
  const std::string kind = what + (why.empty() ? "" : ": " + why);
  Row& row = rows_[kind];
  if (row.paths.size() < kMostPlaces) row.paths.insert(path.empty() ? label : path);
  if (row.count++ > 0) return;
  row.reason = what + ": " + (why.empty() ? "not implemented" : why);
  row.label = label;
  row.found = found;
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

}  // namespace tensormill::build
