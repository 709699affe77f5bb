/// recurrent: one direction of an RNN, GRU or LSTM over any number of steps, by the host step.
#include "runtime/host_ops/recurrent.h"

#include <algorithm>
#include <cmath>

#include "compiler/ops/steps/host_steps.h"
#include "compiler/ops/type_rules.h"
#include "runtime/host_ops/recurrent_math.h"

namespace tensormill::ops::recurrent_ops {

std::vector<ir::OpDef> family();

namespace {

/// Attribute `name`, 0 or 1, of which 1 is for layers of the kind alone.
bool flag(const ir::Attrs& attrs, const char* name, bool is_kind) {
  const int64_t value = attr_int(attrs, name);
  if (value < 0 || value > 1 || (value == 1 && !is_kind))
    fail("attribute " + std::string(name) + " is " + std::to_string(value));
  return value == 1;
}

void check_number(const ir::Attrs& attrs, const std::string& name) {
  if (!std::isfinite(attr_float(attrs, name, 0))) fail("attribute " + name + " is no finite number");
}

void check_activations(const ir::Attrs& attrs, size_t count) {
  const std::string names = attr_string(attrs, "activations", "");
  size_t start = 0, found = 0;
  for (; start <= names.size(); ++found) {
    const size_t end = std::min(names.find(',', start), names.size());
    if (!host_ops::is_activation(std::string_view(names).substr(start, end - start)))
      fail("attribute activations is \"" + names + "\"");
    start = end + 1;
  }
  if (found != count)
    fail("attribute activations has " + std::to_string(found) + " names, expected " + std::to_string(count));
  for (size_t i = 0; i < count; ++i) {
    for (const char* name : {"alpha", "beta"}) {
      const std::string full = name + std::to_string(i);
      if (!attrs.has(full)) fail("attribute " + full + " is missing");
      check_number(attrs, full);
    }
  }
}

std::vector<ir::ValueType> infer(const ir::InferContext& context) {
  const std::string kind = attr_string(context.attrs, "kind", "");
  const auto gates = static_cast<int64_t>(host_ops::gates_of_kind(kind));
  if (gates == 0) fail("attribute kind is \"" + kind + "\", expected rnn, gru or lstm");
  const bool is_lstm = kind == "lstm", is_gru = kind == "gru";
  flag(context.attrs, "reverse", true);
  flag(context.attrs, "input_forget", is_lstm);
  if (context.attrs.has("clip")) check_number(context.attrs, "clip");
  check_activations(context.attrs, host_ops::activations_of_kind(kind));

  const ir::ValueType& sums = input_of(context, 0, set_of(DType::kFloat32) | set_of(DType::kFloat64));
  if (sums.shape.size() != 3 || sums.shape[2] < gates || sums.shape[2] % gates != 0)
    fail("the sums have shape " + to_string(sums.shape) + ", expected [steps,batch," + std::to_string(gates) +
         "*hidden]");
  const int64_t hidden = sums.shape[2] / gates;
  const ir::SymInt batch = sums.shape[1];
  constexpr auto kColumns = static_cast<int64_t>(host_ops::kPanelColumns);
  size_t next = 1;
  const auto expect = [&](DType dtype, const ir::SymShape& shape) {
    const ir::ValueType& type = input(context, next);
    if (!(type == ir::ValueType{dtype, shape}))
      fail("input " + std::to_string(next) + " is " + to_string(type) + ", expected " +
           to_string(ir::ValueType{dtype, shape}));
    ++next;
  };
  expect(sums.dtype, {gates, (hidden + kColumns - 1) / kColumns, hidden, kColumns});
  for (int i = 0; i < (is_lstm ? 2 : 1); ++i) expect(sums.dtype, {1, batch, hidden});
  if (flag(context.attrs, "peepholes", is_lstm)) expect(sums.dtype, {3 * hidden});
  if (flag(context.attrs, "linear_before_reset", is_gru)) expect(sums.dtype, {hidden});
  if (flag(context.attrs, "lengths", true)) expect(DType::kInt64, {batch});
  if (context.inputs.size() != next)
    fail(std::to_string(context.inputs.size()) + " inputs, expected " + std::to_string(next));
  const ir::ValueType state = made_type(sums.dtype, {1, batch, hidden});
  std::vector<ir::ValueType> results = {made_type(sums.dtype, {sums.shape[0], batch, hidden}), state};
  if (is_lstm) results.push_back(state);
  return results;
}

}  // namespace

std::vector<ir::OpDef> family() {
  ir::OpDef def;
  def.name = "recurrent";
  def.min_inputs = 3;
  def.max_inputs = 6;
  def.infer = &infer;
  def.reference = [](const ir::ReferenceContext& context) {
    run_host(host_ops::find_host_op("recurrent"), context);
  };
  def.doc =
      "one direction of a recurrent layer (f32, f64): operands, results and attributes kind, activations "
      "(strings), reverse, lengths, peepholes, linear_before_reset, input_forget (ints), alpha0, beta0 ... "
      "and clip (floats; the last optional) as runtime/host_ops/recurrent.h says";
  return {def};
}

}  // namespace tensormill::ops::recurrent_ops
