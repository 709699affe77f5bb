#include "compiler/frontend/importer/import_at.h"

#include "compiler/frontend/onnx/free_dims/free_dims.h"
#include "compiler/frontend/onnx/free_dims/shape_variants.h"
#include "compiler/frontend/onnx/free_dims/variant_import.h"
#include "compiler/ops/ops.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tensormill::frontend {

namespace {

void set_types(ModelFacts& facts, const ir::Graph& graph) {
  for (size_t i = 0; i < facts.outputs.size(); ++i) {
    SignatureValue& output = facts.outputs[i];
    const ir::ValueType& type = graph.value(graph.outputs()[i]).type;
    output.dtype = type.dtype;
    output.shape.clear();
    for (const ir::SymInt& extent : shown_shape(type.dtype, type.shape)) {
      const bool is_dim = !extent.is_constant() && extent.expr().symbols().size() == 1 &&
                          extent.expr().symbols()[0] == extent.expr().to_string();
      output.shape.push_back(extent.is_constant() ? Dim(extent.hint())
                                                  : Dim(is_dim ? extent.expr().to_string() : std::string()));
    }
  }
}

}  // namespace

ImportOptions with_ones(const ModelFacts& facts, ImportOptions options) {
  for (const SignatureValue& input : facts.inputs) {
    DimShape& shape = options.input_shapes[input.name];
    if (shape.size() != input.shape.size()) shape = input.shape;
    for (Dim& dim : shape) {
      const auto* extent = std::get_if<int64_t>(&dim);
      if (extent == nullptr || *extent < 0) dim = int64_t{1};
    }
  }
  return options;
}

void set_output_types(ModelFacts& facts, const Importer& importer) {
  if (!importer.unsupported().empty()) return;
  try {
    set_types(facts, importer.import(with_symbols(facts, {}), ops::standard_ops()));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

ir::Variants import_at_shapes(const Importer& importer, const ImportOptions& options,
                              const ShapeBuckets& buckets, const ir::OpRegistry& ops,
                              const TakesSymbolic& takes_symbolic) {
  const ModelFacts facts = importer.facts_at(options);
  // What is not there is told before any shape is looked at.
  if (!importer.unsupported().empty()) static_cast<void>(importer.import(with_ones(facts, options), ops));
  const onnx::ImportGraph graph_at = [&](const ImportOptions& at, onnx::ImportTally*) {
    return importer.import(at, ops);
  };
  const auto source = [&]() -> const ModelSource& { return importer.kept_source(); };
  return onnx::import_variants(source, facts, options, buckets, graph_at, takes_symbolic);
}

void keep_choices(ir::Variants& variants, const std::string& signature, const ImportOptions& options) {
  if (!variants.model) return;
  Json kept = parse_json(variants.model->options);
  if (!signature.empty()) kept["signature"] = signature;
  if (options.is_exact) kept["quantized"] = "exact";
  variants.model->options = canonical_json(kept);
}

}  // namespace tensormill::frontend
