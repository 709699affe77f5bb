/// Knobs: the choices that a template makes by its analytic model and a search may make otherwise. The space
/// of a program is defined by running the template: a knob may be asked for only where another had some
/// value. Thread-safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
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

/// What a template asks its questions with. Thread-safety: belongs to one thread.
class Knobs {
public:
  /// Without a chooser each knob has its analytic value, and none is listed.
  explicit Knobs(Chooser choose = {}) : choose_(std::move(choose)) {}
  /// The value to go on with: `analytic`, or what the chooser has instead. `candidates` that are no choice
  /// (negative) are left out, `analytic` is added to them.
  int64_t ask(std::string name, int64_t analytic, std::vector<int64_t> candidates);
  /// Those that were asked for, in order.
  const std::vector<Knob>& asked() const { return asked_; }

private:
  Chooser choose_;
  std::vector<Knob> asked_;
};

/// Values by knob; a knob that is absent takes its analytic value.
using Config = std::map<std::string, int64_t>;
/// Answers from `config`. Throws Error(kInvalidRecords) for a value that is no candidate.
Chooser choose_from(Config config);

/// The divisors of `extent` up to `most`, and the powers of two up to `most`: candidates for a part of a
/// loop.
std::vector<int64_t> tile_candidates(int64_t extent, int64_t most);
std::vector<int64_t> divisors(int64_t extent);
/// Those of them that are `most` or less.
std::vector<int64_t> divisors(int64_t extent, int64_t most);
/// first, first + 1 ... last.
std::vector<int64_t> range_candidates(int64_t first, int64_t last);

}  // namespace tensormill::schedule
