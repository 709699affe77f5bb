#include "runtime/host_ops/pattern_parser.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "runtime/base/error.h"
#include "runtime/base/text.h"

namespace tensormill::host_ops {

namespace {

using Kind = PatternNode::Kind;
using Place = Pattern::Place;
using Set = Pattern::Set;

constexpr char32_t kLast = 0x10ffff;
constexpr int kMaxDepth = 200;
constexpr int kMaxRepeat = 1000;

struct Flags {
  bool any_case = false;    // i
  bool dot_is_all = false;  // s
  bool by_line = false;     // m
};

struct NamedSet {
  std::string_view name;
  std::vector<std::pair<char32_t, char32_t>> ranges;
};

/// The classes that a letter behind a backslash, or a name in [:name:], stands for.
const std::vector<NamedSet>& named_sets() {
  static const std::vector<NamedSet> sets = {
      {"d", {{'0', '9'}}},
      {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}},
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7f}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  return sets;
}

/// Adds a named class, or all that is not in it.
void add_named(Set& set, const NamedSet& named, bool negated) {
  char32_t next = 0;
  for (const auto& [first, last] : named.ranges) {
    if (!negated) set.ranges.emplace_back(first, last);
    if (negated && first > next) set.ranges.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (negated) set.ranges.emplace_back(next, kLast);
}

class Parser {
public:
  explicit Parser(std::string_view pattern) : points_(code_points(pattern)) {}

  PatternNode parse() {
    PatternNode node = alternatives(0);
    if (!at_end()) fail("a ) too many");
    return node;
  }

private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidModel, "pattern at character " + std::to_string(at_) + ": " + what);
  }
  bool at_end() const { return at_ >= points_.size(); }
  char32_t peek(size_t ahead = 0) const {
    return at_ + ahead < points_.size() ? points_[at_ + ahead] : U'\0';
  }
  bool accept(char32_t point) {
    if (at_end() || points_[at_] != point) return false;
    ++at_;
    return true;
  }
  char32_t take() {
    if (at_end()) fail("it ends early");
    return points_[at_++];
  }

  PatternNode alternatives(int depth) {
    if (depth > kMaxDepth) fail("groups stand too deep in each other");
    PatternNode node;
    node.kind = Kind::kOne;
    do {
      PatternNode all;
      while (!at_end() && peek() != U'|' && peek() != U')') add_repeated(all, depth);
      node.parts.push_back(std::move(all));
    } while (accept(U'|'));
    return node;
  }

  void add_repeated(PatternNode& all, int depth) {
    std::optional<PatternNode> atom = this->atom(depth);
    if (!atom) return;
    if (const auto range = repetition()) {
      PatternNode repeat;
      repeat.kind = Kind::kRepeat;
      std::tie(repeat.least, repeat.most) = *range;
      repeat.parts.push_back(std::move(*atom));
      atom = std::move(repeat);
      accept(U'?');  // Which of several matches is found makes no difference here.
      if (repetition()) fail("a repetition of a repetition");
    }
    all.parts.push_back(std::move(*atom));
  }

  std::optional<std::pair<int, int>> repetition() {
    if (accept(U'*')) return std::pair(0, -1);
    if (accept(U'+')) return std::pair(1, -1);
    if (accept(U'?')) return std::pair(0, 1);
    const size_t before = at_;
    if (!accept(U'{')) return std::nullopt;
    const std::optional<int> least = number();
    std::optional<int> most = least;
    if (least && accept(U',')) most = peek() == U'}' ? std::optional(-1) : number();
    if (!least || !most || !accept(U'}')) {
      at_ = before;  // A brace that stands for itself.
      return std::nullopt;
    }
    if (*least > kMaxRepeat || *most > kMaxRepeat || (*most >= 0 && *most < *least))
      fail("a repetition is wrong");
    return std::pair(*least, *most);
  }

  std::optional<int> number() {
    std::optional<int> value;
    while (peek() >= U'0' && peek() <= U'9') {
      value = std::min(value.value_or(0) * 10 + static_cast<int>(peek() - U'0'), kMaxRepeat + 1);
      ++at_;
    }
    return value;
  }

  /// Nothing for what only sets flags.
  std::optional<PatternNode> atom(int depth) {
    const char32_t point = take();
    switch (point) {
      case U'(':
        return group(depth);
      case U'[':
        return bracket();
      case U'\\':
        return escape();
      case U'^':
        return placed(flags_.by_line ? Place::kLineStart : Place::kTextStart);
      case U'$':
        return placed(flags_.by_line ? Place::kLineEnd : Place::kTextEnd);
      case U'.':
        if (flags_.dot_is_all) return one_of({{{0, kLast}}, false, false});
        return one_of({{{U'\n', U'\n'}}, true, false});
      case U'*':
      case U'+':
      case U'?':
        fail("a repetition of nothing");
      default:
        return literal(point);
    }
  }

  std::optional<PatternNode> group(int depth) {
    const Flags outer = flags_;
    if (accept(U'?')) {
      if (accept(U'P') || (peek() == U'<' && peek(1) != U'=' && peek(1) != U'!')) {
        if (!accept(U'<')) fail("a group without a name");
        while (take() != U'>') continue;
      } else if (!accept(U':') && !set_flags()) {
        return std::nullopt;
      }
    }
    PatternNode node = alternatives(depth + 1);
    flags_ = outer;
    if (!accept(U')')) fail("a ) is missing");
    return node;
  }

  /// "i-s:" opens a group, "i)" holds to the end of the one around it: then false.
  bool set_flags() {
    Flags flags = flags_;
    bool on = true;
    while (true) {
      const char32_t point = take();
      if (point == U'-') {
        on = false;
      } else if (point == U'i') {
        flags.any_case = on;
      } else if (point == U's') {
        flags.dot_is_all = on;
      } else if (point == U'm') {
        flags.by_line = on;
      } else if (point == U')') {
        flags_ = flags;
        return false;
      } else if (point == U':') {
        flags_ = flags;
        return true;
      } else if (point != U'U') {
        fail("a group of this kind is not implemented");
      }
    }
  }

  PatternNode bracket() {
    Set set;
    set.negated = accept(U'^');
    set.any_case = flags_.any_case;
    for (bool first = true; first || peek() != U']'; first = false) {
      if (peek() == U'[' && peek(1) == U':') {
        add_posix(set);
        continue;
      }
      char32_t low = take();
      if (low == U'\\' && add_class(set)) continue;
      if (low == U'\\') low = escaped();
      char32_t high = low;
      if (peek() == U'-' && peek(1) != U']' && at_ + 1 < points_.size()) {
        ++at_;
        high = take();
        if (high == U'\\') high = escaped();
        if (high < low) fail("a range ends before it starts");
      }
      set.ranges.emplace_back(low, high);
    }
    ++at_;
    return one_of(std::move(set));
  }

  void add_posix(Set& set) {
    at_ += 2;
    const bool negated = accept(U'^');
    std::string name;
    while (peek() != U':') append_utf8(name, take());
    ++at_;
    if (!accept(U']')) fail("a class is not closed");
    add_named(set, find_named(name), negated);
  }

  const NamedSet& find_named(const std::string& name) const {
    for (const NamedSet& named : named_sets()) {
      if (named.name == name) return named;
    }
    fail("there is no class " + name);
  }

  /// Behind a backslash: a class such as \d.
  bool add_class(Set& set) {
    const char32_t point = peek();
    const char32_t lower = point | 0x20;
    if (lower != U'd' && lower != U'w' && lower != U's') return false;
    ++at_;
    add_named(set, find_named(std::string(1, static_cast<char>(lower))), point != lower);
    return true;
  }

  PatternNode escape() {
    Set set;
    set.any_case = false;
    if (add_class(set)) return one_of(std::move(set));
    if (accept(U'A')) return placed(Place::kTextStart);
    if (accept(U'z')) return placed(Place::kTextEnd);
    if (accept(U'b')) return placed(Place::kWordEdge);
    if (accept(U'B')) return placed(Place::kNoWordEdge);
    if (accept(U'Q')) return quoted();
    return literal(escaped());
  }

  PatternNode quoted() {
    PatternNode all;
    while (!at_end() && !(peek() == U'\\' && peek(1) == U'E')) all.parts.push_back(literal(take()));
    at_ = std::min(at_ + 2, points_.size());
    return all;
  }

  /// The character that stands behind a backslash.
  char32_t escaped() {
    const char32_t point = take();
    constexpr std::u32string_view kLetters = U"afnrtv", kMeaning = U"\a\f\n\r\t\v";
    if (const size_t found = kLetters.find(point); found != std::u32string_view::npos) return kMeaning[found];
    if (point == U'x') return hex();
    const bool is_word = (point >= U'0' && point <= U'9') || (point >= U'A' && point <= U'Z') ||
                         (point >= U'a' && point <= U'z');
    if (is_word || point >= 0x80) fail("this escape is not implemented");
    return point;
  }

  char32_t hex() {
    const bool braces = accept(U'{');
    char32_t value = 0;
    for (int digits = 0; braces ? peek() != U'}' : digits < 2; ++digits) {
      const char32_t point = take(), lower = point | 0x20;
      const bool is_digit = point >= U'0' && point <= U'9';
      if (!is_digit && (lower < U'a' || lower > U'f')) fail("no hexadecimal digit");
      value = value * 16 + (is_digit ? point - U'0' : lower - U'a' + 10);
      if (value > kLast) fail("there is no such character");
    }
    if (braces) ++at_;
    return value;
  }

  PatternNode literal(char32_t point) const { return one_of({{{point, point}}, false, flags_.any_case}); }

  static PatternNode one_of(Set set) {
    PatternNode node;
    node.kind = Kind::kSet;
    node.set = std::move(set);
    return node;
  }

  static PatternNode placed(Place place) {
    PatternNode node;
    node.kind = Kind::kPlace;
    node.place = place;
    return node;
  }

  std::u32string points_;
  size_t at_ = 0;
  Flags flags_;
};

}  // namespace

PatternNode parse_pattern(std::string_view pattern) { return Parser(pattern).parse(); }

}  // namespace tensormill::host_ops
