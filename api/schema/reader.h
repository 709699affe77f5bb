/// Reads JSON objects into native structs and collects everything that is wrong, so that a client sees all of
/// its mistakes at once, each with a JSON pointer (RFC 6901).
///
///   schema::Problems problems;
///   schema::ObjectReader body(json, "", problems);
///   body.required("model", request.model);
///   body.optional("opt_level", request.opt_level, 0, 4);
///   body.finish();            // members that nothing read are problems
///   problems.throw_if_any();  // Error(kInvalidArgument)
///
/// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::schema {

class Problems {
public:
  void add(std::string pointer, std::string detail);
  bool empty() const { return details_.empty(); }
  /// Throws Error(kInvalidArgument) whose message is the first problem and whose details are all.
  void throw_if_any() const;

private:
  /// A client reads a few; a body may have half a million.
  static constexpr size_t kMostShown = 100;
  std::vector<ErrorDetail> details_;
  size_t more_ = 0;  ///< that are not shown
};

/// One step of a JSON pointer: `pointer` + "/" + escaped name.
std::string pointer_to(std::string_view pointer, std::string_view member);

class ObjectReader {
public:
  /// `value` that is no object is a problem itself; then every member reads as absent. Both are borrowed.
  ObjectReader(const Json& value, std::string pointer, Problems& problems);

  /// The member, null included; nullptr when absent. Marks the name as known, as all readers below do.
  const Json* find(std::string_view name);
  std::string pointer(std::string_view name) const { return pointer_to(pointer_, name); }
  Problems& problems() { return problems_; }

  /// A non-empty string.
  void required(std::string_view name, std::string& out);
  /// Absent leaves `out` as it is; a wrong type is a problem. Whole numbers must be within [low, high].
  void optional(std::string_view name, std::string& out);
  void optional(std::string_view name, bool& out);
  void optional(std::string_view name, int& out, int low, int high);
  void optional(std::string_view name, std::vector<std::string>& out);
  void optional(std::string_view name, std::vector<double>& out);
  /// As above; null reads as nothing.
  void nullable(std::string_view name, std::optional<std::string>& out);
  void nullable(std::string_view name, std::optional<int>& out, int low, int high);
  void nullable(std::string_view name, std::optional<double>& out);
  void nullable(std::string_view name, std::optional<std::vector<std::string>>& out);
  /// One of `choices`.
  void choice(std::string_view name, std::string& out, const std::vector<std::string>& choices);
  /// Calls `each(member name, value, pointer)` for the members of an object, in order of name.
  void each_member(std::string_view name,
                   const std::function<void(const std::string&, const Json&, const std::string&)>& each);
  /// Reports members that nothing read.
  void finish();

private:
  const Json& value_;
  std::string pointer_;
  Problems& problems_;
  std::set<std::string, std::less<>> known_;
};

/// A whole number within [low, high]; otherwise a problem at `pointer` and nothing.
std::optional<int64_t> read_int(const Json& value, const std::string& pointer, int64_t low, int64_t high,
                                Problems& problems);
/// A finite number.
std::optional<double> read_number(const Json& value, const std::string& pointer, Problems& problems);
std::optional<std::string> read_string(const Json& value, const std::string& pointer, Problems& problems);

}  // namespace tensormill::schema
