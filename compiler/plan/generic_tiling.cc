#include "compiler/plan/generic_tiling.h"

#include <algorithm>
#include <utility>

#include "compiler/te/linear.h"
#include "compiler/te/simplify.h"

namespace tensormill::plan {

namespace {

using te::Expr;
using te::ExprOp;

/// Rows of a sum that share what they read: as many as divide the extent.
constexpr int64_t kBlocks[] = {8, 4};
/// Of an extent that need not be a multiple.
constexpr int64_t kRagged = 4;
/// Vectors of a row that are computed together, the first that divides them all, where there are 16 registers
/// and where there are 32. More rows than kMostRows share no more.
constexpr int64_t kColumns[] = {2, 3, 1}, kWideColumns[] = {4, 3, 5, 2, 7, 1};
constexpr int64_t kRegisters = 16, kWideRegisters = 32, kMostRows = 8;
/// Rows by two vectors where registers hold no more than 16 vectors, and where they hold 32.
constexpr int64_t kPairBlocks[] = {6, 4}, kWidePairBlocks[] = {8, 4};
constexpr int kWideLanes = 16;
/// Blocks that read the same columns one after the other; threads share what is left, so many for more than
/// two.
constexpr int64_t kBlocksOfColumns[] = {4, 2, 5, 3, 1};
constexpr int64_t kFewestShares = 8;
/// Vectors narrower than this are left to scalars.
constexpr int64_t kNarrowest = 4;
/// What tuning may choose at most: rows of a block, vectors beside each other, blocks after each other.
constexpr int64_t kMostBlock = 12, kMostColumns = 8, kMostPair = 4, kMostBlocks = 16;
/// So many panels of a matrix at least for their loop to be the outermost.
constexpr int64_t kFewestPanels = 4;

class TilingChooser {
public:
  TilingChooser(const Nest& nest, const LoopFacts& facts, schedule::Chooser choose)
      : tensor_(*nest.tensor),
        places_(static_cast<int64_t>(nest.places.size())),
        lanes_(facts.lanes),
        l2_bytes_(facts.l2_bytes),
        knobs_(std::move(choose)) {}

  ChosenTiling run() {
    if (lanes_ > 1) lanes_ = static_cast<int>(ask("lanes", lanes_, near_lanes()));
    const size_t rank = tensor_.axes.size();
    if (lanes_ > 1 && rank > 0 && (count(rank - 1) == nullptr || *count(rank - 1) >= kNarrowest)) {
      tiling_.vector_axis = rank - 1;
      tiling_.lanes = lanes_;
    }
    if (tensor_.reduction && lanes_ > 1) {
      if (tensor_.dtypes.size() == 1) choose_reduced_lanes();
      choose_block();
    }
    choose_parallel_axes();
    if (places_ > 0) tiling_.places = ask("places", places_, schedule::divisors(places_));
    return {tiling_, knobs_.asked()};
  }

private:
  int64_t ask(std::string name, int64_t by_rule, std::vector<int64_t> candidates) {
    return knobs_.ask(std::move(name), by_rule, std::move(candidates));
  }
  bool ask(std::string name, bool by_rule) { return ask(std::move(name), by_rule ? 1 : 0, {0, 1}) != 0; }

  /// Vectors of the machine, halves of them, and two side by side.
  std::vector<int64_t> near_lanes() const {
    std::vector<int64_t> all;
    for (const int64_t lanes : {lanes_ / 2, lanes_, lanes_ * 2}) {
      if (lanes >= kNarrowest) all.push_back(lanes);
    }
    return all;
  }

  /// The extent of an axis where it is known, else nullptr.
  const int64_t* count(size_t axis) const { return te::as_int(tensor_.axes[axis].extent); }
  const te::Var& var(size_t axis) const { return tensor_.axes[axis].var; }

  /// All that a sum reads.
  std::vector<Expr> reads() const {
    std::vector<Expr> found;
    for (const Expr& source : tensor_.reduction->source) {
      te::for_each_expr(source, [&](const Expr& expr) {
        if (expr->op == ExprOp::kRead) found.push_back(expr);
      });
    }
    return found;
  }

  static bool reads_along(const Expr& read, const te::Var& var) {
    return std::any_of(read->args.begin(), read->args.end(),
                       [&](const Expr& index) { return te::mentions(index, var); });
  }

  /// How what a sum reads lies along a variable. is_regular: each read is of neighbours, or of one element
  /// for all of its values; moves: some read is of neighbours.
  struct Run {
    bool is_regular = true, moves = false;
  };
  Run runs_along(const te::Var& var) const {
    Run run;
    for (const Expr& read : reads()) {
      for (size_t d = 0; d < read->args.size(); ++d) {
        if (!te::mentions(read->args[d], var)) continue;
        te::Linear rest = te::to_linear(read->args[d]);
        const int64_t step = rest.coefficient_of(Expr(var));
        rest.add(Expr(var), -step);
        run.is_regular = run.is_regular && d + 1 == read->args.size() && step == 1 &&
                         !te::mentions(te::from_linear(rest), var);
        run.moves = true;
      }
    }
    return run;
  }

  /// Where memory does not run along the last axis but along the innermost one that is reduced, each lane
  /// keeps a part of the result.
  void choose_reduced_lanes() {
    if (tiling_.vector_axis && runs_along(var(*tiling_.vector_axis)).is_regular) return;
    const te::Reduction& reduction = *tensor_.reduction;
    const ExprOp op = reduction.combine[0]->op;
    const bool is_known =
        op == ExprOp::kAdd || op == ExprOp::kMul || op == ExprOp::kMin || op == ExprOp::kMax;
    const te::Axis& inner = reduction.axes.back();
    const int64_t* extent = te::as_int(inner.extent);
    const Run run = runs_along(inner.var);
    if (!is_known || !run.is_regular || !run.moves || (extent != nullptr && *extent < lanes_)) return;
    tiling_.reduced_lanes = static_cast<int>(ask("reduced_lanes", lanes_, {1, lanes_}));
    if (tiling_.reduced_lanes == 1) return;
    tiling_.vector_axis.reset();
    tiling_.lanes = 1;
  }

  /// What is summed up side by side. An axis whose rows share some of what they read comes before others; one
  /// of whole blocks before one that may end within a block.
  void choose_block() {
    const bool is_matrix = tiling_.vector_axis && count(*tiling_.vector_axis) != nullptr;
    if (choose_tile() || choose_pairs() || choose_whole_block(true) || (is_matrix && choose_ragged_block()) ||
        choose_whole_block(false))
      return;
    choose_ragged_block();
  }

  /// Whole vectors of rows of any number, several of both: what is loaded of one serves all of the other.
  bool choose_tile() {
    if (!tiling_.vector_axis || tensor_.dtypes.size() != 1) return false;
    const size_t last = *tiling_.vector_axis;
    const Run run = runs_along(var(last));
    if (count(last) == nullptr || *count(last) % lanes_ != 0 || !run.is_regular || !run.moves) return false;
    const std::optional<size_t> rows = rows_beside(last);
    if (!rows) return false;
    const int64_t own = *count(last) / lanes_;
    for (size_t i = *rows; i-- > 0 && own == 1 && !tiling_.column_axis;) {
      if (count(i) != nullptr && *count(i) > 1 && shares_reads(i) && !is_asked_about(i))
        tiling_.column_axis = i;
    }
    const int64_t all = tiling_.column_axis ? *count(*tiling_.column_axis) : own;
    const int64_t columns = ask("columns", most_columns(all), schedule::divisors(all, kMostColumns));
    (tiling_.column_axis ? tiling_.columns : tiling_.vectors) = columns;
    tiling_.block_axis = rows;
    tiling_.block = ask("rows", most_rows(columns), schedule::range_candidates(1, kMostBlock));
    tiling_.is_ragged = true;
    const int64_t panel = columns * lanes_;
    if (!tiling_.column_axis) choose_panels(*count(last), panel);
    tiling_.rows_last = *rows + 1 != last;
    return true;
  }

  /// Whether the loop over the panels of a matrix is the outermost, which threads share.
  void choose_panels(int64_t columns, int64_t panel) {
    if (!reads_panels()) return;
    if (ask("panels_first", columns >= kFewestPanels * panel)) tiling_.first_axis = tiling_.vector_axis;
  }

  /// Whether it depends on the place along an axis what counts in a sum, as at the borders of a map.
  bool is_asked_about(size_t axis) const {
    const std::vector<Expr>& sources = tensor_.reduction->source;
    return std::any_of(sources.begin(), sources.end(), [&](const Expr& source) {
      return source->op == ExprOp::kSelect && te::mentions(source->args[0], var(axis));
    });
  }

  /// The innermost axis that is left whose elements share vectors that are read.
  std::optional<size_t> rows_beside(size_t vectors) const {
    const std::vector<Expr> all = reads();
    for (size_t i = vectors; i-- > 0;) {
      const auto is_shared = [&](const Expr& read) {
        return reads_along(read, var(vectors)) && !reads_along(read, var(i));
      };
      if ((count(i) == nullptr || *count(i) > 1) && std::any_of(all.begin(), all.end(), is_shared)) return i;
    }
    return std::nullopt;
  }

  /// Of a vector of 32-bit lanes.
  static int64_t registers_of(DType dtype) { return std::max<int64_t>(1, dtype_info(dtype).bits / 32); }

  /// Beside the sums, registers hold one factor of all rows or of all columns, and one of the other.
  int64_t most_rows(int64_t columns) const {
    const int64_t registers =
        (lanes_ >= kWideLanes ? kWideRegisters : kRegisters) / registers_of(tensor_.dtypes[0]);
    int64_t rows = kMostRows;
    while (rows > 1 && rows * columns + std::min(rows, columns) + 1 > registers) --rows;
    return rows;
  }

  int64_t most_columns(int64_t all) const {
    const auto first_of = [all](const auto& candidates) {
      return *std::find_if(std::begin(candidates), std::end(candidates),
                           [all](int64_t columns) { return all % columns == 0; });
    };
    return lanes_ >= kWideLanes ? first_of(kWideColumns) : first_of(kColumns);
  }

  /// Of a product of a matrix with constant rows by columns of any number, which lie side by side: each
  /// element that is loaded serves a whole block or two vectors.
  bool choose_pairs() {
    if (!tiling_.vector_axis || tensor_.dtypes.size() != 1 || tensor_.dtypes[0] != DType::kFloat32)
      return false;
    const Run run = runs_along(var(*tiling_.vector_axis));
    if (count(*tiling_.vector_axis) != nullptr || !run.is_regular || !run.moves) return false;
    for (size_t i = *tiling_.vector_axis; i-- > 0;) {
      if (count(i) == nullptr || !shares_reads(i)) continue;
      const int64_t block = pair_block(*count(i));
      if (block == 0) return false;
      tiling_.block_axis = i;
      tiling_.block = ask("rows", block, schedule::divisors(*count(i), kMostBlock));
      tiling_.vectors = ask("columns", 2, {1, 2, 3, 4});
      tiling_.by_one = tiling_.vectors > 1;
      // Blocks after each other are those of vectors that may have to be taken one by one.
      if (!tiling_.by_one) return true;
      const int64_t all = *count(i) / tiling_.block;
      const int64_t by_rule =
          *std::find_if(std::begin(kBlocksOfColumns), std::end(kBlocksOfColumns), [&](int64_t blocks) {
            return all % blocks == 0 && (blocks <= 2 || all / blocks >= kFewestShares);
          });
      tiling_.blocks = ask("blocks", by_rule, schedule::divisors(all, kMostBlocks));
      return true;
    }
    return false;
  }

  /// Of two such blocks, which are one where vectors come one by one, if there are two; 0 for none.
  int64_t pair_block(int64_t rows) const {
    const auto& blocks = lanes_ >= kWideLanes ? kWidePairBlocks : kPairBlocks;
    for (const int64_t times : {2, 1}) {
      for (const int64_t block : blocks) {
        if (rows % (block * times) == 0) return block;
      }
    }
    return 0;
  }

  bool choose_whole_block(bool shared) {
    for (size_t i = tensor_.axes.size(); i-- > 0;) {
      const int64_t* extent = count(i);
      if (tiling_.vector_axis == i || extent == nullptr || (shared && !shares_reads(i))) continue;
      const auto block = std::find_if(std::begin(kBlocks), std::end(kBlocks),
                                      [&](int64_t rows) { return *extent % rows == 0; });
      if (block == std::end(kBlocks)) continue;
      tiling_.block_axis = i;
      tiling_.block = ask("rows", *block, schedule::divisors(*extent, kMostBlock));
      return true;
    }
    return false;
  }

  bool choose_ragged_block() {
    if (!tiling_.vector_axis || tensor_.dtypes.size() != 1) return false;
    for (size_t i = *tiling_.vector_axis; i-- > 0;) {
      if ((count(i) != nullptr && *count(i) < kRagged) || !shares_reads(i)) continue;
      tiling_.block_axis = i;
      tiling_.block = ask("rows", kRagged, schedule::range_candidates(1, kMostBlock));
      tiling_.is_ragged = true;
      const int64_t* columns = count(*tiling_.vector_axis);
      if (columns == nullptr || *columns < int64_t{2} * lanes_) return true;
      tiling_.vectors =
          ask("columns", 2, schedule::range_candidates(1, std::min(*columns / lanes_, kMostPair)));
      const int64_t panel = tiling_.vectors * lanes_;
      tiling_.by_one = tiling_.vectors > 1 && *columns % panel != 0;
      choose_panels(*columns, panel);
      return true;
    }
    return false;
  }

  /// Whether what a sum reads along the vectors is a matrix, the same for all other axes.
  bool reads_panels() const {
    for (const Expr& read : reads()) {
      if (!reads_along(read, var(*tiling_.vector_axis))) continue;
      for (size_t i = 0; i < *tiling_.vector_axis; ++i) {
        if (reads_along(read, var(i))) return false;
      }
    }
    return true;
  }

  /// Whether something that a sum reads is the same all along an axis.
  bool shares_reads(size_t axis) const {
    const std::vector<Expr> all = reads();
    return std::any_of(all.begin(), all.end(),
                       [&](const Expr& read) { return !reads_along(read, var(axis)); });
  }

  /// The first axis of several elements; and the next one, where its loop has a number of iterations that is
  /// known: the first may turn out to be 1.
  void choose_parallel_axes() {
    // What elements that are computed together have in common is worked out once for all axes of numbers.
    const auto unknown = std::find_if(tensor_.axes.begin(), tensor_.axes.end(), [](const te::Axis& axis) {
      return te::as_int(axis.extent) == nullptr;
    });
    const bool is_behind = std::any_of(tensor_.axes.begin(), unknown,
                                       [](const te::Axis& axis) { return !te::is_int(axis.extent, 1); });
    if (places_ > 0 && is_behind && unknown != tensor_.axes.end())
      tiling_.first_axis = static_cast<size_t>(unknown - tensor_.axes.begin());
    if (tiling_.first_axis) {
      tiling_.parallel_axis = tiling_.first_axis;
      return;
    }
    for (size_t i = 0; i < tensor_.axes.size() && !tiling_.parallel_axis; ++i) {
      if (count(i) == nullptr || *count(i) > 1) tiling_.parallel_axis = i;
    }
    if (!tiling_.parallel_axis || *tiling_.parallel_axis + 1 == tensor_.axes.size()) return;
    const Expr next = tiling_.trips(tensor_, *tiling_.parallel_axis + 1);
    tiling_.joined = te::as_int(next) != nullptr && *te::as_int(next) > 1 && ask("joined", true);
    if (!tiling_.column_axis) return;
    const Expr first = tiling_.trips(tensor_, *tiling_.parallel_axis);
    choose_chunk();
    if (tiling_.chunk > 0) return;
    share_rows((te::as_int(first) != nullptr ? *te::as_int(first) : 1) *
               (tiling_.joined ? *te::as_int(next) : 1));
  }

  /// Of rows that a matrix of several panels is multiplied by, as many as take a quarter of the cache: the
  /// blocks of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
  void choose_chunk() {
    const int64_t panels = *count(*tiling_.column_axis) / tiling_.columns;
    const bool are_rows = tiling_.parallel_axis == tiling_.column_axis && !tiling_.joined &&
                          tiling_.is_ragged && tiling_.block_axis == *tiling_.column_axis + 1 &&
                          panels >= kFewestShares;
    if (!are_rows) return;
    int64_t depth = 1;
    for (const te::Axis& axis : tensor_.reduction->axes) {
      const int64_t* extent = te::as_int(axis.extent);
      if (extent == nullptr) return;
      depth *= *extent;
    }
    const int64_t row_bytes = std::max<int64_t>(depth, 1) * dtype_info(tensor_.dtypes[0]).bits / 8;
    const int64_t by_rule = std::max<int64_t>(l2_bytes_ / 4 / row_bytes / tiling_.block, 1);
    tiling_.chunk = ask("chunk", by_rule, {std::max<int64_t>(by_rule / 2, 1), by_rule * 2, by_rule * 4});
  }

  /// Where the parallel loop is only known to have `known` iterations or some times as many.
  void share_rows(int64_t known) {
    const size_t last = *tiling_.parallel_axis + (tiling_.joined ? 1 : 0);
    const size_t axis = std::max(last, *tiling_.column_axis) + 1;
    if (axis >= *tiling_.vector_axis || known * 2 > kFewestShares) return;
    tiling_.parts = ask("parts", kFewestShares / known, {1, 2, 4, kFewestShares});
    if (tiling_.parts > 1) tiling_.shared_axis = axis;
  }

  const te::TensorNode& tensor_;
  const int64_t places_;
  int lanes_;
  const int64_t l2_bytes_;
  schedule::Knobs knobs_;
  Tiling tiling_;
};

}  // namespace

Expr Tiling::trips(const te::TensorNode& tensor, size_t axis) const {
  const Expr& count = tensor.axes[axis].extent;
  int64_t step = 1;
  if (axis == block_axis) step = block * blocks;
  if (axis == vector_axis) step = vectors * lanes;
  if (axis == column_axis) step = columns;
  if (step == 1) return count;
  return te::simplify(te::floordiv(count + Expr(step - 1), Expr(step)));
}

std::vector<size_t> Tiling::loop_order(size_t rank) const {
  std::vector<size_t> order;
  if (rows_last) order.push_back(*block_axis);
  for (size_t i = rank; i-- > 0;) {
    if (i != first_axis && !(rows_last && i == block_axis)) order.push_back(i);
  }
  if (first_axis) order.push_back(*first_axis);
  return order;
}

ChosenTiling choose_tiling_by(const Nest& nest, const LoopFacts& facts, const schedule::Chooser& choose) {
  return TilingChooser(nest, facts, choose).run();
}

Tiling choose_tiling(const Nest& nest, const LoopFacts& facts) {
  return TilingChooser(nest, facts, {}).run().tiling;
}

std::vector<Tail> tails_of(const Nest& nest, const Tiling& tiling) {
  std::vector<Tail> tails;
  const te::TensorNode& tensor = *nest.tensor;
  const auto add = [&](const Expr& extent, int64_t size) {
    const bool is_known = std::any_of(tails.begin(), tails.end(), [&](const Tail& tail) {
      return tail.size == size && te::equal(tail.extent, extent);
    });
    if (te::as_int(extent) == nullptr && size > 1 && !is_known) tails.push_back({extent, size});
  };
  const auto add_along = [&](const std::optional<size_t>& axis, std::initializer_list<int64_t> sizes) {
    for (const int64_t size : sizes) {
      if (axis) add(tensor.axes[*axis].extent, size);
    }
  };
  const int64_t rows = tiling.block * tiling.blocks;
  add_along(tiling.vector_axis, {tiling.lanes, tiling.lanes * tiling.vectors});
  add_along(tiling.block_axis, {tiling.block, rows, rows * tiling.chunk});
  add_along(tiling.column_axis, {tiling.columns});
  add_along(tiling.shared_axis,
            {Tiling::kRun * tiling.parts * (tiling.shared_axis == tiling.block_axis ? rows : 1)});
  if (tiling.reduced_lanes > 1) add(tensor.reduction->axes.back().extent, tiling.reduced_lanes);
  return tails;
}

}  // namespace tensormill::plan
