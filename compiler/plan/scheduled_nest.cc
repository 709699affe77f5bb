#include "compiler/plan/scheduled_nest.h"

#include "compiler/schedule/state.h"

namespace tensormill::plan {

bool is_scheduled(const Nest& nest) {
  return nest.tensor->reduction == nullptr && nest.places.empty() && nest.tensor->dtypes.size() == 1;
}

te::Program program_of(const Nest& nest) {
  // Kernels that differ in a name alone are one.
  auto out = std::make_shared<te::TensorNode>(*nest.tensor);
  out->name = "out";
  return {nest.inputs, {std::move(out)}};
}

schedule::Tuned choose_steps(const Nest& nest, const LoopFacts& facts, const schedule::Chooser& choose) {
  target::Target target;
  target.facts.vector_bits = facts.lanes * 32;
  target.facts.l2_bytes = facts.l2_bytes;
  target.facts.num_cores = facts.cores;
  return schedule::choose_schedule(program_of(nest), target, choose);
}

std::vector<Tail> tails_of(const Nest& nest, const schedule::Schedule& steps) {
  schedule::State state(program_of(nest));
  for (const schedule::Step& step : steps.steps) state.apply(step);
  std::vector<Tail> tails;
  for (const schedule::Stage& stage : state.stages()) {
    for (const schedule::AxisRelation& relation : stage.relations) {
      const schedule::Extent& extent = stage.axes[static_cast<size_t>(relation.parent)].extent;
      if (relation.is_split && relation.factor > 1 && !extent.is_known())
        tails.push_back({extent.expr(), relation.factor});
    }
  }
  return tails;
}

}  // namespace tensormill::plan
