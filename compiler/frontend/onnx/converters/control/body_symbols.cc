#include "compiler/frontend/onnx/converters/control/body_symbols.h"

#include <algorithm>

namespace tensormill::frontend::onnx {

BodySymbols::BodySymbols(NodeContext& node) : node_(node) {
  const ir::SymbolTable* table = node.graph().symbols().get();
  if (table == nullptr) return;
  symbols_ = table->run_time_symbols().size();
  guards_ = table->guards().size();
}

bool BodySymbols::is_in(const ir::SymInt& extent) const {
  if (extent.is_constant()) return false;
  const std::vector<ir::RunSymbol>& all = node_.graph().symbols()->run_time_symbols();
  const std::vector<std::string> symbols = extent.expr().symbols();
  return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(symbols_), all.end(),
                     [&](const ir::RunSymbol& own) {
                       return std::find(symbols.begin(), symbols.end(), own.name) != symbols.end();
                     });
}

bool BodySymbols::are_in(const ir::SymShape& shape) const {
  return std::any_of(shape.begin(), shape.end(), [&](const ir::SymInt& extent) { return is_in(extent); });
}

template <typename IsEqual>
ir::ValueId BodySymbols::with_extents(ir::ValueId x, ir::ValueId other, const IsEqual& is_equal) const {
  const ir::SymShape own = node_.type(x).shape, wanted = node_.type(other).shape;
  if (!are_in(own) || own.size() != wanted.size()) return x;
  ir::SymShape shape = own;
  for (size_t d = 0; d < own.size(); ++d) {
    if (is_in(own[d]) && is_equal(d, own[d], wanted[d])) shape[d] = wanted[d];
  }
  return node_.add("with_shape", {x}, {{"shape", shape}});
}

ir::ValueId BodySymbols::with_equal_extents_of(ir::ValueId x, ir::ValueId other) const {
  return with_extents(x, other, [](size_t /*axis*/, const ir::SymInt& own, const ir::SymInt& wanted) {
    return is_proven(ir::Relation::kEqual, own, wanted);
  });
}

ir::ValueId BodySymbols::with_extents_beside(ir::ValueId x, ir::ValueId other, size_t axis) const {
  return with_extents(x, other, [&](size_t d, const ir::SymInt& own, const ir::SymInt& wanted) {
    if (d == axis) return false;
    if (!demand(ir::Relation::kEqual, own, wanted))
      node_.unsupported("body",
                        "an iteration appends what is " + to_string(own) + " beside " + to_string(wanted));
    return true;
  });
}

void BodySymbols::drop_guards() const {
  if (node_.graph().symbols() != nullptr) node_.graph().symbols()->drop_guards_behind(guards_);
}

}  // namespace tensormill::frontend::onnx
