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

/// A row of a table of a format's operators that have no converter, with the reason.
struct RefusedRow {
  std::string_view op, why;
};
/// Why an operator has no converter; "" where there is nothing to say but that.
std::string reason_of(std::span<const RefusedRow> rows, std::string_view op);

/// What a node calls, a subgraph or another node, could not be converted, which is noted.
struct CallFails {};

/// What is said of a node that is not imported.
struct NodePlace {
  std::string what;        ///< "op Conv"
  std::string label;       ///< the model's name of it, or a made one
  std::string found = {};  ///< what else is known of the first one of its kind: "operands f32[1,3]"
  std::string path = {};   ///< where it is in the file, where the label may stand twice in it; "": as label
  std::string named = {};  ///< what errors about it begin with: "operator 3, Conv \"a\""
};
/// "operator 3, Conv \"a\""
std::string numbered_node(const char* noun, size_t index, std::string_view op, const std::string& label);

class Missing {
public:
  /// What one of the missing is called, and one of the places where it stands: "operator", "node".
  explicit Missing(std::string noun = "operator", std::string place = "node")
      : noun_(std::move(noun)), place_(std::move(place)) {}

  /// `why`: "" where there is nothing of it at all.
  void add(const NodePlace& node, const std::string& why);
  bool empty() const { return order_.empty(); }
  /// One each, in the order in which they were found first: the place, and "WHAT, 3 nodes, FOUND".
  std::vector<ErrorDetail> details() const;
  /// Throws MissingError.
  [[noreturn]] void throw_all() const;
  /// The same where it is not empty.
  void check() const;

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
