#include "compiler/frontend/onnx/shape_samples.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "compiler/frontend/onnx/graph_form.h"
#include "compiler/frontend/onnx/sample_base.h"

namespace tensormill::frontend::onnx {

namespace {

using Dims = std::vector<int64_t>;

class Sampler {
public:
  Sampler(const ImportAt& import, const StopAt& stop_at, SampleBase base, ir::SampleSet& variants)
      : import_(import),
        stop_at_(stop_at),
        variants_(variants),
        dependents_(std::move(base.dependents)),
        base_(std::move(base.dims)),
        steps_(std::move(base.steps)) {}

  void run(bool needs_alike) {
    raise_base();
    if (needs_alike && add_unlike()) return;
    variants_.multiples = steps_;
    variants_.dependents = dependents_;
    add_minimums();
    add_maximums();
    add(base_);
    for (size_t d = 0; d < base_.size(); ++d) {
      if (!is_dependent(d)) sample_along(d);
    }
    add_least();
    add_apart();
    // All dims at once: products of dims are told from sums.
    for (const int64_t count : {5, 3}) {
      Dims dims = base_;
      for (size_t d = 0; d < dims.size(); ++d) dims[d] += (count + static_cast<int64_t>(d)) * steps_[d];
      if (dims.size() > 1 || count == 3) add(settled(dims));
    }
    add_checks();
    add_probes();
  }

private:
  static constexpr size_t kFewNodes = 32;
  static constexpr int64_t kAllBelow = 40;
  static constexpr int64_t kApart = 23;
  static constexpr size_t kScattered = 5;

  Dims settled(Dims dims) const { return ir::with_dependents(std::move(dims), dependents_); }
  bool is_dependent(size_t dim) const {
    return std::any_of(dependents_.begin(), dependents_.end(),
                       [&](const ir::DependentDim& each) { return each.dim == dim; });
  }

  /// Until no extent that grows with a dim is 1 or 2: the net's deepest maps are no smaller than its windows.
  void raise_base() {
    constexpr int kDoublings = 6;
    for (int i = 0; i <= kDoublings; ++i) {
      const ir::Graph graph = *import_(base_);
      base_form_ = form_of(graph);
      longest_hop_ = longest_hop_of(graph);
      nodes_ = graph.nodes().size();
      forms_.clear();
      Dims larger = base_;
      for (size_t d = 0; d < base_.size(); ++d) {
        if (is_dependent(d)) continue;
        const std::vector<int64_t>& values = form_at(d, kFarStep / 8).values;
        bool small = false;
        for (size_t k = 0; values.size() == base_form_.values.size() && k < base_form_.extents; ++k)
          small = small || (base_form_.values[k] < 3 && values[k] > base_form_.values[k]);
        if (small) larger[d] *= 2;
      }
      larger = settled(larger);
      if (i == kDoublings || larger == base_ || !import_(larger) || !leaves_range(larger)) return;
      base_ = larger;
    }
  }

  /// Adds the base and a neighbour that has not as many nodes, if there is one.
  bool add_unlike() {
    for (size_t d = 0; d < base_.size(); ++d) {
      if (is_dependent(d)) continue;
      const Dims near = at(d, 1);
      std::optional<ir::Graph> graph = import_(near);
      if (!graph || graph->nodes().size() == nodes_) continue;
      add(base_);
      variants_.samples.push_back({near, std::move(*graph)});
      return true;
    }
    return false;
  }

  /// How many steps beyond the base the model takes along the dim, kFarStep at most.
  int64_t reach(size_t dim) {
    if (!form_at(dim, kFarStep).values.empty()) return kFarStep;
    int64_t low = 0, high = kFarStep;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (form_at(dim, middle).values.empty() ? high : low) = middle;
    }
    return low;
  }

  /// Of dims below which a node takes no extent of its own, whatever the others are.
  void add_minimums() {
    for (size_t d = 0; d < base_.size(); ++d) variants_.minimums.push_back(is_dependent(d) ? 0 : minimum(d));
  }

  int64_t minimum(size_t dim) {
    Dims dims = base_;
    const auto takes = [&](int64_t count) {
      dims[dim] = count * steps_[dim];
      return import_(settled(dims)).has_value();
    };
    int64_t refused = 1, taken = base_[dim] / steps_[dim];
    if (taken <= 1 || takes(refused)) return 0;
    while (taken - refused > 1) {
      const int64_t middle = refused + (taken - refused) / 2;
      (takes(middle) ? taken : refused) = middle;
    }
    for (const int64_t few : {1, 2, 3, 5}) {
      for (size_t other = 0; other < dims.size(); ++other)
        dims[other] = is_dependent(other) ? dims[other] : few * steps_[other];
      for (const int64_t count : {refused, (refused + 1) / 2, int64_t{1}}) {
        if (takes(count)) return 0;
      }
    }
    return taken * steps_[dim];
  }

  /// Of dims that end where a node has no extent of its own left, whatever the others are.
  void add_maximums() {
    for (size_t d = 0; d < base_.size(); ++d) variants_.maximums.push_back(is_dependent(d) ? 0 : maximum(d));
    const auto is_none = [](int64_t most) { return most == 0; };
    if (std::all_of(variants_.maximums.begin(), variants_.maximums.end(), is_none))
      variants_.maximums.clear();
  }

  int64_t maximum(size_t dim) {
    const int64_t last = reach(dim);
    if (last == kFarStep || !stop_at_) return 0;
    constexpr std::array<int64_t, 5> kOthers = {0, 1, 5, kApart, 64};
    for (const int64_t more : kOthers) {
      Dims dims = base_;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (d != dim && !is_dependent(d)) dims[d] += std::min(more, reach(d)) * steps_[d];
      }
      const auto is_invalid = [&](int64_t count) {
        dims[dim] = base_[dim] + count * steps_[dim];
        return stop_at_(settled(dims)).is_invalid;
      };
      for (const int64_t beyond : {1, 2, 3, 7, 16, 64, 512}) {
        if (!is_invalid(last + beyond)) return 0;
      }
      if (is_invalid(last) || !is_invalid(8 * kFarStep)) return 0;
      if (base_.size() == 1) break;
    }
    return base_[dim] + last * steps_[dim] + steps_[dim] - 1;
  }

  /// Whether most of the extents that the model takes beyond the base are beyond `dims`, too: of what takes a
  /// range of extents alone, a part tells less.
  bool leaves_range(const Dims& dims) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (is_dependent(d) || dims[d] == base_[d]) continue;
      const int64_t range = reach(d);
      if (range < kFarStep && (dims[d] - base_[d]) / steps_[d] > range / 4) return false;
    }
    return true;
  }

  Dims at(size_t dim, int64_t count) const {
    Dims dims = base_;
    dims[dim] += count * steps_[dim];
    return settled(std::move(dims));
  }

  const GraphForm& form_at(size_t dim, int64_t count) {
    const auto [found, is_new] = forms_.try_emplace({dim, count});
    if (is_new) {
      if (const std::optional<ir::Graph> graph = import_(at(dim, count))) found->second = form_of(*graph);
    }
    return found->second;
  }

  void sample_along(size_t dim) {
    std::set<int64_t> counts = {1, 2, 3, 5, 7, 8, 11, 13};
    int64_t far = kFarStep;
    while (far > 15 && form_at(dim, far).values.empty()) far /= 2;
    if (far > 15) {
      const int64_t range = far < kFarStep ? reach(dim) : far;
      counts.insert({far / 2 + 17, far});
      // An end that follows from other dims is where the model becomes another one.
      if (!variants_.maximums.empty() && variants_.maximums[dim] != 0) counts.insert(range);
      for (size_t i = 0; i < base_form_.values.size(); ++i) find_change(dim, i, range, counts);
    }
    for (const int64_t count : counts) add(at(dim, count));
  }

  /// Two neighbours between which value `i` changes, and the last two of them of what grows more slowly than
  /// the dim: between both changes lie whole periods. A value that changes a few times alone is looked at
  /// farther away; so is one that does not change at all, as hops do that are long.
  void find_change(size_t dim, size_t i, int64_t far, std::set<int64_t>& counts) {
    const auto value = [&](int64_t count) {
      if (count == 0) return base_form_.values[i];
      const std::vector<int64_t>& values = form_at(dim, count).values;
      return values.size() == base_form_.values.size() ? values[i] : base_form_.values[i];
    };
    constexpr int64_t kFewChanges = 8, kFarthest = 64, kHops = 3;
    const int64_t first = value(0), farthest = std::max(kFarthest * far, kHops * longest_hop_);
    const auto grows = [&](int64_t at) { return value(at) > first && value(at) - first < at; };
    while (far < farthest && (grows(far) || value(far) == first) && value(far) - first < kFewChanges &&
           is_small(form_at(dim, 2 * far)))
      far *= 2;
    const int64_t last = value(far);
    if (last == first) return;
    const auto add_neighbours = [&](const auto& is_before) {
      int64_t low = 0, high = far;
      while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        (is_before(value(middle)) ? low : high) = middle;
      }
      if (low > 0) counts.insert(low);
      counts.insert(high);
    };
    const bool is_seen = std::any_of(counts.begin(), counts.end(), [&](int64_t count) {
      const bool neighbours = count == 1 || counts.count(count - 1) != 0;
      return neighbours && value(count) != value(count - 1);
    });
    // Where a slice has no elements its start does not count, though it changes there.
    const bool is_start =
        std::find(base_form_.starts.begin(), base_form_.starts.end(), i) != base_form_.starts.end();
    if (!is_seen || is_start) add_neighbours([&](int64_t at) { return at == first; });
    if (grows(far) || is_start) add_neighbours([&](int64_t at) { return at != last; });
  }

  /// Each of a few dims in turn is less than the others: the least of them is told from the first one.
  void add_least() {
    constexpr size_t kFew = 4;
    if (base_.size() < 2 || base_.size() > kFew) return;
    const int64_t largest = *std::max_element(base_.begin(), base_.end());
    for (size_t least = 0; least < base_.size(); ++least) {
      if (is_dependent(least)) continue;
      Dims dims = base_;
      for (size_t d = 0; d < dims.size(); ++d) {
        const auto more = static_cast<int64_t>(kFew + d) * steps_[d];
        const int64_t lacks = d == least ? steps_[d] : largest - base_[d] + more;
        dims[d] += (lacks + steps_[d] - 1) / steps_[d] * steps_[d];
      }
      add(settled(dims));
    }
  }

  /// All dims are so far from the base that what ends at a number in samples along one of them, because the
  /// others are small there, does not end there; and a quotient of two dims is told from the sum of a
  /// quotient of each.
  void add_apart() {
    if (base_.size() < 2) return;
    add_alike(settled(apart(kApart)));
    for (size_t set = 0; set < kScattered; ++set) add_alike(settled(scattered(set)));
  }

  /// A sample unless it is of another form than the base, or has constants that fill the memory.
  void add_alike(const Dims& dims) {
    std::optional<ir::Graph> graph = import_(dims);
    if (!graph) return;
    const GraphForm form = form_of(*graph);
    if (form.is_like(base_form_) && is_small(form)) variants_.samples.push_back({dims, std::move(*graph)});
  }

  /// A few more of each dim, of any two of them in all combinations of their rests.
  Dims scattered(size_t set) const {
    constexpr uint64_t kMost = 12, kSeed = 24000;
    Dims dims = base_;
    for (size_t d = 0; d < dims.size(); ++d) {
      // splitmix64: numbers without a pattern, the same ones for each model.
      uint64_t mixed = (d + 1 + 131 * (set + 1) + kSeed) * 0x9E3779B97F4A7C15;
      mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
      mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
      dims[d] += static_cast<int64_t>(1 + (mixed ^ (mixed >> 31)) % kMost) * steps_[d];
    }
    return dims;
  }

  /// Each dim farther than the one before it.
  Dims apart(int64_t count) const {
    Dims dims = base_;
    for (size_t d = 0; d < dims.size(); ++d) dims[d] += count * (static_cast<int64_t>(d) + 1) * steps_[d];
    return dims;
  }

  /// Whether the model takes the dims, without constants that fill the memory.
  bool is_small(const GraphForm& form) const {
    constexpr int64_t kManyBytes = int64_t{1} << 26;
    return !form.values.empty() && form.constant_bytes - base_form_.constant_bytes < kManyBytes;
  }

  void add(const Dims& dims) {
    if (std::optional<ir::Graph> graph = import_(dims))
      variants_.samples.push_back({dims, std::move(*graph)});
  }

  /// Shapes of the outputs at extents that are no samples: small ones, odd ones, all dims at once.
  void add_checks() {
    for (size_t d = 0; d < base_.size(); ++d) {
      if (is_dependent(d)) continue;
      const auto check = [&](int64_t extent) {
        Dims dims = base_;
        dims[d] = extent * steps_[d];
        add_check(dims);
      };
      for (const int64_t extent : {0, 1, 2, 3, 4, 5, 6, 7, 16, 31, 33, 100}) check(extent);
      // Of a small model there is time to look at all of them.
      for (int64_t extent = 0; nodes_ <= kFewNodes && extent < kAllBelow; ++extent) {
        if (extent > 7) check(extent);
        // What has elements here alone is told from what has as many as the base of another dim.
        Dims dims = base_;
        for (size_t other = 0; other < base_.size(); ++other)
          dims[other] += other == d ? 0 : (extent * kApart % kAllBelow + 1) * steps_[other];
        dims[d] = extent * steps_[d];
        if (base_.size() > 1) add_check(dims);
      }
      // Halfway to the samples, for what is bounded by a number below them.
      for (const int64_t part : {1, 2, 3}) {
        Dims dims = base_;
        dims[d] = base_[d] / steps_[d] * part / 4 * steps_[d];
        if (base_[d] / steps_[d] > 100) add_check(dims);
      }
      add_changes_below(d);
      for (const int64_t count : {17, 37, 64, 101, 257, 503, 997, 1733}) add_check(at(d, count));
    }
    for (const int64_t count : {int64_t{1}, kApart, int64_t{50}, int64_t{97}}) add_check(apart(count));
    for (size_t set = kScattered; set < 4 * kScattered && base_.size() > 1; ++set) add_check(scattered(set));
  }

  /// Where the other dims are few, so that there is time to compute the model's values.
  void add_probes() {
    constexpr size_t kFewDims = 4;
    constexpr int64_t kFew = 3, kParts = 8;
    for (size_t d = 0; d < base_.size() && base_.size() <= kFewDims; ++d) {
      if (is_dependent(d)) continue;
      Dims few = base_;
      for (size_t other = 0; other < base_.size(); ++other)
        few[other] = other == d ? base_[d] : std::min(base_[other], kFew * steps_[other]);
      few = settled(few);
      if (!import_(few)) few = base_;
      const int64_t most = base_[d] / steps_[d];
      std::set<int64_t, std::greater<>> counts = {1, 2, 3, 5, 9, most};
      for (int64_t part = 1; part < kParts; ++part) counts.insert(most * part / kParts);
      for (const int64_t count : counts) {
        if (count < 1 || count > most) continue;
        few[d] = count * steps_[d];
        const Dims dims = settled(few);
        if (std::optional<ir::Graph> graph = import_(dims))
          variants_.probes.push_back({d, {dims, std::move(*graph)}});
      }
    }
  }

  /// Below the samples, between the extents that are checked, two neighbours between which the start of a
  /// slice changes, which no extent need show.
  void add_changes_below(size_t dim) {
    std::map<int64_t, GraphForm> forms;  // by count; none where the model does not take it
    const auto form_below = [&](int64_t count) -> const GraphForm& {
      const auto [found, is_new] = forms.try_emplace(count);
      if (!is_new) return found->second;
      Dims dims = base_;
      dims[dim] = count * steps_[dim];
      const std::optional<ir::Graph> graph = import_(settled(dims));
      if (graph) found->second = form_of(*graph);
      if (!found->second.is_like(base_form_)) found->second = {};
      return found->second;
    };
    const auto check = [&](int64_t count) {
      Dims dims = base_;
      dims[dim] = count * steps_[dim];
      add_check(dims);
    };
    constexpr std::array<int64_t, 6> kChecked = {7, 16, 31, 33, 100, std::numeric_limits<int64_t>::max()};
    constexpr size_t kMostChanges = 32;
    int64_t low = kChecked[0];
    for (size_t next = 1; next < kChecked.size() && low < base_[dim] / steps_[dim]; ++next) {
      const int64_t high = std::min(kChecked[next], base_[dim] / steps_[dim]);
      const GraphForm& first = form_below(low);
      const GraphForm& last = form_below(high);
      std::set<std::pair<int64_t, int64_t>> seen;
      for (const size_t i : base_form_.starts) {
        if (seen.size() == kMostChanges || first.values.empty() || last.values.empty() ||
            first.values[i] == last.values[i])
          continue;
        if (!seen.emplace(first.values[i], last.values[i]).second) continue;
        for (const bool is_last : {false, true}) {
          int64_t before = low, behind = high;
          while (behind - before > 1) {
            const int64_t middle = before + (behind - before) / 2;
            const GraphForm& form = form_below(middle);
            if (form.values.empty()) break;
            const bool is_before =
                is_last ? form.values[i] != last.values[i] : form.values[i] == first.values[i];
            (is_before ? before : behind) = middle;
          }
          check(before);
          check(behind);
        }
      }
      low = high;
    }
  }

  /// Shapes of the outputs alone; returns the graph, if the model takes the dims.
  std::optional<ir::Graph> add_outputs(const Dims& dims) {
    std::optional<ir::Graph> graph = import_(dims);
    if (!graph) return graph;
    ir::ShapeCheck check{dims, {}};
    for (const ir::ValueId output : graph->outputs())
      check.outputs.push_back(graph->value(output).type.shape);
    variants_.checks.push_back(std::move(check));
    return graph;
  }

  void add_check(const Dims& some) {
    const Dims dims = settled(some);
    std::optional<ir::Graph> graph = add_outputs(dims);
    if (!graph) return;
    const GraphForm form = form_of(*graph);
    if (!form.is_like(base_form_)) {
      const bool is_alone = dims.size() == 1 && nodes_ <= kFewNodes && !is_above(dims);
      if (is_alone) variants_.alone.push_back({dims, std::move(*graph)});
      return;
    }
    if (!is_above(dims)) {
      variants_.small.push_back({dims, std::move(*graph)});
    } else if (is_small(form) && tells_apart(form)) {
      variants_.samples.push_back({dims, std::move(*graph)});
      add_to_classes(form);
    }
  }

  /// Numbers the extents that are equal in all samples alike. The form is like the base's.
  void add_to_classes(const GraphForm& form) {
    std::map<std::pair<size_t, int64_t>, size_t> numbers;
    for (size_t i = 0; i < form.extents; ++i)
      classes_[i] = numbers.emplace(std::pair(classes_[i], form.values[i]), numbers.size()).first->second;
  }

  /// Whether two extents differ that are equal in all samples.
  bool tells_apart(const GraphForm& form) {
    if (classes_.empty()) {
      classes_.resize(base_form_.extents, 0);
      for (const ir::ShapedGraph& sample : variants_.samples) {
        const GraphForm own = form_of(sample.graph);
        if (own.is_like(base_form_)) add_to_classes(own);
      }
    }
    std::map<size_t, int64_t> values;
    for (size_t i = 0; i < form.extents; ++i) {
      if (values.emplace(classes_[i], form.values[i]).first->second != form.values[i]) return true;
    }
    return false;
  }

  bool is_above(const Dims& dims) const {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] < base_[d]) return false;
    }
    return true;
  }

  const ImportAt& import_;
  const StopAt& stop_at_;
  ir::SampleSet& variants_;
  std::vector<ir::DependentDim> dependents_;
  Dims base_, steps_;
  GraphForm base_form_;
  size_t nodes_ = 0;             ///< of the base
  int64_t longest_hop_ = 0;      ///< of the base's windows and slices
  std::vector<size_t> classes_;  ///< by extent
  std::map<std::pair<size_t, int64_t>, GraphForm> forms_;
};

}  // namespace

void sample_shapes(const ImportAt& import, const StopAt& stop_at, const std::vector<int64_t>& anchor,
                   const std::vector<std::vector<int64_t>>& asked, ir::SampleSet& samples,
                   const StopAt& meant_at, bool needs_alike) {
  std::optional<SampleBase> base = find_sample_base(import, stop_at, meant_at, anchor, asked);
  if (base) Sampler(import, stop_at, *std::move(base), samples).run(needs_alike);
}

}  // namespace tensormill::frontend::onnx
