/// Expressions of tensor expressions and of loop IR: immutable trees with one node shape for all operators,
/// so that a pass, a printer or an executor is a switch over expr_ops.def, where the semantics of each
/// operator are written. There is no undefined behaviour: integers wrap, division by zero and conversions are
/// defined. Index arithmetic is int64. Variables and buffers are identified by their node, never by name.
/// Thread-safety: immutable, so free to share between threads.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/shape.h"

namespace tensormill::te {

/// Scalar (lanes == 1) or vector type.
struct Type {
  DType dtype = DType::kInt64;
  int lanes = 1;
  bool operator==(const Type&) const = default;
  bool is_float() const { return tensormill::is_float(dtype); }
  Type with_lanes(int count) const { return {dtype, count}; }
};
/// "f32", "i64x8"
std::string to_string(Type type);

enum class ExprOp : uint8_t {
#define TM_EXPR_OP(enumerator, name, arity, group, meaning) enumerator,
#include "compiler/te/expr_ops.def"
#undef TM_EXPR_OP
};
std::string_view expr_op_name(ExprOp op);
int expr_op_arity(ExprOp op);

struct ExprNode;
struct VarNode;
struct BufferNode;
struct TensorNode;
struct Reduction;
using Var = std::shared_ptr<const VarNode>;
using Buffer = std::shared_ptr<const BufferNode>;
using Tensor = std::shared_ptr<const TensorNode>;
/// What a lookup gives for each byte.
using ByteTable = std::array<uint8_t, 256>;

/// A shared immutable expression; never null where a function takes one, unless stated.
class Expr {
public:
  Expr() = default;
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}
  Expr(const Var& var);  // NOLINT: a variable is an expression
  /// An int64 constant. Not of what merely converts to a number, as symbolic integers do: they have
  /// expressions of their own.
  template <std::integral T>
  Expr(T value) : Expr(constant(static_cast<int64_t>(value))) {}  // NOLINT
  const ExprNode* operator->() const { return node_.get(); }
  const ExprNode& operator*() const { return *node_; }
  const ExprNode* get() const { return node_.get(); }
  explicit operator bool() const { return node_ != nullptr; }
  /// Same node (not structural equality: see equal()).
  bool same_as(const Expr& other) const { return node_ == other.node_; }

private:
  static Expr constant(int64_t value);

  std::shared_ptr<const ExprNode> node_;
};

struct VarNode {
  std::string name;  ///< for printing only
  DType dtype = DType::kInt64;
  int lanes = 1;  ///< > 1: a kLet binds it to a vector; loop variables are scalars
};

enum class Scope : uint8_t {
  kParameter,        ///< passed by the executor
  kSharedWorkspace,  ///< one per call, shared by all workers
  kWorkerWorkspace,  ///< one per worker
  kRegister,         ///< small, constant extents, all indices constant after unrolling: becomes SSA values
};

struct BufferNode {
  std::string name;  ///< for printing only
  DType dtype = DType::kFloat32;
  std::vector<Expr>
      shape;  ///< extents, constant or over the kernel's symbolic dims; one extent once flattened
  Scope scope = Scope::kParameter;
};

struct ExprNode {
  ExprOp op;
  Type type;
  int64_t int_value = 0;                       ///< kIntImm; for u64 the bits
  double float_value = 0;                      ///< kFloatImm
  Var var;                                     ///< kVar
  Buffer buffer;                               ///< kLoad
  Tensor tensor;                               ///< kRead
  int output = 0;                              ///< kRead, kReduce: which value of a tuple
  std::shared_ptr<const Reduction> reduction;  ///< kReduce
  std::shared_ptr<const ByteTable> table;      ///< kLookup
  Expr mask;                                   ///< kLoad: bool vector or null
  std::vector<Expr> args;
};

// ---- construction: checks types (TM_CHECK), folds constants, no other rewriting
// -------------------------------
Var make_var(std::string name, DType dtype = DType::kInt64, int lanes = 1);
Buffer make_buffer(std::string name, DType dtype, std::vector<Expr> shape, Scope scope);
Expr int_imm(DType dtype, int64_t value, int lanes = 1);   ///< integers and bool; wraps to the width
Expr float_imm(DType dtype, double value, int lanes = 1);  ///< rounds to the type
Expr imm_like(Type type, double value);                    ///< constant of any type
Expr bool_imm(bool value);
/// A node of any operator with a computed result type: arity 1..3 operators of the table. Scalars are
/// broadcast when the other operands are vectors. Folds when all args are constant.
Expr make(ExprOp op, std::vector<Expr> args);
Expr cast(DType dtype, Expr value);
Expr reinterpret(DType dtype, Expr value);
Expr lookup(Expr index, std::shared_ptr<const ByteTable> table);
Expr select(Expr condition, Expr if_true, Expr if_false);
Expr ramp(Expr base, Expr stride, int lanes);
Expr broadcast(Expr value, int lanes);
Expr load(Buffer buffer, std::vector<Expr> indices, Expr mask = {});
Expr read(Tensor tensor, std::vector<Expr> indices, int output = 0);
Expr check_index(Expr index, Expr extent);
Expr fma(Expr a, Expr b, Expr c);
Expr dot4(Expr a, Expr b);
Expr floordiv(Expr a, Expr b);
Expr floormod(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr logical_and(Expr a, Expr b);
Expr logical_or(Expr a, Expr b);
Expr logical_not(Expr a);
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);  ///< kDiv
Expr operator-(Expr a);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr operator==(Expr a, Expr b);  ///< builds kEq; use equal() to compare trees
Expr operator!=(Expr a, Expr b);
/// The same node with other args (and mask): what rewriters use. Re-runs type computation and folding.
Expr with_args(const Expr& expr, std::vector<Expr> args, Expr mask = {});

// ---- inspection
// -----------------------------------------------------------------------------------------------
bool is_const(const Expr& expr);
/// The value when `expr` is an integer constant.
const int64_t* as_int(const Expr& expr);
bool is_int(const Expr& expr, int64_t value);
/// Structural equality: same operators, constants (floats by bits), tables by their bytes, variables, buffers
/// and tensors by node.
bool equal(const Expr& a, const Expr& b);

/// Evaluates one operator on constants exactly as every executor must: the one definition of scalar
/// semantics, used by constant folding and by the interpreter. `args` are scalars: integers and bools in `i`,
/// floats in `f` (f32 and f16 values are held exactly in the double). Vector math operators are evaluated
/// with the C library and are not bit-exact with the legalized form: fold them only where a tolerance allows.
/// kLookup is none of them: its node has the table.
struct Scalar {
  int64_t i = 0;
  double f = 0;
};
Scalar evaluate_op(ExprOp op, DType arg_dtype, DType result_dtype, const Scalar* args, size_t count);
/// `value` wrapped to the width of an integer dtype (sign- or zero-extended back to 64 bits); bool: != 0.
int64_t wrap_to(DType dtype, int64_t value);
/// `value` rounded to a float dtype.
double round_to(DType dtype, double value);

}  // namespace tensormill::te
