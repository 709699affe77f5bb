/// What templates are written with: steps are recorded and replayed at once, so that a template can look at
/// the extents and accesses that its own steps made. Thread-safety: a builder belongs to one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/schedule/knob.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/state.h"

namespace tensormill::schedule {

/// How one read of a stage's definition moves through memory.
struct Access {
  const te::TensorNode* tensor = nullptr;
  std::vector<int64_t> stride;  ///< elements per step of each root axis (dimensions, then reduction axes)
  std::vector<char> irregular;  ///< the axis occurs in a term that is not linear
};

class Builder {
public:
  Builder(const te::Program& program, const target::Target& target, Chooser choose = {})
      : state_(program), target_(target), knobs_(std::move(choose)) {}

  /// A choice that a search may make otherwise: the value to go on with, `analytic` unless this builder has a
  /// chooser. `candidates` that are no choice here (not positive) are left out, `analytic` is added to them.
  int64_t knob(std::string name, int64_t analytic, std::vector<int64_t> candidates) {
    return knobs_.ask(std::move(name), analytic, std::move(candidates));
  }
  /// The knobs that were requested, in order.
  const std::vector<Knob>& knobs() const { return knobs_.asked(); }

  void step(std::string primitive, std::vector<std::string> args);
  const Schedule& schedule() const { return schedule_; }
  const State& state() const { return state_; }
  const target::Target& target() const { return target_; }
  const Stage& stage(const std::string& name) const;
  std::vector<std::string> stage_names() const;  ///< producers first
  int64_t extent(const std::string& stage, const std::string& axis) const;
  /// Nothing where the extent is an expression over the kernel's arguments.
  std::optional<int64_t> known_extent(const std::string& stage, const std::string& axis) const;

  /// Fuses neighbouring leaves into one and returns its name; "" for none.
  std::string fuse(const std::string& stage, const std::vector<std::string>& axes);
  /// Makes the outermost leaf parallel, in at most `tasks_per_core` x cores tasks; returns the serial axis
  /// inside a task at which stages may be computed. `work`: operations of the nest; little work stays serial.
  std::string parallelize(const std::string& stage, const std::string& axis, double work);
  /// Inlines the stages that are cheap to compute again.
  void inline_injective(const std::vector<std::string>& keep = {});
  /// Makes guards of the conditions under which a reduction's elements count (has_conditions); nothing
  /// where there are none.
  void guard(const std::string& stage);
  /// Reads of the stage, inlined stages expanded.
  std::vector<Access> accesses(const std::string& stage) const;
  /// The stages (inlined ones seen through) that read `stage`.
  std::vector<std::string> readers(const std::string& stage) const;
  /// Whether every load walks reduction axis `axis` of the stage and the one before it as one.
  bool joins(const std::string& stage, int axis) const;
  /// Fuses the reduction axes before `axis` into it as far as they join; returns the name of the result.
  std::string join_reduction(const std::string& stage, int axis);
  /// Lanes of the target's vectors for what the stage computes.
  int64_t lanes(const std::string& stage) const;
  /// True when every read of the stage moves by one element (or not at all) as its flat output index does.
  bool is_flat(const std::string& stage) const;

private:
  /// What a stage that is computed reads, inlined stages expanded.
  struct Reads {
    int stage = 0;
    std::vector<const te::TensorNode*> tensors;
  };
  const std::vector<Reads>& reads() const;

  State state_;
  target::Target target_;
  Schedule schedule_;
  Knobs knobs_;
  /// Of all stages, producers first. Templates ask again and again between two steps, a search asks a
  /// template for each of its points, and an answer takes a plan of all loops: it is cached until the next
  /// step.
  mutable std::optional<std::vector<Reads>> reads_;
};

/// "i0" ... for the dimensions of a stage.
std::vector<std::string> data_axes(const Stage& stage);
std::vector<std::string> reduce_axes(const Stage& stage);
bool contains(const std::vector<std::string>& names, const std::string& name);

/// Whether the sum of stage `sums` multiplies what lies side by side along axis `lane` and stands still along
/// axis `fixed` by something else: vectors of weights by elements of an input. Axes count data dimensions.
bool multiplies_panel(const Builder& builder, const std::string& sums, size_t lane, size_t fixed);

// ---- templates: each schedules the stages named, all others being placed already or left at the root
// -------------
/// Elementwise and data movement: outer axes fused and parallel, the innermost vectorized.
void schedule_injective(Builder& builder, const std::string& stage);
/// Any reduction (products and convolutions too), with what follows it element by element: a tile of results
/// stays in registers while the reduction runs. Returns the stages that it scheduled.
std::vector<std::string> schedule_reduction(Builder& builder, const std::string& stage);
/// Every stage that is not inlined, computed at the root, anchors with their epilogues.
void schedule_roots(Builder& builder, const std::vector<std::string>& done = {});

#define TM_TEMPLATE(name, function, meaning) bool function(Builder& builder);
#include "compiler/schedule/templates.def"
#undef TM_TEMPLATE

}  // namespace tensormill::schedule
