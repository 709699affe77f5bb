/// One model as graphs of different shapes: what a package with free dims is compiled from.
/// Thread-safety: values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/base/extents/dim_formula.h"
#include "runtime/base/file.h"
#include "runtime/base/quantization.h"
#include "runtime/base/value_notes.h"

namespace tensormill::ir {

struct ShapedGraph {
  std::vector<int64_t> dims;  ///< values of the free dims
  Graph graph;
};

/// A free dim that has to be what a formula of other free dims says, or the model refuses the shape: the
/// length of an attention mask over past and new tokens, say.
struct DependentDim {
  size_t dim = 0;
  DimFormula value;
};
/// `dims` with the dependent ones computed from the others; `dependents` are in an order in which each
/// follows those that its formula names.
std::vector<int64_t> with_dependents(std::vector<int64_t> dims, const std::vector<DependentDim>& dependents);

/// The model itself, which a package keeps besides its plans where they cannot serve every shape.
struct KeptModel {
  std::vector<std::pair<std::string, Tensor>> files;  ///< bytes (u8) by name: the model, then what it names
  std::string options;                                ///< how it is imported: the importer's own text
};

/// The model once, for all extents of its free dims.
struct SymbolicModel {
  Graph graph;
  std::vector<std::string> symbols;  ///< by free dim; one that the graph does not have is 1
};

/// What a package is made of.
struct Variants {
  std::vector<std::string> free_dims;        ///< none: one graph, or `symbolic`, without dims
  std::vector<DimShape> input_shapes;        ///< of the graphs' inputs, in order; free dims by name
  std::vector<ShapedGraph> graphs;           ///< each gets kernels of its own
  std::optional<SymbolicModel> symbolic;     ///< what the generic plan is made of, if there is one
  std::vector<SymbolicModel> symbolic_ones;  ///< for dims of 1 that broadcast: guarded specializations
  Quantizations quantizations;               ///< of inputs and outputs that are quantized
  NotesByName notes;                         ///< what the file says of inputs and outputs, by name
  bool leaves_out = false;         ///< some dims of 1 broadcast that no model of symbolic_ones covers
  std::string not_symbolic;        ///< for people: why there is no `symbolic`; "" where none was tried
  std::optional<KeptModel> model;  ///< where there are free dims
  int64_t imports = 0;             ///< how often the model was imported to make these; a statistic
  bool is_dynamic() const { return !free_dims.empty() || symbolic; }
};

/// As write_bundle, of all graphs; constants that they share are written once. What is not a graph (names,
/// shapes, dims) is the JSON text that is returned.
std::string write_variants(const Variants& variants, int text_fd, int constants_fd);
/// Throws Error(kInvalidModel) as read_bundle.
Variants read_variants(const std::string& description, const MappedFile& text,
                       const std::shared_ptr<const MappedFile>& constants, const OpRegistry& ops);

}  // namespace tensormill::ir
