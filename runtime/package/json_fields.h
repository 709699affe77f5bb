/// Reads one JSON object member by member: wrong types, missing and unknown members are
/// Error(kInvalidPackage) that names the place as a JSON pointer.
/// Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/json.h"
#include "runtime/base/shape.h"

namespace tensormill::package {

[[noreturn]] void throw_invalid(const std::string& pointer, const std::string& what);

class JsonFields {
public:
  /// `pointer` is where `object` stands, for messages.
  JsonFields(const Json& object, std::string pointer);
  const std::string& pointer() const { return pointer_; }
  std::string pointer_to(std::string_view key) const { return pointer_ + "/" + std::string(key); }

  int64_t integer(std::string_view key, int64_t low, int64_t high);
  /// An absent member is `fallback`.
  int64_t integer_or(std::string_view key, int64_t fallback, int64_t low, int64_t high);
  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string fallback);
  DType dtype(std::string_view key);
  const Json& array(std::string_view key, int64_t max_size);
  const Json& object(std::string_view key);
  bool has(std::string_view key) const { return object_.contains(std::string(key)); }
  std::vector<int64_t> integers(std::string_view key, int64_t low, int64_t high, int64_t max_size);
  /// As integers, empty when absent.
  std::vector<int64_t> integers_or_none(std::string_view key, int64_t low, int64_t high, int64_t max_size);
  std::vector<std::string> texts(std::string_view key, int64_t max_size);
  std::vector<std::string> texts_or_none(std::string_view key, int64_t max_size);
  DimShape dims(std::string_view key, int64_t max_rank);
  /// Throws when the object has a member that nobody read.
  void finish() const;

private:
  const Json& member(std::string_view key);

  const Json& object_;
  std::string pointer_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace tensormill::package
