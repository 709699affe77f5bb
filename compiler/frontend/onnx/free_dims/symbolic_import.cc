#include "compiler/frontend/onnx/free_dims/symbolic_import.h"

#include <algorithm>
#include <memory>

#include "compiler/frontend/onnx/free_dims/symbols.h"
#include "compiler/ir/bind_symbols.h"
#include "compiler/ir/branch_symbols.h"

namespace tensormill::frontend::onnx {

namespace {

/// The place of the first axis that has the name.
struct Place {
  size_t axis = 0, rank = 1;
};

Place place_of(const Signature& signature, const std::string& name) {
  for (const auto& [input, shape] : signature.shapes) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const auto* own = std::get_if<std::string>(&shape[axis]);
      if (own != nullptr && *own == name) return {axis, shape.size()};
    }
  }
  return {};
}

constexpr const char* kStrayed = "extents that its nodes demand are no expressions over the free dims";

bool has_strayed(const ir::Graph& graph) {
  return graph.symbols() == nullptr || graph.symbols()->has_strayed();
}

}  // namespace

SymbolicImport import_symbolic(const VariantModel& model, const std::set<size_t>& ones) {
  const Signature& signature = model.signature;
  const std::vector<std::string> symbols = symbol_names(signature.free_dims);
  std::vector<int64_t> hints;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Place place = place_of(signature, signature.free_dims[i]);
    hints.push_back(ones.count(i) != 0 ? 1 : symbol_hint(i, place.axis, place.rank));
  }
  ImportOptions options = bound(model.options, signature, hints);
  options.form.has_symbols = true;
  for (const auto& [input, shape] : signature.shapes) {
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const auto* name = std::get_if<std::string>(&shape[axis]);
      if (name == nullptr) continue;
      const auto found = std::find(signature.free_dims.begin(), signature.free_dims.end(), *name);
      const auto dim = static_cast<size_t>(found - signature.free_dims.begin());
      if (dim < symbols.size() && ones.count(dim) == 0) options.symbols[input][axis] = symbols[dim];
    }
  }
  try {
    ImportTally tally;
    ir::Graph graph = model.import_graph(options, &tally);
    if (has_strayed(graph)) return {std::nullopt, false, kStrayed};
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (ones.count(i) == 0 && graph.symbols()->hints().count(symbols[i]) == 0)
        return {std::nullopt, false, signature.free_dims[i] + " is no dim of an input of the graph"};
    }
    return {ir::SymbolicModel{std::move(graph), symbols}, false, "", tally.has_switches};
  } catch (const Error& error) {
    // What is wrong with the model is said by an import of numbers.
    return {std::nullopt, error.code() == ErrorCode::kInvalidModel, std::string(error.message())};
  }
}

SymbolicImport symbolic_of_static(ir::Graph graph) {
  if (has_strayed(graph)) return {std::nullopt, false, kStrayed};
  return {ir::SymbolicModel{std::move(graph), {}}};
}

std::set<size_t> broadcast_symbols(const ir::SymbolicModel& model) {
  std::set<size_t> dims;
  for (const ir::Guard& guard : model.graph.symbols()->guards()) {
    if (guard.relation != ir::Relation::kEqual || !guard.holds || guard.demanded) continue;
    for (const te::Dim* side : {&guard.left, &guard.right}) {
      const std::string* symbol = side->as_symbol();
      if (symbol == nullptr) continue;
      const auto found = std::find(model.symbols.begin(), model.symbols.end(), *symbol);
      if (found == model.symbols.end()) continue;
      dims.insert(static_cast<size_t>(found - model.symbols.begin()));
    }
  }
  return dims;
}

std::optional<ir::Graph> at_extents(const ir::SymbolicModel& model, const std::vector<int64_t>& dims) {
  // What a run decides has no numbers yet.
  if (!model.graph.symbols()->run_time_symbols().empty()) return std::nullopt;
  std::map<std::string, int64_t> values;
  for (size_t i = 0; i < dims.size(); ++i) values[model.symbols[i]] = dims[i];
  ir::add_branch_values(*model.graph.symbols(), values);
  const std::vector<ir::Guard>& guards = model.graph.symbols()->guards();
  const bool holds = std::all_of(guards.begin(), guards.end(),
                                 [&](const ir::Guard& guard) { return ir::holds_at(guard, values); });
  if (!holds) return std::nullopt;
  return ir::bind_symbols(model.graph, values);
}

namespace {

/// A sum of products of symbols as a formula over the free dims; nothing where it is none.
std::optional<DimFormula> formula_of(const te::Dim& dim, const std::vector<std::string>& symbols) {
  DimFormula formula{dim.constant(), {}};
  for (const te::DimTerm& term : dim.terms()) {
    DimProduct product{term.coefficient, {}};
    for (const te::Atom& factor : term.factors) {
      const auto found = std::find(symbols.begin(), symbols.end(), factor->name);
      if (factor->kind != te::DimAtom::Kind::kSymbol || found == symbols.end()) return std::nullopt;
      product.factors.push_back({static_cast<int32_t>(found - symbols.begin()), 1, 0, 1});
    }
    formula.products.push_back(std::move(product));
  }
  return formula;
}

}  // namespace

std::vector<ir::DependentDim> dependent_symbols(const ir::SymbolicModel& model, bool is_planned) {
  // What was decided by the extents at which the model was looked at, and what follows, may be otherwise
  // elsewhere.
  std::shared_ptr<ir::SymbolTable> known = model.graph.symbols();
  if (!is_planned) {
    known = std::make_shared<ir::SymbolTable>();
    for (const auto& [symbol, hint] : model.graph.symbols()->hints())
      static_cast<void>(known->add(symbol, hint));
    for (const ir::Guard& guard : model.graph.symbols()->guards()) {
      if (!guard.demanded) break;
      known->add_guard(guard);
    }
  }
  const te::DimFacts& facts = known->facts_with_zeros();
  std::vector<ir::DependentDim> dependents;
  for (size_t i = 0; i < model.symbols.size(); ++i) {
    const te::Dim symbol = te::Dim::symbol(model.symbols[i]), solved = facts.solved(symbol);
    const std::optional<DimFormula> formula =
        solved == symbol ? std::nullopt : formula_of(solved, model.symbols);
    if (formula) dependents.push_back({i, *formula});
  }
  return dependents;
}

}  // namespace tensormill::frontend::onnx
