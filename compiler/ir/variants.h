/// One model as graphs of different shapes: what a package with free dims is compiled from.
/// Thread-safety: values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/base/dim_formula.h"
#include "runtime/base/file.h"
#include "runtime/base/quantization.h"
#include "runtime/base/value_notes.h"

namespace tensormill::ir {

struct ShapedGraph {
  std::vector<int64_t> dims;  ///< values of the free dims
  Graph graph;
};

/// What the model's outputs are at some values of the free dims.
struct ShapeCheck {
  std::vector<int64_t> dims;
  std::vector<Shape> outputs;
};

/// A free dim that the model makes of others, or it does not take them: a mask over what is there and what is
/// new is as long as both, frames are as many as a wave has hops.
struct DependentDim {
  size_t dim = 0;
  DimFormula value;
};
/// `dims`, the dependent ones as the others have it; one that follows from others that do comes behind them.
std::vector<int64_t> with_dependents(std::vector<int64_t> dims, const std::vector<DependentDim>& dependents);
/// The dim that the formula is, if it is one.
std::optional<size_t> same_dim(const DimFormula& formula);

/// The model where the other dims are few and one is no larger than in the samples: what a plan computes is
/// compared with it.
struct Probe {
  size_t dim = 0;
  ShapedGraph graph;
};

/// What a generic plan is made from.
struct SampleSet {
  std::vector<ShapedGraph> samples;  ///< what the generic plan generalizes
  std::vector<ShapedGraph> small;  ///< of the samples' form, below them: samples too, where extents end there
  /// Below the samples, and of other forms: of small models of one free dim, whose plan may leave them out.
  std::vector<ShapedGraph> alone;
  std::vector<Probe> probes;       ///< by dim, the extents of each from that of the first sample down
  std::vector<ShapeCheck> checks;  ///< what the generic plan must give
  std::vector<int64_t> multiples;  ///< what each free dim must be a multiple of, when there are samples
  std::vector<int64_t>
      minimums;  ///< the least that each may be, whatever the others are, 0 where that is not known
  std::vector<int64_t> maximums;  ///< the largest that each may be, 0 where there is none; or none at all
  std::vector<DependentDim> dependents;
  /// Those of them that may also be 1, as a row of an operand that stands for all rows of another one; what
  /// the model is there: all of them 1 in the first samples, which lie as the set's own do.
  std::vector<DependentDim> spread;
  std::vector<ShapedGraph> spread_samples;
  std::vector<ShapeCheck> spread_checks;
  /// At its shapes the model computes something else than in the samples of sets that take them, too.
  bool goes_first = false;
};
/// Whether a graph has the nodes of a sample, and values of their ranks.
bool has_nodes_of(const Graph& graph, const Graph& sample);
/// Whether a graph with the nodes of samples has the constants that they all have in common: that it computes
/// what they do.
bool has_constants_of(const Graph& graph, const std::vector<const Graph*>& samples);
/// Whether the dims are such that a plan of the set serves them.
bool has_form(const SampleSet& set, const std::vector<int64_t>& dims);

/// The model itself: what a package that cannot serve every shape holds besides its plans.
struct KeptModel {
  std::vector<std::pair<std::string, Tensor>> files;  ///< bytes (u8) by name: the model, then what it names
  std::string options;                                ///< how it is imported: the importer's own text
};

/// The model once, for all extents of its free dims.
struct SymbolicModel {
  Graph graph;
  std::vector<std::string> symbols;  ///< by free dim; one that the graph does not have is 1
};

/// Its own samples are those of the generic plan for as many shapes as one plan can serve.
struct Variants : SampleSet {
  std::vector<std::string> free_dims;     ///< none: one graph, without dims
  std::vector<DimShape> input_shapes;     ///< of the graphs' inputs, in order; free dims by name
  std::vector<ShapedGraph> graphs;        ///< each gets kernels of its own
  std::optional<SymbolicModel> symbolic;  ///< what the generic plan is made of, where it need not be samples
  std::vector<SymbolicModel> symbolic_ones;  ///< the same where dims are 1 that broadcast then: special plans
  /// Samples of shapes at which some dims are 1 that are no such numbers in the other samples: these dims are
  /// dependents of the set, of the value 1.
  std::vector<SampleSet> special;
  Quantizations quantizations;     ///< of inputs and outputs that are quantized
  NotesByName notes;               ///< of those of which the file says something
  bool leaves_out = false;         ///< there are such shapes for which there is no set
  std::optional<KeptModel> model;  ///< where there are free dims
  int64_t imports = 0;             ///< that it took to make them; not part of what they are
  bool is_dynamic() const { return !free_dims.empty(); }
};

/// As write_bundle, of all graphs; constants that they share are written once. What is not a graph (names,
/// shapes, dims) is the JSON text that is returned.
std::string write_variants(const Variants& variants, int text_fd, int constants_fd);
/// Throws Error(kInvalidModel) as read_bundle.
Variants read_variants(const std::string& description, const MappedFile& text,
                       const std::shared_ptr<const MappedFile>& constants, const OpRegistry& ops);

}  // namespace tensormill::ir
