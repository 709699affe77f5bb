#include "compiler/ir/sym_float.h"

#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/extents/extent_functions.h"

namespace tensormill::ir {

namespace {

/// The one call of a function that the value is; null otherwise.
te::Atom call_of(const te::Dim& value, std::string_view function) {
  te::Atom atom = value.as_atom();
  return atom != nullptr && atom->kind == te::DimAtom::Kind::kCall && atom->name == function ? atom : nullptr;
}

SymInt part(const te::Atom& call, size_t arg, const SymInt& whole) {
  return {call->args[arg], whole.table()->shared_from_this()};
}

/// floor(x * factor) as a function of its own, where the factor is a number or a quotient of integers.
std::optional<SymInt> scaled(const SymInt& x, const SymInt& factor) {
  if (factor.is_constant()) {
    if (factor.hint() <= 0) return std::nullopt;
    return call("scaled", {x, factor});
  }
  const te::Atom quotient = call_of(factor.expr(), "f32_div");
  if (quotient == nullptr) return std::nullopt;
  const te::Atom up = call_of(quotient->args[0], "f32_of"), down = call_of(quotient->args[1], "f32_of");
  const auto integer = [&](const te::Atom& of, size_t arg) -> std::optional<SymInt> {
    if (of != nullptr) return part(of, 0, factor);
    const te::Dim& code = quotient->args[arg];
    const auto number = code.is_constant() ? float_of_code(code.constant()) : std::nullopt;
    if (!number || *number != static_cast<float>(static_cast<int64_t>(*number))) return std::nullopt;
    return static_cast<int64_t>(*number);
  };
  const std::optional<SymInt> above = integer(up, 0), below = integer(down, 1);
  // The quotient by 0 is no number: no run has it.
  if (!above || !below || !demand(Relation::kLess, 0, *below)) return std::nullopt;
  return call("scaled_by_ratio", {x, *above, *below});
}

/// What is rounded down: the argument of the call, or what is never negative and cut off.
std::optional<SymInt> floored(const SymInt& code) {
  if (const te::Atom floor = call_of(code.expr(), "f32_floor")) return part(floor, 0, code);
  return is_proven(Relation::kLessEqual, 0, code) ? std::optional(code) : std::nullopt;
}

}  // namespace

SymInt float_of(const SymInt& value) {
  if (!value.is_constant()) {
    // What was a whole float before is the same one again.
    if (const te::Atom integer = call_of(value.expr(), "f32_to_int")) {
      for (const char* whole : {"f32_floor", "f32_ceil", "f32_round", "f32_of"}) {
        if (call_of(integer->args[0], whole) != nullptr) return part(integer, 0, value);
      }
    }
  }
  return call("f32_of", {value});
}

SymInt int_of_float(const SymInt& code) {
  if (code.is_constant()) return call("f32_to_int", {code});
  if (const te::Atom whole = call_of(code.expr(), "f32_of")) {
    // Up to there float32 has all integers.
    constexpr int64_t kExact = int64_t{1} << 24;
    const SymInt value = part(whole, 0, code);
    if (is_proven(Relation::kLessEqual, value, kExact) && is_proven(Relation::kLessEqual, -kExact, value))
      return value;
  }
  if (const std::optional<SymInt> below = floored(code)) {
    if (const te::Atom product = call_of(below->expr(), "f32_mul")) {
      for (const size_t own : {size_t{0}, size_t{1}}) {
        const te::Atom x = call_of(product->args[own], "f32_of");
        if (x == nullptr) continue;
        if (const auto result = scaled(part(x, 0, code), part(product, 1 - own, code))) return *result;
      }
    }
  }
  return call("f32_to_int", {code});
}

std::optional<SymInt> float_operation(te::ExprOp op, const std::vector<SymInt>& codes) {
  switch (op) {
    case te::ExprOp::kAdd:
      return call("f32_add", codes);
    case te::ExprOp::kSub:
      return call("f32_sub", codes);
    case te::ExprOp::kMul:
      return call("f32_mul", codes);
    case te::ExprOp::kDiv:
      return call("f32_div", codes);
    case te::ExprOp::kSqrt:
      return call("f32_sqrt", codes);
    case te::ExprOp::kFloor:
      return call("f32_floor", codes);
    case te::ExprOp::kCeil:
      return call("f32_ceil", codes);
    case te::ExprOp::kRound:
      return call("f32_round", codes);
    case te::ExprOp::kNeg:
      return -codes[0];
    case te::ExprOp::kAbs:
      return max(codes[0], -codes[0]);
    case te::ExprOp::kMin:
      return min(codes[0], codes[1]);
    case te::ExprOp::kMax:
      return max(codes[0], codes[1]);
    default:
      return std::nullopt;
  }
}

SymInt floor_of_product(const SymInt& x, const SymInt& factor) {
  if (const std::optional<SymInt> result = scaled(x, factor)) return *result;
  return int_of_float(call("f32_floor", {call("f32_mul", {float_of(x), factor})}));
}

}  // namespace tensormill::ir
