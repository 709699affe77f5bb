#include "compiler/te/expr.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "compiler/te/op_class.h"
#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

struct OpInfo {
  std::string_view name;
  int arity;
};

constexpr OpInfo kOps[] = {
#define TM_EXPR_OP(enumerator, name, arity, group, meaning) {name, arity},
#include "compiler/te/expr_ops.def"
#undef TM_EXPR_OP
};

Expr make_node(ExprNode node) { return Expr(std::make_shared<const ExprNode>(std::move(node))); }

Scalar constant_of(const Expr& expr) { return {expr->int_value, expr->float_value}; }

Expr constant(Type type, const Scalar& value) {
  return type.is_float() ? float_imm(type.dtype, value.f, type.lanes)
                         : int_imm(type.dtype, value.i, type.lanes);
}

/// The constant that `op` gives on constant args, or null when it must stay (vector math is only exact once
/// legalized; a failing check_index reports at run time).
Expr fold(ExprOp op, Type type, const std::vector<Expr>& args) {
  if (args.empty() || args.size() > 3 || op_class(op) == OpClass::kVectorMath) return {};
  if (op == ExprOp::kRamp || op_class(op) == OpClass::kMemory) return {};
  if (!std::all_of(args.begin(), args.end(), [](const Expr& arg) { return is_const(arg); })) return {};
  Scalar values[3];
  for (size_t i = 0; i < args.size(); ++i) values[i] = constant_of(args[i]);
  if (op == ExprOp::kBroadcast) return constant(type, values[0]);
  if (op == ExprOp::kCheckIndex) {
    return values[0].i >= 0 && values[0].i < values[1].i ? constant(type, values[0]) : Expr();
  }
  const DType arg_dtype = op == ExprOp::kSelect ? type.dtype : args[0]->type.dtype;
  if (op_class(op) == OpClass::kLaneReduce) {
    for (int lanes = args[0]->type.lanes; lanes > 1; lanes /= 2) {
      const Scalar halves[2] = {values[0], values[0]};
      values[0] = evaluate_op(lane_reduce_step(op), arg_dtype, type.dtype, halves, 2);
    }
    return constant(type, values[0]);
  }
  return constant(type, evaluate_op(op, arg_dtype, type.dtype, values, args.size()));
}

Expr finish(ExprOp op, Type type, std::vector<Expr> args) {
  if (Expr folded = fold(op, type, args)) return folded;
  ExprNode node{};
  node.op = op;
  node.type = type;
  node.args = std::move(args);
  return make_node(std::move(node));
}

std::string describe(ExprOp op, const std::vector<Expr>& args) {
  std::string text(expr_op_name(op));
  text += " of (";
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) text += ", ";
    text += args[i] ? to_string(args[i]->type) : "null";
  }
  return text + ")";
}

/// Makes all args as wide as the widest.
int unify_lanes(ExprOp op, std::vector<Expr>& args) {
  int lanes = 1;
  for (const Expr& arg : args) lanes = std::max(lanes, arg->type.lanes);
  for (Expr& arg : args) {
    if (arg->type.lanes == lanes) continue;
    TM_CHECK(arg->type.lanes == 1, "lanes differ: " + describe(op, args));
    arg = broadcast(arg, lanes);
  }
  return lanes;
}

bool accepts(ExprOp op, DType dtype) {
  switch (op_class(op)) {
    case OpClass::kArithmetic:
      return dtype != DType::kBool;
    case OpClass::kInteger:
      return is_integer(dtype);
    case OpClass::kWords:
      return dtype == DType::kInt32;
    case OpClass::kBitwise:
      return !is_float(dtype);
    case OpClass::kFloat:
      return is_float(dtype);
    case OpClass::kVectorMath:
      return is_float(dtype) || (op == ExprOp::kPow && is_integer(dtype));
    case OpClass::kLaneReduce:
      return dtype != DType::kBool;
    default:
      return true;
  }
}

}  // namespace

std::string to_string(Type type) {
  std::string text(dtype_name(type.dtype));
  if (type.lanes != 1) text += "x" + std::to_string(type.lanes);
  return text;
}

std::string_view expr_op_name(ExprOp op) { return kOps[static_cast<size_t>(op)].name; }
int expr_op_arity(ExprOp op) { return kOps[static_cast<size_t>(op)].arity; }

Expr::Expr(const Var& var) {
  TM_CHECK(var != nullptr, "null variable");
  ExprNode node{};
  node.op = ExprOp::kVar;
  node.type = {var->dtype, var->lanes};
  node.var = var;
  node_ = std::make_shared<const ExprNode>(std::move(node));
}

Expr Expr::constant(int64_t value) { return int_imm(DType::kInt64, value); }

Var make_var(std::string name, DType dtype, int lanes) {
  return std::make_shared<const VarNode>(VarNode{std::move(name), dtype, lanes});
}

Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape, Scope scope) {
  for (const Expr& extent : shape) {
    TM_CHECK(extent && extent->type == Type{}, "extents of buffer " + name + " are i64");
  }
  return std::make_shared<const BufferNode>(BufferNode{std::move(name), dtype, std::move(shape), scope});
}

Expr int_imm(DType dtype, int64_t value, int lanes) {
  TM_CHECK(!is_float(dtype) && lanes >= 1, "integer constant of type " + to_string(Type{dtype, lanes}));
  ExprNode node{};
  node.op = ExprOp::kIntImm;
  node.type = {dtype, lanes};
  node.int_value = wrap_to(dtype, value);
  return make_node(std::move(node));
}

Expr float_imm(DType dtype, double value, int lanes) {
  TM_CHECK(is_float(dtype) && lanes >= 1, "float constant of type " + to_string(Type{dtype, lanes}));
  ExprNode node{};
  node.op = ExprOp::kFloatImm;
  node.type = {dtype, lanes};
  // One NaN: equality, hashing and text must not depend on a payload that no executor has to keep.
  node.float_value = value != value ? std::numeric_limits<double>::quiet_NaN() : round_to(dtype, value);
  return make_node(std::move(node));
}

Expr imm_like(Type type, double value) {
  if (type.is_float()) return float_imm(type.dtype, value, type.lanes);
  const Scalar from{0, value};
  return int_imm(type.dtype, evaluate_op(ExprOp::kCast, DType::kFloat64, type.dtype, &from, 1).i, type.lanes);
}

Expr bool_imm(bool value) { return int_imm(DType::kBool, value ? 1 : 0); }

Expr make(ExprOp op, std::vector<Expr> args) {
  const OpClass group = op_class(op);
  TM_CHECK(group != OpClass::kConstant && group != OpClass::kMemory && group != OpClass::kTyped,
           std::string("make does not build ") + std::string(expr_op_name(op)));
  TM_CHECK(static_cast<int>(args.size()) == expr_op_arity(op), "wrong number of args: " + describe(op, args));
  for (const Expr& arg : args) TM_CHECK(static_cast<bool>(arg), "null arg: " + describe(op, args));
  if (group == OpClass::kLaneReduce) {
    const Type type = args[0]->type;
    TM_CHECK(accepts(op, type.dtype) && std::has_single_bit(static_cast<unsigned>(type.lanes)),
             "no such reduction: " + describe(op, args));
    if (type.lanes == 1) return args[0];
    return finish(op, type.with_lanes(1), std::move(args));
  }
  if (op == ExprOp::kSelect) return select(args[0], args[1], args[2]);
  const int lanes = unify_lanes(op, args);
  const DType dtype = args[0]->type.dtype;
  for (const Expr& arg : args) {
    TM_CHECK(arg->type.dtype == dtype && accepts(op, dtype), "types do not fit: " + describe(op, args));
  }
  if (op == ExprOp::kCheckIndex) TM_CHECK(dtype == DType::kInt64, "check_index is for i64");
  return finish(op, {group == OpClass::kCompare ? DType::kBool : dtype, lanes}, std::move(args));
}

Expr cast(DType dtype, Expr value) {
  if (value->type.dtype == dtype) return value;
  const Type type{dtype, value->type.lanes};
  return finish(ExprOp::kCast, type, {std::move(value)});
}

Expr reinterpret(DType dtype, Expr value) {
  if (value->type.dtype == dtype) return value;
  TM_CHECK(dtype_bytes(dtype) == dtype_bytes(value->type.dtype) && dtype != DType::kBool,
           "reinterpret of " + to_string(value->type) + " as " + std::string(dtype_name(dtype)));
  const Type type{dtype, value->type.lanes};
  return finish(ExprOp::kReinterpret, type, {std::move(value)});
}

Expr lookup(Expr index, std::shared_ptr<const ByteTable> table) {
  TM_CHECK(index->type.dtype == DType::kUInt8 && table != nullptr,
           "types do not fit: " + describe(ExprOp::kLookup, {index}));
  if (const int64_t* constant = as_int(index))
    return int_imm(DType::kUInt8, (*table)[static_cast<uint8_t>(*constant)], index->type.lanes);
  ExprNode node{};
  node.op = ExprOp::kLookup;
  node.type = index->type;
  node.table = std::move(table);
  node.args = {std::move(index)};
  return make_node(std::move(node));
}

Expr select(Expr condition, Expr if_true, Expr if_false) {
  std::vector<Expr> args{std::move(condition), std::move(if_true), std::move(if_false)};
  const int lanes = unify_lanes(ExprOp::kSelect, args);
  TM_CHECK(args[0]->type.dtype == DType::kBool && args[1]->type == args[2]->type,
           "types do not fit: " + describe(ExprOp::kSelect, args));
  const Type type = args[1]->type.with_lanes(lanes);
  return finish(ExprOp::kSelect, type, std::move(args));
}

Expr ramp(Expr base, Expr stride, int lanes) {
  TM_CHECK(base->type == stride->type && base->type.lanes == 1 && is_integer(base->type.dtype) && lanes >= 1,
           "types do not fit: " + describe(ExprOp::kRamp, {base, stride}));
  if (lanes == 1) return base;
  const Type type = base->type.with_lanes(lanes);
  return finish(ExprOp::kRamp, type, {std::move(base), std::move(stride)});
}

Expr broadcast(Expr value, int lanes) {
  TM_CHECK(value->type.lanes == 1 && lanes >= 1,
           "types do not fit: " + describe(ExprOp::kBroadcast, {value}));
  if (lanes == 1) return value;
  const Type type = value->type.with_lanes(lanes);
  return finish(ExprOp::kBroadcast, type, {std::move(value)});
}

Expr load(Buffer buffer, std::vector<Expr> indices, Expr mask) {
  TM_CHECK(buffer != nullptr && indices.size() == buffer->shape.size(),
           "load of " + (buffer ? buffer->name : std::string("null")) + " with " +
               std::to_string(indices.size()) + " indices");
  int lanes = 1;
  for (const Expr& index : indices) {
    TM_CHECK(index->type.dtype == DType::kInt64, "index of type " + to_string(index->type));
    TM_CHECK(index->type.lanes == 1 || lanes == 1 || index->type.lanes == lanes, "lanes of indices differ");
    lanes = std::max(lanes, index->type.lanes);
  }
  if (mask) {
    TM_CHECK(mask->type.dtype == DType::kBool, "mask of type " + to_string(mask->type));
    if (mask->type.lanes != lanes) mask = broadcast(mask, lanes);
  }
  ExprNode node{};
  node.op = ExprOp::kLoad;
  node.type = {buffer->dtype, lanes};
  node.buffer = std::move(buffer);
  node.mask = std::move(mask);
  node.args = std::move(indices);
  return make_node(std::move(node));
}

Expr check_index(Expr index, Expr extent) {
  return make(ExprOp::kCheckIndex, {std::move(index), std::move(extent)});
}

#define TM_BINARY(function, op) \
  Expr function(Expr a, Expr b) { return make(ExprOp::op, {std::move(a), std::move(b)}); }
TM_BINARY(floordiv, kFloorDiv)
TM_BINARY(floormod, kFloorMod)
TM_BINARY(min, kMin)
TM_BINARY(max, kMax)
TM_BINARY(logical_and, kBitAnd)
TM_BINARY(logical_or, kBitOr)
TM_BINARY(operator+, kAdd)
TM_BINARY(operator-, kSub)
TM_BINARY(operator*, kMul)
TM_BINARY(operator/, kDiv)
TM_BINARY(operator<, kLt)
TM_BINARY(operator<=, kLe)
TM_BINARY(operator>, kGt)
TM_BINARY(operator>=, kGe)
TM_BINARY(operator==, kEq)
TM_BINARY(operator!=, kNe)
#undef TM_BINARY

Expr dot4(Expr a, Expr b) { return make(ExprOp::kDot4, {std::move(a), std::move(b)}); }
Expr fma(Expr a, Expr b, Expr c) { return make(ExprOp::kFma, {std::move(a), std::move(b), std::move(c)}); }
Expr operator-(Expr a) { return make(ExprOp::kNeg, {std::move(a)}); }
Expr logical_not(Expr a) { return make(ExprOp::kNot, {std::move(a)}); }

Expr with_args(const Expr& expr, std::vector<Expr> args, Expr mask) {
  switch (expr->op) {
    case ExprOp::kIntImm:
    case ExprOp::kFloatImm:
    case ExprOp::kVar:
      return expr;
    case ExprOp::kCast:
      return cast(expr->type.dtype, std::move(args[0]));
    case ExprOp::kReinterpret:
      return reinterpret(expr->type.dtype, std::move(args[0]));
    case ExprOp::kLookup:
      return lookup(std::move(args[0]), expr->table);
    case ExprOp::kRamp:
      return ramp(std::move(args[0]), std::move(args[1]), expr->type.lanes);
    case ExprOp::kBroadcast:
      return broadcast(std::move(args[0]), expr->type.lanes);
    case ExprOp::kLoad:
      if (!mask) mask = expr->mask;
      return load(expr->buffer, std::move(args), mask);
    case ExprOp::kRead:
      return read(expr->tensor, std::move(args), expr->output);
    default:
      return make(expr->op, std::move(args));
  }
}

bool is_const(const Expr& expr) { return expr->op == ExprOp::kIntImm || expr->op == ExprOp::kFloatImm; }

const int64_t* as_int(const Expr& expr) { return expr->op == ExprOp::kIntImm ? &expr->int_value : nullptr; }

bool is_int(const Expr& expr, int64_t value) {
  return expr->op == ExprOp::kIntImm && expr->int_value == value;
}

bool equal(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  if (!a || !b) return false;
  if (a->op != b->op || a->type != b->type || a->args.size() != b->args.size()) return false;
  if (a->int_value != b->int_value || a->var != b->var || a->buffer != b->buffer) return false;
  if (a->tensor != b->tensor || a->output != b->output || a->reduction != b->reduction) return false;
  if (std::bit_cast<int64_t>(a->float_value) != std::bit_cast<int64_t>(b->float_value)) return false;
  if (a->table && b->table && *a->table != *b->table) return false;
  for (size_t i = 0; i < a->args.size(); ++i) {
    if (!equal(a->args[i], b->args[i])) return false;
  }
  return equal(a->mask, b->mask);
}

}  // namespace tensormill::te
