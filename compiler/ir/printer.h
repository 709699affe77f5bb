/// The text form of graphs that follow one another, as the passes leave them. Thread-safety: one thread at a
/// time.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "compiler/ir/graph.h"
#include "runtime/base/digest.h"

namespace tensormill::ir {

/// The text of an attribute's value in that form: `ints[1, 1]`, `"SAME_UPPER"`.
std::string to_string(const AttrValue& value);

/// Prints as ir::print does, but reads the bytes of a large constant once: that of the graph printed before
/// is known again by its memory. Until the next print this keeps the constants alive, so that no other can
/// take their place; constants of a graph do not change.
class GraphPrinter {
public:
  std::string print(const Graph& graph);
  /// "sha256:…" of the tensor's bytes.
  std::string digest_text(const Tensor& tensor);

private:
  struct Known {
    Tensor tensor;
    Digest digest;
  };
  using Constants = std::map<std::pair<const void*, size_t>, Known>;

  Constants before_;
  Constants now_;
};

}  // namespace tensormill::ir
