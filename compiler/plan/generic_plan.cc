#include "compiler/plan/generic_plan.h"

#include <algorithm>
#include <set>

#include "compiler/ir/op_def.h"
#include "compiler/plan/dim_algebra.h"
#include "compiler/plan/generic_epilogue.h"
#include "compiler/plan/generic_join.h"
#include "compiler/plan/plan_writer.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

/// What the fitter is to see of the samples' dims: a dim that is 0 in all of them has no formula.
std::vector<std::vector<int64_t>> dims_of(const std::vector<GraphForm>& samples,
                                          const std::vector<ir::DependentDim>& dependents) {
  std::vector<std::vector<int64_t>> dims;
  for (const GraphForm& sample : samples) {
    dims.push_back(sample.dims);
    for (const ir::DependentDim& each : dependents) dims.back()[each.dim] = 0;
  }
  return dims;
}

class GenericBuilder : private PlanWriter {
public:
  GenericBuilder(const ir::Graph& first, const std::vector<GraphForm>& samples,
                 const std::vector<HiddenConstant>& hidden, const ExtentFacts& facts, int lanes)
      : PlanWriter(first),
        samples_(samples),
        hidden_(hidden),
        own_inputs_(first.inputs().size() - hidden.size()),
        lanes_(lanes),
        fitter_(dims_of(samples, facts.dependents), facts.factors) {
    fitter_.set_maximums(facts.maximums);
    fitter_.set_quotients(facts.quotients);
    if (!facts.dependents.empty()) know_dims(facts.dependents);
    for (const SliceFact& slice : facts.slices) fitter_.add_slice(slice);
    // In the model's order: an extent that another is scaled from may be none of the plan's.
    auto ratio = facts.ratios.begin();
    for (size_t i = 0; i <= facts.extents.size(); ++i) {
      for (; ratio != facts.ratios.end() && ratio->extents == i; ++ratio)
        fitter_.add_ratio(ratio->up, ratio->down);
      if (i < facts.extents.size()) fitter_.fit(facts.extents[i]);
    }
  }

  GenericModel run(const std::vector<std::string>& output_names) {
    result_.plan.dims = samples_[0].dims;
    for (size_t i = 0; i < own_inputs_; ++i) {
      const ir::ValueId input = first().inputs()[i];
      plan().inputs.push_back(port(first().value(input).name, add_value(input, package::BufferKind::kInput)));
    }
    for (size_t i = 0; i < first().nodes().size(); ++i) {
      try {
        add_node(static_cast<ir::NodeId>(i));
      } catch (Error& error) {
        error.add_context("node \"" + name_of(first().nodes()[i]) + "\"");
        throw;
      }
    }
    PlanWriter::add_outputs(output_names);
    result_.plan.derived = fitter_.derived();
    return std::move(result_);
  }

private:
  const ir::Graph& first() const { return graph_; }

  /// What follows from free dims may come before them among the inputs, and before the extents it is made of.
  void know_dims(const std::vector<ir::DependentDim>& dependents) {
    const auto know = [&](const DimTerm& term) {
      std::vector<int64_t> values;
      for (const GraphForm& sample : samples_) values.push_back(evaluate(term, sample.dims));
      fitter_.fit(values);
    };
    for (size_t d = 0; d < samples_[0].dims.size(); ++d) {
      if (std::none_of(dependents.begin(), dependents.end(),
                       [&](const ir::DependentDim& each) { return each.dim == d; }))
        know(identity(d));
    }
    for (const ir::DependentDim& each : dependents) {
      for (const DimProduct& product : each.value.products) {
        for (const DimTerm& term : product.factors) know(term);
      }
    }
  }

  std::vector<Shape> shapes_of(ir::ValueId id) const {
    std::vector<Shape> shapes;
    for (const GraphForm& sample : samples_) shapes.push_back(sample.shapes[static_cast<size_t>(id)]);
    return shapes;
  }

  int32_t add_buffer(const std::string& name, package::BufferKind kind, DType dtype,
                     const std::vector<Shape>& shapes) {
    const auto index = static_cast<int32_t>(plan().buffers.size());
    package::Buffer buffer;
    buffer.name = name;
    buffer.kind = kind;
    buffer.dtype = dtype;
    buffer.shape = shapes[0];
    buffer.bytes = num_bytes(shapes[0], dtype);
    for (size_t d = 0; d < shapes[0].size(); ++d) {
      std::vector<int64_t> values;
      for (const Shape& shape : shapes) values.push_back(shape.size() == shapes[0].size() ? shape[d] : -1);
      const std::optional<DimFormula> formula = fitter_.fit(values);
      if (!formula)
        throw Error(ErrorCode::kNotSupported, "extent " + std::to_string(d) + " of \"" + name +
                                                  "\" depends on the free dims in a way that has no formula");
      if (formula->products.empty()) continue;
      result_.plan.buffer_holes.push_back({index, static_cast<int32_t>(d), *formula});
    }
    plan().buffers.push_back(std::move(buffer));
    return index;
  }

  int32_t add_value(ir::ValueId id, package::BufferKind kind) override {
    const ir::Value& value = first().value(id);
    const int32_t index = add_buffer(value.name, kind, value.type.dtype, shapes_of(id));
    buffer_of_[static_cast<size_t>(id)] = index;
    return index;
  }

  int32_t buffer_for(ir::ValueId id) override {
    const int32_t known = buffer_of_[static_cast<size_t>(id)];
    if (known >= 0) return known;
    const ir::Value& value = first().value(id);
    const auto input = std::find(first().inputs().begin(), first().inputs().end(), id);
    if (input != first().inputs().end())
      return add_hidden(id, hidden_[static_cast<size_t>(input - first().inputs().begin()) - own_inputs_]);
    TM_CHECK(value.constant, "value " + value.name + " is read before it is computed");
    for (const GraphForm& sample : samples_) {
      if (!sample.same_constants[static_cast<size_t>(id)])
        throw Error(ErrorCode::kNotSupported, "constant \"" + value.name + "\" depends on the free dims");
    }
    return add_constant(id, *value.constant);
  }

  /// A step computes what depends on the free dims.
  int32_t add_hidden(ir::ValueId id, const HiddenConstant& hidden) {
    if (hidden.expressions.empty()) return add_constant(id, hidden.values[0]);
    std::vector<Nest> nests;
    std::vector<const Nest*> samples;
    for (const te::Tensor& tensor : hidden.expressions) nests.push_back({tensor, {}, {}});
    for (const Nest& nest : nests) samples.push_back(&nest);
    const int32_t buffer = add_value(id, package::BufferKind::kTemp);
    package::Step step;
    step.args = {buffer};
    step.outputs = {0};
    try {
      add_step(std::move(step), samples, {}, "computed", {});
    } catch (Error& error) {
      error.add_context("constant \"" + first().value(id).name + "\"");
      throw;
    }
    return buffer;
  }

  void add_node(ir::NodeId id) {
    const ir::Node& node = first().node(id);
    if (is_view_node(first(), node)) return add_view(node);
    if (is_host_node(first(), node)) return add_host_step(node);
    std::vector<ir::ValueId> inputs;
    const Kernel kernel = kernel_of(first(), node, inputs);
    const Nests& nests = samples_[0].nests[static_cast<size_t>(id)];
    for (const GraphForm& sample : samples_) {
      const Nests& other = sample.nests[static_cast<size_t>(id)];
      if (other.nests.size() != nests.nests.size() || other.outputs != nests.outputs)
        throw Error(ErrorCode::kNotSupported, "its computation depends on the free dims");
    }
    GenericGroup group;
    group.node = id;
    for (const ir::ValueId input : inputs) group.inputs.push_back(buffer_for(input));
    group.first_step = plan().steps.size();
    NodeNests all{node, kernel.symbol.substr(0, kernel.symbol.rfind('_')), nests.outputs, group.inputs, {},
                  {}};
    for (size_t n = 0; n < nests.nests.size(); ++n) all.samples.push_back(samples_of(id, n, inputs));
    all.made.resize(nests.nests.size());
    for (const Order& each : order_of(nests)) {
      if (each.sum && add_with_sum(all, each.nest, *each.sum)) continue;
      if (each.sum) add_nest(all, *each.sum);
      add_nest(all, each.nest);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const NestSource& source = nests.outputs[i];
      if (source.is_input) throw Error(ErrorCode::kNotSupported, "an output is an input");
      buffer_of_[static_cast<size_t>(node.outputs[i])] =
          all.made[source.index][static_cast<size_t>(source.output)];
      group.outputs.push_back(buffer_for(node.outputs[i]));
    }
    group.end_step = plan().steps.size();
    result_.groups.push_back(std::move(group));
  }

  /// A nest in all samples, and the shapes of what it reads: by source and sample.
  struct NestSamples {
    std::vector<const Nest*> nests;
    std::vector<std::vector<Shape>> inputs;
  };

  NestSamples samples_of(ir::NodeId id, size_t n, const std::vector<ir::ValueId>& inputs) const {
    NestSamples result;
    for (const GraphForm& sample : samples_)
      result.nests.push_back(&sample.nests[static_cast<size_t>(id)].nests[n]);
    for (const NestSource& source : first_with_form(result.nests).sources) {
      result.inputs.emplace_back();
      for (size_t s = 0; s < samples_.size(); ++s) {
        const std::vector<Nest>& own = samples_[s].nests[static_cast<size_t>(id)].nests;
        result.inputs.back().push_back(source.is_input
                                           ? samples_[s].shapes[static_cast<size_t>(inputs[source.index])]
                                           : own[source.index].tensor->constant_shape());
      }
    }
    return result;
  }

  /// The nests of a node on their way into steps.
  struct NodeNests {
    const ir::Node& node;
    std::string base;  ///< of the kernels' names
    const std::vector<NestSource>& outputs;
    const std::vector<int32_t>& inputs;           ///< buffers
    std::vector<NestSamples> samples;             ///< by nest
    std::vector<std::vector<int32_t>> made = {};  ///< by nest: the buffers of its outputs
  };

  void add_made(NodeNests& all, size_t number, package::Step& step) {
    const std::vector<const Nest*>& samples = all.samples[number].nests;
    const te::TensorNode& tensor = *samples[0]->tensor;
    std::vector<Shape> shapes;
    for (const Nest* sample : samples) shapes.push_back(sample->tensor->constant_shape());
    for (size_t i = 0; i < tensor.dtypes.size(); ++i) {
      const Made made = made_of(all.node, all.outputs, number, i, tensor.dtypes[i]);
      all.made[number].push_back(add_buffer(made.name, package::BufferKind::kTemp, made.dtype, shapes));
      step.outputs.push_back(static_cast<int32_t>(step.args.size()));
      step.args.push_back(all.made[number].back());
    }
  }

  void add_nest(NodeNests& all, size_t number) {
    package::Step step;
    step.args = arguments(first_with_form(all.samples[number].nests).sources, all.inputs, all.made);
    add_made(all, number, step);
    add_step(std::move(step), all.samples[number].nests, all.samples[number].inputs, all.base,
             all.node.origins);
  }

  /// Nest `number` and the sum that it reads, as one step; false where they cannot be one.
  bool add_with_sum(NodeNests& all, size_t number, size_t sum) {
    const NestSamples &last = all.samples[number], &before = all.samples[sum];
    const std::vector<NestSource>& sources = first_with_form(last.nests).sources;
    const auto input = std::find(sources.begin(), sources.end(), NestSource{false, sum, 0});
    if (input == sources.end()) return false;
    TermVars vars(samples_[0].dims.size());
    const Nest summed = generalize(before.nests, before.inputs, fitter_, vars);
    const Nest finished = generalize(last.nests, last.inputs, fitter_, vars);
    const std::optional<Nest> both =
        with_epilogue(summed, finished, static_cast<size_t>(input - sources.begin()));
    if (!both || !empties_of(before.nests, before.inputs, vars).empty() ||
        !empties_of(last.nests, last.inputs, vars).empty())
      return false;
    package::Step step;
    step.args = arguments(both->sources, all.inputs, all.made);
    add_made(all, number, step);
    add_kernel_step(std::move(step), *both, vars, {}, all.base, all.node.origins);
    return true;
  }

  void add_step(package::Step step, const std::vector<const Nest*>& samples,
                const std::vector<std::vector<Shape>>& inputs, const std::string& base,
                const std::vector<std::string>& origins) {
    TermVars vars(samples_[0].dims.size());
    const Nest nest = generalize(samples, inputs, fitter_, vars);
    const std::vector<EmptyInputs> empties = empties_of(samples, inputs, vars);
    add_kernel_step(std::move(step), nest, vars, empties, base, origins);
  }

  void add_kernel_step(package::Step step, const Nest& whole, TermVars& vars,
                       const std::vector<EmptyInputs>& empties, const std::string& base,
                       const std::vector<std::string>& origins) {
    const auto index = static_cast<int32_t>(plan().steps.size());
    const Nest nest = with_joined_axes(whole, vars);
    for (const DimFormula& formula : vars.formulas()) {
      result_.plan.step_holes.push_back({index, static_cast<int32_t>(step.dims.size()), formula});
      step.dims.push_back(evaluate(formula, with_derived(samples_[0].dims, fitter_.derived())));
    }
    PlanWriter::add_kernel_step(std::move(step), base, build_generic_loops(nest, vars, lanes_, empties),
                                empties, origins);
  }

  using ShapeFormulas = std::vector<DimFormula>;

  /// In which cases the output has elements and inputs, or a free dim, have none.
  std::vector<EmptyInputs> empties_of(const std::vector<const Nest*>& samples,
                                      const std::vector<std::vector<Shape>>& input_shapes,
                                      const TermVars& vars) {
    constexpr size_t kMaxCases = 3;
    const Nest& first = first_with_form(samples);
    const std::vector<bool> counts = have_form(samples);
    std::vector<Shape> own;
    for (const Nest* sample : samples) own.push_back(sample->tensor->constant_shape());
    const ShapeFormulas output = fit_shape(own, counts, fitter_).value();
    std::vector<ShapeFormulas> inputs;
    for (const std::vector<Shape>& shapes : input_shapes)
      inputs.push_back(fit_shape(shapes, counts, fitter_).value());
    std::set<EmptyInputs> cases;
    for (const std::vector<int64_t>& free_dims : small_dims(result_.plan.dims)) {
      const std::vector<int64_t> dims = with_derived(free_dims, fitter_.derived());
      const auto least_of = [&](const ShapeFormulas& shape) {
        int64_t least = 1;
        for (const DimFormula& formula : shape) least = std::min(least, evaluate(formula, dims));
        return least;
      };
      if (least_of(output) < 1) continue;
      bool any = false, negative = false;
      EmptyInputs empty;
      for (const ShapeFormulas& input : inputs) {
        const int64_t least = is_always_empty(input) ? 1 : least_of(input);
        negative = negative || least < 0;
        empty.push_back(least == 0);
        any = any || least == 0;
      }
      for (size_t i = 0; i < vars.formulas().size(); ++i)
        any = any || (vars.is_positive(i) && evaluate(vars.formulas()[i], dims) == 0);
      if (any && !negative && !checks_index(first, empty)) cases.insert(std::move(empty));
      if (cases.size() == kMaxCases) break;
    }
    return {cases.begin(), cases.end()};
  }

  static bool is_always_empty(const ShapeFormulas& shape) {
    return std::find(shape.begin(), shape.end(), DimFormula{}) != shape.end();
  }

  const std::vector<GraphForm>& samples_;
  const std::vector<HiddenConstant>& hidden_;
  const size_t own_inputs_;  ///< the graph's inputs behind them are hidden constants
  int lanes_;
  DimFitter fitter_;
};

}  // namespace

GenericModel generalize_model(const ir::Graph& first, const std::vector<GraphForm>& samples,
                              const std::vector<HiddenConstant>& hidden, const ExtentFacts& facts,
                              const std::vector<std::string>& output_names, int lanes) {
  TM_CHECK(!samples.empty(), "no samples");
  return GenericBuilder(first, samples, hidden, facts, lanes).run(output_names);
}

}  // namespace tensormill::plan
