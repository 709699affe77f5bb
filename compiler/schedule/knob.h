/// Knobs: the choices that a template makes by its analytic model and a search may make otherwise. The space
/// of a program is defined by running the template: a knob may be asked for only where another had some
/// value. Thread-safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tensormill::schedule {

/// One choice as the template made it.
struct Knob {
  std::string name;
  int64_t analytic = 0;             ///< what the template would take by itself
  std::vector<int64_t> candidates;  ///< ascending, no value twice; `analytic` is one of them
  int64_t chosen = 0;
};

/// Answers a template's questions: an element of `knob.candidates` (knob.chosen is not set yet).
using Chooser = std::function<int64_t(const Knob& knob)>;

/// Values by knob; a knob that is absent takes its analytic value.
using Config = std::map<std::string, int64_t>;
/// Answers from `config`. Throws Error(kInvalidRecords) for a value that is no candidate.
Chooser choose_from(Config config);

}  // namespace tensormill::schedule
