#include <array>
#include <charconv>
#include <cmath>

#include "compiler/te/op_class.h"
#include "compiler/te/printer.h"
#include "compiler/te/text.h"
#include "runtime/base/error.h"
#include "runtime/base/hex.h"

namespace tensormill::te {
namespace {

std::string sanitized(std::string_view hint) {
  std::string name;
  for (const char c : hint) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    name += word ? c : '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(0, "v");
  return name;
}

}  // namespace

std::string_view infix_symbol(ExprOp op) {
  switch (op) {
    case ExprOp::kAdd:
      return "+";
    case ExprOp::kSub:
      return "-";
    case ExprOp::kMul:
      return "*";
    case ExprOp::kDiv:
      return "/";
    case ExprOp::kMod:
      return "%";
    case ExprOp::kBitAnd:
      return "&";
    case ExprOp::kBitOr:
      return "|";
    case ExprOp::kBitXor:
      return "^";
    case ExprOp::kShl:
      return "<<";
    case ExprOp::kShr:
      return ">>";
    case ExprOp::kEq:
      return "==";
    case ExprOp::kNe:
      return "!=";
    case ExprOp::kLt:
      return "<";
    case ExprOp::kLe:
      return "<=";
    case ExprOp::kGt:
      return ">";
    case ExprOp::kGe:
      return ">=";
    default:
      return {};
  }
}

bool is_reserved_word(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "true",    "false",     "inf",    "nan",      "function",  "program",    "dims",     "in",
      "out",     "alias",     "for",    "parallel", "unrolled",  "let",        "allocate", "if",
      "else",    "input",     "output", "compute",  "reduce",    "over",       "source",   "identity",
      "combine", "workspace", "body",   "shared",   "parameter", "vectorized", "worker",   "register",
#define TM_EXPR_OP(enumerator, name, arity, group, meaning) name,
#include "compiler/te/expr_ops.def"
#undef TM_EXPR_OP
  };
  for (const std::string_view reserved : kWords) {
    if (reserved == word) return true;
  }
  return false;
}

std::string float_text(DType dtype, double value) {
  if (value != value) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 40> buffer{};
  char* const end = buffer.data() + buffer.size();
  const auto result = dtype == DType::kFloat64 ? std::to_chars(buffer.data(), end, value)
                                               : std::to_chars(buffer.data(), end, static_cast<float>(value));
  return std::string(buffer.data(), result.ptr);
}

const std::string& Printer::name(const void* node, std::string_view hint) {
  auto [it, fresh] = names_.try_emplace(node);
  if (!fresh) return it->second;
  const std::string base = sanitized(hint);
  std::string unique = base;
  for (int i = 1; is_reserved_word(unique) || !used_.insert(unique).second; ++i) {
    unique = base + "_" + std::to_string(i);
  }
  it->second = std::move(unique);
  return it->second;
}

void Printer::list(const std::vector<Expr>& exprs) {
  for (size_t i = 0; i < exprs.size(); ++i) {
    if (i > 0) text_ += ", ";
    expr(exprs[i]);
  }
}

void Printer::constant(const Expr& expr) {
  const Type type = expr->type;
  if (type.dtype == DType::kBool) {
    text_ += expr->int_value != 0 ? "true" : "false";
    if (type.lanes != 1) text_ += ":" + to_string(type);
    return;
  }
  if (expr->op == ExprOp::kFloatImm) {
    text_ += float_text(type.dtype, expr->float_value);
  } else {
    text_ += type.dtype == DType::kUInt64 ? std::to_string(static_cast<uint64_t>(expr->int_value))
                                          : std::to_string(expr->int_value);
  }
  if (type != Type{}) text_ += ":" + to_string(type);
}

void Printer::memory(const Expr& expr) {
  const bool is_load = expr->op == ExprOp::kLoad;
  TM_CHECK(is_load || expr->op == ExprOp::kRead, "reductions are printed with their tensor");
  text_ +=
      is_load ? name(expr->buffer.get(), expr->buffer->name) : name(expr->tensor.get(), expr->tensor->name);
  if (expr->output != 0) text_ += "." + std::to_string(expr->output);
  text_ += "[";
  list(expr->args);
  if (expr->mask) {
    text_ += "; ";
    this->expr(expr->mask);
  }
  text_ += "]";
}

void Printer::call(const Expr& expr) {
  text_ += expr_op_name(expr->op);
  if (expr->op == ExprOp::kCast || expr->op == ExprOp::kReinterpret) {
    text_ += ".";
    text_ += dtype_name(expr->type.dtype);
  } else if (expr->op == ExprOp::kRamp || expr->op == ExprOp::kBroadcast) {
    text_ += "." + std::to_string(expr->type.lanes);
  } else if (expr->op == ExprOp::kLookup) {
    text_ += ".t" + hex_text(*expr->table);
  }
  text_ += "(";
  list(expr->args);
  text_ += ")";
}

void Printer::expr(const Expr& expr) {
  if (is_const(expr)) return constant(expr);
  if (expr->op == ExprOp::kVar) {
    text_ += name(expr->var.get(), expr->var->name);
    return;
  }
  if (op_class(expr->op) == OpClass::kMemory) return memory(expr);
  const std::string_view symbol = infix_symbol(expr->op);
  if (symbol.empty()) return call(expr);
  text_ += "(";
  this->expr(expr->args[0]);
  text_ += " ";
  text_ += symbol;
  text_ += " ";
  this->expr(expr->args[1]);
  text_ += ")";
}

std::string print(const Expr& expr) {
  Printer printer;
  printer.expr(expr);
  return printer.take();
}

}  // namespace tensormill::te
