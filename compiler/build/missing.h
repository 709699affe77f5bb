/// What of a model is not implemented: collected over all of it, and named at once. Thread-safety: belongs to
/// one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::build {

class Missing {
public:
  /// What one of the missing is called, and one of the places where it stands: "operator", "node".
  Missing(std::string noun, std::string place) : noun_(std::move(noun)), place_(std::move(place)) {}

  /// `what` is missing at `label`; of the first place `found`, where it is not empty, says more.
  void add(const std::string& what, const std::string& label, const std::string& found);
  bool empty() const { return order_.empty(); }
  /// One each, in the order in which they were found first: the place, and "WHAT, 3 nodes, FOUND".
  std::vector<ErrorDetail> details() const;
  /// Throws Error(kOperatorNotImplemented) with the details.
  [[noreturn]] void throw_all() const;

private:
  struct Row {
    int64_t count = 0;
    std::string label, found;
  };
  const std::string noun_, place_;
  std::map<std::string, Row> rows_;
  std::vector<std::string> order_;
};

}  // namespace tensormill::build
