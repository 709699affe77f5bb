/// Which values of a graph need no bytes of their own: results of nodes that only rename bytes (a reshape, a
/// slice of whole rows), and parts that a concatenation would only copy, when their producers can write them
/// where it wants them. Values of symbolic extents are placed only in mere renamings, and only nodes of
/// constant extents write parts. The fusion pass does not fuse such nodes, the plan gives them no kernel.
/// Thread-safety: immutable after construction.
#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace tensormill::ir {

/// Offsets of views in their storage are multiples of this: kernels may load whole aligned vectors.
inline constexpr int64_t kStorageAlignment = 64;

class Storage {
public:
  explicit Storage(const Graph& graph);

  /// True for nodes that run no code: their outputs are ranges of bytes that other nodes write.
  bool is_view(NodeId node) const { return views_[static_cast<size_t>(node)]; }

  /// Where the bytes of a value stand.
  struct Place {
    ValueId root = kAbsent;  ///< a value with a buffer of its own; the value itself when it has one
    int64_t offset = 0;      ///< in bytes
  };
  Place place(ValueId value) const;

private:
  void visit(NodeId id);
  bool visit_slice(const Node& node);
  bool visit_split(const Node& node);
  bool visit_concat(NodeId id);
  void put(ValueId value, ValueId inside, int64_t offset);
  int64_t bytes_of(ValueId value) const;

  const Graph& graph_;
  std::vector<bool> views_;    ///< by node
  std::vector<Place> places_;  ///< by value: the next container, root kAbsent where there is none
};

}  // namespace tensormill::ir
