// Opset 27's operators with a state: linear attention and the causal convolution before it.

#include "compiler/build/compose.h"
#include "compiler/frontend/onnx/converters/algebra/roots.h"
#include "compiler/frontend/onnx/converters/control/structure.h"
#include "compiler/frontend/onnx/converters/converters.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// Of the types that opset 27 has for these operators.
void require_floats(const NodeContext& context) {
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.has_input(i)) continue;
    const ir::ValueType& type = context.type(context.input(i));
    if (!is_float(type.dtype)) context.invalid("operand " + std::to_string(i) + " is " + ir::to_string(type));
  }
}

bool has_columns(const NodeContext& context, V x, int64_t count) {
  return context.rank(x) == 3 && context.type(x).shape[2] == count;
}

/// x [batch, steps, columns] as [steps, batch, ...]; `each` is the shape of a step's columns.
V by_step(NodeContext& context, V x, const char* name, const ir::SymShape& each) {
  Compose c(context);
  const ir::SymShape own = c.shape(x);
  if (own.size() != 3 || own[2] != num_elements(each))
    context.invalid(std::string(name) + " has shape " + to_string(own) + ", expected " +
                    std::to_string(num_elements(each)) + " columns");
  ir::SymShape shape{own[1], own[0]};
  shape.insert(shape.end(), each.begin(), each.end());
  return c.reshape(c.transpose(c.cast(x, DType::kFloat32), {1, 0, 2}), std::move(shape));
}

/// What one step reads, each with a first axis of steps; the state is [batch, heads, keys, values].
struct LinearAttention {
  V query;                ///< [batch, heads, queries of a head, keys], scaled
  V key;                  ///< [batch, heads, keys, 1]
  V asked = ir::kAbsent;  ///< the same: the key that the state is asked for, where that is another one
  V value;                ///< [batch, heads, 1, values]
  V kept = ir::kAbsent;   ///< [batch, heads, keys or 1, 1]: what is left of the state
  V rate = ir::kAbsent;   ///< [batch, heads or 1, 1, 1]; set: only what the state does not know is added
  V state;
};

/// x [steps, batch, own heads, ...] for so many heads, the same for as many that stand side by side.
V for_heads(NodeContext& context, V x, int64_t heads) {
  Compose c(context);
  const ir::SymInt own = c.shape(x)[2];
  if (own == heads) return x;
  ir::Ints from = c.count_to(heads);
  for (int64_t& head : from) head /= heads / own;
  return c.gather(x, c.ints(from, {heads}), 2);
}

/// The keys [steps, batch, heads, keys of a head, 1]. com.microsoft has heads of the state that share one of
/// the keys.
V keys_by_step(NodeContext& context, int64_t heads, int64_t keys) {
  const ir::SymShape own = Compose(context).shape(context.input(1));
  const int64_t given = own.size() == 3 && keys > 0 ? own[2] / keys : ir::SymInt(0);
  const bool is_shared = context.node().domain == "com.microsoft" && given > 0 && heads % given == 0;
  const V key = by_step(context, context.input(1), "key", {is_shared ? given : heads, keys, 1});
  return for_heads(context, key, heads);
}

LinearAttention read_operands(NodeContext& context) {
  Compose c(context);
  const int64_t queries = context.required_int("q_num_heads"), heads = context.required_int("kv_num_heads");
  const ir::SymShape q = c.shape(context.input(0)), v = c.shape(context.input(2));
  // com.microsoft also has heads of the state that share one of the queries.
  const bool is_shared =
      context.node().domain == "com.microsoft" && queries > 0 && heads > 0 && heads % queries == 0;
  if (queries < 1 || heads < 1 || (queries % heads != 0 && !is_shared))
    context.invalid(std::to_string(queries) + " heads of queries do not divide over " +
                    std::to_string(heads) + " of keys");
  if (q.size() != 3 || v.size() != 3 || q[2] % queries != 0 || v[2] % heads != 0 || v[0] != q[0] ||
      v[1] != q[1])
    context.invalid("query of shape " + to_string(q) + " and value of shape " + to_string(v) +
                    " do not divide into " + std::to_string(queries) + " and " + std::to_string(heads) +
                    " heads of the same steps");
  const int64_t keys = q[2] / queries, values = v[2] / heads;
  const std::string rule = context.string_attr("update_rule", "gated_delta");
  const bool is_gated = rule == "gated" || rule == "gated_delta";
  const bool is_delta = rule == "delta" || rule == "gated_delta";
  if (!is_gated && !is_delta && rule != "linear") context.invalid("update_rule is \"" + rule + "\"");
  const ir::SymShape split =
      is_shared ? ir::SymShape{queries, 1, keys} : ir::SymShape{heads, queries / heads, keys};
  const V query = for_heads(context, by_step(context, context.input(0), "query", split), heads);
  const double scale = context.float_attr("scale", 0);
  LinearAttention all{};
  all.query = c.mul(query, scale != 0 ? c.number(query, scale) : inverse_root(context, query, keys));
  all.key = keys_by_step(context, heads, keys);
  all.value = by_step(context, context.input(2), "value", {heads, 1, values});
  if (is_gated) {
    const bool is_scalar = has_columns(context, context.input(4), heads);
    const V decay = by_step(context, context.input(4), "decay", {heads, is_scalar ? 1 : keys, 1});
    all.kept = c.unary("exp", decay);
  }
  if (is_delta) {
    const bool is_shared = has_columns(context, context.input(5), 1);
    all.rate = by_step(context, context.input(5), "beta", {is_shared ? 1 : heads, 1, 1});
  }
  if (context.has_input(6)) {
    if (!is_delta) context.invalid("erase_gate belongs to the delta rules, not to \"" + rule + "\"");
    all.asked = c.mul(all.key, by_step(context, context.input(6), "erase_gate", {heads, keys, 1}));
  }
  const ir::SymShape state{q[0], heads, keys, values};
  if (context.has_input(3) && c.shape(context.input(3)) != state)
    context.invalid("past_state has shape " + to_string(c.shape(context.input(3))) + ", expected " +
                    to_string(state));
  all.state =
      context.has_input(3) ? c.cast(context.input(3), DType::kFloat32) : c.filled(DType::kFloat32, state, 0);
  return all;
}

/// A graph of standard operators, written node by node.
class BodyWriter {
public:
  explicit BodyWriter(std::string name) { graph_.name = std::move(name); }

  void input(const std::string& name) { graph_.inputs.push_back(float_value(name, {})); }
  void output(const std::string& name, const ir::SymShape& shape) {
    graph_.outputs.push_back(float_value(name, shape));
  }
  void node(const char* op, std::vector<std::string> inputs, std::string output,
            std::vector<AttributeProto> attributes = {}) {
    NodeProto node;
    node.op_type = op;
    node.inputs = std::move(inputs);
    node.outputs = {std::move(output)};
    node.attributes = std::move(attributes);
    graph_.nodes.push_back(std::move(node));
  }
  std::shared_ptr<const GraphProto> done() { return std::make_shared<const GraphProto>(std::move(graph_)); }

private:
  static ValueInfoProto float_value(const std::string& name, const ir::SymShape& shape) {
    constexpr int32_t kFloatType = 1;  // TensorProto.DataType
    ValueInfoProto value;
    value.name = name;
    value.is_tensor = value.has_shape = true;
    value.kind = ValueKind::kTensor;
    value.elem_type = kFloatType;
    value.shape.assign(shape.begin(), shape.end());
    return value;
  }

  GraphProto graph_;
};

AttributeProto ints_attribute(std::string name, std::vector<int64_t> values) {
  AttributeProto attribute;
  attribute.name = std::move(name);
  attribute.type = AttributeType::kInts;
  attribute.ints = std::move(values);
  return attribute;
}

/// state' = kept * state + key (x) added, where added is value, or rate * (value - asked^T (kept * state));
/// output = query state'.
std::shared_ptr<const GraphProto> step_body(const LinearAttention& all, const std::vector<std::string>& names,
                                            const ir::SymShape& state, const ir::SymShape& row) {
  BodyWriter body("step");
  for (const std::string& name : names) body.input(name);
  std::string kept = "state", added = "value";
  if (all.kept != ir::kAbsent) {
    kept = "kept_state";
    body.node("Mul", {"state", "kept"}, kept);
  }
  if (all.rate != ir::kAbsent) {
    added = "added";
    body.node("Transpose", {all.asked != ir::kAbsent ? "asked" : "key"}, "key_row",
              {ints_attribute("perm", {0, 1, 3, 2})});
    body.node("MatMul", {"key_row", kept}, "recalled");
    body.node("Sub", {"value", "recalled"}, "unknown");
    body.node("Mul", {"unknown", "rate"}, added);
  }
  body.node("Mul", {"key", added}, "product");
  body.node("Add", {kept, "product"}, "next_state");
  body.node("MatMul", {"query", "next_state"}, "row");
  body.output("next_state", state);
  body.output("row", row);
  return body.done();
}

/// The steps as a Scan: unrolled where they are few and their number is known.
NodeProto scan_node(const std::string& label, const std::vector<std::string>& names,
                    std::shared_ptr<const GraphProto> body) {
  NodeProto scan;
  scan.name = label;
  scan.op_type = "Scan";
  scan.inputs = names;
  scan.outputs = {"last_state", "rows"};
  AttributeProto count, graph;
  count.name = "num_scan_inputs";
  count.type = AttributeType::kInt;
  count.i = static_cast<int64_t>(names.size()) - 1;
  graph.name = "body";
  graph.type = AttributeType::kGraph;
  graph.graphs.push_back(std::move(body));
  scan.attributes = {std::move(count), std::move(graph)};
  return scan;
}

}  // namespace

// query, key, value, past_state, decay, beta, erase_gate; the state is kept in float32 from step to step.
std::optional<std::vector<Binding>> convert_linear_attention(StructureContext& context) {
  NodeContext& node = context.node;
  Compose c(node);
  for (const Binding& input : context.inputs) {
    if (input.kind != Binding::Kind::kTensor) node.invalid("an operand is no tensor");
  }
  require_floats(node);
  const LinearAttention all = read_operands(node);
  Scope scope;
  std::vector<std::string> names;
  const auto bind = [&](const char* name, V value) {
    if (value == ir::kAbsent) return;
    names.emplace_back(name);
    scope.bind(name, {Binding::Kind::kTensor, value, {}});
  };
  bind("state", all.state);
  bind("query", all.query);
  bind("key", all.key);
  bind("value", all.value);
  bind("kept", all.kept);
  bind("rate", all.rate);
  bind("asked", all.asked);
  const ir::SymShape state = c.shape(all.state), query = c.shape(all.query);
  const ir::SymShape row{query[1], query[2], query[3], state[3]};
  context.builder.convert(scan_node(node.label(), names, step_body(all, names, state, row)), 0, scope, true);
  const Binding *last = scope.find("last_state"), *rows = scope.find("rows");
  if (last == nullptr || rows == nullptr) return std::nullopt;
  const V by_batch = c.transpose(rows->tensor, {1, 0, 2, 3, 4});
  const V output = c.reshape(by_batch, {query[1], query[0], query[2] * query[3] * state[3]});
  const DType dtype = c.dtype(node.input(0));
  const DType kept = node.has_input(3) ? c.dtype(node.input(3)) : dtype;
  return std::vector<Binding>{{Binding::Kind::kTensor, c.cast(output, dtype), {}},
                              {Binding::Kind::kTensor, c.cast(last->tensor, kept), {}}};
}

// input [batch, channels, length] behind past_state [.., k-1], each channel with its own row of weight
// [channels, 1, k]; the last k-1 columns are the next state.
void convert_causal_conv(NodeContext& context) {
  Compose c(context);
  const std::string activation = context.string_attr("activation", "none");
  const bool is_silu = activation == "silu" || activation == "swish";
  if (!is_silu && activation != "none") context.invalid("activation is \"" + activation + "\"");
  require_floats(context);
  const V input = context.input(0);
  const ir::SymShape x = c.shape(input), w = c.shape(context.input(1));
  if (x.size() != 3 || w.size() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1)
    context.invalid("weight of shape " + to_string(w) + " does not fit an input of shape " + to_string(x));
  const ir::SymShape state{x[0], x[1], w[2] - 1};
  if (context.has_input(3) && c.shape(context.input(3)) != state)
    context.invalid("past_state has shape " + to_string(c.shape(context.input(3))) + ", expected " +
                    to_string(state));
  const V past = context.has_input(3) ? context.input(3) : c.filled(c.dtype(input), state, 0);
  const V all = w[2] == 1 ? input : c.concat({past, input}, 2);
  const auto wide = [&](V value) { return c.cast(value, DType::kFloat32); };
  std::vector<V> operands{wide(all), wide(context.input(1))};
  if (context.has_input(2)) operands.push_back(wide(context.input(2)));
  const V sums = context.add("conv", std::move(operands),
                             {{"strides", std::vector<int64_t>{1}},
                              {"dilations", std::vector<int64_t>{1}},
                              {"pads", std::vector<int64_t>{0, 0}},
                              {"group", x[1]}});
  // The activation is of the convolution's result as the model's type has it.
  V result = c.cast(sums, c.dtype(input));
  if (is_silu) {
    const V rounded = wide(result);
    result = c.cast(c.mul(rounded, c.unary("sigmoid", rounded)), c.dtype(input));
  }
  context.set_output(0, result);
  context.set_output(1, c.slice(all, 2, x[2], w[2] - 1));
}

}  // namespace tensormill::frontend::onnx
