/// How the loops of a generic nest are arranged: which axes run in vectors, in blocks of registers and on all
/// threads. Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/plan/generic_nest.h"
#include "compiler/schedule/knob.h"

namespace tensormill::plan {

struct Tiling {
  std::optional<size_t> vector_axis, block_axis, column_axis, parallel_axis;
  int lanes = 1;           ///< of vector_axis
  int reduced_lanes = 1;   ///< parts of a sum in lanes along its innermost axis; then there is no vector_axis
  int64_t vectors = 1;     ///< of vector_axis, computed together
  int64_t columns = 1;     ///< of column_axis, computed together, beside each other as vectors are
  int64_t block = 1;       ///< rows of block_axis, computed together
  int64_t blocks = 1;      ///< so many after each other read the same columns, which stay in the cache
  bool by_one = false;     ///< where vectors are not whole, they are computed one by one
  bool is_ragged = false;  ///< the last block need not be whole: what is left is computed in smaller ones
  bool rows_last = false;  ///< the loop of block_axis is the innermost: what rows share stays in the cache
  bool joined = false;     ///< the parallel loop is over the axis behind parallel_axis, too
  std::optional<size_t> first_axis;   ///< its loop is the outermost, if not in the order of axes
  std::optional<size_t> shared_axis;  ///< the parallel loop is over parts of this axis, too
  int64_t parts = 1;                  ///< of shared_axis: each takes every parts-th run of kRun blocks
  /// So many blocks of block_axis stay in the cache while all panels of column_axis pass by; 0: all of them.
  /// The parallel loop is over the panels of one such run of blocks after the other.
  int64_t chunk = 0;
  int64_t places = 0;  ///< of an iteration (NestPlace), computed together, one such group after the other
  /// Some pages of memory, so that each part reads and writes pages of its own.
  static constexpr int64_t kRun = 8;

  /// How often the loop of an axis runs.
  te::Expr trips(const te::TensorNode& tensor, size_t axis) const;
  /// The axes from the innermost loop to the outermost.
  std::vector<size_t> loop_order(size_t rank) const;
};

/// From the extents that are numbers, and how what is read lies along the axes; of extents that are symbols
/// nothing is taken for granted.
Tiling choose_tiling(const Nest& nest, const LoopFacts& facts);

/// A tiling with the choices that made it.
struct ChosenTiling {
  Tiling tiling;
  std::vector<schedule::Knob> knobs;
};
/// As choose_tiling, whose numbers are the knobs' analytic values, with each choice made by `choose`: "lanes"
/// of a vector, "rows" and "columns" that are computed together ("columns" counts vectors), "blocks" after
/// each other, "reduced_lanes" of a sum, and what threads share: "panels_first", "joined", "chunk", "parts".
/// Of nests that compute several places an iteration: "places", how many are computed together, which share
/// what they read.
ChosenTiling choose_tiling_by(const Nest& nest, const LoopFacts& facts, const schedule::Chooser& choose);

/// An extent that is no number, of which `size` elements are computed together: loops do something else
/// around its multiples.
struct Tail {
  te::Expr extent;  ///< over the nest's arguments
  int64_t size = 1;
};
std::vector<Tail> tails_of(const Nest& nest, const Tiling& tiling);

/// As build_generic_loops of the facts from which the tiling was chosen.
te::Function build_generic_loops(const Nest& nest, const TermVars& vars, const Tiling& tiling,
                                 const std::vector<EmptyCase>& empties = {});

}  // namespace tensormill::plan
