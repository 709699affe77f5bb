/// CNTK's Dictionary, which its files are: values by their keys, out of protobuf's wire format. Texts and
/// elements are views. Thread-safety: values; views live as long as the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/frontend/facts/facts.h"

namespace tensormill::frontend::cntk {

/// Extents in CNTK's order, the axis of which elements lie beside each other first; those below 0 are no
/// numbers.
using Dims = std::vector<int64_t>;
inline constexpr int64_t kUnknownShape = -2, kFreeDim = -3;

struct Axis {
  int64_t index = 0;  ///< in CNTK's order; of what is no axis of a sample one of the numbers below
  std::string_view name;
};
inline constexpr int64_t kAllStaticAxes = INT32_MAX - 1, kEndAxis = INT32_MAX - 3, kFirstMark = INT32_MAX - 4;

/// Elements that lie in the file, as many as the dims say.
struct Array {
  int64_t dtype = 0, storage = 0;
  Dims dims;
  std::string_view values;  ///< float32, or float64 where is_double is set
  bool is_double = false;
};

struct Value;
struct Entry;
struct Dictionary {
  std::vector<Entry> entries;
  /// Null where there is no such key.
  const Value* find(std::string_view key) const;
};
using List = std::vector<Value>;

struct Value {
  std::variant<std::monostate, bool, int64_t, double, std::string_view, Dims, Axis, List, Dictionary, Array>
      held;
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&held);
  }
};
struct Entry {
  std::string_view key;
  Value value;
};

/// Of a file of more than 2 GB, in which the elements stand behind the message.
inline constexpr std::string_view kLargeFileMark = "ktnc";

/// Reads a file. Throws Error(kInvalidModel) with the byte.
Dictionary read_dictionary(std::string_view bytes);

}  // namespace tensormill::frontend::cntk
