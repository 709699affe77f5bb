/// likely_labels, edit_distances: sequences of labels, by host steps.
#include "runtime/host_ops/sequence_steps.h"
#include "compiler/ops/steps/host_steps.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::sequence_step_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer_likely(const ir::InferContext& context) {
  const ir::ValueType& scores = input_of(context, 0, set_of(DType::kFloat32) | set_of(DType::kFloat64));
  const ir::SymShape& counts = input_of(context, 1, set_of(DType::kInt64)).shape;
  if (scores.shape.size() != 3 || counts.size() != 1 ||
      !demand(ir::Relation::kEqual, counts[0], scores.shape[1]))
    fail("scores of shape " + to_string(scores.shape) + ", numbers of steps of " + to_string(counts));
  static_cast<void>(attr_int(context.attrs, "merges"));
  const int64_t paths = attr_int(context.attrs, "paths"), width = attr_int(context.attrs, "width");
  if (paths < 1 || width < paths)
    fail("attribute paths is " + std::to_string(paths) + ", width " + std::to_string(width));
  const ir::SymInt &steps = scores.shape[0], &batch = scores.shape[1];
  return {made_type(DType::kInt64, {paths, batch, steps}), made_type(DType::kInt64, {paths, batch}),
          made_type(scores.dtype, {batch, paths})};
}

std::vector<ir::ValueType> infer_distances(const ir::InferContext& context) {
  const auto row = [&](size_t index) -> const ir::SymShape& {
    const ir::SymShape& shape = input_of(context, index, set_of(DType::kInt64)).shape;
    if (shape.size() != 1) fail("input " + std::to_string(index) + " has shape " + to_string(shape));
    return shape;
  };
  for (const size_t labels : {0, 2}) static_cast<void>(row(labels));
  if (!demand_equal(row(1), row(3))) fail("rows " + to_string(row(1)) + " and " + to_string(row(3)));
  static_cast<void>(attr_int(context.attrs, "normalized"));
  return {made_type(DType::kFloat32, row(1))};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef likely;
  likely.name = "likely_labels";
  likely.min_inputs = likely.max_inputs = 2;
  likely.infer = &infer_likely;
  likely.reference = [](const ir::ReferenceContext& context) { run_host(host_ops::likely_labels, context); };
  likely.doc =
      "the most likely sequences of labels (i64 [paths,batch,steps]) by scores [steps,batch,classes] (f32, "
      "f64), of which the last class is none, for as many steps as input 1 (i64 [batch]) says; how long "
      "each is, and the logarithm of its likelihood [batch,paths]; attributes paths, width, merges (ints)";
  ir::OpDef distances;
  distances.name = "edit_distances";
  distances.min_inputs = distances.max_inputs = 4;
  distances.infer = &infer_distances;
  distances.reference = [](const ir::ReferenceContext& context) {
    run_host(host_ops::edit_distances, context);
  };
  distances.doc =
      "how many labels (i64 [n]) of rows of these lengths (i64 [rows]) are put in, left out or exchanged to "
      "make them those of inputs 2 and 3 (f32 [rows]); attribute normalized (int): as a share of these";
  return {likely, distances};
}

}  // namespace tensormill::ops::sequence_step_ops
