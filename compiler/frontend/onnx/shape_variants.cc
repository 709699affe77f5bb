#include "compiler/frontend/onnx/shape_variants.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "compiler/frontend/onnx/graph_form.h"
#include "compiler/frontend/onnx/shape_samples.h"
#include "compiler/frontend/onnx/shared_rooms.h"
#include "compiler/frontend/onnx/spread_dims.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/narrow.h"

namespace tensormill::frontend::onnx {

namespace {

/// Which dim of which input is free, under which name.
class Signature {
public:
  /// `rooms`: how many there are for what nothing bounds, as the last free dims.
  Signature(const ModelFacts& facts, const ImportOptions& options, const ShapeBuckets& buckets,
            size_t rooms) {
    for (const SignatureValue& input : facts.inputs) learn_names(input, options);
    for (const SignatureValue& input : facts.inputs) {
      if (input.kind == ValueKind::kTensor && options.input_values.count(input.name) == 0)
        add_input(input, options, buckets);
    }
    const bool is_taken = std::any_of(free_dims.begin(), free_dims.end(), &is_room_name);
    first_room = free_dims.size();
    for (size_t room = 0; room < rooms && !is_taken; ++room) free_dims.push_back(room_name(room));
    for (const auto& [name, extents] : buckets) {
      if (std::find(free_dims.begin(), free_dims.end(), name) == free_dims.end()) {
        throw Error(ErrorCode::kInvalidArgument,
                    "shape_buckets name \"" + name + "\", which is no free dim of the model's inputs",
                    {{(Json::json_pointer("/shape_buckets") / name).to_string(), "is no free dim"}});
      }
    }
  }

  std::vector<std::string> free_dims;
  std::map<std::string, DimShape> shapes;      ///< of inputs with free dims
  size_t first_room = 0;                       ///< of the free dims, whose last ones are rooms
  std::map<std::string, std::string> assumed;  ///< free dims that nobody asked for, and an input of each
  bool has_room() const { return first_room < free_dims.size(); }
  bool is_room(size_t dim) const { return dim >= first_room; }

private:
  static const std::string* name_at(const DimShape& shape, size_t dim) {
    return dim < shape.size() ? std::get_if<std::string>(&shape[dim]) : nullptr;
  }

  /// A name given at one place of a model's own name goes for all of them.
  void learn_names(const SignatureValue& input, const ImportOptions& options) {
    for (size_t d = 0; d < input.shape.size(); ++d) {
      const std::string* own = name_at(input.shape, d);
      if (own != nullptr && !own->empty()) own_names_.insert(*own);
    }
    const auto given = options.input_shapes.find(input.name);
    if (given == options.input_shapes.end()) return;
    for (size_t d = 0; d < given->second.size(); ++d) {
      const std::string* name = name_at(given->second, d);
      const std::string* own = name_at(input.shape, d);
      if (name != nullptr && !name->empty() && own != nullptr && !own->empty()) renamed_.emplace(*own, *name);
      if (name == nullptr && own != nullptr && !own->empty()) fixed_.insert(*own);
    }
  }

  std::string free_name(const SignatureValue& input, const DimShape* given, size_t d,
                        const ShapeBuckets& buckets) {
    if (given != nullptr && d < given->size()) {
      const std::string* name = name_at(*given, d);
      if (name == nullptr || !name->empty()) return name == nullptr ? std::string() : *name;
    }
    const std::string* own = name_at(input.shape, d);
    if (own == nullptr || fixed_.count(*own) != 0) return {};
    if (const auto renamed = renamed_.find(*own); renamed != renamed_.end()) return renamed->second;
    const std::string name = own->empty() ? made_name(input.name, d) : *own;
    if (buckets.count(name) == 0) assumed.emplace(name, input.name);
    return name;
  }

  /// Of a dim that has none: letters, digits and underscores of its input's, and its axis.
  std::string made_name(const std::string& input, size_t d) const {
    std::string name;
    for (const char c : input) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    name += "_" + std::to_string(d);
    while (own_names_.count(name) != 0) name += "_";
    return name;
  }

  void add_input(const SignatureValue& input, const ImportOptions& options, const ShapeBuckets& buckets) {
    const auto given = options.input_shapes.find(input.name);
    const DimShape* wanted = given == options.input_shapes.end() ? nullptr : &given->second;
    DimShape shape = wanted != nullptr ? *wanted : input.shape;
    if (input.dtype == kString && shape.size() > input.shape.size() &&
        name_at(shape, shape.size() - 1) != nullptr)
      throw Error(ErrorCode::kInvalidArgument,
                  "input_shapes give the strings of \"" + input.name + "\" a width that is no number");
    bool any = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::string name = free_name(input, wanted, d, buckets);
      if (name.empty()) continue;
      any = true;
      shape[d] = name;
      if (std::find(free_dims.begin(), free_dims.end(), name) == free_dims.end()) free_dims.push_back(name);
    }
    if (any) shapes[input.name] = std::move(shape);
  }

  std::map<std::string, std::string> renamed_;
  std::set<std::string> fixed_;
  std::set<std::string> own_names_;  ///< the model's
};

ImportOptions bound(const ImportOptions& options, const Signature& signature, const SharedRooms& rooms,
                    const std::vector<int64_t>& dims) {
  ImportOptions result = options;
  if (signature.has_room())
    result.form.rooms =
        rooms.at({dims.begin() + static_cast<std::ptrdiff_t>(signature.first_room), dims.end()});
  for (const auto& [input, shape] : signature.shapes) {
    DimShape& target = result.input_shapes[input];
    target = shape;
    for (size_t axis = 0; axis < target.size(); ++axis) {
      const std::string* name = std::get_if<std::string>(&target[axis]);
      if (name == nullptr) continue;
      const auto found = std::find(signature.free_dims.begin(), signature.free_dims.end(), *name);
      if (found == signature.free_dims.end()) continue;
      target[axis] = dims[static_cast<size_t>(found - signature.free_dims.begin())];
      result.form.free_axes[input].insert(axis);
    }
  }
  return result;
}

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

/// Whether a loop or an extent of which nothing bounds the number may be what is refused.
bool may_want_room(const Error& error, const ModelFacts& facts) {
  if (error.code() == ErrorCode::kShapeRequired) return true;
  const bool is_refused = error.code() == ErrorCode::kOperatorNotImplemented ||
                          error.code() == ErrorCode::kOperatorAttributeNotImplemented;
  return is_refused && facts.ops.count("Loop") != 0;
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

bool are_alike(const std::vector<ir::ShapedGraph>& samples) {
  return !samples.empty() && std::all_of(samples.begin(), samples.end(), [&](const ir::ShapedGraph& sample) {
    return sample.graph.nodes().size() == samples.front().graph.nodes().size();
  });
}

bool name_rooms(const ShapeBuckets& buckets) {
  return std::any_of(buckets.begin(), buckets.end(),
                     [](const auto& bucket) { return is_room_name(bucket.first); });
}

class VariantImport {
public:
  VariantImport(const ModelSource& source, const ImportOptions& options, const Signature& signature,
                const SharedRooms& rooms, const ShapeBuckets& buckets, const ir::OpRegistry& ops)
      : source_(source),
        options_(options),
        signature_(signature),
        rooms_(rooms),
        ops_(ops),
        extents_(extents_of(signature, rooms, buckets)),
        is_room_given_(!signature.has_room() || name_rooms(buckets)) {}

  ir::Variants run() {
    ir::Variants variants;
    if (signature_.free_dims.empty()) {
      variants.graphs.push_back({{}, import_model(source_, options_, ops_)});
      return variants;
    }
    variants.free_dims = signature_.free_dims;
    std::vector<int64_t> anchor;
    for (const std::vector<int64_t>& own : extents_) anchor.push_back(own.empty() ? 0 : own.front());
    anchor = with_rooms(std::move(anchor));
    take_samples(anchor, variants);
    if (are_alike(variants.samples)) {
      variants.special = sets_of_ones(importer(), variants, signature_.first_room);
      add_spread_dims(importer(), variants);
    }
    for (const ir::DependentDim& each : variants.dependents) {
      if (extents_[each.dim].empty()) extents_[each.dim] = {0};
    }
    import_asked(variants);
    if (variants.graphs.empty() && variants.samples.empty()) {
      for (int64_t& extent : anchor) extent = std::max<int64_t>(extent, 1);
      import_model(source_, bound(options_, signature_, rooms_, anchor), ops_);
      throw Error(ErrorCode::kInvalidModel, "no shape was found that the model takes; give shape_buckets");
    }
    variants.input_shapes =
        shapes_of(variants.graphs.empty() ? variants.samples.front().graph : variants.graphs.front().graph);
    return variants;
  }

private:
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
    take_set(anchor, variants);
    if (are_alike(variants.samples) || read_facts(source_).ops.count("SplitToSequence") == 0) return;
    // Lists of the elements along a free axis differ in length.
    ir::SampleSet stacked;
    stacks_elements_ = true;
    take_set(anchor, stacked);
    stacks_elements_ = are_alike(stacked.samples);
    if (stacks_elements_) static_cast<ir::SampleSet&>(variants) = std::move(stacked);
  }

  void take_set(const std::vector<int64_t>& anchor, ir::SampleSet& set) {
    const auto stops = [this](bool meant_alone) -> StopAt {
      return [this, meant_alone](const std::vector<int64_t>& dims) {
        ImportStop stop;
        // What fails elsewhere than at a node got nowhere.
        if (!import_sample(dims, meant_alone, &stop) && stop.node == -1) stop.node = 0;
        return stop;
      };
    };
    const ImportAt import_at = importer();
    sample_shapes(import_at, stops(false), anchor, asked(), set, stops(true));
  }

  ImportAt importer() {
    return [this](const std::vector<int64_t>& dims) { return import_sample(dims, false, nullptr); };
  }

  /// Nothing where the model does not take the dims. `stop`: where the import ended, or null.
  std::optional<ir::Graph> import_sample(const std::vector<int64_t>& dims, bool meant_alone,
                                         ImportStop* stop) {
    try {
      ImportOptions sample = bound(options_, signature_, rooms_, dims);
      sample.form.is_sample = true;
      sample.form.takes_meant_alone = meant_alone;
      sample.form.stacks_elements = stacks_elements_;
      ir::Graph graph = import_model(source_, sample, ops_, stop);
      is_supported_ = true;
      return graph;
    } catch (const Error& error) {
      if (!is_of_extents(error, dims)) throw;
      return std::nullopt;
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
        return is_supported_ || has(0);
      case ErrorCode::kShapeRequired:
        // Extents of 1 hide which axis depends on data; so do those that are made of rooms.
        return has(1) || has(0) || (is_supported_ && signature_.has_room());
      default:
        // Of no elements little can be said.
        return has(0);
    }
  }

  void import_asked(ir::Variants& variants) const {
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
      } catch (const Error&) {
        // Several extents have the same room, whose product may be more than there can be.
        if (is_needed) throw;
        continue;
      }
      if (is_needed || largest_of(*graph) <= kMostOfRoom)
        variants.graphs.push_back({dims, std::move(*graph)});
    }
  }

  /// A list among the outputs is one tensor where it is one in the samples.
  ir::Graph import_as_samples(const std::vector<int64_t>& dims, const ir::Variants& variants) const {
    ImportOptions asked_for = bound(options_, signature_, rooms_, dims);
    ir::Graph graph = import_model(source_, asked_for, ops_);
    if (!stacks_elements_ || output_names(graph) == output_names(variants.samples.front().graph))
      return graph;
    asked_for.form.stacks_elements = true;
    return import_model(source_, asked_for, ops_);
  }

  static std::vector<std::string> output_names(const ir::Graph& graph) {
    std::vector<std::string> names;
    for (const ir::ValueId output : graph.outputs()) names.push_back(graph.value(output).name);
    return names;
  }

  /// Of the graph's inputs, free dims by name.
  std::vector<DimShape> shapes_of(const ir::Graph& graph) const {
    std::vector<DimShape> shapes;
    for (const ir::ValueId input : graph.inputs()) {
      const ir::Value& value = graph.value(input);
      const Shape& own = value.type.shape;
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

  const ModelSource& source_;
  const ImportOptions& options_;
  const Signature& signature_;
  const SharedRooms& rooms_;
  const ir::OpRegistry& ops_;
  std::vector<std::vector<int64_t>> extents_;  ///< by free dim: those with kernels of their own
  const bool is_room_given_;                   ///< by the user, or there is none
  bool is_supported_ = false;                  ///< some shape was imported
  bool stacks_elements_ = false;               ///< ImportForm::stacks_elements
};

/// At the extents of its other free dims at which the model is imported first.
SharedRooms rooms_of(const ModelSource& source, const ImportOptions& options, const ModelFacts& facts,
                     ShapeBuckets buckets, const ir::OpRegistry& ops) {
  std::erase_if(buckets, [](const auto& bucket) { return is_room_name(bucket.first); });
  const Signature signature(facts, options, buckets, 0);
  for (const int64_t extent : {2, 8, 32, 64, 224, 1024}) {
    std::vector<int64_t> dims;
    for (const std::string& name : signature.free_dims) {
      const auto bucket = buckets.find(name);
      dims.push_back(bucket == buckets.end() ? extent : std::max<int64_t>(bucket->second.front(), 2));
    }
    bool is_taken = false;
    const ImportWithRooms import = [&](const std::vector<Room>& rooms,
                                       size_t* numbers) -> std::optional<ir::Graph> {
      ImportOptions sample = bound(options, signature, {}, dims);
      sample.form.rooms = rooms;
      sample.form.is_sample = true;
      try {
        ir::Graph graph = import_model(source, sample, ops, nullptr, numbers);
        is_taken = true;
        return graph;
      } catch (const Error&) {
        // Other extents may be taken, and what none takes is an error of the import that follows.
        return std::nullopt;
      }
    };
    const SharedRooms rooms = share_rooms(import);
    if (is_taken) return rooms;
  }
  return {};
}

ir::Variants import_all(const ModelSource& source, const ModelFacts& facts, const ImportOptions& options,
                        const ShapeBuckets& buckets, const ir::OpRegistry& ops) {
  const auto import = [&](size_t count, const SharedRooms& rooms) {
    const Signature signature(facts, options, buckets, count);
    return VariantImport(source, options, signature, rooms, buckets, ops).run();
  };
  std::optional<Error> required;
  if (!name_rooms(buckets)) {
    try {
      return import(0, {});
    } catch (const Error& error) {
      if (!may_want_room(error, facts)) throw;
      if (error.code() == ErrorCode::kShapeRequired) required = error;
    }
  }
  try {
    const SharedRooms rooms = rooms_of(source, options, facts, buckets, ops);
    if (rooms.count < 2) return import(1, {});
    std::optional<Error> of_several;
    try {
      ir::Variants variants = import(rooms.count, rooms);
      if (are_alike(variants.samples)) return variants;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kMemoryBudget) throw;
      of_several = error;
    }
    // One room for all may do.
    try {
      return import(1, {});
    } catch (Error& error) {
      if (of_several && of_several->message() != error.message())
        error.add_context("with a room for each of several numbers: " + of_several->message() +
                          "; with one for all");
      throw;
    }
  } catch (const Error& error) {
    // With the values that were asked for the model may well be taken.
    if (required && error.code() != ErrorCode::kShapeRequired) throw Error(*required);
    throw;
  }
}

}  // namespace

ir::Variants import_variants(const ModelSource& source, const ImportOptions& options,
                             const ShapeBuckets& buckets, const ir::OpRegistry& ops) {
  const ModelFacts facts = read_facts(source);
  try {
    return import_all(source, facts, options, buckets, ops);
  } catch (const Error& error) {
    const Signature signature(facts, options, buckets, 0);
    if (error.code() != ErrorCode::kInvalidModel || signature.assumed.empty()) throw;
    std::string dims;
    for (const auto& [name, input] : signature.assumed)
      dims += (dims.empty() ? "" : ", ") + name + " of input \"" + input + "\"";
    throw Error(
        ErrorCode::kShapeRequired,
        error.message() +
            "; so it is while these dims are free, which input_shapes or shape_buckets may bind: " + dims);
  }
}

}  // namespace tensormill::frontend::onnx
