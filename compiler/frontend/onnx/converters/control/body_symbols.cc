#include "compiler/frontend/onnx/converters/control/body_symbols.h"

#include <algorithm>

namespace tensormill::frontend::onnx {

BodySymbols::BodySymbols(NodeContext& node) : node_(node) {
  const ir::SymbolTable* table = node.graph().symbols().get();
  if (table == nullptr) return;
  symbols_ = table->of_run().size();
  guards_ = table->guards().size();
}

bool BodySymbols::is_in(const ir::SymInt& extent) const {
  if (extent.is_constant()) return false;
  const std::vector<ir::RunSymbol>& all = node_.graph().symbols()->of_run();
  const std::vector<std::string> symbols = extent.expr().symbols();
  return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(symbols_), all.end(),
                     [&](const ir::RunSymbol& own) {
                       return std::find(symbols.begin(), symbols.end(), own.name) != symbols.end();
                     });
}

bool BodySymbols::are_in(const ir::SymShape& shape) const {
  return std::any_of(shape.begin(), shape.end(), [&](const ir::SymInt& extent) { return is_in(extent); });
}

ir::ValueId BodySymbols::with_extents_of(ir::ValueId x, ir::ValueId other,
                                         std::optional<size_t> but_axis) const {
  const ir::SymShape own = node_.type(x).shape, wanted = node_.type(other).shape;
  if (!are_in(own) || own.size() != wanted.size()) return x;
  ir::SymShape shape = own;
  for (size_t d = 0; d < own.size(); ++d) {
    if (d == but_axis || !is_in(own[d])) continue;
    if (!demand(ir::Relation::kEqual, own[d], wanted[d]))
      node_.unsupported("body", "an iteration makes " + to_string(own) + " of what is handed on as " +
                                    to_string(wanted));
    shape[d] = wanted[d];
  }
  return node_.add("with_shape", {x}, {{"shape", shape}});
}

void BodySymbols::drop_guards() const {
  if (node_.graph().symbols() != nullptr) node_.graph().symbols()->drop_guards_behind(guards_);
}

}  // namespace tensormill::frontend::onnx
