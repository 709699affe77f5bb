#include "compiler/frontend/onnx/free_dims/shape_variants.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/frontend/onnx/free_dims/free_dims.h"
#include "compiler/frontend/onnx/free_dims/kept_model.h"
#include "compiler/frontend/onnx/free_dims/variant_import.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::onnx {

namespace {

/// Whether a loop or an extent of which nothing bounds the number may be what is refused.
bool may_want_room(const Error& error, const ModelFacts& facts) {
  if (error.code() == ErrorCode::kShapeRequired) return true;
  const bool is_refused = error.code() == ErrorCode::kOperatorNotImplemented ||
                          error.code() == ErrorCode::kOperatorAttributeNotImplemented;
  return is_refused && facts.ops.count("Loop") != 0;
}

/// Imports for all shapes: as the free dims say; else, of a model without any that works out extents which
/// nothing bounds, with symbols for these alone; else with a room for all numbers that want one.
class AllShapes {
public:
  AllShapes(const ModelSource& source, const ModelFacts& facts, const ImportOptions& options,
            const ShapeBuckets& buckets, const ir::OpRegistry& ops, TakesSymbolic takes_symbolic)
      : takes_symbolic_(std::move(takes_symbolic)),
        source_(source),
        facts_(facts),
        options_(options),
        buckets_(buckets),
        ops_(ops),
        model_(source) {}

  ir::Variants run() {
    if (!name_rooms(buckets_)) {
      try {
        return import(0);
      } catch (const Error& error) {
        if (!may_want_room(error, facts_)) throw;
        if (error.code() == ErrorCode::kShapeRequired) required_ = error;
      }
      if (std::optional<ir::Variants> bound = import_bound()) return *std::move(bound);
    }
    try {
      return import(1);
    } catch (const Error& error) {
      // With the values that were asked for the model may well be taken.
      if (required_ && error.code() != ErrorCode::kShapeRequired) throw Error(*required_);
      throw;
    }
  }

  /// Where the model takes some shapes without them, others with the values of a run alone: the former get
  /// plans of their own, if any.
  ir::Variants run_for_package() {
    try {
      ir::Variants variants = run();
      if (!is_mixed() || !lacks_) return variants;
    } catch (const Error& error) {
      if (!is_mixed() || !lacks_values(error)) throw;
    }
    return import(0, true);
  }

private:
  bool is_mixed() const { return required_ && takes_some_; }

  /// Of a model without free dims, whose extents a run binds; nothing where that makes no plan.
  std::optional<ir::Variants> import_bound() {
    if (!takes_symbolic_ || !Signature(facts_, options_, buckets_, 0).free_dims.empty()) return std::nullopt;
    try {
      return import(0, false, true);
    } catch (const Error& error) {
      // The import of one shape has said what is wrong, or one with a room says it.
      static_cast<void>(error);
      return std::nullopt;
    }
  }

  /// With a room for `rooms` numbers that nothing bounds. `binds_runs`: of VariantModel.
  ir::Variants import(size_t rooms, bool may_lack_values = false, bool binds_runs = false) {
    const Signature signature(facts_, options_, buckets_, rooms);
    const ImportGraph import_graph = [this](const ImportOptions& at, ImportTally* tally) {
      return model_.import(at, ops_, tally);
    };
    VariantNotes notes;
    try {
      ir::Variants variants = import_as_variants({source_, facts_, options_, signature, buckets_,
                                                  import_graph, takes_symbolic_, may_lack_values, binds_runs},
                                                 notes);
      lacks_ = notes.lacks_values;
      variants.imports = static_cast<int64_t>(model_.imports());
      return variants;
    } catch (const Error&) {
      if (rooms == 0 && !binds_runs) takes_some_ = notes.takes_some;
      throw;
    }
  }

  const TakesSymbolic takes_symbolic_;
  const ModelSource& source_;
  const ModelFacts& facts_;
  const ImportOptions& options_;
  const ShapeBuckets& buckets_;
  const ir::OpRegistry& ops_;
  const CheckedModel model_;
  std::optional<Error> required_;  ///< what the import without rooms lacked
  bool takes_some_ = false;        ///< it took other shapes
  bool lacks_ = false;             ///< the last import did not take shapes for want of a run's values
};

/// What is no shape of the model may be one with other dims bound. To be called where `error` is handled: any
/// other goes on as it is, of whatever class.
[[noreturn]] void throw_with_assumed(const Error& error, const Signature& signature) {
  if (error.code() != ErrorCode::kInvalidModel || signature.assumed.empty()) throw;
  std::string dims;
  for (const auto& [name, input] : signature.assumed)
    dims += (dims.empty() ? "" : ", ") + name + " of input \"" + input + "\"";
  throw Error(
      ErrorCode::kShapeRequired,
      error.message() +
          "; so it is while these dims are free, which input_shapes or shape_buckets may bind: " + dims);
}

}  // namespace

ir::Variants import_variants(const ModelSource& source, const ImportOptions& options,
                             const ShapeBuckets& buckets, const ir::OpRegistry& ops,
                             const TakesSymbolic& takes_symbolic) {
  const ModelFacts facts = read_facts(source);
  try {
    return AllShapes(source, facts, options, buckets, ops, takes_symbolic).run();
  } catch (const Error& error) {
    throw_with_assumed(error, Signature(facts, options, buckets, 0));
  }
}

ir::Variants import_variants(const ModelSource& source, const ModelFacts& facts, const ImportOptions& options,
                             const ShapeBuckets& buckets, const ImportGraph& import_graph,
                             const TakesSymbolic& takes_symbolic, bool binds_runs) {
  const Signature signature(facts, options, buckets, 0);
  VariantNotes notes;
  try {
    return import_as_variants(
        {source, facts, options, signature, buckets, import_graph, takes_symbolic, false, binds_runs}, notes);
  } catch (const Error& error) {
    throw_with_assumed(error, signature);
  }
}

ir::Variants import_for_package(const ModelSource& source, const ImportOptions& options,
                                const ShapeBuckets& buckets, const ir::OpRegistry& ops,
                                const TakesSymbolic& takes_symbolic) {
  const ModelFacts facts = read_facts(source);
  std::optional<Error> lacking;
  try {
    try {
      return AllShapes(source, facts, options, buckets, ops, takes_symbolic).run_for_package();
    } catch (const Error& error) {
      throw_with_assumed(error, Signature(facts, options, buckets, 0));
    }
  } catch (const Error& error) {
    if (!lacks_values(error)) throw;
    lacking = error;
  }
  ShapeBuckets of_inputs = buckets;
  std::erase_if(of_inputs, [](const auto& bucket) { return is_room_name(bucket.first); });
  const Signature signature(facts, options, of_inputs, 0);
  const ImportGraph import_graph = [&](const ImportOptions& at, ImportTally*) {
    return import_as_step(source, at, ops, std::string(lacking->message()));
  };
  // A step takes all extents: nothing of it is computed before a run.
  const TakesSymbolic takes_all = [](const ir::SymbolicModel& /*model*/) { return true; };
  try {
    VariantNotes notes;
    ir::Variants variants =
        import_as_variants({source, facts, options, signature, of_inputs, import_graph, takes_all}, notes);
    variants.model = keep_model(source, options, false);
    return variants;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotSupported) throw;
    lacking->add_context("runs cannot be interpreted, since " + std::string(error.message()) + "; so");
    throw Error(*lacking);
  }
}

}  // namespace tensormill::frontend::onnx
