// Reductions of every kind: sums of products (matrix products, convolutions), windows, plain reductions.
// Where memory runs along an output axis, a tile of rows x vectors of results stays in registers while the
// reduction axes run outside it; where it runs along a reduction axis, each lane keeps a partial result
// (rfactor).
#include <algorithm>

#include "compiler/schedule/templates/register_tile.h"

namespace tensormill::schedule {

namespace {

constexpr int64_t kMaxSteps = 9;          // of the innermost reduction axis that may be written out
constexpr int64_t kMaxAccumulators = 24;  // of results that share no loads

double work_of(const Stage& stage) {
  double work = 1;
  for (const StageAxis& axis : stage.axes) work *= static_cast<double>(axis.extent);
  return work;
}

/// One axis of the register tile.
struct TileAxis {
  int dimension = -1;
  int64_t factor = 1;
  bool is_set() const { return dimension >= 0; }
};

std::string axis_name(int dimension) { return "i" + std::to_string(dimension); }

// The largest factor up to `limit` that divides `extent`, unless it is less than half of what fits.
int64_t good_factor(int64_t extent, int64_t limit) {
  const int64_t most = std::max<int64_t>(std::min(extent, limit), 1);
  for (int64_t factor = most; factor > most / 2; --factor) {
    if (extent % factor == 0) return factor;
  }
  return most;
}

/// Accesses of the accumulating stage, and the tile that follows from them.
class TilePlanner {
public:
  TilePlanner(const Builder& builder, const std::string& stage)
      : stage_(builder.stage(stage)),
        accesses_(builder.accesses(stage)),
        lanes_(builder.lanes(stage)),
        budget_(builder.target().facts.vector_registers >= 32 ? 24 : 12) {}

  /// The innermost dimension that is longer than 1; -1 when there is none.
  int last_dimension() const {
    for (size_t d = stage_.shape.size(); d-- > 0;) {
      if (stage_.shape[d] > 1) return static_cast<int>(d);
    }
    return -1;
  }
  /// Whether vectors along the root axis are loaded as such (or as one element for all lanes).
  bool runs_along(size_t axis, int64_t longest_stride) const {
    for (const Access& access : accesses_) {
      if (access.irregular[axis] || access.stride[axis] < 0 || access.stride[axis] > longest_stride)
        return false;
    }
    return true;
  }
  /// The reduction axis along which memory runs, counted from the first; -1 when there is none.
  int reduction_lane_axis() const {
    if (!stage_.reduction || stage_.dtypes.size() != 1) return -1;
    const te::ExprOp op = stage_.reduction->combine[0]->op;
    const bool known =
        op == te::ExprOp::kAdd || op == te::ExprOp::kMul || op == te::ExprOp::kMin || op == te::ExprOp::kMax;
    for (size_t r = stage_.reduction->axes.size(); known && r-- > 0;) {
      const size_t axis = stage_.shape.size() + r;
      bool moves = false;
      for (const Access& access : accesses_) moves = moves || access.stride[axis] == 1;
      if (stage_.axes[axis].extent >= 4 && moves && runs_along(axis, 1)) return static_cast<int>(r);
    }
    return -1;
  }
  /// Of the other dimensions the one along which most loads repeat; -1 when none repeats.
  int reused_dimension(const std::vector<int>& taken) const {
    int best = -1, most = 0;
    for (size_t d = 0; d < stage_.shape.size(); ++d) {
      if (stage_.shape[d] <= 1 || std::find(taken.begin(), taken.end(), static_cast<int>(d)) != taken.end())
        continue;
      int count = 0;
      for (const Access& access : accesses_) {
        // A vector that is loaded once for the tile counts more than a scalar.
        if (access.stride[d] != 0 || access.irregular[d]) continue;
        const bool vector = !taken.empty() && access.stride[static_cast<size_t>(taken[0])] != 0;
        count += vector ? 3 : 2;
      }
      if (count > most) {
        most = count;
        best = static_cast<int>(d);
      }
    }
    return best;
  }
  /// The longest dimension but `taken`; -1 when none is longer than 1.
  int longest_dimension(int taken) const {
    int best = -1;
    for (int d = 0; d < static_cast<int>(stage_.shape.size()); ++d) {
      if (d != taken && extent(d) > 1 && (best < 0 || extent(d) > extent(best))) best = d;
    }
    return best;
  }
  int64_t lanes() const { return lanes_; }
  int64_t budget() const { return budget_; }
  int64_t extent(int dimension) const { return stage_.shape[static_cast<size_t>(dimension)]; }

private:
  const Stage& stage_;
  std::vector<Access> accesses_;
  int64_t lanes_, budget_;
};

int64_t next_power_of_two(int64_t value) {
  int64_t result = 1;
  while (result < value) result *= 2;
  return result;
}

/// Cuts the data axes of a stage into blocks and the tile: outer parts in natural order, then `rows`, then
/// the vectors of dimension `vector` (-1: none). Returns the names of outer and inner axes.
struct TileCut {
  std::vector<std::string> outer, inner;
};
TileCut cut_tile(Builder& builder, const std::string& name, const std::vector<TileAxis>& rows, int vector,
                 int64_t lanes, int64_t vectors) {
  TileCut cut;
  for (int d = 0; d < static_cast<int>(builder.stage(name).shape.size()); ++d) {
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const TileAxis& t) { return t.dimension == d; });
    const std::string axis = axis_name(d);
    if (d == vector) {
      builder.step("split", {name, axis, std::to_string(lanes * vectors)});
    } else if (row != rows.end()) {
      builder.step("split", {name, axis, std::to_string(row->factor)});
    } else {
      cut.outer.push_back(axis);
      continue;
    }
    cut.outer.push_back(axis + ".o");
  }
  for (const TileAxis& row : rows) cut.inner.push_back(axis_name(row.dimension) + ".i");
  if (vector >= 0) {
    std::string lane = axis_name(vector) + ".i";
    if (vectors > 1) {
      builder.step("split", {name, lane, std::to_string(lanes)});
      cut.inner.push_back(lane + ".o");
      lane += ".i";
    }
    cut.inner.push_back(lane);
  }
  return cut;
}

void reorder(Builder& builder, const std::string& name, const std::vector<std::vector<std::string>>& groups) {
  std::vector<std::string> args = {name};
  for (const auto& group : groups) args.insert(args.end(), group.begin(), group.end());
  if (args.size() > 2) builder.step("reorder", args);
}

// Unrolls the inner axes; the last becomes a vector when `vector`.
void expand_inner(Builder& builder, const std::string& name, const std::vector<std::string>& inner,
                  bool vector) {
  for (size_t i = 0; i < inner.size(); ++i) {
    const bool lane = vector && i + 1 == inner.size();
    builder.step(lane ? "vectorize" : "unroll", {name, inner[i]});
  }
}

// The root's loops: outer parts fused and parallel; returns the loop in which the tile is computed, "" for
// none.
std::string root_loops(Builder& builder, const std::string& root, const TileCut& cut, bool vector,
                       double work) {
  reorder(builder, root, {cut.outer, cut.inner});
  const std::string fused = builder.fuse(root, cut.outer);
  const std::string inside = fused.empty() ? "" : builder.parallelize(root, fused, work);
  expand_inner(builder, root, cut.inner, vector);
  return inside;
}

void schedule_tile(Builder& builder, const Anchor& anchor, const std::vector<TileAxis>& rows, int vector,
                   int64_t lanes, int64_t vectors) {
  const double work = work_of(builder.stage(anchor.stage));
  const TileCut root = cut_tile(builder, anchor.root, rows, vector, lanes, vectors);
  const std::string inside = root_loops(builder, anchor.root, root, lanes > 1, work);
  const TileCut own = cut_tile(builder, anchor.stage, rows, vector, lanes, vectors);
  std::vector<std::string> reduced = reduce_axes(builder.stage(anchor.stage));
  if (reduced.size() > 1 && builder.knob(anchor.stage + "_reduce_order", 0, {0, 1}) == 1)
    std::rotate(reduced.begin(), reduced.begin() + 1, reduced.end());
  const std::vector<std::string> innermost =
      tune_unroll(builder, anchor.stage, reduced.back(), anchor.stage + "_unroll", 1, kMaxSteps);
  reduced.pop_back();
  reorder(builder, anchor.stage, {own.outer, reduced, innermost, own.inner});
  expand_inner(builder, anchor.stage, own.inner, lanes > 1);
  builder.step("compute_at", {anchor.stage, anchor.root, inside});
  builder.step("store_in", {anchor.stage, "register"});
}

// Lanes along reduction axis `lane_axis`: partial results in the lanes, combined at the end.
void schedule_lanes(Builder& builder, const Anchor& anchor, const std::string& lane_axis, int64_t lanes,
                    const std::vector<TileAxis>& rows) {
  const double work = work_of(builder.stage(anchor.stage));
  builder.step("split", {anchor.stage, lane_axis, std::to_string(lanes)});
  builder.step("rfactor", {anchor.stage, lane_axis + ".i"});
  const std::string partial = anchor.stage + ".rf";
  const TileCut root = cut_tile(builder, anchor.root, rows, -1, 1, 1);
  const std::string inside = root_loops(builder, anchor.root, root, false, work);
  const TileCut combined = cut_tile(builder, anchor.stage, rows, -1, 1, 1);
  reorder(builder, anchor.stage, {combined.outer, combined.inner});
  expand_inner(builder, anchor.stage, combined.inner, false);
  builder.step("vectorize", {anchor.stage, "r0"});
  const std::string lane = axis_name(static_cast<int>(builder.stage(partial).shape.size()) - 1);
  TileCut own = cut_tile(builder, partial, rows, -1, 1, 1);
  std::erase(own.outer, lane);
  own.inner.push_back(lane);
  reorder(builder, partial, {own.outer, reduce_axes(builder.stage(partial)), own.inner});
  expand_inner(builder, partial, own.inner, true);
  for (const std::string& stage : {anchor.stage, partial}) {
    if (!inside.empty()) {
      builder.step("compute_at", {stage, anchor.root, inside});
      builder.step("store_in", {stage, "register"});
    }
  }
}

/// Along what the lanes of a reduction's vectors lie.
struct LaneChoice {
  int vector = -1;             ///< the innermost dimension of the results; -1: there is none
  int lane = -1;               ///< the reduction axis along which memory runs; -1: there is none
  bool along_results = false;  ///< lanes along `vector`, else along `lane`
};

LaneChoice choose_lanes(const Builder& builder, const std::string& name) {
  const TilePlanner planner(builder, name);
  LaneChoice choice{planner.last_dimension(), planner.reduction_lane_axis()};
  const bool has_vector = choice.vector >= 0;
  choice.along_results = has_vector && planner.runs_along(static_cast<size_t>(choice.vector), 4);
  const int64_t width = has_vector ? planner.extent(choice.vector) : 1;
  if (choice.lane >= 0 && choice.along_results && width * 4 < planner.lanes()) choice.along_results = false;
  if (choice.lane < 0 && has_vector && builder.stage(name).dtypes.size() == 1)
    choice.along_results = true;  // gathers are all there is
  return choice;
}

// Rows of a tile whose lanes lie along a reduction axis: two dimensions at most.
std::vector<TileAxis> tune_rows_of_lanes(Builder& builder, const TilePlanner& planner,
                                         const std::string& name, int first) {
  std::vector<TileAxis> rows;
  std::vector<int> taken;
  for (int64_t left = planner.budget() >= 24 ? 16 : 12; taken.size() < 2;) {
    const int d = taken.empty() ? first : planner.reused_dimension(taken);
    if (d < 0) break;
    const int64_t factor = good_factor(planner.extent(d), std::min<int64_t>(left, 4));
    rows.insert(rows.begin(), {d, builder.knob(name + "_rows" + std::to_string(taken.size()), factor,
                                               tile_candidates(planner.extent(d), 8))});
    taken.push_back(d);
    left /= rows.front().factor;
  }
  return rows;
}

// Rows of a tile of `vectors` vectors along dimension `vector`: those that share most loads.
std::vector<TileAxis> tune_rows(Builder& builder, const TilePlanner& planner, const std::string& name,
                                int vector, int64_t vectors) {
  std::vector<TileAxis> rows;
  const int row = planner.reused_dimension({vector});
  if (row >= 0) {
    const int64_t most = std::max<int64_t>(planner.budget() / vectors, 1);
    const int64_t factor = good_factor(planner.extent(row), std::min<int64_t>(most, 12));
    rows.push_back({row, builder.knob(name + "_rows", factor,
                                      range_candidates(1, std::min(planner.extent(row), most + 4)))});
    const int64_t used = rows[0].factor * vectors;
    const int second = planner.reused_dimension({vector, row});
    if (second >= 0 && used * 2 <= planner.budget()) {
      rows.push_back({second, good_factor(planner.extent(second), planner.budget() / used)});
    }
  } else if (const int beside = planner.longest_dimension(vector); beside >= 0) {
    // Nothing is shared, but so many sums do not wait for each other.
    std::vector<int64_t> counts = divisors(planner.extent(beside));
    std::erase_if(counts, [&](int64_t count) { return count * vectors > kMaxAccumulators; });
    const int64_t count = counts.size() > 1 ? builder.knob(name + "_beside", 1, counts) : 1;
    if (count > 1) rows.push_back({beside, count});
  }
  return rows;
}

}  // namespace

std::vector<std::string> schedule_reduction(Builder& builder, const std::string& name) {
  const Stage& stage = builder.stage(name);
  // Tiles are cut for numbers.
  if (!builder.state().knows_extents()) return {name};
  double points = 1;
  for (int64_t extent : stage.shape) points *= static_cast<double>(extent);
  if (stage.shape.empty() || points == 0 || work_of(stage) == 0) return {name};
  const LaneChoice choice = choose_lanes(builder, name);
  const int64_t lanes = builder.lanes(name);
  if (!choice.along_results && choice.lane < 0) {
    builder.parallelize(name, builder.fuse(name, data_axes(builder.stage(name))),
                        work_of(builder.stage(name)));
    return {name};
  }
  const Anchor anchor = make_anchor(builder, name);
  const TilePlanner planner(builder, anchor.stage);
  if (!choice.along_results) {
    const std::string axis = builder.join_reduction(anchor.stage, choice.lane);
    const int64_t width = std::min(lanes, next_power_of_two(builder.extent(anchor.stage, axis)));
    schedule_lanes(builder, anchor, axis, width, tune_rows_of_lanes(builder, planner, name, choice.vector));
    return {anchor.root, anchor.stage, anchor.stage + ".rf"};
  }
  const int64_t extent = planner.extent(choice.vector);
  const int64_t width = std::min(lanes, next_power_of_two(extent));
  const int64_t whole = (extent + width - 1) / width;
  const bool shares = planner.reused_dimension({choice.vector}) >= 0;
  const int64_t usual = !shares ? 8 : planner.budget() >= 24 ? 4 : 2;
  const int64_t vectors = builder.knob(name + "_vectors", good_factor(whole, usual),
                                       range_candidates(1, std::min<int64_t>(whole, 8)));
  const std::vector<TileAxis> rows = tune_rows(builder, planner, name, choice.vector, vectors);
  schedule_tile(builder, anchor, rows, choice.vector, width, vectors);
  return {anchor.root, anchor.stage};
}

namespace {

// Whether the reduction `reader` reads elements of the stage more than once, as windows and products do.
bool reads_again(const Builder& builder, const std::string& reader, const std::string& stage) {
  const int64_t elements = num_elements(builder.stage(stage).shape);
  int64_t reads = 1;
  for (size_t i = 0; i < static_cast<size_t>(builder.stage(reader).num_roots); ++i)
    reads *= builder.stage(reader).axes[i].extent;
  return reads > elements;
}

// Stages that reductions read again and again (padded copies) are computed once; all others are inlined.
void inline_all_but_padding(Builder& builder) {
  std::vector<std::string> keep;
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (stage.reduction || stage.is_output || stage.body[0]->op != te::ExprOp::kSelect) continue;
    for (const std::string& reader : builder.readers(name)) {
      if (builder.stage(reader).reduction && reads_again(builder, reader, name)) keep.push_back(name);
    }
  }
  builder.inline_injective(keep);
}

// A padded copy that is read with a stride along its rows is stored by residue, so that the reader's vectors
// are contiguous.
void store_by_stride(Builder& builder) {
  for (const std::string& name : builder.stage_names()) {
    const Stage& stage = builder.stage(name);
    if (!stage.reduction || stage.shape.empty()) continue;
    const size_t last = stage.shape.size() - 1;
    for (const Access& access : builder.accesses(name)) {
      bool reused = false;
      for (size_t d = 0; d <= last; ++d) reused = reused || (stage.shape[d] > 1 && access.stride[d] == 0);
      const int source = builder.state().stage_of(access.tensor);
      if (source < 0 || !reused || access.irregular[last] || access.stride[last] < 2 ||
          access.stride[last] > 4)
        continue;
      const Stage& producer = builder.state().stages()[static_cast<size_t>(source)];
      if (producer.is_output || producer.reduction || !producer.layout.empty() || producer.shape.empty())
        continue;
      if (builder.readers(producer.name).size() != 1) continue;
      const std::string dimension = axis_name(static_cast<int>(producer.shape.size()) - 1);
      const std::string producer_name = producer.name;
      builder.step("storage_layout", {producer_name, dimension, std::to_string(access.stride[last])});
    }
  }
}

}  // namespace

bool template_stages(Builder& builder) {
  inline_all_but_padding(builder);
  store_by_stride(builder);
  schedule_roots(builder);
  return true;
}

}  // namespace tensormill::schedule
