#include "compiler/plan/generic_loop_builder.h"

#include <algorithm>

#include "compiler/plan/in_place.h"
#include "compiler/plan/scheduled_nest.h"
#include "compiler/schedule/conditions.h"
#include "compiler/schedule/naming.h"
#include "compiler/te/simplify.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

using schedule::all_of;
using schedule::both;
using te::Expr;
using te::ExprOp;
using te::ForKind;
using te::Stmt;

namespace {

/// Extents of a symbolic dim that loops may assume.
constexpr int64_t kMaxExtent = int64_t{1} << 40;

}  // namespace

LoopBuilder::LoopBuilder(const Nest& nest, const TermVars& vars, const LoopBuffers& buffers,
                         const Tiling& tiling, const EmptyCase* empty)
    : nest_(nest),
      tensor_(*nest.tensor),
      vars_(vars),
      empty_(empty),
      guard_(nest, vars, empty),
      made_(buffers),
      buffers_(buffers.inputs),
      outputs_(buffers.outputs),
      tiling_(tiling),
      rows_(tiling_.block),
      vectors_(tiling_.vectors),
      reads_(context_, sources(), tiling_.lanes > 1 && nest.places.empty()) {}

Stmt LoopBuilder::run() {
  bind_ranges();
  if (tiling_.lanes * tiling_.reduced_lanes == 1) return guard_.around(nest());
  const std::vector<Expr> within = assume_reads_within(tensor_, vars_, context_);
  if (within.empty()) return guard_.around(nest());
  LoopBuilder other(nest_, vars_, made_, choose_tiling(nest_, LoopFacts{}), empty_);
  other.bind_ranges();
  return guard_.around(te::make_if(all_of(within), nest(), other.nest()));
}

void LoopBuilder::bind_ranges() {
  for (size_t i = 0; i < vars_.vars().size(); ++i)
    context_.bind(vars_.vars()[i], {vars_.is_positive(i) && empty_ == nullptr ? 1 : 0, kMaxExtent});
  for (const Expr& condition : guard_.conditions()) context_.assume(condition);
  for (const te::Axis& axis : tensor_.axes) context_.bind_extent(axis.var, Expr(0), axis.extent);
  if (!tensor_.reduction) return;
  for (const te::Axis& axis : tensor_.reduction->axes) context_.bind_extent(axis.var, Expr(0), axis.extent);
}

schedule::ReadSources LoopBuilder::sources() const {
  const auto presence = [this](const te::Tensor& tensor) {
    const auto input = std::find(nest_.inputs.begin(), nest_.inputs.end(), tensor);
    return guard_.presence(static_cast<size_t>(input - nest_.inputs.begin()));
  };
  return {[this](const te::Tensor& tensor) { return buffers_.at(tensor.get()); }, presence,
          empty_ != nullptr && empty_->is_any};
}

Expr LoopBuilder::at_point(Expr expr) const {
  for (size_t i = 0; i < tensor_.axes.size(); ++i)
    expr = te::substitute(expr, tensor_.axes[i].var, position(i));
  return reduced_at_ ? te::substitute(expr, tensor_.reduction->axes.back().var, *reduced_at_) : expr;
}

Expr LoopBuilder::position(size_t axis) const {
  Expr value(outer_[axis]);
  if (axis == tiling_.vector_axis) return along_vectors();
  if (axis == tiling_.block_axis) {
    const Expr first = rows_begin_ ? rows_begin_ : value * Expr(tiling_.blocks * tiling_.block);
    const Expr own = rows_ > 1 ? Expr(row_) : Expr(0);
    return (tiling_.blocks > 1 ? first + Expr(block_) * Expr(rows_) : first) + own;
  }
  if (axis == tiling_.column_axis && tiling_.columns > 1)
    return value * Expr(tiling_.columns) + Expr(column_);
  return value;
}

Expr LoopBuilder::along_vectors() const {
  return tile_begin() + Expr(vector_) * Expr(static_cast<int64_t>(tiling_.lanes)) + Expr(lane_);
}

Expr LoopBuilder::tile_begin() const {
  return Expr(outer_[*tiling_.vector_axis]) * Expr(tiling_.vectors * tiling_.lanes);
}

const Expr& LoopBuilder::count_along_vectors() const { return extent(*tiling_.vector_axis); }

Stmt LoopBuilder::each_point(Stmt body, bool guard, const Expr& of_row) const {
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
  if (tiling_.columns > 1)
    body = te::make_for(column_, Expr(0), Expr(tiling_.columns), ForKind::kUnrolled, body);
  if (of_row) body = te::make_if(of_row, body);
  if (rows_ > 1) body = te::make_for(row_, Expr(0), Expr(rows_), ForKind::kUnrolled, body);
  return body;
}

Stmt LoopBuilder::each_output(const Stmt& body) const {
  const int64_t* count = tiling_.lanes > 1 ? te::as_int(count_along_vectors()) : nullptr;
  const bool is_whole = count != nullptr && *count % (tiling_.vectors * tiling_.lanes) == 0;
  if (tiling_.lanes == 1 || is_whole) return each_point(body, true);
  const Expr next = (Expr(outer_[*tiling_.vector_axis]) + Expr(1)) * Expr(tiling_.vectors * tiling_.lanes);
  return te::make_if(next <= count_along_vectors(), each_point(body, false), each_point(body, true));
}

Stmt LoopBuilder::stores(const std::vector<te::Buffer>& targets,
                         const std::vector<std::vector<Expr>>& indices,
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

std::vector<std::vector<Expr>> LoopBuilder::output_index() const {
  std::vector<Expr> index;
  if (nest_.epilogue) {
    for (const Expr& each : nest_.epilogue->target->args) index.push_back(at_point(each));
    return {index};
  }
  for (size_t i = 0; i < tensor_.axes.size(); ++i) index.push_back(position(i));
  return std::vector<std::vector<Expr>>(outputs_.size(), index);
}

std::vector<Expr> LoopBuilder::finished(const std::vector<Expr>& values) {
  if (!nest_.epilogue) return values;
  return {te::substitute(at_point(reads_.run(nest_.epilogue->body)), nest_.epilogue->value, values[0])};
}

Stmt LoopBuilder::compute() {
  if (!nest_.places.empty()) return compute_places();
  std::vector<Expr> values;
  for (const Expr& body : tensor_.body) values.push_back(at_point(reads_.run(body)));
  return each_output(stores(outputs_, output_index(), values));
}

Stmt LoopBuilder::parallel(size_t axis, Stmt body) const {
  Expr trips = tiling_.trips(tensor_, axis);
  if (tiling_.chunk > 0) {
    const te::Var all = te::make_var(outer_[axis]->name);
    const Expr blocks = tiling_.trips(tensor_, *tiling_.block_axis);
    const Expr chunks = te::simplify(te::floordiv(blocks + Expr(tiling_.chunk - 1), Expr(tiling_.chunk)));
    // Not by another name: from one iteration to the next the panel behind is fetched.
    body = te::substitute(body, outer_[axis], te::floormod(Expr(all), trips));
    body = te::make_let(chunk_, te::floordiv(Expr(all), trips), body);
    return te::make_for(all, Expr(0), chunks * trips, ForKind::kParallel, body);
  }
  if (!tiling_.joined && tiling_.parts == 1)
    return te::make_for(outer_[axis], Expr(0), trips, ForKind::kParallel, body);
  const te::Var all = te::make_var(outer_[axis]->name), blocks = te::make_var(outer_[axis]->name);
  const Expr inner = tiling_.joined ? tiling_.trips(tensor_, axis + 1) : Expr(1);
  if (tiling_.joined) body = te::make_let(outer_[axis + 1], te::floormod(Expr(blocks), inner), body);
  body = te::make_let(outer_[axis], te::floordiv(Expr(blocks), inner), body);
  body = te::make_let(part_, te::floormod(Expr(all), Expr(tiling_.parts)), body);
  body = te::make_let(blocks, te::floordiv(Expr(all), Expr(tiling_.parts)), body);
  return te::make_for(all, Expr(0), trips * inner * Expr(tiling_.parts), ForKind::kParallel, body);
}

Stmt LoopBuilder::nest() {
  for (const te::Axis& axis : tensor_.axes) outer_.push_back(te::make_var(axis.var->name));
  Stmt body = !tensor_.reduction          ? compute()
              : tiling_.reduced_lanes > 1 ? reduce_by_lanes()
              : tiling_.is_ragged         ? reduce_ragged()
                                          : reduce_tile();
  for (const size_t i : tiling_.loop_order(tensor_.axes.size())) {
    if (tiling_.joined && i == *tiling_.parallel_axis + 1) continue;
    Expr trips = tiling_.trips(tensor_, i);
    if (i == tiling_.shared_axis) {
      const te::Var run = te::make_var(outer_[i]->name), each = te::make_var(outer_[i]->name);
      const Expr length(Tiling::kRun), all(Tiling::kRun * tiling_.parts);
      const Expr block = (Expr(run) * Expr(tiling_.parts) + Expr(part_)) * length + Expr(each);
      body = te::make_let(outer_[i], block, te::make_if(Expr(outer_[i]) < trips, body));
      body = te::make_for(each, Expr(0), length, ForKind::kSerial, body);
      body = te::make_for(run, Expr(0), te::simplify(te::floordiv(trips + all - Expr(1), all)),
                          ForKind::kSerial, body);
    } else if (tiling_.chunk > 0 && i == tiling_.block_axis) {
      const te::Var each = te::make_var(outer_[i]->name);
      const Expr block = Expr(chunk_) * Expr(tiling_.chunk) + Expr(each);
      body = te::make_let(outer_[i], block, te::make_if(Expr(outer_[i]) < trips, body));
      const Expr rest = trips - Expr(chunk_) * Expr(tiling_.chunk);
      body = te::make_for(each, Expr(0), te::min(Expr(tiling_.chunk), rest), ForKind::kSerial, body);
    } else if (i == tiling_.parallel_axis) {
      body = parallel(i, body);
    } else {
      body = te::make_for(outer_[i], Expr(0), trips, ForKind::kSerial, body);
    }
  }
  return body;
}

namespace {

/// `function`, which has the parameters but for the cases of `empties`, with these.
te::Function with_cases(te::Function function, const Nest& nest, const TermVars& vars,
                        const LoopBuffers& buffers, const std::vector<EmptyCase>& empties) {
  const std::vector<size_t> in_place = find_in_place(nest);
  function.aliases.clear();
  if (!in_place.empty())
    function.aliases = alias_classes(nest.inputs.size(), buffers.outputs.size(), in_place);
  std::vector<Stmt> cases = {function.body};
  for (const EmptyCase& empty : empties)
    cases.push_back(LoopBuilder(nest, vars, buffers, choose_tiling(nest, LoopFacts{}), &empty).run());
  function.body = cases.size() == 1 ? cases.front() : te::make_seq(std::move(cases));
  return function;
}

}  // namespace

te::Function build_generic_loops(const Nest& nest, const TermVars& vars, const LoopFacts& facts,
                                 const std::vector<EmptyCase>& empties) {
  if (is_scheduled(nest))
    return build_generic_loops(nest, vars, choose_steps(nest, facts, {}).schedule, empties);
  return build_generic_loops(nest, vars, choose_tiling(nest, facts), empties);
}

te::Function build_generic_loops(const Nest& nest, const TermVars& vars, const schedule::Schedule& steps,
                                 const std::vector<EmptyCase>& empties) {
  te::Function function = schedule::apply(program_of(nest), steps, "generic",
                                          {vars.vars(), ExtentGuard(nest, vars, nullptr).conditions()});
  LoopBuffers buffers;
  for (size_t i = 0; i < nest.inputs.size(); ++i)
    buffers.inputs[nest.inputs[i].get()] = function.parameters[i].buffer;
  buffers.outputs.push_back(function.parameters.back().buffer);
  return with_cases(std::move(function), nest, vars, buffers, empties);
}

te::Function build_generic_loops(const Nest& nest, const TermVars& vars, const Tiling& tiling,
                                 const std::vector<EmptyCase>& empties) {
  te::Function function;
  LoopBuffers buffers;
  function.name = "generic";
  function.dims = vars.vars();
  for (const te::Tensor& input : nest.inputs) {
    const te::Buffer buffer =
        te::make_buffer(input->name, input->dtypes[0], input->shape, te::Scope::kParameter);
    buffers.inputs[input.get()] = buffer;
    function.parameters.push_back({buffer, false});
  }
  const te::TensorNode& made = nest.epilogue ? *nest.epilogue->target->tensor : *nest.tensor;
  for (const DType dtype : made.dtypes) {
    buffers.outputs.push_back(te::make_buffer("out", dtype, made.shape, te::Scope::kParameter));
    function.parameters.push_back({buffers.outputs.back(), true});
  }
  function.body = LoopBuilder(nest, vars, buffers, tiling, nullptr).run();
  return with_cases(std::move(function), nest, vars, buffers, empties);
}

}  // namespace tensormill::plan
