/// reshape: the same elements in the same order under another shape.
#include "compiler/ops/reference_util.h"
#include "compiler/ops/te_util.h"
#include "compiler/ops/type_rules.h"

namespace tensormill::ops::reshape_ops {

std::vector<ir::OpDef> family();

namespace {

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const ir::ValueType out = made_type(x.dtype, attr_dims(context.attrs, "shape"));
  if (!demand(ir::Relation::kEqual, num_elements(out.shape), num_elements(x.shape))) {
    fail("shape " + to_string(x.shape) + " with " + to_string(num_elements(x.shape)) +
         " elements does not reshape to " + to_string(out.shape) + " with " +
         to_string(num_elements(out.shape)));
  }
  return {out};
}

/// Runs of input and output dims with equal products: an index is flattened and split only inside its run, so
/// that dims which stay keep their plain index.
struct Run {
  size_t in_begin, in_end, out_begin, out_end;
};

std::vector<Run> match_dims(const ir::SymShape& in, const ir::SymShape& out) {
  std::vector<Run> runs;
  size_t i = 0, o = 0;
  while (i < in.size() || o < out.size()) {
    Run run{i, i, o, o};
    ir::SymInt in_product = 1, out_product = 1;
    do {
      if ((in_product.hint() <= out_product.hint() && i < in.size()) || o == out.size()) {
        in_product *= in[i++];
      } else {
        out_product *= out[o++];
      }
    } while (!is_proven(ir::Relation::kEqual, in_product, out_product) && (i < in.size() || o < out.size()));
    run.in_end = i;
    run.out_end = o;
    runs.push_back(run);
  }
  return runs;
}

void split_run(const Run& run, const ir::SymShape& in, const ir::SymShape& out, const std::vector<Expr>& axes,
               std::vector<Expr>& index) {
  if (run.in_end - run.in_begin == 1 && run.out_end - run.out_begin == 1) {
    index[run.in_begin] = axes[run.out_begin];
    return;
  }
  const auto at = [](auto& sequence, size_t position) {
    return sequence.begin() + static_cast<std::ptrdiff_t>(position);
  };
  Expr position = flatten_index({at(axes, run.out_begin), at(axes, run.out_end)},
                                ir::SymShape(at(out, run.out_begin), at(out, run.out_end)));
  for (size_t d = run.in_end; d-- > run.in_begin;) {
    if (is_one(in[d])) continue;
    bool outermost = true;
    for (size_t before = run.in_begin; before < d; ++before) outermost = outermost && is_one(in[before]);
    index[d] = outermost ? position : te::floormod(position, Expr(in[d]));
    position = te::floordiv(position, Expr(in[d]));
  }
}

bool part(ir::PartContext& context) {
  // A dimension that stays, and stays at its place among the elements.
  const Shape &in = context.inputs[0]->shape, &out = context.output.shape;
  for (const Run& run : match_dims(in, out)) {
    if (run.out_begin != context.wanted.axis || run.out_end - run.out_begin != 1 ||
        run.in_end - run.in_begin != 1)
      continue;
    context.parts[0] = {run.in_begin, context.wanted.begin, context.wanted.end};
    Shape shape = out;
    shape[context.wanted.axis] = context.wanted.end - context.wanted.begin;
    context.changed.set("shape", shape);
    return true;
  }
  return false;
}

TeOutputs compute(const ir::ComputeContext& context) {
  const ir::ValueType& out = context.output_types[0];
  const ir::SymShape& in = context.input_types[0].shape;
  return {compute_safe(context.name, out.shape, out.dtype, [&](const std::vector<Expr>& axes) {
    std::vector<Expr> index(in.size(), Expr(0));
    for (const Run& run : match_dims(in, out.shape)) split_run(run, in, out.shape, axes, index);
    return te::read(context.inputs[0], index);
  })};
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "reshape";
  def.pattern = ir::Pattern::kInjective;
  def.infer = &infer;
  def.reference = &copy_reference;
  def.part = &part;
  def.compute = &compute;
  def.is_view = true;
  def.doc = "x under the shape of attribute shape (ints, all >= 0, as many elements)";
  return {def};
}

}  // namespace tensormill::ops::reshape_ops
