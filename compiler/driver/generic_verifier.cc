#include "compiler/driver/generic_verifier.h"

#include <algorithm>
#include <optional>

#include "compiler/driver/for_each_index.h"
#include "compiler/driver/generic_group.h"
#include "runtime/base/error.h"

namespace tensormill::driver {

/// One group of the plan at one point.
struct GenericVerifier::Candidate {
  size_t point = 0;
  const plan::GenericGroup* group = nullptr;
  std::string kernels = {};  ///< functions, one after the other
  int64_t takes = 0;         ///< operations, and values written
  plan::Kernel kernel = {};
  std::vector<ir::ValueId> inputs = {};
  bool is_compared = false;
};

std::vector<GenericVerifier::Wrong> GenericVerifier::run(const plan::GenericModel& model,
                                                         const std::vector<Point>& points) {
  load();
  wrong_.clear();
  std::vector<package::ExecPlan> plans;
  std::vector<Candidate> candidates;
  for (const Point& point : points) {
    plans.push_back(plan_at(model.plan, point.dims));
    add_candidates(model, point, plans.size() - 1, plans.back(), candidates);
  }
  for_each_index(candidates.size(), options_.threads, [&](size_t i) {
    Candidate& candidate = candidates[i];
    const ir::Graph& graph = points[candidate.point].graph;
    candidate.kernel = plan::kernel_of(graph, graph.node(candidate.group->node), candidate.inputs);
    candidate.takes += candidate.kernel.flops;
  });
  std::vector<Candidate*> chosen, others;
  for (Candidate& candidate : candidates) {
    const Point& point = points[candidate.point];
    if (!options_.verifies(candidate.kernel) || candidate.takes > point.most) continue;
    const bool is_new = point.tails.empty() && known_.insert(candidate.kernels).second;
    const bool is_quick = !point.tails.empty() || candidate.takes <= point.most / 16;
    (is_new || is_quick ? chosen : others).push_back(&candidate);
  }
  std::set<std::string> compared;
  const auto compare_all = [&](std::vector<Candidate*>& all) {
    // What takes long is not to be begun last.
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate* a, const Candidate* b) { return a->takes > b->takes; });
    for_each_index(all.size(), options_.threads, [&](size_t i) {
      Candidate& candidate = *all[i];
      candidate.is_compared = check(model, plans[candidate.point], points[candidate.point].graph, candidate);
    });
    for (const Candidate* candidate : all) {
      if (candidate->is_compared) compared.insert(candidate->kernels);
    }
  };
  compare_all(chosen);
  // Where the data that was tried is refused, other points may say something.
  std::erase_if(others, [&](const Candidate* other) { return compared.contains(other->kernels); });
  compare_all(others);
  return std::move(wrong_);
}

void GenericVerifier::replace(size_t kernel) {
  const codegen::Object& object = compiled_.objects[kernel];
  libraries_[kernel] = codegen::JitLibrary::load(object);
  entries_[kernel] = libraries_[kernel]->kernel(object.symbol);
  known_.clear();
}

/// The kernels that are new.
void GenericVerifier::load() {
  while (entries_.size() < compiled_.objects.size()) {
    const codegen::Object& object = compiled_.objects[entries_.size()];
    libraries_.push_back(codegen::JitLibrary::load(object));
    entries_.push_back(libraries_.back()->kernel(object.symbol));
  }
}

/// Of equal kernels of equal shapes one.
void GenericVerifier::add_candidates(const plan::GenericModel& model, const Point& point, size_t place,
                                     const package::ExecPlan& plan, std::vector<Candidate>& candidates) {
  std::set<std::string> seen;
  for (const plan::GenericGroup& group : model.groups) {
    Candidate candidate{place, &group};
    std::string shapes;
    bool has_tail = point.tails.empty();
    for (size_t step = group.first_step; step < group.end_step; ++step) {
      has_tail = has_tail || point.tails.contains(model.step_kernels[step].value());
      candidate.kernels += plan.steps[step].function + " ";
      for (const int32_t arg : plan.steps[step].args)
        shapes += to_string(plan.buffers[static_cast<size_t>(arg)].shape);
    }
    for (const int32_t output : group.outputs)
      candidate.takes += num_elements(plan.buffers[static_cast<size_t>(output)].shape);
    if (has_tail && seen.insert(candidate.kernels + shapes).second)
      candidates.push_back(std::move(candidate));
  }
}

/// Whether values were compared.
bool GenericVerifier::check(const plan::GenericModel& model, const package::ExecPlan& plan,
                            const ir::Graph& graph, const Candidate& candidate) {
  const std::vector<const Tensor*> constants = constants_of(graph, candidate.inputs);
  const plan::GenericGroup& group = *candidate.group;
  plan::Kernel named = candidate.kernel;
  named.symbol = plan.steps[group.first_step].function;
  try {
    // What is refused says nothing about values.
    return compare(model, plan, group, named,
                   make_reference(candidate.kernel, constants, options_.compares)) ||
           compare(model, plan, group, named,
                   make_accepted_reference(candidate.kernel, constants, options_.compares));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kWrongAnswer || !note_wrong(model, group, error.message())) throw;
    return false;
  }
}

bool GenericVerifier::compare(const plan::GenericModel& model, const package::ExecPlan& plan,
                              const plan::GenericGroup& group, const plan::Kernel& kernel,
                              const KernelReference& reference) const {
  GroupRun run(group, plan, reference.inputs);
  int32_t code = 0;
  for (size_t step = group.first_step; step < group.end_step && code == 0; ++step)
    code = run.run(step, entries_[model.step_kernels[step].value()]);
  check_outputs(kernel, reference, code, run.outputs());
  return reference.refusal.empty() && code == TM_OK;
}

/// Whether one of the group's kernels is by a record, which may be what is wrong.
bool GenericVerifier::note_wrong(const plan::GenericModel& model, const plan::GenericGroup& group,
                                 const std::string& what) {
  const std::lock_guard<std::mutex> lock(wrong_mutex_);
  bool has_record = false;
  for (size_t step = group.first_step; step < group.end_step; ++step) {
    const size_t kernel = model.step_kernels[step].value();
    if (compiled_.tuning[kernel].record.empty()) continue;
    has_record = true;
    const bool is_known =
        std::any_of(wrong_.begin(), wrong_.end(), [&](const Wrong& each) { return each.kernel == kernel; });
    if (!is_known) wrong_.push_back({kernel, what});
  }
  return has_record;
}

}  // namespace tensormill::driver
