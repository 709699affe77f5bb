#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/plan/generic_nest.h"
#include "compiler/schedule/naming.h"
#include "compiler/te/linear.h"
#include "compiler/te/op_class.h"
#include "compiler/te/simplify.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

using te::Expr;
using te::ExprOp;
using te::ForKind;
using te::Stmt;

/// Rows of a sum that share what they read.
constexpr int64_t kBlock = 4;
/// Extents of a symbolic dim that loops may assume.
constexpr int64_t kMaxExtent = int64_t{1} << 40;

/// The parameters of a kernel.
struct Buffers {
  std::unordered_map<const te::TensorNode*, te::Buffer> inputs;
  std::vector<te::Buffer> outputs;
};

class LoopBuilder {
public:
  /// `empty`: nullptr where all inputs have elements and no free dim is 0.
  LoopBuilder(const Nest& nest, const TermVars& vars, const Buffers& buffers, int lanes,
              const EmptyInputs* empty)
      : nest_(nest),
        tensor_(*nest.tensor),
        vars_(vars),
        empty_(empty),
        buffers_(buffers.inputs),
        outputs_(buffers.outputs) {
    const size_t rank = tensor_.axes.size();
    if (rank > 0 && lanes > 1 && (!te::as_int(extent(rank - 1)) || *te::as_int(extent(rank - 1)) >= 4)) {
      vector_axis_ = rank - 1;
      lanes_ = lanes;
    }
    choose_reduced_lanes(lanes);
    for (size_t i = rank; i-- > 0 && tensor_.reduction && lanes > 1;) {
      const int64_t* count = te::as_int(extent(i));
      if (vector_axis_ == i || count == nullptr || *count % kBlock != 0) continue;
      block_axis_ = i;
      block_ = kBlock;
      break;
    }
    for (size_t i = 0; i < rank; ++i) {
      const int64_t* count = te::as_int(extent(i));
      if (parallel_axis_ || (count != nullptr && *count < 2)) continue;
      parallel_axis_ = i;
    }
  }

  Stmt run() {
    bind_ranges();
    return guarded(nest());
  }

private:
  /// Where memory does not run along the last axis but along the innermost one that is reduced, each lane
  /// keeps a part of the result.
  void choose_reduced_lanes(int lanes) {
    if (!tensor_.reduction || lanes < 2 || tensor_.dtypes.size() != 1) return;
    if (vector_axis_ && runs_along(tensor_.axes[*vector_axis_].var).is_regular) return;
    const te::Reduction& reduction = *tensor_.reduction;
    const ExprOp op = reduction.combine[0]->op;
    const bool is_known =
        op == ExprOp::kAdd || op == ExprOp::kMul || op == ExprOp::kMin || op == ExprOp::kMax;
    const te::Axis& inner = reduction.axes.back();
    const int64_t* count = te::as_int(inner.extent);
    const Run run = runs_along(inner.var);
    if (!is_known || !run.is_regular || !run.moves || (count != nullptr && *count < lanes)) return;
    reduced_lanes_ = lanes;
    vector_axis_.reset();
    lanes_ = 1;
  }

  /// How what a sum reads lies along a variable. is_regular: each read is of neighbours, or of one element
  /// for all of its values; moves: some read is of neighbours.
  struct Run {
    bool is_regular = true, moves = false;
  };
  Run runs_along(const te::Var& var) const {
    Run run;
    for (const Expr& source : tensor_.reduction->source) {
      te::for_each_expr(source, [&](const Expr& expr) {
        if (expr->op != ExprOp::kRead) return;
        for (size_t d = 0; d < expr->args.size(); ++d) {
          if (!te::mentions(expr->args[d], var)) continue;
          te::Linear rest = te::to_linear(expr->args[d]);
          const int64_t step = rest.coefficient_of(Expr(var));
          rest.add(Expr(var), -step);
          run.is_regular = run.is_regular && d + 1 == expr->args.size() && step == 1 &&
                           !te::mentions(te::from_linear(rest), var);
          run.moves = true;
        }
      });
    }
    return run;
  }

  const Expr& extent(size_t axis) const { return tensor_.axes[axis].extent; }
  bool is_empty(size_t input) const { return empty_ != nullptr && (*empty_)[input]; }
  /// Nor is there an element in any other case.
  bool is_always_empty(size_t input) const {
    const std::vector<Expr>& shape = nest_.inputs[input]->shape;
    return std::any_of(shape.begin(), shape.end(), [](const Expr& extent) {
      const int64_t* number = te::as_int(extent);
      return number != nullptr && *number == 0;
    });
  }

  void bind_ranges() {
    for (size_t i = 0; i < vars_.vars().size(); ++i)
      context_.bind(vars_.vars()[i], {vars_.is_positive(i) && empty_ == nullptr ? 1 : 0, kMaxExtent});
    for (const Expr& condition : conditions()) context_.assume(condition);
    for (const te::Axis& axis : tensor_.axes) context_.bind_extent(axis.var, Expr(0), axis.extent);
    if (!tensor_.reduction) return;
    for (const te::Axis& axis : tensor_.reduction->axes) context_.bind_extent(axis.var, Expr(0), axis.extent);
  }

  /// No extent is 0 inside the loops: then there is nothing to compute, or nothing to read.
  std::vector<Expr> conditions() const {
    std::vector<Expr> result;
    const auto add = [&](const Expr& extent) {
      if (te::as_int(extent) != nullptr) return;
      for (const Expr& known : result) {
        if (te::equal(known->args[0], extent)) return;
      }
      result.push_back(extent >= Expr(1));
    };
    for (size_t i = 0; i < vars_.vars().size() && empty_ == nullptr; ++i) {
      if (vars_.is_positive(i)) add(Expr(vars_.vars()[i]));
    }
    for (size_t i = 0; i < nest_.inputs.size(); ++i) {
      if (is_empty(i) || is_always_empty(i)) continue;
      for (const Expr& part : nest_.inputs[i]->shape) add(part);
    }
    for (const Expr& part : tensor_.shape) add(part);
    return result;
  }

  /// What tells this case from the others: an extent of each empty input is 0, or a free dim is.
  std::vector<Expr> absences() const {
    std::vector<Expr> result;
    const auto add = [&](const std::vector<Expr>& extents) {
      Expr least = extents.at(0);
      for (const Expr& extent : extents) least = te::min(least, extent);
      result.push_back(least < Expr(1));
    };
    for (size_t i = 0; i < nest_.inputs.size(); ++i) {
      if (is_empty(i)) add(nest_.inputs[i]->shape);
    }
    if (!result.empty()) return result;
    std::vector<Expr> dims;
    for (size_t i = 0; i < vars_.vars().size(); ++i) {
      if (vars_.is_positive(i)) dims.emplace_back(vars_.vars()[i]);
    }
    add(dims);
    return result;
  }

  Stmt guarded(Stmt body) const {
    std::vector<Expr> all = conditions();
    const std::vector<Expr> none = empty_ == nullptr ? std::vector<Expr>() : absences();
    all.insert(all.end(), none.begin(), none.end());
    for (size_t i = all.size(); i-- > 0;) body = te::make_if(all[i], body);
    return body;
  }

  /// Reads as loads; an index that is not shown to be in bounds is clamped.
  Expr loads(const Expr& expr) {
    if (const auto found = done_.find(expr.get()); found != done_.end()) return found->second;
    if (expr->op == ExprOp::kRead && (is_empty(input_of(*expr)) || is_always_empty(input_of(*expr))))
      return te::imm_like(expr->type, 0);
    std::vector<Expr> args;
    for (const Expr& arg : expr->args) args.push_back(loads(arg));
    Expr result = expr;
    if (expr->op == ExprOp::kRead) {
      for (size_t d = 0; d < args.size(); ++d) {
        const Expr& bound = expr->tensor->shape[d];
        if (context_.proves(args[d] >= Expr(0)) && context_.proves(args[d] < bound)) continue;
        if (args[d]->op == ExprOp::kCheckIndex && te::equal(args[d]->args[1], bound)) continue;
        args[d] = te::max(te::min(args[d], bound - Expr(1)), Expr(0));
      }
      result = te::load(buffers_.at(expr->tensor.get()), std::move(args));
    } else if (!args.empty()) {
      result = te::with_args(expr, std::move(args));
    }
    kept_.push_back(expr);
    done_.emplace(expr.get(), result);
    return result;
  }

  size_t input_of(const te::ExprNode& read) const {
    return static_cast<size_t>(std::find(nest_.inputs.begin(), nest_.inputs.end(), read.tensor) -
                               nest_.inputs.begin());
  }

  /// `expr` at the point of a lane and a row of the block.
  Expr at_point(Expr expr) const {
    for (size_t i = 0; i < tensor_.axes.size(); ++i)
      expr = te::substitute(expr, tensor_.axes[i].var, position(i));
    return reduced_at_ ? te::substitute(expr, tensor_.reduction->axes.back().var, *reduced_at_) : expr;
  }
  Expr position(size_t axis) const {
    Expr value(outer_[axis]);
    if (axis == vector_axis_) return value * Expr(static_cast<int64_t>(lanes_)) + Expr(lane_);
    if (axis == block_axis_) return value * Expr(block_) + Expr(row_);
    return value;
  }

  /// `body` for each row of the block and each lane that the extents have.
  Stmt each_point(Stmt body, bool guard) const {
    if (lanes_ > 1) {
      const int64_t* count = te::as_int(extent(*vector_axis_));
      const bool whole = count != nullptr && *count % lanes_ == 0;
      if (guard && !whole) body = te::make_if(position(*vector_axis_) < extent(*vector_axis_), body);
      body = te::make_for(lane_, Expr(0), Expr(static_cast<int64_t>(lanes_)), ForKind::kVectorized, body);
    }
    if (block_ > 1) body = te::make_for(row_, Expr(0), Expr(block_), ForKind::kUnrolled, body);
    return body;
  }

  Stmt stores(const std::vector<te::Buffer>& targets, const std::vector<std::vector<Expr>>& indices,
              const std::vector<Expr>& values) const {
    std::vector<Expr> shared = values;
    for (const std::vector<Expr>& index : indices) shared.insert(shared.end(), index.begin(), index.end());
    return schedule::name_shared(std::move(shared), [&](const std::vector<Expr>& named) {
      std::vector<Stmt> result;
      size_t next = values.size();
      for (size_t i = 0; i < targets.size(); ++i) {
        std::vector<Expr> index;
        for (size_t d = 0; d < indices[i].size(); ++d) index.push_back(named[next++]);
        result.push_back(te::make_store(targets[i], std::move(index), named[i]));
      }
      return te::make_seq(std::move(result));
    });
  }

  std::vector<std::vector<Expr>> output_index() const {
    std::vector<Expr> index;
    for (size_t i = 0; i < tensor_.axes.size(); ++i) index.push_back(position(i));
    return std::vector<std::vector<Expr>>(outputs_.size(), index);
  }

  Stmt compute() {
    std::vector<Expr> values;
    for (const Expr& body : tensor_.body) values.push_back(at_point(loads(body)));
    return each_point(stores(outputs_, output_index(), values), true);
  }

  Stmt reduce() {
    const te::Reduction& reduction = *tensor_.reduction;
    std::vector<te::Buffer> sums;
    const Expr slot = Expr(row_) * Expr(static_cast<int64_t>(lanes_)) + Expr(lane_);
    std::vector<Expr> held, identities;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      sums.push_back(
          te::make_buffer("sum", outputs_[i]->dtype, {Expr(block_ * lanes_)}, te::Scope::kRegister));
      held.push_back(te::load(sums.back(), {index_of(slot)}));
      identities.push_back(reduction.identity[i]);
    }
    const std::vector<std::vector<Expr>> slots(sums.size(), {index_of(slot)});
    Stmt body = each_point(update(reduction, sums, held, slots), true);
    for (size_t i = reduction.axes.size(); i-- > 0;)
      body = te::make_for(reduction.axes[i].var, Expr(0), reduction.axes[i].extent, ForKind::kSerial, body);
    body = te::make_seq({each_point(stores(sums, slots, identities), false), body,
                         each_point(stores(outputs_, output_index(), held), true)});
    for (size_t i = sums.size(); i-- > 0;) body = te::make_allocate(sums[i], body);
    return body;
  }

  /// As reduce(), each lane with every lanes-th element, the first one with those of the last vector where it
  /// is not whole, and at the end all lanes together.
  Stmt reduce_by_lanes() {
    const te::Reduction& reduction = *tensor_.reduction;
    const auto lanes = static_cast<int64_t>(reduced_lanes_);
    const te::Axis& inner = reduction.axes.back();
    const te::Buffer sum =
        te::make_buffer("sum", outputs_[0]->dtype, {Expr(block_ * lanes)}, te::Scope::kRegister);
    const Expr first = Expr(row_) * Expr(lanes), slot = first + Expr(lane_);
    const auto rows = [&](Stmt body) {
      body = block_ > 1 ? te::make_for(row_, Expr(0), Expr(block_), ForKind::kUnrolled, body)
                        : te::substitute(body, row_, Expr(0));
      return body;
    };
    const auto each = [&](Stmt body) {
      return rows(te::make_for(lane_, Expr(0), Expr(lanes), ForKind::kVectorized, body));
    };
    const Expr whole = te::floordiv(inner.extent, Expr(lanes));
    reduced_at_ = Expr(reduced_) * Expr(lanes) + Expr(lane_);
    Stmt body = te::make_for(reduced_, Expr(0), whole, ForKind::kSerial,
                             each(update(reduction, {sum}, {te::load(sum, {slot})}, {{slot}})));
    const int64_t* count = te::as_int(inner.extent);
    if (count == nullptr || *count % lanes != 0) {
      reduced_at_ = whole * Expr(lanes) + Expr(rest_);
      const Stmt added = rows(update(reduction, {sum}, {te::load(sum, {first})}, {{first}}));
      body = te::make_seq(
          {body, te::make_for(rest_, Expr(0), inner.extent - whole * Expr(lanes), ForKind::kSerial, added)});
    }
    reduced_at_.reset();
    for (size_t i = reduction.axes.size() - 1; i-- > 0;)
      body = te::make_for(reduction.axes[i].var, Expr(0), reduction.axes[i].extent, ForKind::kSerial, body);
    // Halves are added up: one lane after the other takes longer than the sums of short axes.
    const Expr held = te::load(sum, {te::ramp(first, Expr(1), reduced_lanes_)});
    const Expr total = te::make(te::lane_reduction_by(reduction.combine[0]->op), {held});
    body = te::make_seq({each(te::make_store(sum, {slot}, reduction.identity[0])), body,
                         rows(stores(outputs_, output_index(), {total}))});
    return te::make_allocate(sum, body);
  }

  Expr index_of(const Expr& slot) const {
    if (lanes_ == 1 && block_ == 1) return Expr(0);
    if (lanes_ == 1) return Expr(row_);
    return block_ == 1 ? Expr(lane_) : slot;
  }

  /// All values are taken before the first is stored: the parts of a tuple depend on each other's old values.
  Stmt update(const te::Reduction& reduction, const std::vector<te::Buffer>& sums,
              const std::vector<Expr>& held, const std::vector<std::vector<Expr>>& slots) {
    std::vector<Expr> values;
    for (size_t i = 0; i < sums.size(); ++i) {
      Expr value = reduction.combine[i];
      for (size_t k = 0; k < sums.size(); ++k) {
        value = te::substitute(value, reduction.left[k], held[k]);
        value = te::substitute(value, reduction.right[k], at_point(loads(reduction.source[k])));
      }
      values.push_back(value);
    }
    if (sums.size() == 1) return stores(sums, slots, values);
    std::vector<te::Var> next;
    std::vector<Expr> taken;
    for (const te::Buffer& sum : sums) {
      next.push_back(te::make_var("next", sum->dtype));
      taken.emplace_back(next.back());
    }
    Stmt body = stores(sums, slots, taken);
    for (size_t i = sums.size(); i-- > 0;) body = te::make_let(next[i], values[i], body);
    return body;
  }

  Stmt nest() {
    for (const te::Axis& axis : tensor_.axes) outer_.push_back(te::make_var(axis.var->name));
    Stmt body = !tensor_.reduction ? compute() : reduced_lanes_ > 1 ? reduce_by_lanes() : reduce();
    for (size_t i = tensor_.axes.size(); i-- > 0;) {
      Expr count = extent(i);
      if (i == vector_axis_)
        count =
            te::floordiv(count + Expr(static_cast<int64_t>(lanes_) - 1), Expr(static_cast<int64_t>(lanes_)));
      if (i == block_axis_) count = te::floordiv(count, Expr(block_));
      body = te::make_for(outer_[i], Expr(0), count,
                          i == parallel_axis_ ? ForKind::kParallel : ForKind::kSerial, body);
    }
    return body;
  }

  const Nest& nest_;
  const te::TensorNode& tensor_;
  const TermVars& vars_;
  std::optional<size_t> vector_axis_, block_axis_, parallel_axis_;
  int lanes_ = 1, reduced_lanes_ = 1;
  int64_t block_ = 1;
  const EmptyInputs* empty_;
  te::BoundsContext context_;
  const std::unordered_map<const te::TensorNode*, te::Buffer>& buffers_;
  const std::vector<te::Buffer>& outputs_;
  std::vector<te::Var> outer_;
  const te::Var lane_ = te::make_var("lane");
  const te::Var row_ = te::make_var("row");
  const te::Var reduced_ = te::make_var("reduced"), rest_ = te::make_var("rest");
  std::optional<Expr> reduced_at_;  ///< where the innermost reduced axis is, if it is not its own variable
  std::vector<Expr> kept_;          ///< keeps the keys of done_ alive
  std::unordered_map<const te::ExprNode*, Expr> done_;
};

}  // namespace

te::Function build_generic_loops(const Nest& nest, const TermVars& vars, int lanes,
                                 const std::vector<EmptyInputs>& empties) {
  te::Function function;
  Buffers buffers;
  function.name = "generic";
  function.dims = vars.vars();
  for (const te::Tensor& input : nest.inputs) {
    const te::Buffer made =
        te::make_buffer(input->name, input->dtypes[0], input->shape, te::Scope::kParameter);
    buffers.inputs[input.get()] = made;
    function.parameters.push_back({made, false});
  }
  for (const DType dtype : nest.tensor->dtypes) {
    buffers.outputs.push_back(te::make_buffer("out", dtype, nest.tensor->shape, te::Scope::kParameter));
    function.parameters.push_back({buffers.outputs.back(), true});
  }
  std::vector<Stmt> cases = {LoopBuilder(nest, vars, buffers, lanes, nullptr).run()};
  for (const EmptyInputs& empty : empties) cases.push_back(LoopBuilder(nest, vars, buffers, 1, &empty).run());
  function.body = cases.size() == 1 ? cases.front() : te::make_seq(std::move(cases));
  return function;
}

}  // namespace tensormill::plan
