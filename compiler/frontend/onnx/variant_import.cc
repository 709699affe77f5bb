#include "compiler/frontend/onnx/variant_import.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compiler/frontend/onnx/graph_form.h"
#include "compiler/frontend/onnx/kept_model.h"
#include "compiler/frontend/onnx/sample_base.h"
#include "compiler/frontend/onnx/sample_budget.h"
#include "compiler/frontend/onnx/shape_samples.h"
#include "compiler/frontend/onnx/shape_variants.h"
#include "compiler/frontend/onnx/spread_dims.h"
#include "compiler/frontend/onnx/symbolic_import.h"
#include "compiler/frontend/onnx/turning_points.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

/// Whether the import lacks values that a run has: those of inputs that are tensors.
bool lacks_values(const Error& error) {
  return error.code() == ErrorCode::kShapeRequired && !error.details().empty() &&
         std::none_of(error.details().begin(), error.details().end(),
                      [](const ErrorDetail& detail) { return detail.detail == "elements"; });
}

bool are_alike(const std::vector<ir::ShapedGraph>& samples) {
  return samples.size() > 1 &&
         std::all_of(samples.begin(), samples.end(), [&](const ir::ShapedGraph& sample) {
           return sample.graph.nodes().size() == samples.front().graph.nodes().size();
         });
}

bool name_rooms(const ShapeBuckets& buckets) {
  return std::any_of(buckets.begin(), buckets.end(),
                     [](const auto& bucket) { return is_room_name(bucket.first); });
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

size_t nodes_of(const std::map<std::string, int64_t>& ops) {
  size_t nodes = 0;
  for (const auto& [op, count] : ops) nodes += static_cast<size_t>(count);
  return nodes;
}

constexpr int64_t kAsFirstRoom = 0;

/// The extents that the dims have kernels of their own for. Rooms are few, since each has all of them; where
/// there are several, those without a bucket are as large as the first one.
std::vector<std::vector<int64_t>> extents_of(const Signature& signature, const SharedRooms& rooms,
                                             const ShapeBuckets& buckets) {
  constexpr int64_t kSecondRoom = 512;
  constexpr size_t kFewShapes = 8;
  std::vector<std::vector<int64_t>> extents;
  for (size_t dim = 0; dim < signature.free_dims.size(); ++dim) {
    const auto bucket = buckets.find(signature.free_dims[dim]);
    std::vector<int64_t> own;
    if (bucket != buckets.end()) {
      own = bucket->second;
    } else if (signature.is_room(dim)) {
      own.push_back(dim == signature.first_room ? rooms.first : kAsFirstRoom);
      if (rooms.count == 1 && combinations(extents).size() <= kFewShapes) own.push_back(kSecondRoom);
    }
    extents.push_back(std::move(own));
  }
  return extents;
}

/// Elements that a value of a variant may have whose room nobody asked for.
constexpr int64_t kMostOfRoom = int64_t{1} << 24;

class VariantImport {
public:
  VariantImport(const VariantModel& model, VariantNotes& notes)
      : model_(model),
        source_(model.source),
        options_(model.options),
        signature_(model.signature),
        rooms_(model.rooms),
        import_graph_(model.import_graph),
        import_step_(model.import_step),
        notes_(notes),
        extents_(extents_of(signature_, rooms_, model.buckets)),
        is_room_given_(!signature_.has_room() || name_rooms(model.buckets)),
        ops_(model.facts.ops),
        budget_(nodes_of(ops_)) {}

  ir::Variants run() {
    ir::Variants variants;
    if (signature_.free_dims.empty()) {
      variants.graphs.push_back({{}, import_graph_(options_, nullptr, nullptr)});
      variants.input_shapes = shapes_of(variants.graphs.front().graph);
      return variants;
    }
    variants.free_dims = signature_.free_dims;
    std::vector<int64_t> anchor;
    for (const std::vector<int64_t>& own : extents_) anchor.push_back(own.empty() ? 0 : own.front());
    anchor = with_rooms(std::move(anchor));
    if (!take_symbolic(variants)) take_samples(anchor, variants);
    if (are_alike(variants.samples)) {
      const auto differences = [this](const std::vector<int64_t>& dims) {
        std::vector<double> found;
        import_sample(dims, false, nullptr, &found);
        return found;
      };
      add_turning_checks(importer(), differences, signature_.first_room, variants);
      SpecialSets special = sets_of_ones(importer(), variants, signature_.first_room);
      variants.special = std::move(special.sets);
      variants.leaves_out = variants.leaves_out || special.leaves_out ||
                            takes_between_multiples(importer(), variants, signature_.first_room);
      add_spread_dims(importer(), variants);
    }
    for (const ir::DependentDim& each : variants.dependents) {
      if (extents_[each.dim].empty()) extents_[each.dim] = {0};
    }
    import_asked(variants);
    if (variants.graphs.empty() && variants.samples.empty() && !variants.symbolic)
      import_single(anchor, variants);
    variants.input_shapes = shapes_of(variants.symbolic         ? variants.symbolic->graph
                                      : variants.graphs.empty() ? variants.samples.front().graph
                                                                : variants.graphs.front().graph);
    variants.model = keep_model(source_, options_, stacks_elements_);
    note_lacking(variants);
    variants.leaves_out = variants.leaves_out || has_switches_;
    return variants;
  }

private:
  /// Whether the generic plan is made of the model with symbols.
  bool take_symbolic(ir::Variants& variants) {
    if (!model_.takes_symbolic) return false;
    SymbolicImport symbolic = import_symbolic(model_);
    if (!symbolic.model) return false;
    if (!model_.takes_symbolic(*symbolic.model)) return false;
    notes_.takes_some = true;
    has_switches_ = symbolic.has_switches;
    variants.dependents = dependent_symbols(*symbolic.model);
    const std::set<size_t> spread = spread_symbols(*symbolic.model);
    variants.leaves_out = spread.size() > kFewSpread;
    for (const std::set<size_t>& ones : subsets_of(spread)) {
      SymbolicImport with_ones = import_symbolic(model_, ones);
      if (with_ones.model && model_.takes_symbolic(*with_ones.model)) {
        variants.symbolic_ones.push_back(*std::move(with_ones.model));
      } else if (!with_ones.takes_none) {
        variants.leaves_out = true;
      }
    }
    variants.symbolic = std::move(symbolic.model);
    check_asked(variants.dependents);
    return true;
  }

  /// Throws Error(kInvalidModel) where a bucket is of a dim of which the model takes another extent alone.
  void check_asked(const std::vector<ir::DependentDim>& dependents) const {
    for (const ir::DependentDim& each : dependents) {
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

  /// The dims without rooms.
  std::vector<int64_t> own_dims(const std::vector<int64_t>& dims) const {
    return {dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(signature_.first_room)};
  }

  /// What lacked a run's values with all rooms has no plan.
  void note_lacking(ir::Variants& variants) {
    for (const std::vector<int64_t>& dims : lacking_) {
      if (taken_.count(dims) != 0) continue;
      variants.leaves_out = true;
      const bool hides_axes = std::any_of(dims.begin(), dims.end(), [](int64_t each) { return each <= 1; });
      notes_.lacks_values = notes_.lacks_values || !hides_axes;
    }
  }

  /// The shapes with kernels of their own. A dim without a bucket has no size to make kernels for: all its
  /// shapes are the generic plan's.
  std::vector<std::vector<int64_t>> asked() const {
    const bool is_open = std::any_of(extents_.begin(), extents_.end(),
                                     [](const std::vector<int64_t>& each) { return each.empty(); });
    if (is_open) return {};
    std::vector<std::vector<int64_t>> all = combinations(extents_);
    for (std::vector<int64_t>& dims : all) dims = with_rooms(std::move(dims));
    return all;
  }

  std::vector<int64_t> with_rooms(std::vector<int64_t> dims) const {
    for (size_t room = signature_.first_room + 1; room < dims.size(); ++room) {
      if (dims[room] == kAsFirstRoom) dims[room] = dims[signature_.first_room];
    }
    return dims;
  }

  void take_samples(const std::vector<int64_t>& anchor, ir::Variants& variants) {
    const bool has_branches = ops_.count("If") != 0, has_lists = ops_.count("SplitToSequence") != 0;
    // Lists of the elements along a free axis differ in length.
    const bool has_growing_lists = has_lists && grows(anchor);
    if (has_growing_lists) take_alike(anchor, stacks_elements_, variants);
    if (are_alike(variants.samples)) return;
    take_set(anchor, has_branches || has_lists, variants);
    // Branches of which each takes extents of its own.
    if (has_branches) take_alike(anchor, takes_all_branches_, variants);
    if (has_lists && !has_growing_lists) take_alike(anchor, stacks_elements_, variants);
    const bool may_be_alike = (has_branches || has_lists) && !has_growing_lists;
    if (may_be_alike && !variants.samples.empty() && !are_alike(variants.samples)) {
      static_cast<ir::SampleSet&>(variants) = {};
      take_set(anchor, false, variants);
    }
    variants.leaves_out = takes_all_branches_;
  }

  /// Whether the graph has more nodes the larger the free dims are.
  bool grows(const std::vector<int64_t>& anchor) {
    size_t nodes = 0;
    for (const int64_t extent : {2, 8, 32}) {
      std::vector<int64_t> dims = anchor;
      for (int64_t& value : dims) value = value == 0 ? extent : value;
      try {
        const std::optional<ir::Graph> graph = import_sample(dims, false, nullptr);
        if (!graph || graph->nodes().size() <= nodes) return false;
        nodes = graph->nodes().size();
      } catch (const Error&) {
        // The samples say what is wrong.
        return false;
      }
    }
    return true;
  }

  /// Where samples are not alike, others in their place that are with the form set.
  void take_alike(const std::vector<int64_t>& anchor, bool& form, ir::SampleSet& samples) {
    if (are_alike(samples.samples)) return;
    ir::SampleSet others;
    form = true;
    take_set(anchor, true, others);
    form = are_alike(others.samples);
    if (form) samples = std::move(others);
  }

  void take_set(const std::vector<int64_t>& anchor, bool needs_alike, ir::SampleSet& set) {
    const auto stops = [this](bool meant_alone) -> StopAt {
      return [this, meant_alone](const std::vector<int64_t>& dims) {
        budget_.check();
        ImportStop stop;
        // What fails elsewhere than at a node got nowhere.
        if (!import_sample(dims, meant_alone, &stop) && stop.node == -1) stop.node = 0;
        return stop;
      };
    };
    budget_.begin();
    try {
      sample_shapes(within_budget(), stops(false), anchor, asked(), set, stops(true), needs_alike);
    } catch (const SampleBudget::Spent&) {
      set = budget_.instead();
    }
  }

  ImportAt within_budget() {
    return [this](const std::vector<int64_t>& dims) {
      budget_.check();
      return import_sample(dims, false, nullptr);
    };
  }

  ImportAt importer() {
    return [this](const std::vector<int64_t>& dims) { return import_sample(dims, false, nullptr); };
  }

  /// Nothing where the model does not take the dims. `stop`: where the import ended, or null; `differences`:
  /// as ImportTally has them, or null.
  std::optional<ir::Graph> import_sample(const std::vector<int64_t>& dims, bool meant_alone, ImportStop* stop,
                                         std::vector<double>* differences = nullptr) {
    ImportOptions sample = bound(options_, signature_, rooms_, dims);
    ImportTally tally;
    try {
      sample.form.is_sample = true;
      sample.form.takes_meant_alone = meant_alone;
      sample.form.takes_all_branches = takes_all_branches_;
      sample.form.stacks_elements = stacks_elements_;
      ir::Graph graph = import_graph_(sample, stop, &tally);
      budget_.take(tally.nodes, dims, graph);
      has_switches_ = has_switches_ || tally.has_switches;
      notes_.takes_some = true;
      taken_.insert(own_dims(dims));
      if (differences != nullptr) *differences = std::move(tally.differences);
      return graph;
    } catch (const Error& error) {
      budget_.spend(tally.nodes);
      if (lacks_values(error)) lacking_.insert(own_dims(dims));
      if (is_of_extents(error, dims)) return std::nullopt;
      if (notes_.takes_some && import_step_ && lacks_values(error))
        return import_step_(sample, std::string(error.message()));
      throw;
    }
  }

  /// Whether another sample may show what this one does not.
  bool is_of_extents(const Error& error, const std::vector<int64_t>& dims) const {
    const auto has = [&](int64_t extent) {
      return std::find(dims.begin(), dims.end(), extent) != dims.end();
    };
    switch (error.code()) {
      case ErrorCode::kInvalidModel:
      case ErrorCode::kInvalidTensor:
      case ErrorCode::kMemoryBudget:
        return true;
      case ErrorCode::kOperatorAttributeNotImplemented:
        // Of a model that is supported, the extents of a far one may not be.
        return notes_.takes_some || has(0);
      case ErrorCode::kShapeRequired:
        // Extents of 1 hide which axis depends on data; so do those that are made of rooms.
        return has(1) || has(0) || (notes_.takes_some && signature_.has_room());
      default:
        // Of no elements little can be said.
        return has(0);
    }
  }

  void import_asked(ir::Variants& variants) {
    std::set<std::vector<int64_t>> made;
    for (const std::vector<int64_t>& choice : asked()) {
      const bool is_served = has_form(variants, choice) ||
                             std::any_of(variants.special.begin(), variants.special.end(),
                                         [&](const ir::SampleSet& set) { return has_form(set, choice); });
      const std::vector<int64_t> dims = is_served ? choice : ir::with_dependents(choice, variants.dependents);
      if (!made.insert(dims).second) continue;
      const bool is_needed = is_room_given_ || variants.samples.empty();
      std::optional<ir::Graph> graph;
      try {
        graph = import_as_samples(dims, variants);
      } catch (const Error& error) {
        if (notes_.takes_some && import_step_ && lacks_values(error)) {
          lacking_.insert(own_dims(dims));
          continue;
        }
        // Several extents have the same room, whose product may be more than there can be. What a run works
        // out and nothing bounds has a plan whose steps are bound in the run.
        const bool is_of_run = variants.symbolic && !variants.symbolic->graph.symbols()->of_run().empty();
        if (is_needed && !(is_of_run && lacks_values(error))) throw;
        continue;
      }
      if (is_needed || largest_of(*graph) <= kMostOfRoom)
        variants.graphs.push_back({dims, std::move(*graph)});
    }
  }

  /// Of extents that have no range, as those up to 6 alone: one shape that the model takes, the others are
  /// interpreted. Throws what is wrong with the model where it takes none.
  void import_single(std::vector<int64_t> anchor, ir::Variants& variants) {
    budget_.begin();
    try {
      if (const std::optional<std::vector<int64_t>> dims = find_single_shape(within_budget(), anchor)) {
        variants.graphs.push_back({*dims, import_as_samples(*dims, variants)});
        variants.leaves_out = true;
        return;
      }
    } catch (const SampleBudget::Spent&) {
      // The one import more says what is wrong.
    }
    for (int64_t& extent : anchor) extent = std::max<int64_t>(extent, 1);
    import_graph_(bound(options_, signature_, rooms_, anchor), nullptr, nullptr);
    throw Error(ErrorCode::kInvalidModel, "no shape was found that the model takes; give shape_buckets");
  }

  /// A list among the outputs is one tensor where it is one in the samples.
  ir::Graph import_as_samples(const std::vector<int64_t>& dims, const ir::Variants& variants) const {
    if (variants.symbolic) {
      if (std::optional<ir::Graph> graph = at_extents(*variants.symbolic, dims)) return *std::move(graph);
    }
    ImportOptions asked_for = bound(options_, signature_, rooms_, dims);
    ir::Graph graph = import_graph_(asked_for, nullptr, nullptr);
    if (!stacks_elements_ || graph.output_names() == variants.samples.front().graph.output_names())
      return graph;
    asked_for.form.stacks_elements = true;
    return import_graph_(asked_for, nullptr, nullptr);
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
  const ModelSource& source_;
  const ImportOptions& options_;
  const Signature& signature_;
  const SharedRooms& rooms_;
  const ImportGraph import_graph_;
  const ImportStep import_step_;
  VariantNotes& notes_;
  std::vector<std::vector<int64_t>> extents_;  ///< by free dim: those with kernels of their own
  const bool is_room_given_;                   ///< by the user, or there is none
  const std::map<std::string, int64_t> ops_;   ///< ModelFacts::ops
  SampleBudget budget_;
  std::set<std::vector<int64_t>> taken_;    ///< own dims of those that were
  std::set<std::vector<int64_t>> lacking_;  ///< own dims at which the import lacked values of a run
  bool has_switches_ = false;               ///< ImportTally::has_switches
  bool takes_all_branches_ = false;         ///< ImportForm::takes_all_branches, of samples
  bool stacks_elements_ = false;            ///< ImportForm::stacks_elements
};

}  // namespace

ir::Variants import_as_variants(const VariantModel& model, VariantNotes& notes) {
  return VariantImport(model, notes).run();
}

}  // namespace tensormill::frontend::onnx
