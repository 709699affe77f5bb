#include "compiler/frontend/onnx/free_dims/variant_import.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compiler/frontend/onnx/free_dims/kept_model.h"
#include "compiler/frontend/onnx/free_dims/shape_variants.h"
#include "compiler/frontend/onnx/free_dims/symbolic_import.h"
#include "compiler/ir/loops.h"
#include "compiler/ir/run_dims.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

bool lacks_values(const Error& error) {
  return error.code() == ErrorCode::kShapeRequired && !error.details().empty() &&
         std::none_of(error.details().begin(), error.details().end(),
                      [](const ErrorDetail& detail) { return detail.detail == "elements"; });
}

bool may_want_extents(const Error& error) {
  return lacks_values(error) || error.code() == ErrorCode::kOperatorNotImplemented ||
         error.code() == ErrorCode::kOperatorAttributeNotImplemented;
}

namespace {

/// All combinations of the dims' extents; the last dim runs fastest.
std::vector<std::vector<int64_t>> combinations(const std::vector<std::vector<int64_t>>& extents) {
  std::vector<std::vector<int64_t>> result = {{}};
  for (const std::vector<int64_t>& choices : extents) {
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& prefix : result) {
      for (const int64_t extent : choices) {
        longer.push_back(prefix);
        longer.back().push_back(extent);
      }
      if (static_cast<int64_t>(longer.size()) > kMaxShapeVariants) {
        throw Error(ErrorCode::kInvalidArgument,
                    "shape_buckets make more than " + std::to_string(kMaxShapeVariants) + " variants");
      }
    }
    result = std::move(longer);
  }
  return result;
}

/// The extents that the dims have kernels of their own for.
std::vector<std::vector<int64_t>> extents_of(const Signature& signature, const ShapeBuckets& buckets) {
  std::vector<std::vector<int64_t>> extents;
  for (size_t dim = 0; dim < signature.free_dims.size(); ++dim) {
    const auto bucket = buckets.find(signature.free_dims[dim]);
    extents.push_back(bucket != buckets.end() ? bucket->second : std::vector<int64_t>());
  }
  return extents;
}

/// Shapes at which a model is looked at that has no plan for all of them: of the dims that are 0 in `anchor`.
/// All are as large as each other, or, of few dims, 1 or 2, as where one is the sum of others.
std::vector<std::vector<int64_t>> shapes_to_try(const std::vector<int64_t>& anchor) {
  constexpr int64_t kEqual[] = {8, 4, 2, 32, 64, 224, 16, 6, 5, 3, 12, 1};
  constexpr std::ptrdiff_t kFewDims = 5;
  std::vector<std::vector<int64_t>> shapes;
  for (const int64_t extent : kEqual) {
    shapes.push_back(anchor);
    std::replace(shapes.back().begin(), shapes.back().end(), int64_t{0}, extent);
  }
  if (std::count(anchor.begin(), anchor.end(), 0) > kFewDims) return shapes;
  std::vector<std::vector<int64_t>> choices;
  for (const int64_t extent : anchor)
    choices.push_back(extent == 0 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{extent});
  for (std::vector<int64_t>& dims : combinations(choices)) shapes.push_back(std::move(dims));
  return shapes;
}

/// Of a graph of one shape with extents that a run binds. `reason`: why there is no plan for all of them, ""
/// where that is not known.
[[noreturn]] void refuse_runs(const ir::Graph& graph, const std::string& reason) {
  std::vector<ErrorDetail> details;
  for (const ir::Node& node : graph.nodes()) {
    if (ir::has_effect(node))
      details.push_back({node.origins.empty() ? node.op : node.origins[0], "an extent that a run works out"});
  }
  throw Error(
      ErrorCode::kShapeRequired,
      "a run works out an extent, which a plan for all extents takes, and no other: the model has none "
      "that this compiler could make" +
          (reason.empty() ? "" : ": " + reason),
      std::move(details));
}

bool has_loops(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const ir::Node& node) { return node.op == ir::kLoopBegin; });
}

class VariantImport {
public:
  VariantImport(const VariantModel& model, VariantNotes& notes)
      : model_(model),
        signature_(model.signature),
        notes_(notes),
        extents_(extents_of(signature_, model.buckets)) {}

  ir::Variants run() {
    ir::Variants variants;
    variants.free_dims = signature_.free_dims;
    if (signature_.free_dims.empty() && !(model_.binds_symbols && model_.takes_symbolic)) {
      ImportOptions options = model_.options;
      options.form.has_symbols = options.form.has_symbols || model_.binds_symbols;
      ir::Graph graph = model_.import_graph(options, nullptr);
      if (!model_.takes_symbolic || ir::run_symbols(graph).empty()) {
        variants.input_shapes = shapes_of(graph);
        variants.graphs.push_back({{}, std::move(graph)});
        return variants;
      }
      take_symbolic(variants, symbolic_of_static(std::move(graph)));
    } else if (model_.takes_symbolic) {
      take_symbolic(variants, import_symbolic(model_));
    }
    for (const ir::DependentDim& each : dependents_) {
      if (extents_[each.dim].empty()) extents_[each.dim] = {0};
    }
    import_asked(variants);
    if (variants.graphs.empty() && !variants.symbolic) import_single(variants);
    variants.input_shapes =
        shapes_of(variants.symbolic ? variants.symbolic->graph : variants.graphs.front().graph);
    variants.model = keep_model(model_.source(), model_.options, stacks_elements_);
    return variants;
  }

private:
  /// Makes the generic plan's model, where there can be one.
  void take_symbolic(ir::Variants& variants, SymbolicImport symbolic) {
    variants.not_symbolic = std::move(symbolic.reason);
    if (!symbolic.model) return;
    notes_.takes_some = true;
    std::string reason;
    const bool is_planned = model_.takes_symbolic(*symbolic.model, &reason);
    dependents_ = dependent_symbols(*symbolic.model, is_planned);
    if (!is_planned) {
      const std::map<std::string, int64_t> hints = symbolic.model->graph.symbols()->hints();
      for (const std::string& symbol : symbolic.model->symbols) hints_.push_back(hints.at(symbol));
      variants.not_symbolic = std::move(reason);
      return;
    }
    check_asked();
    take_ones(variants, broadcast_symbols(*symbolic.model));
    variants.leaves_out = variants.leaves_out || symbolic.has_switches;
    variants.symbolic = std::move(symbolic.model);
  }

  /// The same for shapes at which dims are 1 that broadcast then.
  void take_ones(ir::Variants& variants, const std::set<size_t>& spread) {
    variants.leaves_out = spread.size() > kFewSpread;
    for (const std::set<size_t>& ones : subsets_of(spread)) {
      SymbolicImport with_ones = import_symbolic(model_, ones);
      if (with_ones.model && model_.takes_symbolic(*with_ones.model, nullptr)) {
        variants.symbolic_ones.push_back(*std::move(with_ones.model));
      } else if (!with_ones.takes_none) {
        variants.leaves_out = true;
      }
    }
  }

  /// Throws Error(kInvalidModel) where a bucket is of a dim of which the model takes another extent alone.
  void check_asked() const {
    for (const ir::DependentDim& each : dependents_) {
      if (!each.value.products.empty()) continue;
      for (const int64_t extent : extents_[each.dim]) {
        if (extent == each.value.offset) continue;
        throw Error(ErrorCode::kInvalidModel, "the model takes " + std::to_string(each.value.offset) +
                                                  " alone for " + signature_.free_dims[each.dim] +
                                                  ", of which shape_buckets have " + std::to_string(extent));
      }
    }
  }

  static constexpr size_t kFewSpread = 3;
  /// All but the empty one; of many elements each alone, and all.
  static std::vector<std::set<size_t>> subsets_of(const std::set<size_t>& all) {
    std::vector<std::set<size_t>> subsets;
    for (const size_t each : all) {
      const size_t before = all.size() <= kFewSpread ? subsets.size() : 0;
      for (size_t i = 0; i < before; ++i) {
        subsets.push_back(subsets[i]);
        subsets.back().insert(each);
      }
      subsets.push_back({each});
    }
    if (all.size() > kFewSpread) subsets.push_back(all);
    return subsets;
  }

  /// The shapes with kernels of their own. A dim without a bucket has no size to make kernels for: all its
  /// shapes are the generic plan's.
  std::vector<std::vector<int64_t>> asked() const {
    const bool is_open = std::any_of(extents_.begin(), extents_.end(),
                                     [](const std::vector<int64_t>& each) { return each.empty(); });
    return is_open || extents_.empty() ? std::vector<std::vector<int64_t>>() : combinations(extents_);
  }

  void import_asked(ir::Variants& variants) {
    std::set<std::vector<int64_t>> made;
    for (const std::vector<int64_t>& choice : asked()) {
      const std::vector<int64_t> dims = with_dependents(choice);
      if (!made.insert(dims).second) continue;
      try {
        variants.graphs.push_back({dims, at(dims, variants)});
        notes_.takes_some = true;
      } catch (const Error& error) {
        const bool lacks = lacks_values(error);
        notes_.lacks_values = notes_.lacks_values || lacks;
        if (lacks && model_.may_lack_values) continue;
        // What a run works out and nothing bounds has a plan whose steps are bound in the run.
        const bool binds_symbols =
            variants.symbolic && !variants.symbolic->graph.symbols()->run_time_symbols().empty();
        if (!binds_symbols || !may_want_extents(error)) throw;
      }
    }
  }

  std::vector<int64_t> with_dependents(const std::vector<int64_t>& dims) const {
    return ir::with_dependents(dims, dependents_);
  }

  /// Of a model without a plan for all shapes, and of which no shape was asked for: kernels for one that it
  /// takes; the others are interpreted. Throws what is wrong with the model where it takes none of those that
  /// are tried.
  void import_single(ir::Variants& variants) {
    std::vector<int64_t> anchor;
    for (const std::vector<int64_t>& own : extents_) anchor.push_back(own.empty() ? 0 : own.front());
    std::vector<std::vector<int64_t>> shapes = shapes_to_try(anchor);
    if (!hints_.empty()) shapes.insert(shapes.begin(), hints_);
    std::optional<Error> refused;
    for (const std::vector<int64_t>& tried : shapes) {
      const std::vector<int64_t> dims = with_dependents(tried);
      try {
        variants.graphs.push_back({dims, at(dims, variants)});
        notes_.takes_some = true;
        return;
      } catch (const Error& error) {
        const bool is_of_extents =
            error.code() == ErrorCode::kInvalidModel || error.code() == ErrorCode::kMemoryBudget;
        // What no extents change is said of the first ones; of those that are refused the largest count.
        if (!is_of_extents) throw;
        if (!refused) refused = error;
      }
    }
    throw Error(*refused);
  }

  /// Whether the elements of a sequence that the model returns are outputs of their own.
  bool lists_elements(const ir::Graph& graph) const {
    const std::vector<std::string> names = graph.output_names();
    return std::any_of(model_.facts.outputs.begin(), model_.facts.outputs.end(), [&](const auto& output) {
      return std::find(names.begin(), names.end(), output.name + "/0") != names.end();
    });
  }

  ir::Graph at(const std::vector<int64_t>& dims, const ir::Variants& variants) {
    // Short loops are unrolled where their length is a number.
    if (variants.symbolic && !has_loops(variants.symbolic->graph)) {
      if (std::optional<ir::Graph> graph = at_extents(*variants.symbolic, dims)) return *std::move(graph);
    }
    ImportOptions options = bound(model_.options, signature_, dims);
    options.form.stacks_elements = stacks_elements_;
    ir::Graph graph = model_.import_graph(options, nullptr);
    if (!stacks_elements_ && lists_elements(graph)) {
      // Of other extents a list has another length.
      options.form.stacks_elements = stacks_elements_ = true;
      graph = model_.import_graph(options, nullptr);
    }
    if (model_.takes_symbolic && !ir::run_symbols(graph).empty()) {
      notes_.binds_symbols = true;
      refuse_runs(graph, variants.not_symbolic);
    }
    return graph;
  }

  /// Of the graph's inputs, free dims by name.
  std::vector<DimShape> shapes_of(const ir::Graph& graph) const {
    std::vector<DimShape> shapes;
    for (const ir::ValueId input : graph.inputs()) {
      const ir::Value& value = graph.value(input);
      const Shape own = value.type.shape.hints();
      const auto found = signature_.shapes.find(value.name);
      DimShape shape = found != signature_.shapes.end() ? found->second : DimShape(own.begin(), own.end());
      if (shape.size() < own.size()) shape.emplace_back(own.back());
      for (size_t d = 0; d < shape.size(); ++d) {
        const auto* name = std::get_if<std::string>(&shape[d]);
        const std::vector<std::string>& names = signature_.free_dims;
        // A dim that stays without a name was bound: the graph says to what.
        if (name != nullptr && std::find(names.begin(), names.end(), *name) == names.end()) shape[d] = own[d];
      }
      shapes.push_back(std::move(shape));
    }
    return shapes;
  }

  const VariantModel& model_;
  const Signature& signature_;
  VariantNotes& notes_;
  std::vector<std::vector<int64_t>> extents_;  ///< by free dim: those with kernels of their own
  std::vector<ir::DependentDim> dependents_ = {};
  bool stacks_elements_ = false;     ///< ImportForm::stacks_elements
  std::vector<int64_t> hints_ = {};  ///< at which it is imported with symbols, where that makes no plan
};

}  // namespace

ir::Variants import_as_variants(const VariantModel& model, VariantNotes& notes) {
  return VariantImport(model, notes).run();
}

}  // namespace tensormill::frontend::onnx
