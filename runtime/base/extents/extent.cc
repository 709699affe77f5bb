#include "runtime/base/extents/extent.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill {
namespace {

/// What an operation takes from the stack; each leaves one value.
size_t taken(const Extent::Op& op) {
  switch (op.code) {
    case Extent::Code::kConstant:
    case Extent::Code::kSymbol:
      return 0;
    case Extent::Code::kNeg:
      return 1;
    case Extent::Code::kCall:
      return extent_functions()[static_cast<size_t>(op.value)].arity;
    default:
      return 2;
  }
}

/// The quotient rounded down into `a`; false where there is none.
bool floor_divide(int64_t& a, int64_t b, bool remainder) {
  if (b == 0) return false;
  if (b == -1) {
    const int64_t value = a;
    a = 0;
    return remainder || !__builtin_sub_overflow(0, value, &a);
  }
  const int64_t quotient = a / b, rest = a % b;
  const bool down = rest != 0 && (rest < 0) != (b < 0);
  a = remainder ? (down ? rest + b : rest) : quotient - (down ? 1 : 0);
  return true;
}

/// `a` op `b` into `a`; false where the result does not fit.
bool combine(Extent::Code code, int64_t& a, int64_t b) {
  switch (code) {
    case Extent::Code::kAdd:
      return !__builtin_add_overflow(a, b, &a);
    case Extent::Code::kSub:
      return !__builtin_sub_overflow(a, b, &a);
    case Extent::Code::kMul:
      return !__builtin_mul_overflow(a, b, &a);
    case Extent::Code::kFloorDiv:
    case Extent::Code::kFloorMod:
      return floor_divide(a, b, code == Extent::Code::kFloorMod);
    case Extent::Code::kMin:
      a = std::min(a, b);
      return true;
    default:
      a = std::max(a, b);
      return true;
  }
}

}  // namespace

Extent::Extent(std::vector<Op> ops, std::vector<std::string> symbols)
    : ops_(std::move(ops)), symbols_(std::move(symbols)) {
  check();
}

void Extent::check() const {
  if (ops_.size() > kMaxOps) {
    throw Error(ErrorCode::kTooLarge, "a formula of an extent has " + std::to_string(ops_.size()) +
                                          " operations, more than " + std::to_string(kMaxOps));
  }
  size_t height = 0, highest = 0;
  for (const Op& op : ops_) {
    if (op.code == Code::kSymbol) {
      TM_CHECK(op.value >= 0 && static_cast<size_t>(op.value) < symbols_.size(), "a symbol without a name");
    }
    TM_CHECK(op.code != Code::kCall ||
                 (op.value >= 0 && static_cast<size_t>(op.value) < extent_functions().size()),
             "a call of no function");
    TM_CHECK(height >= taken(op), "an operation without its operands");
    height = height - taken(op) + 1;
    highest = std::max(highest, height);
  }
  TM_CHECK(height == 1, "a program that leaves " + std::to_string(height) + " values");
  if (highest > kMaxStack) {
    throw Error(ErrorCode::kTooLarge, "a formula of an extent needs " + std::to_string(highest) +
                                          " values at a time, more than " + std::to_string(kMaxStack));
  }
}

std::optional<int64_t> Extent::constant() const {
  if (ops_.size() != 1 || ops_[0].code != Code::kConstant) return std::nullopt;
  return ops_[0].value;
}

Extent Extent::bound_to(std::span<const std::string> names) const {
  Extent result = *this;
  result.symbols_.assign(names.begin(), names.end());
  for (Op& op : result.ops_) {
    if (op.code != Code::kSymbol) continue;
    const std::string& name = symbols_[static_cast<size_t>(op.value)];
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw Error(ErrorCode::kInvalidArgument, "the formula " + to_string() + " has the symbol " +
                                                   quoted_symbol(name) + ", which is not known here");
    }
    op.value = found - names.begin();
  }
  return result;
}

std::optional<int64_t> Extent::evaluate(std::span<const int64_t> values) const {
  TM_CHECK(values.size() >= symbols_.size(), "a formula without values for its symbols");
  // Left as it is: each place is written before it is read, and filling it would take longer than the
  // formula.
  std::array<int64_t, kMaxStack> stack;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  int64_t* top = stack.data();
  for (const Op& op : ops_) {
    switch (op.code) {
      case Code::kConstant:
        *top++ = op.value;
        break;
      case Code::kSymbol:
        *top++ = values[static_cast<size_t>(op.value)];
        break;
      case Code::kNeg:
        if (__builtin_sub_overflow(0, top[-1], &top[-1])) return std::nullopt;
        break;
      case Code::kCall: {
        const ExtentFunction& function = extent_functions()[static_cast<size_t>(op.value)];
        top -= function.arity;
        const std::optional<int64_t> value = function.evaluate(top);
        if (!value) return std::nullopt;
        *top++ = *value;
        break;
      }
      default:
        --top;
        if (!combine(op.code, top[-1], *top)) return std::nullopt;
    }
  }
  return top[-1];
}

}  // namespace tensormill
