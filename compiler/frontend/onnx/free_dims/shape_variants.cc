#include "compiler/frontend/onnx/free_dims/shape_variants.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/frontend/onnx/free_dims/free_dims.h"
#include "compiler/frontend/onnx/free_dims/kept_model.h"
#include "compiler/frontend/onnx/free_dims/variant_import.h"
#include "compiler/frontend/onnx/graph/model_step.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::onnx {

namespace {

std::function<const ModelSource&()> own_source(const ModelSource& source) {
  return [&source]() -> const ModelSource& { return source; };
}

/// Imports for all shapes: where no dim is free for one, or, where that lacks numbers that a run works out,
/// with symbols for these.
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
    try {
      return import(false);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kShapeRequired) required_ = error;
      const bool has_free_dims = !Signature(facts_, options_, buckets_).free_dims.empty();
      if (has_free_dims || !may_want_extents(error)) throw;
    }
    try {
      return import(true);
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
    return import(false, true);
  }

private:
  bool is_mixed() const { return required_ && takes_some_; }

  ir::Variants import(bool binds_symbols, bool may_lack_values = false) {
    const Signature signature(facts_, options_, buckets_);
    const ImportGraph import_graph = [this](const ImportOptions& at, ImportTally* tally) {
      return model_.import(at, ops_, tally);
    };
    VariantNotes notes;
    try {
      ir::Variants variants =
          import_as_variants({own_source(source_), facts_, options_, signature, buckets_, import_graph,
                              takes_symbolic_, may_lack_values, binds_symbols},
                             notes);
      lacks_ = notes.lacks_values;
      variants.imports = static_cast<int64_t>(model_.imports());
      return variants;
    } catch (const Error&) {
      if (!binds_symbols) takes_some_ = notes.takes_some;
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
  std::optional<Error> required_;  ///< what the first import lacked
  bool takes_some_ = false;        ///< it took other shapes
  bool lacks_ = false;             ///< the last import did not take shapes for want of a run's values
};

/// A step takes all extents: nothing of it is computed before a run.
bool takes_any_step(const ir::SymbolicModel& /*model*/, std::string* /*reason*/) { return true; }

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
    throw_with_assumed(error, Signature(facts, options, buckets));
  }
}

ir::Variants import_variants(const std::function<const ModelSource&()>& source, const ModelFacts& facts,
                             const ImportOptions& options, const ShapeBuckets& buckets,
                             const ImportGraph& import_graph, const TakesSymbolic& takes_symbolic) {
  const Signature signature(facts, options, buckets);
  VariantNotes notes;
  std::string reason;
  try {
    return import_as_variants({source, facts, options, signature, buckets, import_graph, takes_symbolic},
                              notes);
  } catch (const Error& error) {
    if (!notes.binds_symbols) throw_with_assumed(error, signature);
    reason = error.message();
  }
  const ImportGraph step = [&](const ImportOptions& at, ImportTally* tally) {
    return as_model_step(import_graph(at, tally), reason);
  };
  ir::Variants variants =
      import_as_variants({source, facts, options, signature, buckets, step, &takes_any_step}, notes);
  variants.model = keep_model(source(), options, false);
  return variants;
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
      throw_with_assumed(error, Signature(facts, options, buckets));
    }
  } catch (const Error& error) {
    if (!lacks_values(error)) throw;
    lacking = error;
  }
  const Signature signature(facts, options, buckets);
  const ImportGraph import_graph = [&](const ImportOptions& at, ImportTally*) {
    return import_as_step(source, at, ops, std::string(lacking->message()));
  };
  try {
    VariantNotes notes;
    ir::Variants variants = import_as_variants(
        {own_source(source), facts, options, signature, buckets, import_graph, &takes_any_step}, notes);
    variants.model = keep_model(source, options, false);
    return variants;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotSupported) throw;
    lacking->add_context("runs cannot be interpreted, since " + std::string(error.message()) + "; so");
    throw Error(*lacking);
  }
}

}  // namespace tensormill::frontend::onnx
