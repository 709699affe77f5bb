/// A layer's configuration while it is converted: what is read is noted, so that what nobody reads can be
/// refused. Values of another type than expected are Error(kInvalidModel). Thread-safety: belongs to one
/// thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ir/checked_list.h"
#include "runtime/base/json.h"

namespace tensormill::frontend::keras {

class LayerConfig {
public:
  /// Borrows the object.
  explicit LayerConfig(const Json& json) : json_(json) {}

  /// The value; null where there is none.
  const Json& at(const std::string& name) const;
  bool has(const std::string& name) const { return !at(name).is_null(); }
  bool flag(const std::string& name, bool usual) const;
  int64_t integer(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t usual) const;
  double number(const std::string& name, double usual) const;
  std::string text(const std::string& name, const std::string& usual) const;
  /// As many integers, or one that stands for all of them.
  ir::Ints integers(const std::string& name, size_t count) const;
  ir::Ints integers(const std::string& name, size_t count, int64_t usual) const;
  /// A list of any length; one integer is a list of one.
  ir::Ints list(const std::string& name) const;
  ir::CheckedList<double> numbers(const std::string& name) const;

  /// Marks options as read that make no difference to who asks.
  void skip(const std::string& name) const { read_.insert(name); }
  void skip_all() const;
  /// The first option that is set, was not read, and is not one that no run of a model depends on
  /// (unread_options.def).
  std::optional<std::string> unread() const;

private:
  [[noreturn]] static void fail(const std::string& name, const char* expected);

  const Json& json_;
  mutable std::set<std::string> read_;
};

/// Integers of a list, or of one number. Throws Error(kInvalidModel) naming `what`.
ir::Ints integers_of(const Json& json, const std::string& what);
/// The name of a data type's policy: "float32", "mixed_float16".
std::string policy_name(const Json& json);

}  // namespace tensormill::frontend::keras
