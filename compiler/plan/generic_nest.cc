#include "compiler/plan/generic_nest.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "compiler/te/rewrite_reads.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

using te::Expr;
using te::ExprOp;

[[noreturn]] void cannot(const std::string& what) {
  throw Error(ErrorCode::kNotSupported, what + " depends on the free dims in a way that has no formula");
}

/// Calls visit on each node of the DAG once.
template <typename Visit>
void visit_once(const Expr& expr, std::unordered_map<const te::ExprNode*, int>& seen, const Visit& visit) {
  if (!seen.emplace(expr.get(), 0).second) return;
  visit(expr);
  for (const Expr& arg : expr->args) visit_once(arg, seen, visit);
}

class Splitter {
public:
  explicit Splitter(const te::Program& program) : program_(program) {
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
      std::unordered_map<const te::ExprNode*, int> seen;
      const auto count = [&](const Expr& expr) {
        if (expr->op != ExprOp::kRead) return;
        ++reads_[expr->tensor.get()];
        // What a reduction reads is computed again for each point that it reduces to.
        if (stage->reduction) ++reads_[expr->tensor.get()];
      };
      for (const Expr& body : stage->body) visit_once(body, seen, count);
      if (!stage->reduction) continue;
      for (const Expr& source : stage->reduction->source) visit_once(source, seen, count);
    }
  }

  bool is_nest(const te::TensorNode& stage) const {
    const bool is_output = std::any_of(program_.outputs.begin(), program_.outputs.end(),
                                       [&](const te::Tensor& output) { return output.get() == &stage; });
    if (is_output || stage.reduction || stage.body.size() != 1) return true;
    int64_t operators = 0;
    te::for_each_expr(stage.body[0], [&](const Expr& expr) {
      // Index arithmetic is cheap; so is one operation on what was read.
      const bool value = expr->type.dtype != DType::kInt64 && expr->type.dtype != DType::kBool;
      if (value && !expr->args.empty() && expr->op != ExprOp::kRead) ++operators;
    });
    const auto found = reads_.find(&stage);
    return operators > 2 && found != reads_.end() && found->second > 1;
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
    for (size_t i = 0; i < axes.size(); ++i) body = te::substitute(body, fresh[i], indices[i]);
    return body;
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

  void add_nest(const te::Tensor& stage) {
    Nest nest;
    auto tensor = std::make_shared<te::TensorNode>(*stage);
    te::ReadRewriter expand = expander(nest);
    for (Expr& body : tensor->body) body = expand.run(body);
    if (stage->reduction) {
      auto reduction = std::make_shared<te::Reduction>(*stage->reduction);
      for (Expr& source : reduction->source) source = expand.run(source);
      tensor->reduction = std::move(reduction);
    }
    nest.tensor = std::move(tensor);
    sources_[stage.get()] = {false, result_.nests.size(), 0};
    result_.nests.push_back(std::move(nest));
  }

  const te::Program& program_;
  std::map<const te::TensorNode*, NestSource> sources_;
  std::unordered_map<const te::TensorNode*, int> reads_;
  Nests result_;
};

class Generalizer {
public:
  Generalizer(const std::vector<const Nest*>& samples, const std::vector<std::vector<Shape>>& inputs,
              DimFitter& fitter, TermVars& vars)
      : counts_(have_form(samples)), input_shapes_(inputs), fitter_(fitter), vars_(vars) {
    for (size_t s = 0; s < samples.size(); ++s) {
      if (counts_[s]) samples_.push_back(samples[s]);
      shapes_.push_back(samples[s]->tensor->constant_shape());
    }
  }

  Nest run() {
    const te::TensorNode& first = *samples_[0]->tensor;
    Nest nest;
    nest.sources = samples_[0]->sources;
    for (const Nest* sample : samples_) {
      const bool same = sample->sources == nest.sources && sample->tensor->dtypes == first.dtypes &&
                        sample->tensor->axes.size() == first.axes.size() &&
                        sample->tensor->body.size() == first.body.size() &&
                        (sample->tensor->reduction != nullptr) == (first.reduction != nullptr);
      if (!same) cannot("the form of " + first.name);
    }
    for (size_t i = 0; i < nest.sources.size(); ++i) {
      const te::Tensor& input = samples_[0]->inputs[i];
      nest.inputs.push_back(te::placeholder(input->name, input->dtypes[0], shape_of(input_shapes_[i])));
    }
    // Of no elements nothing is computed, whatever the form.
    if (num_elements(first.constant_shape()) != 0 && !fitter_.are_told(counts_))
      cannot("whether " + first.name + " has elements");
    inputs_ = &nest.inputs;
    auto tensor = std::make_shared<te::TensorNode>();
    tensor->name = first.name;
    tensor->dtypes = first.dtypes;
    tensor->shape = shape_of(shapes_);
    tensor->axes =
        axes_of([](const Nest& sample) -> const std::vector<te::Axis>& { return sample.tensor->axes; },
                tensor->shape);
    for (size_t i = 0; i < first.body.size(); ++i)
      tensor->body.push_back(merge([&](const Nest& sample) { return sample.tensor->body[i]; }));
    if (first.reduction) tensor->reduction = reduction_of(*first.reduction);
    nest.tensor = std::move(tensor);
    return nest;
  }

private:
  template <typename Get>
  std::vector<Expr> all(const Get& get) const {
    std::vector<Expr> values;
    for (const Nest* sample : samples_) values.push_back(get(*sample));
    return values;
  }
  template <typename Get>
  Expr merge(const Get& get) {
    return merge_all(all(get));
  }

  /// `shapes`: by sample, those that say nothing too.
  std::vector<Expr> shape_of(const std::vector<Shape>& shapes) {
    const std::optional<std::vector<DimFormula>> formulas = fit_shape(shapes, counts_, fitter_);
    if (!formulas) cannot("an extent of " + samples_[0]->tensor->name);
    std::vector<Expr> shape;
    for (const DimFormula& formula : *formulas) shape.push_back(vars_.expr(formula));
    return shape;
  }

  /// `extents`: of the axes, where they are known; else none.
  template <typename Get>
  std::vector<te::Axis> axes_of(const Get& get, const std::vector<Expr>& extents = {}) {
    std::vector<te::Axis> axes;
    for (size_t i = 0; i < get(*samples_[0]).size(); ++i) {
      const te::Var var = te::make_var(get(*samples_[0])[i].var->name);
      axes.push_back({var, !extents.empty() ? extents.at(i) : merge([&](const Nest& sample) {
                        return get(sample).at(i).extent;
                      })});
      for (const Nest* sample : samples_) {
        const te::Axis& axis = get(*sample)[i];
        renamed_[axis.var.get()] = var;
        const int64_t* extent = te::as_int(axis.extent);
        if (extent != nullptr && *extent == 1) single_.insert(axis.var.get());
        own_[var.get()].push_back(axis.var);
      }
    }
    return axes;
  }

  std::shared_ptr<const te::Reduction> reduction_of(const te::Reduction& first) {
    for (const Nest* sample : samples_) {
      const te::Reduction& other = *sample->tensor->reduction;
      if (other.axes.size() != first.axes.size() || other.source.size() != first.source.size())
        cannot("a reduction");
    }
    auto reduction = std::make_shared<te::Reduction>();
    const auto part = [](const Nest& sample) -> const te::Reduction& { return *sample.tensor->reduction; };
    reduction->axes = axes_of([&](const Nest& s) -> const std::vector<te::Axis>& { return part(s).axes; });
    for (size_t i = 0; i < first.source.size(); ++i) {
      reduction->left.push_back(te::make_var("left", first.left[i]->dtype));
      reduction->right.push_back(te::make_var("right", first.right[i]->dtype));
      for (const Nest* sample : samples_) {
        renamed_[part(*sample).left[i].get()] = reduction->left[i];
        renamed_[part(*sample).right[i].get()] = reduction->right[i];
      }
    }
    for (size_t i = 0; i < first.source.size(); ++i) {
      reduction->combine.push_back(merge([&](const Nest& s) { return part(s).combine[i]; }));
      reduction->identity.push_back(merge([&](const Nest& s) { return part(s).identity[i]; }));
      reduction->source.push_back(merge([&](const Nest& s) { return part(s).source[i]; }));
    }
    return reduction;
  }

  /// Of indices that a 0 or an axis of one element made shorter, the one that has most in it.
  static const Expr& longest_of(const std::vector<Expr>& exprs) {
    const auto parts = [](const Expr& expr) {
      if (expr->type.dtype != DType::kInt64) return 0;
      return expr->op == ExprOp::kAdd ? 3 : expr->op == ExprOp::kMul ? 2 : expr->op == ExprOp::kVar ? 1 : 0;
    };
    return *std::max_element(exprs.begin(), exprs.end(),
                             [&](const Expr& a, const Expr& b) { return parts(a) < parts(b); });
  }

  Expr merge_all(const std::vector<Expr>& exprs) {
    const Expr& first = longest_of(exprs);
    if (const auto found = done_.find(first.get()); found != done_.end()) {
      const std::vector<Expr>& others = found->second.first;
      if (std::equal(exprs.begin(), exprs.end(), others.begin(),
                     [](const Expr& a, const Expr& b) { return a.same_as(b); }))
        return found->second.second;
    }
    std::vector<Expr> alike = exprs;
    for (size_t s = 0; s < exprs.size(); ++s) {
      const auto differs = [&] {
        const Expr& expr = alike[s];
        return expr->op != first->op || expr->type != first->type || expr->args.size() != first->args.size();
      };
      if (differs()) alike[s] = written_out(exprs[s], first, s);
      if (differs()) cannot("an expression");
    }
    Expr result = merge_node(alike);
    done_[first.get()] = {exprs, result};
    return result;
  }

  /// An index of sample `s` in the form of another sample's: where an axis has one element, its index was
  /// left out, and so was a 0 that is added. The index itself where that is not so.
  Expr written_out(const Expr& expr, const Expr& form, size_t s) const {
    if (form->op == ExprOp::kVar) {
      const auto own = own_.find(renamed_.at(form->var.get()).get());
      if (own == own_.end() || expr->op != ExprOp::kIntImm || expr->int_value != 0) return expr;
      const te::Var& var = own->second[s];
      return single_.count(var.get()) != 0 ? Expr(var) : expr;
    }
    if (form->args.size() != 2 || form->type.dtype != DType::kInt64 || form->args[1]->op != ExprOp::kIntImm ||
        expr->op == form->op)
      return expr;
    if (form->op == ExprOp::kMul) {
      const bool is_index = expr->op == ExprOp::kVar && single_.count(expr->var.get()) != 0;
      const Expr index = is_index ? expr : written_out(expr, form->args[0], s);
      return !is_index && index.same_as(expr) ? expr : te::make(ExprOp::kMul, {index, form->args[1]});
    }
    if (form->op != ExprOp::kAdd) return expr;
    const bool is_number = expr->op == ExprOp::kIntImm;
    const Expr rest = written_out(is_number ? Expr(0) : expr, form->args[0], s);
    if (rest->op == ExprOp::kIntImm) return expr;
    return te::make(ExprOp::kAdd, {rest, is_number ? expr : Expr(0)});
  }

  Expr merge_node(const std::vector<Expr>& exprs) {
    const Expr& first = exprs[0];
    if (first->op == ExprOp::kVar) {
      const te::Var& var = renamed_.at(first->var.get());
      for (const Expr& expr : exprs) {
        if (renamed_.at(expr->var.get()) != var) cannot("an index");
      }
      return Expr(var);
    }
    if (first->op == ExprOp::kIntImm) return integer(exprs);
    if (first->op == ExprOp::kFloatImm) return real(exprs);
    std::vector<Expr> args;
    for (size_t i = 0; i < first->args.size(); ++i) {
      std::vector<Expr> parts;
      for (const Expr& expr : exprs) parts.push_back(expr->args[i]);
      if (first->op == ExprOp::kRead) spread(exprs, i, parts);
      args.push_back(merge_all(parts));
    }
    if (first->op == ExprOp::kRead) {
      const size_t input = input_of(*first, 0);
      for (size_t s = 0; s < exprs.size(); ++s) {
        if (input_of(*exprs[s], s) != input) cannot("what is read");
      }
      return te::read((*inputs_)[input], std::move(args));
    }
    return args.empty() ? first : te::with_args(first, std::move(args));
  }

  /// Indices of `axis` of reads. An axis of one element stands for all of another operand's: there any index
  /// is the 0 that loops clamp it to, and what is read may have the form of the samples in which it has more.
  void spread(const std::vector<Expr>& reads, size_t axis, std::vector<Expr>& indices) const {
    const auto is_one = [&](size_t s) {
      const int64_t* extent = te::as_int(reads[s]->tensor->shape.at(axis));
      return extent != nullptr && *extent == 1 && indices[s]->op == ExprOp::kIntImm &&
             indices[s]->int_value == 0;
    };
    const Expr* form = nullptr;
    for (size_t s = 0; s < indices.size(); ++s) {
      if (is_one(s)) continue;
      if (form == nullptr || longest_of({*form, indices[s]}).same_as(indices[s])) form = &indices[s];
    }
    if (form == nullptr || (*form)->op == ExprOp::kIntImm) return;
    const Expr chosen = *form;
    for (size_t s = 0; s < indices.size(); ++s) {
      if (!is_one(s)) continue;
      Expr own = chosen;
      te::for_each_expr(chosen, [&](const Expr& part) {
        if (part->op != ExprOp::kVar) return;
        const auto found = own_.find(renamed_.at(part->var.get()).get());
        if (found != own_.end()) own = te::substitute(own, part->var, Expr(found->second[s]));
      });
      indices[s] = own;
    }
  }

  size_t input_of(const te::ExprNode& node, size_t sample) const {
    const std::vector<te::Tensor>& inputs = samples_[sample]->inputs;
    return static_cast<size_t>(std::find(inputs.begin(), inputs.end(), node.tensor) - inputs.begin());
  }

  /// `values`: of the samples with elements.
  Expr hole(const std::vector<int64_t>& values, DType dtype) {
    std::vector<int64_t> all(counts_.size(), 0);
    for (size_t s = 0, next = 0; s < all.size(); ++s) {
      if (counts_[s]) all[s] = values[next++];
    }
    const std::optional<DimFormula> formula = fitter_.fit_some(all, counts_);
    if (!formula) cannot("the extent or constant " + std::to_string(values[0]));
    const Expr value = vars_.expr(*formula);
    return dtype == DType::kInt64 ? value : te::cast(dtype, value);
  }

  Expr integer(const std::vector<Expr>& exprs) {
    std::vector<int64_t> values;
    for (const Expr& expr : exprs) values.push_back(expr->int_value);
    const bool equal = std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
    return equal ? exprs[0] : hole(values, exprs[0]->type.dtype);
  }

  /// Counts and their reciprocals: what means divide by.
  Expr real(const std::vector<Expr>& exprs) {
    const Expr& first = exprs[0];
    std::vector<int64_t> values, reciprocals;
    bool equal = true, whole = true, inverse = true;
    for (const Expr& expr : exprs) {
      const double value = expr->float_value;
      equal = equal && te::equal(expr, first);
      whole = whole && std::isfinite(value) && std::fabs(value) < 1e9 && value == std::rint(value);
      values.push_back(whole ? static_cast<int64_t>(value) : 0);
      const double count = value == 0 ? 0 : std::rint(1 / value);
      inverse = inverse && value != 0 && std::fabs(count) < 1e9 &&
                te::round_to(first->type.dtype, 1 / count) == value;
      reciprocals.push_back(inverse ? static_cast<int64_t>(count) : 0);
    }
    if (equal) return first;
    if (whole) return hole(values, first->type.dtype);
    if (!inverse) cannot("the factor " + std::to_string(first->float_value));
    return te::imm_like(first->type, 1) / hole(reciprocals, first->type.dtype);
  }

  const std::vector<bool> counts_;  ///< by sample: whether it is one of samples_
  const std::vector<std::vector<Shape>>& input_shapes_;
  std::vector<Shape> shapes_;  ///< by sample, all of them
  std::vector<const Nest*> samples_;
  DimFitter& fitter_;
  TermVars& vars_;
  const std::vector<te::Tensor>* inputs_ = nullptr;
  std::unordered_map<const te::VarNode*, te::Var> renamed_;
  std::unordered_map<const te::VarNode*, std::vector<te::Var>> own_;  ///< by var of the result: the samples'
  std::set<const te::VarNode*> single_;                               ///< vars of axes of one element
  std::unordered_map<const te::ExprNode*, std::pair<std::vector<Expr>, Expr>> done_;
};

}  // namespace

Nests split_nests(const te::Program& program) { return Splitter(program).run(); }

Nest generalize(const std::vector<const Nest*>& samples, const std::vector<std::vector<Shape>>& inputs,
                DimFitter& fitter, TermVars& vars) {
  return Generalizer(samples, inputs, fitter, vars).run();
}

}  // namespace tensormill::plan
