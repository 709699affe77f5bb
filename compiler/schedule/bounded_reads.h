/// Reads of tensors whose extents are not known, as loads that stay in bounds whatever the extents are.
/// Thread-safety: an object belongs to one thread.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "compiler/te/simplify.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::schedule {

/// What is read, and what is known of it.
struct ReadSources {
  /// The buffer of a tensor; null: reads of it stay what they are.
  std::function<te::Buffer(const te::Tensor&)> buffer;
  /// That a tensor has elements, where it may have none: elsewhere 0 is read. Null: it has. Unset: all have.
  std::function<te::Expr(const te::Tensor&)> presence = {};
  /// Whether an axis that is looked up along may have no elements: an index of it is none then.
  bool looks_up_nothing = false;
};

/// An index that is not shown to be in bounds is clamped. With `masks`, where a select chooses what is read
/// for places in bounds alone, the load is masked instead: then neighbours are loaded as one vector.
class BoundedReads {
public:
  /// `context`, which must outlive it: what is known of the variables of indices where they are rewritten.
  BoundedReads(const te::BoundsContext& context, ReadSources sources, bool masks)
      : context_(context), sources_(std::move(sources)), masks_(masks) {}

  /// What expressions share stays shared, in one and from one to the next.
  te::Expr run(const te::Expr& expr);
  /// For another state of the context: what was rewritten is no longer used.
  void forget();

private:
  te::Expr load(const te::ExprNode& read, std::vector<te::Expr> indices) const;
  te::Expr load_where(const te::Expr& presence, const te::ExprNode& read,
                      std::vector<te::Expr> indices) const;
  te::Expr run_where(const te::Expr& condition, const te::Expr& value);

  const te::BoundsContext& context_;
  const ReadSources sources_;
  const bool masks_;
  te::Expr chosen_;  ///< the condition of the select whose value is being rewritten; null: none
  te::BoundsContext chosen_context_;
  std::vector<te::Expr> kept_;  ///< keeps the keys of done_ alive
  std::unordered_map<const te::ExprNode*, te::Expr> done_;
};

}  // namespace tensormill::schedule
