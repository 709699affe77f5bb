// What moves or selects elements commutes with dequantization by one positive scale: bytes are moved instead
// of floats, and a quantization that undoes the dequantization goes away with it. ((q - z) s) / s is within
// two roundings of the integer q - z, to which it rounds, so that both together change nothing.
#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/ir/patch.h"
#include "compiler/ops/type_rules.h"
#include "compiler/passes/match.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/quantized/quantized.h"

namespace tensormill::passes {

namespace {

class Sinker {
public:
  explicit Sinker(const ir::Graph& graph) : graph_(graph), patch_(graph, "sink_dequantized") {}

  /// Whether anything changed.
  bool run() {
    for (const ir::Node& node : graph_.nodes()) {
      if (moves(node)) sink(node);
      if (node.op == "cast") cancel(node);
    }
    return !patch_.empty();
  }
  ir::Graph result() const { return patch_.apply(); }

private:
  /// Each element of the result is one of input 0, or of all inputs.
  bool moves(const ir::Node& node) const {
    if (node.op == "max_pool") return !reaches_padding_alone(node);
    if (node.op == "pad") return node.inputs.size() == 1 && (!fills(node) || fill_of(node) == 0);
    static constexpr std::array<std::string_view, 9> kMoves = {
        "concat",  "depth_to_space", "expand", "gather",   "gather_elements",
        "reshape", "slice",          "tile",   "transpose"};
    return std::find(kMoves.begin(), kMoves.end(), node.op) != kMoves.end();
  }

  /// Whether a pad's new elements are a constant.
  static bool fills(const ir::Node& pad) {
    return ops::attr_string(pad.attrs, "mode", "constant") == "constant";
  }
  static double fill_of(const ir::Node& pad) { return ops::attr_float(pad.attrs, "value", 0); }

  /// A window without elements gives minus infinity, which no byte stands for.
  static bool reaches_padding_alone(const ir::Node& node) {
    const ir::Ints kernel = node.attrs.ints_of("kernel");
    if (ops::attr_bool(node.attrs, "ceil_mode", false)) return true;
    if (!node.attrs.has("pads")) return false;
    const ir::Ints pads = node.attrs.ints_of("pads");
    for (size_t d = 0; d < pads.size(); ++d) {
      if (pads[d] >= kernel[d % kernel.size()]) return true;
    }
    return false;
  }

  void sink(const ir::Node& node) {
    const std::optional<Dequantized> first = match_dequantized(graph_, node.inputs[0]);
    if (!first) return;
    const DType dtype = graph_.value(first->q).type.dtype;
    std::vector<ir::ValueId> inputs = node.inputs;
    const size_t count = node.op == "concat" ? inputs.size() : 1;
    for (size_t i = 0; i < count; ++i) {
      const std::optional<Dequantized> each = match_dequantized(graph_, inputs[i]);
      if (!each || each->zero != first->zero || each->scale != first->scale ||
          graph_.value(each->q).type.dtype != dtype)
        return;
      // Constants are folded whole, but for tables of which rows are taken.
      if (graph_.value(each->q).constant && node.op != "gather") return;
      inputs[i] = each->q;
    }
    ir::Attrs attrs = node.attrs;
    if (node.op == "pad" && fills(node)) attrs.set("value", first->zero);
    const ir::ValueId moved = patch_.add_node(node.op, std::move(inputs), attrs, node.origins)[0];
    ir::ValueId value = patch_.add_node("cast", {moved}, {{"to", DType::kFloat32}}, node.origins)[0];
    if (first->zero != 0)
      value = patch_.add_node("sub", {value, number(static_cast<float>(first->zero))}, {}, node.origins)[0];
    patch_.replace(node.outputs[0],
                   patch_.add_node("mul", {value, number(first->scale)}, {}, node.origins)[0]);
  }

  ir::ValueId number(float value) {
    return patch_.add_constant("dequantized", Tensor::from<float>({}, std::vector<float>{value}));
  }

  /// cast(round((q - zero) * scale / scale) + zero) = q
  void cancel(const ir::Node& cast) {
    ir::ValueId value = cast.inputs[0];
    double zero = 0;
    if (const ir::Node* add = match(graph_, value, "add")) {
      const std::optional<double> shift = scalar_of(graph_, widened(add->inputs[1]));
      if (!shift) return;
      zero = *shift;
      value = add->inputs[0];
    }
    const ir::Node* round = match(graph_, value, "round");
    const ir::Node* div = round == nullptr ? nullptr : match(graph_, round->inputs[0], "div");
    const std::optional<double> divisor = div == nullptr ? std::nullopt : scalar_of(graph_, div->inputs[1]);
    const std::optional<Dequantized> from =
        divisor ? match_dequantized(graph_, div->inputs[0]) : std::nullopt;
    if (!from || from->zero != zero || static_cast<double>(from->scale) != *divisor ||
        graph_.value(from->q).type != graph_.value(cast.outputs[0]).type)
      return;
    patch_.replace(cast.outputs[0], from->q);
  }

  /// The constant before a conversion.
  ir::ValueId widened(ir::ValueId value) const {
    const ir::Node* cast = match(graph_, value, "cast");
    return cast == nullptr ? value : cast->inputs[0];
  }

  const ir::Graph& graph_;
  ir::Patch patch_;
};

}  // namespace

ir::Graph sink_dequantized(const ir::Graph& graph, const PassContext& /*context*/) {
  ir::Graph current = graph;
  // Each round takes a dequantization past one more node.
  for (size_t round = 0; round <= graph.nodes().size(); ++round) {
    Sinker sinker(current);
    if (!sinker.run()) break;
    current = sinker.result();
  }
  return current;
}

}  // namespace tensormill::passes
