#include "compiler/plan/generic_knobs.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "compiler/plan/scheduled_nest.h"
#include "runtime/base/error.h"

namespace tensormill::plan {

namespace {

constexpr const char* kChoose = "choose";

[[noreturn]] void reject(const std::string& why) { throw Error(ErrorCode::kInvalidRecords, why); }

schedule::Config config_of(const schedule::Schedule& steps) {
  schedule::Config config;
  for (const schedule::Step& step : steps.steps) {
    if (step.primitive != kChoose || step.args.size() != 2)
      reject("step '" + step.primitive + "' is no choice, which a kernel of free extents is made by");
    const std::string& text = step.args[1];
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      reject("knob " + step.args[0] + " cannot be '" + text + "'");
    if (!config.emplace(step.args[0], value).second) reject("knob " + step.args[0] + " is chosen twice");
  }
  return config;
}

}  // namespace

schedule::Tuned choose_loops(const GenericSource& source, const schedule::Chooser& choose) {
  if (is_scheduled(source.nest)) return choose_steps(source.nest, source.facts, choose);
  schedule::Tuned tuned;
  tuned.knobs = choose_tiling_by(source.nest, source.facts, choose).knobs;
  for (const schedule::Knob& knob : tuned.knobs)
    tuned.schedule.steps.push_back({kChoose, {knob.name, std::to_string(knob.chosen)}});
  return tuned;
}

std::vector<Tail> tails_by_rule(const GenericSource& source) {
  if (is_scheduled(source.nest))
    return tails_of(source.nest, choose_steps(source.nest, source.facts, {}).schedule);
  return tails_of(source.nest, choose_tiling(source.nest, source.facts));
}

GenericLoops loops_by(const GenericSource& source, const schedule::Schedule& steps) {
  if (is_scheduled(source.nest)) {
    const schedule::Schedule all =
        steps.steps.empty() ? choose_steps(source.nest, source.facts, {}).schedule : steps;
    return {build_generic_loops(source.nest, source.vars, all, source.empties), tails_of(source.nest, all)};
  }
  const schedule::Config config = config_of(steps);
  const ChosenTiling chosen = choose_tiling_by(source.nest, source.facts, schedule::choose_from(config));
  for (const auto& [name, value] : config) {
    const bool is_asked =
        std::any_of(chosen.knobs.begin(), chosen.knobs.end(),
                    [&name = name](const schedule::Knob& knob) { return knob.name == name; });
    if (!is_asked) reject("there is no knob " + name + " in this kernel");
  }
  return {build_generic_loops(source.nest, source.vars, chosen.tiling, source.empties),
          tails_of(source.nest, chosen.tiling)};
}

}  // namespace tensormill::plan
