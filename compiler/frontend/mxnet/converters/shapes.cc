#include "compiler/frontend/mxnet/converters/shapes.h"

#include <algorithm>

#include "compiler/build/moves/moves.h"

namespace tensormill::frontend::mxnet {

namespace {

/// Reads entries of a shape beside the dims that they stand for.
class Entries {
public:
  Entries(NodeContext& node, const ir::SymShape& from, const std::vector<int64_t>& entries)
      : node_(node), from_(from), entries_(entries) {}

  ir::SymShape read() {
    while (at_ < entries_.size()) add(entries_[at_++]);
    return std::move(to_);
  }

private:
  [[noreturn]] void fail() const { node_.invalid("shape does not fit the input's " + to_string(from_)); }

  ir::SymInt next_dim() {
    if (dim_ >= from_.size()) fail();
    return from_[dim_++];
  }

  void add(int64_t entry) {
    if (entry > 0 || entry == -1) {
      to_.emplace_back(entry);
      ++dim_;
    } else if (entry == 0) {
      to_.push_back(next_dim());
    } else if (entry == -2) {
      while (dim_ < from_.size()) to_.push_back(next_dim());
    } else if (entry == -3) {
      const ir::SymInt first = next_dim();
      to_.push_back(node_.product(first, next_dim()));
    } else if (entry == -4) {
      add_split();
    } else {
      node_.invalid("shape has the entry " + std::to_string(entry));
    }
  }

  /// A dim as the two that follow, of which one may be -1.
  void add_split() {
    if (at_ + 2 > entries_.size()) fail();
    const ir::SymInt whole = next_dim();
    const int64_t first = entries_[at_++], second = entries_[at_++];
    if ((first < 1 && first != -1) || (second < 1 && second != -1) || (first == -1 && second == -1)) fail();
    const int64_t known = first == -1 ? second : first;
    if (!ir::demand_divisible(whole, known)) fail();
    const ir::SymInt other = floordiv(whole, known);
    to_.push_back(first == -1 ? other : ir::SymInt(first));
    to_.push_back(first == -1 ? ir::SymInt(second) : other);
    if (first != -1 && second != -1 && !ir::demand(ir::Relation::kEqual, other, second)) fail();
  }

  NodeContext& node_;
  const ir::SymShape& from_;
  const std::vector<int64_t>& entries_;
  ir::SymShape to_;
  size_t at_ = 0, dim_ = 0;
};

/// The form before shape had special entries: 0 is what is left.
ir::SymShape old_shape(NodeContext& node, const ir::SymShape& from) {
  ir::SymShape to;
  for (const int64_t entry : node.ints("target_shape")) to.emplace_back(entry == 0 ? -1 : entry);
  if (node.flag("keep_highest", false) && !to.empty() && !from.empty()) to[0] = from[0];
  return build::settled_shape(node, from, to);
}

}  // namespace

ir::SymShape reshaped_to(NodeContext& node, const ir::SymShape& from) {
  ir::Ints entries = node.ints("shape", std::vector<int64_t>());
  const bool is_reverse = node.flag("reverse", false);
  if (entries.empty() && node.has("target_shape")) return old_shape(node, from);
  node.skip("target_shape");
  node.skip("keep_highest");
  if (!is_reverse) return build::settled_shape(node, from, Entries(node, from, entries).read());
  if (std::find(entries.begin(), entries.end(), -4) != entries.end())
    node.unsupported("reverse", "with a dim that is split it is not implemented");
  std::reverse(entries.begin(), entries.end());
  const ir::SymShape turned(from.rbegin(), from.rend());
  const ir::SymShape to = Entries(node, turned, entries).read();
  return build::settled_shape(node, from, ir::SymShape(to.rbegin(), to.rend()));
}

}  // namespace tensormill::frontend::mxnet
