/// The weights of a layer and of what it holds, by the names that converters use. An archive numbers them in
/// the order in which a layer made them, other files name them. Thread-safety: values; they borrow the
/// model's weights.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/frontend/keras/model.h"

namespace tensormill::frontend::keras {

class Weights {
public:
  Weights() = default;
  Weights(const std::vector<Weight>& weights, bool is_numbered);

  bool is_numbered() const { return is_numbered_; }
  bool empty() const { return entries_.empty(); }
  /// Those of a part: of an archive below the group `attribute`; else those whose path has the component
  /// `name`, or all where none has.
  Weights part(std::string_view attribute, std::string_view name) const;
  /// Whether a path has the component `name`.
  bool has(std::string_view name) const;
  /// The weight that a layer makes as its `index`-th one, called `name`. Null where there is none.
  const Weight* find(std::string_view name, size_t index) const;

private:
  struct Entry {
    std::string_view path;
    const Weight* weight;
  };
  bool is_numbered_ = false;
  std::vector<Entry> entries_;
};

}  // namespace tensormill::frontend::keras
