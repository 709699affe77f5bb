#include "compiler/schedule/automatic.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/schedule/builder.h"

namespace tensormill::schedule {

namespace {

constexpr int64_t kMostVectors = 8;       // of a tile along the vector axis
constexpr int64_t kMostRows = 8;          // of a tile along each other axis
constexpr size_t kTiledAxes = 2;          // beside the vector axis: the innermost ones
constexpr int64_t kMostUnrolled = 9;      // extent of a reduction axis that may be written out
constexpr int64_t kMostInRegisters = 28;  // partial results of a tile

/// Loops that a stage owns, and in which others may be computed.
struct Nest {
  std::string root;
  std::string inside;            ///< axis of root; "" for none
  std::vector<int64_t> factors;  ///< of the tile, by dimension; 1: not cut
  int vector = -1;               ///< the dimension of the lanes
  int64_t width = 1;             ///< lanes
  int whole = -1;                ///< the dimension that is whole inside of `inside`; -1 for none
  bool is_rows = false;          ///< it is the vector axis
  bool has_tail = false;         ///< the last tile along the vector axis is not full
};

class Sketch {
public:
  explicit Sketch(Builder& builder) : builder_(builder) {}

  void run() {
    std::vector<std::string> keep;
    for (const std::string& name : builder_.stage_names()) {
      const Stage& stage = builder_.stage(name);
      if (stage.reduction || stage.is_output) continue;
      if (knob(name, "inline", 1, {0, 1}) == 0) keep.push_back(name);
    }
    builder_.inline_injective(keep);
    // Readers first: where a stage is computed depends on the loops of what reads it.
    std::vector<std::string> names = builder_.stage_names();
    std::reverse(names.begin(), names.end());
    for (const std::string& name : names) {
      if (builder_.stage(name).attach != AttachKind::kInline) place(name);
    }
  }

private:
  int64_t knob(const std::string& stage, const char* what, int64_t value, std::vector<int64_t> candidates) {
    return builder_.knob(stage + "_" + what, value, std::move(candidates));
  }
  static std::string axis(size_t dimension) { return "i" + std::to_string(dimension); }
  // Tiles without a tail: what is computed inside of them stays inside of its buffers.
  static std::vector<int64_t> row_candidates(int64_t extent, int64_t most) {
    return divisors(extent, std::min(most, kMostRows));
  }
  static double work_of(const Stage& stage) {
    double work = 1;
    for (const StageAxis& one : stage.axes) work *= static_cast<double>(one.extent);
    return work;
  }
  int64_t lanes_for(const std::string& name, int64_t extent) const {
    int64_t width = builder_.lanes(name);
    while (width > 1 && width / 2 >= extent) width /= 2;
    return width;
  }

  void place(const std::string& name) {
    const Nest* nest = nest_of_readers(name);
    if (nest != nullptr && fits(name, *nest) && knob(name, "inside", 1, {0, 1}) == 1) {
      attach(name, *nest);
      return;
    }
    if (builder_.stage(name).shape.empty() || num_elements(builder_.stage(name).shape) == 0) return;
    if (!builder_.stage(name).reduction) {
      make_nest(name, false);
    } else if (builder_.stage(name).dtypes.size() == 1) {
      // The results are a copy of what accumulates, which is then placed inside of the copy's loops.
      builder_.step("cache_write", {name});
      make_nest(name, true);
      if (fits(name + ".c", nests_.at(name))) {
        attach(name + ".c", nests_.at(name));
      } else {
        builder_.fuse(name + ".c", data_axes(builder_.stage(name + ".c")));
      }
    } else {
      builder_.parallelize(name, builder_.fuse(name, data_axes(builder_.stage(name))),
                           work_of(builder_.stage(name)));
    }
  }

  // Past a tail, what is not cut as its reader is would be read where it was never computed. Rows that are
  // whole inside have no tail in what is computed for them.
  bool fits(const std::string& name, const Nest& nest) const {
    const Stage& stage = builder_.stage(name);
    const bool is_cut =
        stage.reduction && stage.dtypes.size() == 1 &&
        ((nest.whole < 0 && stage.shape == builder_.stage(nest.root).shape) || columns_of(stage, nest));
    return !nest.inside.empty() && (!nest.has_tail || nest.is_rows || is_cut);
  }

  // The one nest in which all readers are computed.
  const Nest* nest_of_readers(const std::string& name) const {
    if (builder_.stage(name).is_output) return nullptr;
    std::set<std::string> roots;
    for (const std::string& reader : builder_.readers(name)) {
      const auto found = root_of_.find(reader);
      roots.insert(found == root_of_.end() ? "" : found->second);
    }
    if (roots.size() != 1 || nests_.count(*roots.begin()) == 0) return nullptr;
    return &nests_.at(*roots.begin());
  }

  void make_nest(const std::string& name, bool accumulates) {
    const Shape shape = builder_.stage(name).shape;
    double work = work_of(builder_.stage(name));
    if (accumulates) work = std::max(work, work_of(builder_.stage(name + ".c")));
    Nest nest;
    nest.root = name;
    std::vector<int64_t> long_axes;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] > 1) long_axes.push_back(static_cast<int64_t>(d));
    }
    const int64_t innermost = long_axes.empty() ? static_cast<int64_t>(shape.size()) - 1 : long_axes.back();
    nest.vector = static_cast<int>(knob(name, "vector", innermost, long_axes));
    nest.factors.assign(shape.size(), 1);
    const auto vector = static_cast<size_t>(nest.vector);
    const int64_t lanes = lanes_for(name, shape[vector]);
    nest.width = knob(name, "lanes", lanes, {1, std::max<int64_t>(lanes / 2, 1), lanes});
    const int64_t whole = (shape[vector] + nest.width - 1) / nest.width;
    const int64_t vectors =
        knob(name, "vectors", 1, tile_candidates(whole, std::min<int64_t>(whole, kMostVectors)));
    nest.factors[vector] = nest.width * vectors;
    int64_t room = kMostInRegisters / vectors;
    size_t tiled = 0;
    for (size_t d = shape.size(); d-- > 0 && tiled < kTiledAxes;) {
      if (d == vector || shape[d] <= 1) continue;
      nest.factors[d] = knob(name, tiled == 0 ? "rows" : "rows2", 1, row_candidates(shape[d], room));
      room /= nest.factors[d];
      ++tiled;
    }
    nest.has_tail = shape[vector] % nest.factors[vector] != 0;
    // Which dimension lies inside of the loop in which others are computed: what is reduced over it is then
    // computed once.
    std::vector<int64_t> choices = {0};
    for (int64_t d : long_axes) choices.push_back(d + 1);
    nest.whole = long_axes.size() > 1 ? static_cast<int>(knob(name, "whole", 0, choices)) - 1 : -1;
    nest.is_rows = nest.whole == nest.vector;
    make_loops(nest, work);
    root_of_[name] = name;
    nests_[name] = nest;
  }

  void make_loops(Nest& nest, double work) {
    std::vector<std::string> inner;
    std::vector<std::string> outer = cut(nest.root, nest, inner);
    std::string whole;
    if (nest.whole >= 0) {
      const auto d = static_cast<size_t>(nest.whole);
      whole = axis(d) + (nest.factors[d] == 1 && !nest.is_rows ? "" : ".o");
      std::erase(outer, whole);
    } else if (knob(nest.root, "order", 0, {0, 1}) == 1) {
      // Tiles beside each other along the vector axis are far apart in time.
      const std::string vector = axis(static_cast<size_t>(nest.vector)) + ".o";
      std::erase(outer, vector);
      outer.insert(outer.begin(), vector);
    }
    std::vector<std::string> order = outer;
    if (!whole.empty()) order.push_back(whole);
    order.insert(order.end(), inner.begin(), inner.end());
    reorder(nest.root, order);
    const std::string fused = builder_.fuse(nest.root, outer);
    nest.inside = fused.empty() ? "" : builder_.parallelize(nest.root, fused, work);
    expand(nest.root, inner);
  }

  // Cuts the data axes by the nest's tile; returns the outer axes.
  std::vector<std::string> cut(const std::string& name, const Nest& nest, std::vector<std::string>& inner) {
    std::vector<std::string> outer;
    for (size_t d = 0; d < nest.factors.size(); ++d) {
      if (nest.factors[d] == 1 && static_cast<int>(d) != nest.vector) {
        outer.push_back(axis(d));
        continue;
      }
      builder_.step("split", {name, axis(d), std::to_string(nest.factors[d])});
      outer.push_back(axis(d) + ".o");
      if (static_cast<int>(d) != nest.vector) inner.push_back(axis(d) + ".i");
    }
    const auto vector = static_cast<size_t>(nest.vector);
    builder_.step("split", {name, axis(vector) + ".i", std::to_string(nest.width)});
    inner.push_back(axis(vector) + ".i.o");
    inner.push_back(axis(vector) + ".i.i");
    return outer;
  }

  void reorder(const std::string& name, const std::vector<std::string>& axes) {
    std::vector<std::string> args = {name};
    args.insert(args.end(), axes.begin(), axes.end());
    if (args.size() > 2) builder_.step("reorder", args);
  }

  void expand(const std::string& name, const std::vector<std::string>& inner) {
    for (size_t i = 0; i + 1 < inner.size(); ++i) builder_.step("unroll", {name, inner[i]});
    builder_.step("vectorize", {name, inner.back()});
  }

  void attach(const std::string& name, const Nest& nest) {
    const Stage& stage = builder_.stage(name);
    root_of_[name] = nest.root;
    const bool same = stage.shape == builder_.stage(nest.root).shape;
    if (!stage.reduction) {
      attach_plain(name, nest);
    } else if (const std::optional<Nest> columns = columns_of(stage, nest)) {
      attach_tile(name, *columns);
    } else if (can_split_reduction(name) && (!nest.has_tail || nest.is_rows) &&
               knob(name, "rfactor", same ? 0 : 1, {0, 1}) == 1) {
      attach_partial(name, nest);
    } else if (same && nest.whole < 0 && stage.dtypes.size() == 1) {
      attach_tile(name, nest);
    } else {
      compute_inside(name, nest);
    }
  }

  // The nest as a reduction over its whole dimension sees it, where that is not the vector axis: a value for
  // each lane and row of the tile.
  std::optional<Nest> columns_of(const Stage& stage, const Nest& nest) const {
    if (nest.whole < 0 || nest.is_rows || stage.dtypes.size() != 1) return std::nullopt;
    const auto d = static_cast<size_t>(nest.whole);
    Shape left = builder_.stage(nest.root).shape;
    Nest columns = nest;
    columns.factors[d] = 1;
    left[d] = 1;
    if (stage.shape.size() + 1 == left.size()) {
      left.erase(left.begin() + nest.whole);
      columns.factors.erase(columns.factors.begin() + nest.whole);
      columns.vector -= nest.vector > nest.whole ? 1 : 0;
    }
    if (stage.shape != left) return std::nullopt;
    return columns;
  }

  void compute_inside(const std::string& name, const Nest& nest) {
    if (!nest.inside.empty()) builder_.step("compute_at", {name, nest.root, nest.inside});
  }

  // A tile of results in registers, around which the reduction runs.
  void attach_tile(const std::string& name, const Nest& nest) {
    std::vector<std::string> inner;
    std::vector<std::string> order = cut(name, nest, inner);
    std::vector<std::string> reduced = reduce_axes(builder_.stage(name));
    if (reduced.size() > 1 && knob(name, "reduce_order", 0, {0, 1}) == 1)
      std::rotate(reduced.begin(), reduced.begin() + 1, reduced.end());
    order.insert(order.end(), reduced.begin(), reduced.end());
    order.insert(order.end(), inner.begin(), inner.end());
    reorder(name, order);
    expand(name, inner);
    const std::string& last = reduced.back();
    const int64_t extent = builder_.extent(name, last);
    if (extent > 1 && extent <= kMostUnrolled && knob(name, "unroll", 0, {0, 1}) == 1)
      builder_.step("unroll", {name, last});
    compute_inside(name, nest);
    if (!nest.inside.empty()) builder_.step("store_in", {name, "register"});
  }

  bool can_split_reduction(const std::string& name) const {
    const Stage& stage = builder_.stage(name);
    const te::ExprOp op = stage.reduction->combine[0]->op;
    const bool associates =
        op == te::ExprOp::kAdd || op == te::ExprOp::kMul || op == te::ExprOp::kMin || op == te::ExprOp::kMax;
    return stage.dtypes.size() == 1 && associates && builder_.lanes(name) > 1 &&
           builder_.extent(name, reduce_axes(stage).back()) >= 4;
  }

  // The reduction axis whose steps go to lanes: the innermost one, or with it those that memory continues.
  std::string partial_axis(const std::string& name) {
    const std::vector<std::string> axes = reduce_axes(builder_.stage(name));
    const int last = static_cast<int>(axes.size()) - 1;
    if (!builder_.joins(name, last) || knob(name, "join", 1, {0, 1}) == 0) return axes.back();
    return builder_.join_reduction(name, last);
  }

  // Vectors of partial results beside each other: as many additions may be under way at a time.
  int64_t accumulators(const std::string& name, int64_t vectors, int64_t tile) {
    std::vector<int64_t> counts = {1, 2, 4, 8};
    std::erase_if(counts, [&](int64_t count) { return count > vectors || count * tile > kMostInRegisters; });
    return counts.size() > 1 ? knob(name, "accumulators", 1, counts) : 1;
  }

  // Partial results in the lanes of vectors.
  void attach_partial(const std::string& name, const Nest& nest) {
    const std::string last = partial_axis(name);
    const int64_t width = lanes_for(name, builder_.extent(name, last));
    // In registers: a tile's partial results, or those of the one value that a step of the loop needs.
    int64_t tile = 1;
    for (int64_t factor : nest.factors) tile *= factor;
    const bool is_tile = builder_.stage(name).shape == builder_.stage(nest.root).shape && nest.whole < 0 &&
                         tile <= kMostInRegisters;
    const int64_t chains = accumulators(name, builder_.extent(name, last) / width, is_tile ? tile : 1);
    builder_.step("split", {name, last, std::to_string(width * chains)});
    builder_.step("rfactor", {name, last + ".i"});
    const std::string partial = name + ".rf";
    std::string lane = axis(builder_.stage(partial).shape.size() - 1);
    root_of_[partial] = nest.root;
    std::vector<std::string> inner, order;
    if (is_tile) order = cut(partial, nest, inner);
    const std::vector<std::string> reduced = reduce_axes(builder_.stage(partial));
    order.insert(order.end(), reduced.begin(), reduced.end());
    if (chains > 1) {
      builder_.step("split", {partial, lane, std::to_string(width)});
      inner.push_back(lane + ".o");
      lane += ".i";
    }
    inner.push_back(lane);
    order.insert(order.end(), inner.begin(), inner.end());
    reorder(partial, order);
    expand(partial, inner);
    inner.clear();
    if (is_tile) {
      order = cut(name, nest, inner);
      inner.emplace_back("r0");
      order.insert(order.end(), inner.begin(), inner.end());
      reorder(name, order);
      expand(name, inner);
    } else {
      builder_.step("vectorize", {name, "r0"});
    }
    const bool is_one = needs_one(name, nest);
    for (const std::string& one : {name, partial}) {
      compute_inside(one, nest);
      if (!nest.inside.empty() && (is_tile || is_one)) builder_.step("store_in", {one, "register"});
    }
  }

  // Whether a step of the nest's loop needs one element of the stage: a value of each row.
  bool needs_one(const std::string& name, const Nest& nest) const {
    Shape rows = builder_.stage(nest.root).shape;
    Shape shape = builder_.stage(name).shape;
    if (!nest.is_rows || static_cast<size_t>(nest.vector) + 1 != rows.size()) return false;
    if (shape.size() == rows.size() && shape.back() == 1) shape.pop_back();
    rows.pop_back();
    for (size_t d = 0; d < rows.size(); ++d) {
      if (nest.factors[d] != 1) return false;
    }
    return shape == rows;
  }

  void attach_plain(const std::string& name, const Nest& nest) {
    const Shape shape = builder_.stage(name).shape;
    if (!shape.empty() && shape.back() > 1) {
      const std::string last = axis(shape.size() - 1);
      const int64_t width = lanes_for(name, shape.back());
      builder_.step("split", {name, last, std::to_string(width)});
      builder_.step("vectorize", {name, last + ".i"});
      const int64_t copies =
          knob(name, "copies", 1, tile_candidates((shape.back() + width - 1) / width, kMostVectors));
      if (copies > 1) {
        builder_.step("split", {name, last + ".o", std::to_string(copies)});
        builder_.step("unroll", {name, last + ".o.i"});
      }
    }
    compute_inside(name, nest);
  }

  Builder& builder_;
  std::map<std::string, Nest> nests_;  ///< by root
  std::map<std::string, std::string> root_of_;
};

}  // namespace

Tuned sketch_schedule(const te::Program& program, const target::Target& target, const Chooser& choose) {
  Builder builder(program, target, choose);
  Sketch(builder).run();
  return {builder.schedule(), builder.knobs()};
}

Tuned choose_schedule_or_sketch(const te::Program& program, const target::Target& target,
                                const Chooser& choose) {
  Builder first(program, target, choose);
  const int64_t sketch = first.knob("sketch", 0, {0, 1});
  Tuned tuned =
      sketch == 1 ? sketch_schedule(program, target, choose) : choose_schedule(program, target, choose);
  tuned.knobs.insert(tuned.knobs.begin(), first.knobs().begin(), first.knobs().end());
  return tuned;
}

}  // namespace tensormill::schedule
