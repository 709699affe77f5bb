#include "compiler/build/missing.h"

namespace tensormill::build {

void Missing::add(const std::string& what, const std::string& label, const std::string& found) {
  Row& row = rows_[what];
  if (row.count++ > 0) return;
  row.label = label;
  row.found = found;
  order_.push_back(what);
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

void Missing::throw_all() const {
  const std::vector<ErrorDetail> all = details();
  std::string message = std::to_string(all.size()) + " " + noun_ +
                        (all.size() == 1 ? " is not supported:" : "s are not supported:");
  for (const ErrorDetail& detail : all)
    message += " " + detail.detail + ", first \"" + detail.pointer + "\";";
  message.pop_back();
  throw Error(ErrorCode::kOperatorNotImplemented, message, all);
}

}  // namespace tensormill::build
