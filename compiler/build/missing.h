/// What of a model is not implemented: collected over all of it, and named at once. Thread-safety: belongs to
/// one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::build {

/// What Missing throws: its details name each kind once, and this each place.
class MissingError : public Error {
public:
  MissingError(const std::string& message, std::vector<ErrorDetail> details, std::vector<ErrorDetail> places)
      : Error(ErrorCode::kOperatorNotImplemented, message, std::move(details)), places_(std::move(places)) {}
  /// By their paths, each with what is missing there.
  const std::vector<ErrorDetail>& places() const { return places_; }

private:
  std::vector<ErrorDetail> places_;
};

/// A row of a format's unread_options.def: an option of an operator, or of all ("*"), that no converter reads
/// and no result depends on.
struct UnreadRow {
  std::string_view op, option;
};
bool may_stay_unread(std::span<const UnreadRow> rows, std::string_view op, std::string_view option);

class Missing {
public:
  /// What one of the missing is called, and one of the places where it stands: "operator", "node".
  Missing(std::string noun, std::string place) : noun_(std::move(noun)), place_(std::move(place)) {}

  /// `what` is missing at `label`; `why`: "" where there is nothing of it at all. Of the first place `found`,
  /// where it is not empty, says more. `path`: where that is in the file, where the label may stand twice in
  /// it.
  void add(const std::string& what, const std::string& why, const std::string& label,
           const std::string& found, const std::string& path = "");
  bool empty() const { return order_.empty(); }
  /// One each, in the order in which they were found first: the place, and "WHAT, 3 nodes, FOUND".
  std::vector<ErrorDetail> details() const;
  /// Throws MissingError.
  [[noreturn]] void throw_all() const;

private:
  struct Row {
    int64_t count = 0;
    std::string reason, label, found;
    std::set<std::string> paths;
  };
  std::vector<ErrorDetail> places() const;

  const std::string noun_, place_;
  std::map<std::string, Row> rows_;
  std::vector<std::string> order_;
};

}  // namespace tensormill::build
