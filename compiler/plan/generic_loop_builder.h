/// The loops of one nest (generic_nest.h) as statements: how its axes run (generic_tiling.h), what is loaded
/// and stored, and for which extents (generic_guard.h). Thread-safety: belongs to one thread.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/plan/generic_guard.h"
#include "compiler/plan/generic_nest.h"
#include "compiler/plan/generic_taps.h"
#include "compiler/plan/generic_tiling.h"
#include "compiler/schedule/bounded_reads.h"

namespace tensormill::plan {

/// The parameters of a kernel.
struct LoopBuffers {
  std::unordered_map<const te::TensorNode*, te::Buffer> inputs;
  std::vector<te::Buffer> outputs;
};

class LoopBuilder {
public:
  /// Loops of `nest`, whose extents are `vars`, over `buffers`, which must outlive the builder. `empty`:
  /// nullptr where all inputs have elements and no free dim is 0.
  LoopBuilder(const Nest& nest, const TermVars& vars, const LoopBuffers& buffers, const Tiling& tiling,
              const EmptyCase* empty);
  LoopBuilder(const LoopBuilder&) = delete;
  LoopBuilder& operator=(const LoopBuilder&) = delete;

  /// The loops, guarded by the extents for which they run. Once.
  te::Stmt run();

private:
  const te::Expr& extent(size_t axis) const { return tensor_.axes[axis].extent; }
  void bind_ranges();

  /// What is read, as loads.
  schedule::ReadSources sources() const;

  /// All at the point of a lane: what they share stays shared.
  std::vector<te::Expr> at_lane(const std::vector<te::Expr>& exprs) const;
  /// `expr` at the point of a lane and a row of the block.
  te::Expr at_point(te::Expr expr) const;
  te::Expr position(size_t axis) const;

  te::Expr along_vectors() const;
  te::Expr tile_begin() const;
  const te::Expr& count_along_vectors() const;

  /// `body` for each row of the block where the condition holds (null: all), and each lane that the extents
  /// have.
  te::Stmt each_point(te::Stmt body, bool guard, const te::Expr& of_row = te::Expr()) const;

  /// As each_point(), vectors that are whole without a mask: masked stores take several times as long.
  te::Stmt each_output(const te::Stmt& body) const;

  te::Stmt stores(const std::vector<te::Buffer>& targets, const std::vector<std::vector<te::Expr>>& indices,
                  const std::vector<te::Expr>& values) const;

  std::vector<std::vector<te::Expr>> output_index() const;

  /// What is stored where a reduction has `values`: these, or what the epilogue makes of the one.
  std::vector<te::Expr> finished(const std::vector<te::Expr>& values);

  te::Stmt compute();
  /// All places of an iteration.
  te::Stmt compute_places();
  /// Those that are computed together, from `first` on, without what chooses between inside and outside where
  /// all of them are inside.
  te::Stmt compute_group(size_t first);
  /// `taken`: conditions that hold.
  te::Stmt store_group(size_t first, const std::vector<te::Expr>& taken);

  te::Stmt reduce();
  /// Of elements that the output has.
  te::Stmt stores_of(const std::vector<te::Expr>& values);
  /// What is stored of a tile whose sums are `held`.
  te::Stmt results_of(const std::vector<te::Expr>& held);

  /// The loops of the reduced axes [begin, end).
  te::Stmt loops_of(size_t begin, size_t end, te::Stmt body) const;

  /// Whether taps count for all elements of a row that are computed together, or for none.
  bool are_of_rows(const Taps& taps) const;
  struct TapCondition {
    te::Expr of_row;   ///< at a point
    te::Expr of_rows;  ///< implies it for all rows of a block; null where none is known
    size_t depth = 0;  ///< behind the innermost reduced axis that it mentions
  };
  struct TapSum {
    te::Stmt body;  ///< adds a tap that counts
    std::vector<TapCondition> conditions;
    size_t depth = 0;  ///< of the innermost condition
  };
  /// Asks once where all taps of a block count; elsewhere about each reduced axis in its own loop, for all
  /// rows of the block, and row by row where that does not hold.
  te::Stmt sum_of_taps(const Taps& taps, const std::vector<te::Buffer>& sums,
                       const std::vector<te::Expr>& held, const std::vector<std::vector<te::Expr>>& slots);

  te::Stmt taps_within(const TapSum& sum, size_t depth, const te::Expr& own) const;
  te::Expr all_count(const TapSum& sum, size_t depth) const;
  te::Stmt unrolled(size_t begin, te::Stmt body) const;

  /// As reduce(), each lane with every lanes-th element, the first one with those of the last vector where it
  /// is not whole, and at the end all lanes together.
  te::Stmt reduce_by_lanes();

  te::Expr index_of(const te::Expr& slot) const;

  /// All values are taken before the first is stored: the parts of a tuple depend on each other's old values.
  te::Stmt update(const std::vector<te::Expr>& source, const std::vector<te::Buffer>& sums,
                  const std::vector<te::Expr>& held, const std::vector<std::vector<te::Expr>>& slots);

  /// Whole vectors together; others one by one, of twice as many rows where there are such.
  te::Stmt reduce_tile();

  te::Stmt each_block(const te::Stmt& body) const;

  int64_t fewest_rows() const;
  /// A whole block, or what is left in smaller ones, and in those of half as many rows, of half of those...
  te::Stmt reduce_ragged();

  /// The loop that threads share: over an axis, and what the tiling has in it besides.
  te::Stmt parallel(size_t axis, te::Stmt body) const;
  te::Stmt nest();

  const Nest& nest_;
  const te::TensorNode& tensor_;
  const TermVars& vars_;
  const EmptyCase* empty_;
  const ExtentGuard guard_;
  te::BoundsContext context_;
  const LoopBuffers& made_;
  const std::unordered_map<const te::TensorNode*, te::Buffer>& buffers_;
  const std::vector<te::Buffer>& outputs_;
  const Tiling tiling_;
  int64_t rows_;           ///< of a block, computed together
  int64_t vectors_;        ///< likewise
  bool is_whole_ = false;  ///< all vectors are
  std::vector<te::Var> outer_;
  const te::Var lane_ = te::make_var("lane");
  const te::Var row_ = te::make_var("row"), vector_ = te::make_var("vector"), block_ = te::make_var("block");
  const te::Var column_ = te::make_var("column"), part_ = te::make_var("part"),
                chunk_ = te::make_var("chunk");
  te::Expr rows_begin_;  ///< where the rows begin, if they are a part of a block
  const te::Var reduced_ = te::make_var("reduced"), rest_ = te::make_var("rest");
  std::optional<te::Expr>
      reduced_at_;  ///< where the innermost reduced axis is, if it is not its own variable
  schedule::BoundedReads reads_;
};

}  // namespace tensormill::plan
