/// Extents as formulas over named symbols: what packages hold for the shapes that are known when a run binds
/// them. A formula is a text like `(H+1)//2`, `N*S`, `min(N, 8)`, `H % 4`, `scaled(H, 2.5f)`, and a small
/// program that computes it. Proofs and normal forms are the compiler's (compiler/te/dim.h).
///
/// Grammar: sums of products with + - * // %, where // and % round down and the remainder has the sign of the
/// divisor; -x; parentheses; decimal int64; min(...) and max(...) of one or more; the functions of
/// extent_functions.def; symbols. A symbol that is no identifier ([A-Za-z_][A-Za-z0-9_.]*) stands in single
/// quotes, with a backslash before quotes and backslashes in it.
/// Thread-safety: values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tensormill {

class Extent {
public:
  enum class Code : uint8_t {
    kConstant,  ///< pushes `value`
    kSymbol,    ///< pushes the value of symbol number `value`
    kNeg,
    kAdd,
    kSub,
    kMul,
    kFloorDiv,
    kFloorMod,
    kMin,
    kMax,
    kCall,  ///< function number `value` of extent_functions(), of as many arguments as it has
  };
  struct Op {
    Code code = Code::kConstant;
    int64_t value = 0;
    bool operator==(const Op&) const = default;
  };
  /// Longer texts, longer programs and deeper nesting are refused, so that a stranger's formula costs little.
  static constexpr size_t kMaxTextBytes = 65536;
  static constexpr size_t kMaxOps = 16384;
  static constexpr size_t kMaxNesting = 64;
  static constexpr size_t kMaxStack = 256;

  Extent() : Extent(0) {}
  explicit Extent(int64_t constant) : ops_{{Code::kConstant, constant}} {}
  /// A program in postfix order over `symbols`. Throws Error(kTooLarge) past the limits above; TM_CHECK for
  /// one that does not leave exactly one value.
  Extent(std::vector<Op> ops, std::vector<std::string> symbols);
  /// Throws Error(kInvalidArgument) naming the place of what cannot be read, Error(kTooLarge) past a limit.
  static Extent parse(std::string_view text);
  /// Reads as much of the text as is a formula and leaves the rest.
  static Extent parse_prefix(std::string_view& text);

  /// The symbols by the numbers that the program uses: of a parsed text in order of first appearance.
  const std::vector<std::string>& symbols() const { return symbols_; }
  const std::vector<Op>& ops() const { return ops_; }
  /// The constant, where the program is one.
  std::optional<int64_t> constant() const;
  /// The same formula whose evaluate() takes one value for each of `names`, in their order. Throws
  /// Error(kInvalidArgument) naming a symbol that is not among them.
  Extent bound_to(std::span<const std::string> names) const;
  /// The value where symbol number i is values[i]. Nothing where a result on the way does not fit into int64
  /// or something is divided by 0. `values` has at least as many elements as symbols() has.
  std::optional<int64_t> evaluate(std::span<const int64_t> values) const;
  /// A text that parses to the same program.
  std::string to_string() const;
  bool operator==(const Extent&) const = default;

private:
  void check() const;

  std::vector<Op> ops_;
  std::vector<std::string> symbols_;
};

/// A symbol as it stands in a text: in quotes where it is no identifier.
std::string quoted_symbol(std::string_view name);

}  // namespace tensormill
