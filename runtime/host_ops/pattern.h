/// Regular expressions in the syntax of RE2 (github.com/google/re2/wiki/Syntax) without Unicode classes (\p):
/// matched by a simulation of the automaton (Thompson 1968, "Regular expression search algorithm"), in time
/// that is the product of the text's and the pattern's length whatever they are. Classes such as \w are
/// ASCII. Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tensormill::host_ops {

class Pattern {
public:
  /// Throws Error(kInvalidModel) saying where the pattern is wrong or what in it is not implemented.
  explicit Pattern(std::string_view pattern);
  /// Whether all of `text`, UTF-8, matches.
  bool matches(std::string_view text) const;

  /// Code points, as ranges with both ends.
  struct Set {
    std::vector<std::pair<char32_t, char32_t>> ranges;
    bool negated = false;
    bool any_case = false;
    bool holds(char32_t point) const;
  };
  enum class Place : uint8_t { kTextStart, kTextEnd, kLineStart, kLineEnd, kWordEdge, kNoWordEdge };
  struct Instruction {
    enum class Kind : uint8_t { kSet, kFork, kPlace, kMatch };
    Kind kind = Kind::kMatch;
    Place place = Place::kTextStart;
    size_t set = 0;              ///< kSet
    size_t next = 0, other = 0;  ///< where to go on; kFork: at both
  };

private:
  std::vector<Set> sets_;
  std::vector<Instruction> program_;
  size_t start_ = 0;
};

}  // namespace tensormill::host_ops
