// What is elementwise of one byte and gives a byte is a function of 256 values: where the target has
// instructions for it, it is looked up in a table. So activations of quantized data, dequantized and
// quantized again, take a few instructions for a whole vector, whatever they compute.
//
// The table has what the operators' references give, which the check of kernels compares with; a kernel that
// computes with its own error may give the next byte where a result lies at the middle of two, and either is
// right (driver/element_bounds.h).
#include <vector>

#include "compiler/ir/patch.h"
#include "compiler/passes/pass.h"
#include "compiler/passes/quantized/byte_chains.h"

namespace tensormill::passes {

namespace {

/// A lookup takes about five instructions for a vector of bytes. A step takes one for a vector of its
/// elements, of which there are four times as many where they are float32; a chain of fewer is no slower.
constexpr int64_t kFewestSteps = 4;

class ByteFunctions {
public:
  explicit ByteFunctions(const ir::Graph& graph)
      : graph_(graph), patch_(graph, "byte_functions"), chains_(graph, 1) {}

  ir::Graph run() {
    for (const ir::Node& node : graph_.nodes()) visit(node);
    return patch_.apply();
  }

private:
  void visit(const ir::Node& node) {
    const ByteFunction* made = chains_.visit(node);
    if (made == nullptr || made->root == ir::kAbsent) return;
    const ir::ValueId output = node.outputs[0];
    if (!is_byte(graph_.value(output).type.dtype)) return;
    if (made->steps >= kFewestSteps) replace(output, *made);
    if (made->steps > kMostChained) chains_.begin_at(output);
  }

  void replace(ir::ValueId value, const ByteFunction& function) {
    const ir::ValueType &type = graph_.value(value).type, &root = graph_.value(function.root).type;
    // Extents that are equal may be written differently, and then readers have it as it was.
    if (!ir::same(type.shape, root.shape)) return;
    const auto* bytes = static_cast<const uint8_t*>(function.values.data());
    const ir::Attrs attrs{{"table", std::vector<int64_t>(bytes, bytes + kBytes)}, {"to", type.dtype}};
    const std::vector<std::string> origins = chains_.origins_of(chains_.nodes_between(value, function.root));
    patch_.replace(value, patch_.add_node("lookup", {function.root}, attrs, origins)[0]);
  }

  const ir::Graph& graph_;
  ir::Patch patch_;
  ByteChains chains_;
};

}  // namespace

ir::Graph byte_functions(const ir::Graph& graph, const PassContext& context) {
  return context.facts.byte_lookup ? ByteFunctions(graph).run() : graph;
}

}  // namespace tensormill::passes
