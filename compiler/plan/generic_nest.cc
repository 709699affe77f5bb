#include "compiler/plan/generic_nest.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "compiler/plan/generic_choices.h"
#include "compiler/schedule/conditions.h"
#include "compiler/te/linear.h"
#include "compiler/te/op_class.h"
#include "compiler/te/simplify.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

using schedule::both;
using schedule::visit_once;
using te::Expr;
using te::ExprOp;

class Splitter {
public:
  explicit Splitter(const te::Program& program) : program_(program), choices_(program) {
    for (size_t i = 0; i < program.inputs.size(); ++i) sources_[program.inputs[i].get()] = {true, i, 0};
  }

  Nests run() {
    const std::vector<te::Tensor> stages = te::stages_of(program_);
    count_reads(stages);
    for (const te::Tensor& stage : stages) {
      if (is_nest(*stage)) add_nest(stage);
    }
    for (const te::Tensor& output : program_.outputs) result_.outputs.push_back(sources_.at(output.get()));
    return std::move(result_);
  }

private:
  void count_reads(const std::vector<te::Tensor>& stages) {
    for (const te::Tensor& stage : stages) {
      std::unordered_set<const te::ExprNode*> seen;
      const auto count = [&](const Expr& expr) {
        if (expr->op != ExprOp::kRead) return;
        ++reads_[expr->tensor.get()];
        // What a reduction reads is computed again for each point that it reduces to.
        if (!stage->reduction) return;
        ++reads_[expr->tensor.get()];
        if (!stage->axes.empty() && te::equal(expr->args.back(), Expr(stage->axes.back().var)))
          summed_.insert(expr->tensor.get());
      };
      for (const Expr& body : stage->body) visit_once(body, seen, count);
      if (!stage->reduction) continue;
      for (const Expr& source : stage->reduction->source) visit_once(source, seen, count);
    }
  }

  bool is_nest(const te::TensorNode& stage) const {
    if (is_output(program_, stage) || stage.reduction || stage.body.size() != 1) return true;
    if (!choices_.of(stage).empty()) return !choices_.is_put_in_place(stage);
    const auto found = reads_.find(&stage);
    const bool is_shared = found != reads_.end() && found->second > 1;
    return (is_shared && has_work(stage)) || (summed_.count(&stage) != 0 && is_column_copy(stage));
  }

  /// Index arithmetic is cheap; so is one operation on what was read, but for functions.
  static bool has_work(const te::TensorNode& stage) {
    constexpr int64_t kOfFunction = 4;
    int64_t operators = 0;
    te::for_each_expr(stage.body[0], [&](const Expr& expr) {
      const bool value = expr->type.dtype != DType::kInt64 && expr->type.dtype != DType::kBool;
      if (!value || expr->args.empty() || expr->op == ExprOp::kRead) return;
      operators += te::op_class(expr->op) == te::OpClass::kVectorMath ? kOfFunction : 1;
    });
    return operators > 2;
  }

  /// Whether it puts side by side what lies apart: vectors of the sum that reads it do not have to be
  /// gathered.
  static bool is_column_copy(const te::TensorNode& stage) {
    const Expr& body = stage.body[0]->op == ExprOp::kCast ? stage.body[0]->args[0] : stage.body[0];
    if (body->op != ExprOp::kRead || body->args.empty() || stage.axes.empty()) return false;
    const te::Var& last = stage.axes.back().var;
    const auto moves = [&](const Expr& index) { return te::mentions(index, last); };
    return !moves(body->args.back()) && std::any_of(body->args.begin(), body->args.end(), moves);
  }

  te::ReadRewriter expander(Nest& nest) {
    return te::ReadRewriter([this, &nest](const Expr& read, const std::vector<Expr>& indices) {
      return expand_read(*read, indices, nest);
    });
  }

  Expr expand_read(const te::ExprNode& node, const std::vector<Expr>& indices, Nest& nest) {
    const auto source = sources_.find(node.tensor.get());
    if (source != sources_.end()) {
      NestSource from = source->second;
      from.output = node.output;
      return te::read(placeholder_of(*node.tensor, from, nest), indices);
    }
    // Indices that were put in place hold reads that are done.
    if (std::find(nest.inputs.begin(), nest.inputs.end(), node.tensor) != nest.inputs.end())
      return te::read(node.tensor, indices);
    TM_CHECK(node.tensor->body.size() == 1, "stage " + node.tensor->name + " has no body to put in place");
    return expander(nest).run(put(node.tensor->body[0], node.tensor->axes, indices));
  }

  static Expr put(Expr body, const std::vector<te::Axis>& axes, const std::vector<Expr>& indices) {
    // Through fresh variables: an index may itself be written in the axes that are replaced.
    std::vector<te::Var> fresh;
    for (const te::Axis& axis : axes) {
      fresh.push_back(te::make_var(axis.var->name));
      body = te::substitute(body, axis.var, Expr(fresh.back()));
    }
    const Expr over_fresh = body;
    for (size_t i = 0; i < axes.size(); ++i) body = te::substitute(body, fresh[i], indices[i]);
    return te::with_checks_of(body, over_fresh, fresh, indices);
  }

  static te::Tensor placeholder_of(const te::TensorNode& tensor, const NestSource& source, Nest& nest) {
    for (size_t i = 0; i < nest.sources.size(); ++i) {
      if (nest.sources[i] == source) return nest.inputs[i];
    }
    nest.sources.push_back(source);
    nest.inputs.push_back(te::placeholder("p" + std::to_string(nest.inputs.size()),
                                          tensor.dtypes[static_cast<size_t>(source.output)], tensor.shape));
    return nest.inputs.back();
  }

  /// Where `stage` chooses among values by its axes: as many elements an iteration as it tells apart.
  void add_places(const te::Tensor& stage, te::TensorNode& tensor, Nest& nest) {
    PlaceMaker maker([this](const te::TensorNode& read) { return !is_source(read) && !is_nest(read); },
                     [this, &nest](const te::ExprNode& read, std::vector<Expr> indices) {
                       NestSource from = sources_.at(read.tensor.get());
                       from.output = read.output;
                       return te::read(placeholder_of(*read.tensor, from, nest), std::move(indices));
                     });
    const Choices& choices = choices_.of(*stage);
    int64_t count = 1;
    for (const auto& [axis, factor] : choices) {
      const Expr& extent = stage->axes[axis].extent;
      tensor.axes[axis].extent = te::simplify(te::floordiv(extent + Expr(factor - 1), Expr(factor)));
      count *= factor;
    }
    tensor.body.clear();
    for (int64_t i = 0; i < count; ++i) {
      NestPlace place;
      for (const te::Axis& axis : stage->axes) place.at.emplace_back(axis.var);
      int64_t rest = i;
      for (const auto& [axis, factor] : choices) {
        const Expr &extent = stage->axes[axis].extent, own(rest % factor);
        const bool is_all = te::is_int(extent, factor),
                   is_whole = te::as_int(extent) != nullptr && *te::as_int(extent) % factor == 0;
        place.at[axis] = maker.index(is_all ? own : place.at[axis] * Expr(factor) + own);
        rest /= factor;
        if (is_whole) continue;
        place.inside = both(place.inside, place.at[axis] < extent);
      }
      tensor.body.push_back(maker.element(stage, place.at));
      nest.places.push_back(std::move(place));
    }
  }

  bool is_source(const te::TensorNode& tensor) const { return sources_.count(&tensor) != 0; }

  void add_nest(const te::Tensor& stage) {
    Nest nest;
    auto tensor = std::make_shared<te::TensorNode>(*stage);
    if (!choices_.of(*stage).empty()) {
      add_places(stage, *tensor, nest);
      return finish(stage, std::move(tensor), std::move(nest));
    }
    te::ReadRewriter expand = expander(nest);
    for (Expr& body : tensor->body) body = expand.run(body);
    if (stage->reduction) {
      auto reduction = std::make_shared<te::Reduction>(*stage->reduction);
      for (Expr& source : reduction->source) source = expand.run(source);
      tensor->reduction = std::move(reduction);
    }
    finish(stage, std::move(tensor), std::move(nest));
  }

  void finish(const te::Tensor& stage, te::Tensor tensor, Nest nest) {
    nest.tensor = std::move(tensor);
    sources_[stage.get()] = {false, result_.nests.size(), 0};
    result_.nests.push_back(std::move(nest));
  }

  const te::Program& program_;
  const ChoiceFinder choices_;
  std::map<const te::TensorNode*, NestSource> sources_;
  std::unordered_map<const te::TensorNode*, int> reads_;
  std::set<const te::TensorNode*> summed_;  ///< read by sums along their last axis
  Nests result_;
};

}  // namespace

Nests split_nests(const te::Program& program) { return Splitter(program).run(); }

}  // namespace tensormill::plan
