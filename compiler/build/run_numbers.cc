#include "compiler/build/run_numbers.h"

#include <algorithm>
#include <array>
#include <string>

#include "compiler/build/compose.h"
#include "compiler/ir/run_dims.h"

namespace tensormill::build {

namespace {

/// Extents of which no two are equal, and which are no usual ones, below what bounds them.
int64_t hint_of(size_t index, const std::optional<ir::SymInt>& high) {
  constexpr std::array<int64_t, 8> kHints = {23, 29, 19, 31, 37, 41, 43, 47};
  const int64_t hint = kHints[index % kHints.size()] + static_cast<int64_t>(index / kHints.size()) * 26;
  return high ? std::clamp<int64_t>(hint, 0, std::max<int64_t>(high->hint() - 1, 0)) : hint;
}

}  // namespace

ir::SymShape bind_run_numbers(OpBuilder& builder, ir::ValueId numbers, std::optional<int64_t> low,
                              const std::optional<ir::SymInt>& high) {
  // A graph without free dims may have none.
  if (builder.graph().symbols() == nullptr) builder.graph().set_symbols(std::make_shared<ir::SymbolTable>());
  const std::shared_ptr<ir::SymbolTable>& table = builder.graph().symbols();
  ir::SymShape symbols;
  const auto count = static_cast<size_t>(num_elements(builder.type(numbers).shape).hint());
  for (size_t number = table->of_run().size(); symbols.size() < count; ++number) {
    const std::string name = "run" + std::to_string(number);
    if (table->hints().count(name) != 0) continue;
    ir::RunSymbol symbol{name, low, std::nullopt};
    if (high) symbol.high = high->expr();
    symbols.push_back(table->add_of_run(symbol, hint_of(table->of_run().size(), high)));
  }
  builder.add(ir::kBindExtents, {numbers}, {{"extents", symbols}});
  return symbols;
}

ir::ValueId bound_part(OpBuilder& builder, ir::ValueId x, int64_t axis, ir::ValueId count) {
  const ir::SymInt most = builder.type(x).shape[static_cast<size_t>(axis)];
  const ir::SymInt found = bind_run_numbers(builder, count, 0, most)[0];
  return Compose(builder).slice(x, axis, 0, found);
}

ir::ValueId required(OpBuilder& builder, ir::ValueId x, ir::ValueId holds, const std::string& what) {
  Compose c(builder);
  const ir::ValueId one = c.ints({1}, {1});
  const ir::ValueId row = c.reshape(holds, {num_elements(c.shape(holds))});
  const ir::ValueId all = c.concat({c.cast(row, DType::kInt64), one}, 0);
  const ir::ValueId whole = c.cast(c.reduce("reduce_min", all, {0}, false), DType::kBool);
  // A required number of 0 stands for the check, as one element is all that it takes.
  const ir::ValueId zero =
      builder.add("require", {c.number(x, 0), whole}, {{"what", builder.label() + ": " + what}});
  return c.add(x, zero);
}

}  // namespace tensormill::build
