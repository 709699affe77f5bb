#include "runtime/host_ops/pattern.h"

#include <algorithm>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/host_ops/pattern_parser.h"
#include "runtime/host_ops/text_case.h"

namespace tensormill::host_ops {

namespace {

using Kind = Pattern::Instruction::Kind;
using Place = Pattern::Place;

/// Repetitions inside each other multiply; this bounds what they come to.
constexpr size_t kMaxInstructions = 20'000;
constexpr char32_t kNone = 0xffffffff;

/// Writes the program from its end: each part knows where to go on.
class Writer {
public:
  Writer(std::vector<Pattern::Instruction>& program, std::vector<Pattern::Set>& sets)
      : program_(program), sets_(sets) {}

  size_t add(Pattern::Instruction instruction) {
    if (program_.size() >= kMaxInstructions)
      throw Error(ErrorCode::kInvalidModel, "the pattern is too large: its repetitions come to more than " +
                                                std::to_string(kMaxInstructions) + " steps");
    program_.push_back(instruction);
    return program_.size() - 1;
  }

  /// The start of `node`, behind which `next` comes.
  size_t write(const PatternNode& node, size_t next) {
    switch (node.kind) {
      case PatternNode::Kind::kAll:
        for (size_t i = node.parts.size(); i-- > 0;) next = write(node.parts[i], next);
        return next;
      case PatternNode::Kind::kOne: {
        size_t start = write(node.parts.back(), next);
        for (size_t i = node.parts.size() - 1; i-- > 0;)
          start = add({.kind = Kind::kFork, .next = write(node.parts[i], next), .other = start});
        return start;
      }
      case PatternNode::Kind::kSet:
        sets_.push_back(node.set);
        return add({.kind = Kind::kSet, .set = sets_.size() - 1, .next = next});
      case PatternNode::Kind::kPlace:
        return add({.kind = Kind::kPlace, .place = node.place, .next = next});
      case PatternNode::Kind::kRepeat:
        return repeat(node, next);
    }
    return next;
  }

private:
  size_t repeat(const PatternNode& node, size_t next) {
    if (node.most < 0) {
      const size_t loop = add({.kind = Kind::kFork, .other = next});
      program_[loop].next = write(node.parts[0], loop);
      next = loop;
    } else {
      const size_t end = next;
      for (int i = node.least; i < node.most; ++i)
        next = add({.kind = Kind::kFork, .next = write(node.parts[0], next), .other = end});
    }
    for (int i = 0; i < node.least; ++i) next = write(node.parts[0], next);
    return next;
  }

  std::vector<Pattern::Instruction>& program_;
  std::vector<Pattern::Set>& sets_;
};

bool is_word(char32_t point) {
  return (point >= U'0' && point <= U'9') || (point >= U'A' && point <= U'Z') || point == U'_' ||
         (point >= U'a' && point <= U'z');
}

/// Whether a place is between these two characters, kNone where the text ends.
bool is_at(Place place, char32_t before, char32_t after) {
  switch (place) {
    case Place::kTextStart:
      return before == kNone;
    case Place::kTextEnd:
      return after == kNone;
    case Place::kLineStart:
      return before == kNone || before == U'\n';
    case Place::kLineEnd:
      return after == kNone || after == U'\n';
    case Place::kWordEdge:
      return is_word(before) != is_word(after);
    case Place::kNoWordEdge:
      return is_word(before) == is_word(after);
  }
  return false;
}

/// Where the simulation may be: instructions that need a character, and whether the end was reached.
class States {
public:
  explicit States(const std::vector<Pattern::Instruction>& program)
      : program_(program), seen_(program.size(), false) {}

  void clear() {
    std::fill(seen_.begin(), seen_.end(), false);
    waiting.clear();
    ended = false;
  }

  void add(size_t start, char32_t before, char32_t after) {
    open_.push_back(start);
    while (!open_.empty()) {
      const size_t at = open_.back();
      open_.pop_back();
      if (seen_[at]) continue;
      seen_[at] = true;
      const Pattern::Instruction& step = program_[at];
      if (step.kind == Kind::kMatch) ended = true;
      if (step.kind == Kind::kSet) waiting.push_back(at);
      if (step.kind == Kind::kFork) open_.push_back(step.other);
      if (step.kind == Kind::kFork || (step.kind == Kind::kPlace && is_at(step.place, before, after)))
        open_.push_back(step.next);
    }
  }

  std::vector<size_t> waiting;
  bool ended = false;

private:
  const std::vector<Pattern::Instruction>& program_;
  std::vector<bool> seen_;
  std::vector<size_t> open_;
};

}  // namespace

bool Pattern::Set::holds(char32_t point) const {
  const auto listed = [&](char32_t one) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const auto& range) { return one >= range.first && one <= range.second; });
  };
  const bool found =
      listed(point) || (any_case && (listed(lower_point(point)) || listed(upper_point(point))));
  return found != negated;
}

Pattern::Pattern(std::string_view pattern) {
  const PatternNode tree = parse_pattern(pattern);
  Writer writer(program_, sets_);
  start_ = writer.write(tree, writer.add({}));
}

bool Pattern::matches(std::string_view text) const {
  const std::u32string points = code_points(text);
  const auto point = [&](size_t i) { return i < points.size() ? points[i] : kNone; };
  States now(program_), then(program_);
  now.add(start_, kNone, point(0));
  for (size_t i = 0; i < points.size() && !now.waiting.empty(); ++i) {
    then.clear();
    for (const size_t at : now.waiting) {
      if (sets_[program_[at].set].holds(points[i])) then.add(program_[at].next, points[i], point(i + 1));
    }
    std::swap(now.waiting, then.waiting);
    std::swap(now.ended, then.ended);
    if (i + 1 == points.size()) return now.ended;
  }
  return points.empty() && now.ended;
}

}  // namespace tensormill::host_ops
