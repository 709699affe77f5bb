/// A model with free dims imported once, with a symbol for each of them. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "compiler/frontend/onnx/free_dims/variant_import.h"

namespace tensormill::frontend::onnx {

/// The import, or why there is none.
struct SymbolicImport {
  std::optional<ir::SymbolicModel> model;
  bool takes_none = false;    ///< the model takes no such extents
  std::string reason = {};    ///< for people: why there is none
  bool has_switches = false;  ///< ImportTally::has_switches
};
/// The free dims that `ones` names are 1, the others symbols. There is no model where it cannot be imported
/// so, or where extents that its nodes demand lie beyond others that were decided about before.
SymbolicImport import_symbolic(const VariantModel& model, const std::set<size_t>& ones = {});

/// The graph of a model without free dims some of whose extents a run binds.
SymbolicImport symbolic_of_static(ir::Graph graph);

/// The free dims that stand, for broadcasting, for extents of other operands, and may be 1 instead.
std::set<size_t> broadcast_symbols(const ir::SymbolicModel& model);

/// The model at extents of the free dims: numbers in the place of its symbols. Nothing where a guard does not
/// hold for them.
std::optional<ir::Graph> at_extents(const ir::SymbolicModel& model, const std::vector<int64_t>& dims);

/// The free dims that are sums of products of others wherever the model's guards hold: for shapes that name
/// the others alone. Of a model that is not planned with symbols what its nodes demand counts alone.
std::vector<ir::DependentDim> dependent_symbols(const ir::SymbolicModel& model, bool is_planned);

}  // namespace tensormill::frontend::onnx
