/// Stages whose expressions choose among values by comparing an axis with each of its places, as transforms
/// of small tiles do. Where all places of such axes are computed together, each choice is made once, when the
/// loops are built, and what places share is computed once. Thread-safety: belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/te/tensor_expr.h"

namespace tensormill::plan {

bool is_output(const te::Program& program, const te::TensorNode& stage);

/// By axis of a stage: how many places of it its expression distinguishes. Places further on repeat them.
using Choices = std::map<size_t, int64_t>;

/// The choices of the stages of a program, and which stages are computed where they are read.
class ChoiceFinder {
public:
  explicit ChoiceFinder(const te::Program& program);

  /// Empty where nothing is chosen, or where there are too many places to compute them together.
  const Choices& of(const te::TensorNode& stage) const;
  /// Whether each stage that reads it computes all of its places together, of which each is read at a place
  /// that is known then.
  bool is_put_in_place(const te::TensorNode& stage) const;

private:
  void add(const te::Program& program, const te::TensorNode& stage);
  /// False where a read of a stage with choices is at places that are not known.
  bool inherit(const te::TensorNode& reader, const te::ExprNode& read, Choices& choices) const;

  std::unordered_map<const te::TensorNode*, Choices> choices_;
  std::unordered_map<const te::TensorNode*, bool> is_put_;
  const Choices none_;
};

/// The places of a stage that are computed together, one after the other as its axes have them.
class PlaceMaker {
public:
  /// What stands for a read of what is not put in place.
  using Read = std::function<te::Expr(const te::ExprNode& read, std::vector<te::Expr> indices)>;
  /// `is_put`: of a stage, whether its expression takes the place of a read.
  PlaceMaker(std::function<bool(const te::TensorNode&)> is_put, Read read)
      : is_put_(std::move(is_put)), read_(std::move(read)) {}

  /// The element of `stage` at `indices`. Equal parts of all elements are one node.
  te::Expr element(const te::Tensor& stage, const std::vector<te::Expr>& indices);
  /// The one node for all expressions that are equal to this one, simplified.
  te::Expr index(const te::Expr& expr);

private:
  struct Place;
  /// What distinguishes a node; its arguments are unique nodes themselves.
  struct Key {
    te::ExprOp op;
    DType dtype;
    int lanes;
    int64_t int_value;
    uint64_t float_bits;
    const void* of;  ///< the variable, the table or the tensor
    int output;
    std::vector<const te::ExprNode*> args;
    auto operator<=>(const Key&) const = default;
  };
  te::Expr rewrite(const te::Expr& expr, Place& place);
  te::Expr unique(const te::Expr& expr);

  std::function<bool(const te::TensorNode&)> is_put_;
  Read read_;
  std::map<std::pair<const te::TensorNode*, std::vector<const te::ExprNode*>>, te::Expr> elements_;
  std::unordered_map<const te::ExprNode*, te::Expr> simple_;
  std::map<Key, te::Expr> nodes_;
  std::unordered_map<const te::ExprNode*, te::Expr> unique_;
  std::vector<te::Expr> kept_;  ///< keeps the keys of unique_ alive
};

}  // namespace tensormill::plan
