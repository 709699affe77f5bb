#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/plan/generic_guard.h"
#include "compiler/plan/generic_nest.h"
#include "compiler/plan/generic_parts.h"
#include "compiler/plan/generic_reads.h"
#include "compiler/plan/generic_tiling.h"
#include "compiler/schedule/naming.h"
#include "compiler/te/op_class.h"
#include "compiler/te/rewrite_reads.h"
#include "compiler/te/simplify.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

using te::Expr;
using te::ExprOp;
using te::ForKind;
using te::Stmt;

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
        guard_(nest, vars, empty),
        made_(buffers),
        buffers_(buffers.inputs),
        outputs_(buffers.outputs),
        tiling_(choose_tiling(*nest.tensor, lanes)),
        rows_(tiling_.block),
        vectors_(tiling_.vectors) {}

  Stmt run() {
    bind_ranges();
    if (tiling_.lanes * tiling_.reduced_lanes == 1) return guard_.around(nest());
    const std::vector<Expr> within = assume_reads_within(tensor_, vars_, context_);
    if (within.empty()) return guard_.around(nest());
    Expr all = within[0];
    for (size_t i = 1; i < within.size(); ++i) all = te::logical_and(all, within[i]);
    LoopBuilder other(nest_, vars_, made_, 1, empty_);
    other.bind_ranges();
    return guard_.around(te::make_if(all, nest(), other.nest()));
  }

private:
  const Expr& extent(size_t axis) const { return tensor_.axes[axis].extent; }
  void bind_ranges() {
    for (size_t i = 0; i < vars_.vars().size(); ++i)
      context_.bind(vars_.vars()[i], {vars_.is_positive(i) && empty_ == nullptr ? 1 : 0, kMaxExtent});
    for (const Expr& condition : guard_.conditions()) context_.assume(condition);
    for (const te::Axis& axis : tensor_.axes) context_.bind_extent(axis.var, Expr(0), axis.extent);
    if (!tensor_.reduction) return;
    for (const te::Axis& axis : tensor_.reduction->axes) context_.bind_extent(axis.var, Expr(0), axis.extent);
  }

  /// Reads as loads; an index that is not shown to be in bounds is clamped. Where a select chooses what is
  /// read for places in bounds alone, the load is masked instead: then neighbours are loaded as one vector.
  Expr loads(const Expr& expr) {
    if (const auto found = done_.find(expr.get()); found != done_.end()) return found->second;
    if (expr->op == ExprOp::kRead && guard_.has_no_elements(input_of(*expr)))
      return te::imm_like(expr->type, 0);
    std::vector<Expr> args;
    for (const Expr& arg : expr->args) {
      const bool is_chosen =
          expr->op == ExprOp::kSelect && args.size() == 1 && tiling_.lanes > 1 && !chosen_ && can_mask(*expr);
      args.push_back(is_chosen ? loads_where(expr->args[0], arg) : loads(arg));
    }
    Expr result = expr;
    if (expr->op == ExprOp::kRead) {
      result = load(*expr, std::move(args));
    } else if (!args.empty()) {
      result = te::with_args(expr, std::move(args));
    }
    kept_.push_back(expr);
    done_.emplace(expr.get(), result);
    return result;
  }

  Expr load(const te::ExprNode& read, std::vector<Expr> indices) {
    Expr mask;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr& bound = read.tensor->shape[d];
      // Of a number the verifier does not show that the mask leaves out what is past it.
      if (chosen_ && te::as_int(bound) == nullptr) {
        const Expr index = te::simplify(indices[d], chosen_context_);
        if (!te::equal(index, indices[d]) && is_within(index, bound, chosen_context_)) {
          indices[d] = index;
          if (!is_within(index, bound, context_)) mask = chosen_;
          continue;
        }
      }
      if (is_within(indices[d], bound, context_)) continue;
      if (indices[d]->op == ExprOp::kCheckIndex && te::equal(indices[d]->args[1], bound)) continue;
      indices[d] = te::max(te::min(indices[d], bound - Expr(1)), Expr(0));
    }
    return te::load(buffers_.at(read.tensor.get()), std::move(indices), mask);
  }

  Expr loads_where(const Expr& condition, const Expr& value) {
    std::unordered_map<const te::ExprNode*, Expr> before;
    std::swap(before, done_);
    chosen_ = condition;
    chosen_context_ = context_;
    chosen_context_.assume(condition);
    const Expr result = loads(value);
    chosen_ = Expr();
    std::swap(before, done_);
    return result;
  }

  size_t input_of(const te::ExprNode& read) const {
    return static_cast<size_t>(std::find(nest_.inputs.begin(), nest_.inputs.end(), read.tensor) -
                               nest_.inputs.begin());
  }

  /// `expr` at the point of a lane and a row of the block.
  Expr at_point(Expr expr) const {
    if (segment_) expr = te::substitute(expr, segment_->var, along_vectors());
    for (size_t i = 0; i < tensor_.axes.size(); ++i)
      expr = te::substitute(expr, tensor_.axes[i].var, position(i));
    return reduced_at_ ? te::substitute(expr, tensor_.reduction->axes.back().var, *reduced_at_) : expr;
  }
  Expr position(size_t axis) const {
    Expr value(outer_[axis]);
    if (axis == tiling_.vector_axis) return segment_ ? segment_->begin + along_vectors() : along_vectors();
    if (axis == tiling_.block_axis) {
      const Expr first = value * Expr(tiling_.blocks * tiling_.block);
      return (tiling_.blocks > 1 ? first + Expr(block_) * Expr(rows_) : first) + Expr(row_);
    }
    return value;
  }

  Expr along_vectors() const {
    return tile_begin() + Expr(vector_) * Expr(static_cast<int64_t>(tiling_.lanes)) + Expr(lane_);
  }
  Expr tile_begin() const {
    return Expr(outer_[*tiling_.vector_axis]) * Expr(tiling_.vectors * tiling_.lanes);
  }
  const Expr& count_along_vectors() const {
    return segment_ ? segment_->count : extent(*tiling_.vector_axis);
  }

  /// `body` for each row of the block and each lane that the extents have.
  Stmt each_point(Stmt body, bool guard) const {
    if (tiling_.lanes > 1) {
      const int64_t* count = te::as_int(count_along_vectors());
      const bool whole = count != nullptr && *count % tiling_.lanes == 0 && !tiling_.by_one;
      if (guard && !whole) body = te::make_if(along_vectors() < count_along_vectors(), body);
      body =
          te::make_for(lane_, Expr(0), Expr(static_cast<int64_t>(tiling_.lanes)), ForKind::kVectorized, body);
      if (vectors_ > 1) {
        body = te::make_for(vector_, Expr(0), Expr(vectors_), ForKind::kUnrolled, body);
      } else if (!tiling_.by_one) {
        body = te::substitute(body, vector_, Expr(0));
      }
    }
    if (rows_ > 1) body = te::make_for(row_, Expr(0), Expr(rows_), ForKind::kUnrolled, body);
    return body;
  }

  /// As each_point(), vectors that are whole without a mask: masked stores take several times as long.
  Stmt each_output(const Stmt& body) const {
    if (tiling_.lanes == 1) return each_point(body, true);
    const Expr next = (Expr(outer_[*tiling_.vector_axis]) + Expr(1)) * Expr(tiling_.vectors * tiling_.lanes);
    return te::make_if(next <= count_along_vectors(), each_point(body, false), each_point(body, true));
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

  /// What is stored where a reduction has `values`: these, or what the epilogue makes of the one.
  std::vector<Expr> finished(const std::vector<Expr>& values) {
    if (!nest_.epilogue) return values;
    return {te::substitute(at_point(loads(nest_.epilogue->body)), nest_.epilogue->value, values[0])};
  }

  Stmt compute() {
    if (has_own_rows()) return row(tensor_.body[0], true);
    std::vector<Expr> values;
    for (const Expr& body : tensor_.body) values.push_back(at_point(loads(body)));
    return each_output(stores(outputs_, output_index(), values));
  }

  /// Whether the loops of the vector axis are made for each row by itself, in parts.
  bool has_own_rows() const {
    if (tensor_.reduction || tiling_.lanes == 1 || tensor_.body.size() != 1) return false;
    const size_t shared = *tiling_.parallel_axis + (tiling_.joined ? 1 : 0);
    return *tiling_.vector_axis > shared && parts_of(tensor_.body[0], tensor_.axes, context_);
  }

  Stmt row(const Expr& body, bool may_cut) {
    const Expr &end = extent(*tiling_.vector_axis), begin(0);
    const std::optional<Parts> parts = parts_of(body, tensor_.axes, context_);
    if (!parts || (parts->cuts_rows() && !may_cut)) return segment(body, begin, end);
    const te::BoundsContext before = context_;
    if (parts->rows) context_.assume(parts->rows);
    Stmt inside = parts->cuts_rows() ? cut_row(body, *parts) : row(parts->inside, may_cut);
    context_ = before;
    if (!parts->rows) return inside;
    context_.assume(te::logical_not(parts->rows));
    const Stmt outside = row(parts->outside, may_cut);
    context_ = before;
    return te::make_if(at_point(parts->rows), inside, outside);
  }

  /// A row in three segments where they follow each other within it, which is asked once; else as one.
  Stmt cut_row(const Expr& body, const Parts& parts) {
    const Expr &last = extent(*tiling_.vector_axis), first(0);
    const bool is_first = !parts.begin || context_.proves(parts.begin <= Expr(0));
    const Expr begin = is_first ? first : parts.begin, end = parts.end ? parts.end : last;
    const te::BoundsContext before = context_;
    Expr fits;
    for (const Expr& condition : {begin >= first, begin <= end, end <= last}) {
      if (context_.proves(condition)) continue;
      context_.assume(condition);
      fits = fits ? te::logical_and(fits, condition) : condition;
    }
    const Stmt cut = te::make_seq({segment(parts.outside, first, begin), segment(parts.inside, begin, end),
                                   segment(parts.outside, end, last)});
    context_ = before;
    return fits ? te::make_if(fits, cut, segment(body, first, last)) : cut;
  }

  /// Elements [begin, end) of a row.
  Stmt segment(const Expr& body, const Expr& begin, const Expr& end) {
    const Expr count = te::simplify(end - begin, context_);
    if (te::is_int(count, 0)) return te::make_seq({});
    const te::BoundsContext before = context_;
    segment_ = Segment{te::make_var("at"), begin, count};
    context_.bind_extent(segment_->var, Expr(0), count);
    te::ReadRewriter rewriter([this](const Expr& read, const std::vector<Expr>& indices) {
      std::vector<Expr> simple;
      for (const Expr& index : indices) simple.push_back(te::simplify(index, context_));
      return te::read(read->tensor, std::move(simple), read->output);
    });
    const te::Var& own = tensor_.axes[*tiling_.vector_axis].var;
    const Expr value = rewriter.run(te::substitute(body, own, begin + Expr(segment_->var)));
    kept_.clear();
    done_.clear();
    Stmt result = each_output(stores(outputs_, output_index(), {at_point(loads(value))}));
    kept_.clear();
    done_.clear();
    const Expr trips =
        te::floordiv(count + Expr(tiling_.lanes - 1), Expr(static_cast<int64_t>(tiling_.lanes)));
    result =
        te::make_for(outer_[*tiling_.vector_axis], Expr(0), te::simplify(trips), ForKind::kSerial, result);
    segment_.reset();
    context_ = before;
    return result;
  }

  Stmt reduce() {
    const te::Reduction& reduction = *tensor_.reduction;
    std::vector<te::Buffer> sums;
    const Expr in_row =
        vectors_ > 1 || !tiling_.by_one ? Expr(row_) * Expr(vectors_) + Expr(vector_) : Expr(row_);
    const Expr slot = in_row * Expr(static_cast<int64_t>(tiling_.lanes)) + Expr(lane_);
    std::vector<Expr> held, identities;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      sums.push_back(te::make_buffer("sum", tensor_.dtypes[i], {Expr(rows_ * vectors_ * tiling_.lanes)},
                                     te::Scope::kRegister));
      held.push_back(te::load(sums.back(), {index_of(slot)}));
      identities.push_back(reduction.identity[i]);
    }
    const std::vector<std::vector<Expr>> slots(sums.size(), {index_of(slot)});
    Stmt body = each_point(update(reduction, sums, held, slots), !is_whole_);
    for (size_t i = reduction.axes.size(); i-- > 0;)
      body = te::make_for(reduction.axes[i].var, Expr(0), reduction.axes[i].extent, ForKind::kSerial, body);
    const Stmt results = stores(outputs_, output_index(), finished(held));
    body = te::make_seq({each_point(stores(sums, slots, identities), false), body,
                         tiling_.by_one ? each_point(results, !is_whole_) : each_output(results)});
    for (size_t i = sums.size(); i-- > 0;) body = te::make_allocate(sums[i], body);
    return body;
  }

  /// As reduce(), each lane with every lanes-th element, the first one with those of the last vector where it
  /// is not whole, and at the end all lanes together.
  Stmt reduce_by_lanes() {
    const te::Reduction& reduction = *tensor_.reduction;
    const auto lanes = static_cast<int64_t>(tiling_.reduced_lanes);
    const te::Axis& inner = reduction.axes.back();
    const te::Buffer sum =
        te::make_buffer("sum", tensor_.dtypes[0], {Expr(rows_ * lanes)}, te::Scope::kRegister);
    const Expr first = Expr(row_) * Expr(lanes), slot = first + Expr(lane_);
    const auto rows = [&](const Stmt& body) {
      return rows_ > 1 ? te::make_for(row_, Expr(0), Expr(rows_), ForKind::kUnrolled, body)
                       : te::substitute(body, row_, Expr(0));
    };
    const auto each = [&](const Stmt& body) {
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
    const Expr held = te::load(sum, {te::ramp(first, Expr(1), tiling_.reduced_lanes)});
    const Expr total = te::make(te::lane_reduction_by(reduction.combine[0]->op), {held});
    body = te::make_seq({each(te::make_store(sum, {slot}, reduction.identity[0])), body,
                         rows(stores(outputs_, output_index(), finished({total})))});
    return te::make_allocate(sum, body);
  }

  Expr index_of(const Expr& slot) const {
    if (tiling_.lanes == 1 && rows_ == 1) return Expr(0);
    if (tiling_.lanes == 1) return Expr(row_);
    return rows_ == 1 ? te::substitute(slot, row_, Expr(0)) : slot;
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

  /// Whole vectors together; others one by one, of twice as many rows where there are such.
  Stmt reduce_tile() {
    if (!tiling_.by_one) return reduce();
    const int64_t rows = rows_;
    is_whole_ = true;
    const Stmt whole = each_block(reduce());
    is_whole_ = false;
    vectors_ = 1;
    if (tiling_.blocks % 2 == 0) rows_ *= 2;
    const Expr begin = tile_begin() + Expr(vector_) * Expr(static_cast<int64_t>(tiling_.lanes));
    const Stmt rest = te::make_for(vector_, Expr(0), Expr(tiling_.vectors), ForKind::kSerial,
                                   te::make_if(begin < count_along_vectors(), each_block(reduce())));
    vectors_ = tiling_.vectors;
    rows_ = rows;
    const Expr next = tile_begin() + Expr(tiling_.vectors * tiling_.lanes);
    return te::make_if(next <= count_along_vectors(), whole, rest);
  }

  Stmt each_block(const Stmt& body) const {
    const int64_t count = tiling_.blocks * tiling_.block / rows_;
    return tiling_.blocks > 1 ? te::make_for(block_, Expr(0), Expr(count), ForKind::kSerial, body) : body;
  }

  /// A whole block, or the rows that are left one by one.
  Stmt reduce_ragged() {
    const Expr first = Expr(outer_[*tiling_.block_axis]) * Expr(tiling_.block),
               &end = extent(*tiling_.block_axis);
    const Stmt whole = reduce_tile();
    rows_ = 1;
    const Stmt rows = te::make_for(row_, Expr(0), end - first, ForKind::kSerial, reduce_tile());
    rows_ = tiling_.block;
    return te::make_if(first + Expr(tiling_.block) <= end, whole, rows);
  }

  Stmt nest() {
    for (const te::Axis& axis : tensor_.axes) outer_.push_back(te::make_var(axis.var->name));
    Stmt body = !tensor_.reduction          ? compute()
                : tiling_.reduced_lanes > 1 ? reduce_by_lanes()
                : tiling_.is_ragged         ? reduce_ragged()
                                            : reduce_tile();
    for (const size_t i : tiling_.loop_order(tensor_.axes.size())) {
      if (tiling_.joined && i == *tiling_.parallel_axis + 1) continue;
      if (i == tiling_.vector_axis && has_own_rows()) continue;
      const bool is_parallel = i == tiling_.parallel_axis;
      if (is_parallel && tiling_.joined) {
        const te::Var both = te::make_var(outer_[i]->name);
        const Expr inner = tiling_.trips(tensor_, i + 1);
        body = te::make_let(outer_[i], te::floordiv(Expr(both), inner),
                            te::make_let(outer_[i + 1], te::floormod(Expr(both), inner), body));
        body = te::make_for(both, Expr(0), tiling_.trips(tensor_, i) * inner, ForKind::kParallel, body);
        continue;
      }
      body = te::make_for(outer_[i], Expr(0), tiling_.trips(tensor_, i),
                          is_parallel ? ForKind::kParallel : ForKind::kSerial, body);
    }
    return body;
  }

  const Nest& nest_;
  const te::TensorNode& tensor_;
  const TermVars& vars_;
  const EmptyInputs* empty_;
  const ExtentGuard guard_;
  te::BoundsContext context_;
  const Buffers& made_;
  const std::unordered_map<const te::TensorNode*, te::Buffer>& buffers_;
  const std::vector<te::Buffer>& outputs_;
  const Tiling tiling_;
  int64_t rows_;           ///< of a block, computed together
  int64_t vectors_;        ///< likewise
  bool is_whole_ = false;  ///< all vectors are
  std::vector<te::Var> outer_;
  /// A part of a row.
  struct Segment {
    te::Var var;
    Expr begin, count;
  };
  std::optional<Segment> segment_;  ///< that loops are being made for
  const te::Var lane_ = te::make_var("lane");
  const te::Var row_ = te::make_var("row"), vector_ = te::make_var("vector"), block_ = te::make_var("block");
  const te::Var reduced_ = te::make_var("reduced"), rest_ = te::make_var("rest");
  std::optional<Expr> reduced_at_;  ///< where the innermost reduced axis is, if it is not its own variable
  Expr chosen_;                     ///< where what loads are made for is chosen; null: everywhere
  te::BoundsContext chosen_context_;
  std::vector<Expr> kept_;  ///< keeps the keys of done_ alive
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
  const std::vector<DType> dtypes =
      nest.epilogue ? std::vector<DType>{nest.epilogue->dtype} : nest.tensor->dtypes;
  for (const DType dtype : dtypes) {
    buffers.outputs.push_back(te::make_buffer("out", dtype, nest.tensor->shape, te::Scope::kParameter));
    function.parameters.push_back({buffers.outputs.back(), true});
  }
  std::vector<Stmt> cases = {LoopBuilder(nest, vars, buffers, lanes, nullptr).run()};
  for (const EmptyInputs& empty : empties) cases.push_back(LoopBuilder(nest, vars, buffers, 1, &empty).run());
  function.body = cases.size() == 1 ? cases.front() : te::make_seq(std::move(cases));
  return function;
}

}  // namespace tensormill::plan
