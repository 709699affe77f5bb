#include "compiler/te/verify.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "compiler/te/op_class.h"
#include "compiler/te/prover.h"
#include "compiler/te/text.h"
#include "compiler/te/verify_races.h"
#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

/// Extents of symbolic dims: what the executor admits.
constexpr int64_t kMaxDim = int64_t{1} << 40;

[[noreturn]] void fail(const std::string& message) { throw InternalError("verify: " + message); }

std::string describe(const char* what, const Buffer& buffer, const std::vector<Expr>& indices) {
  std::string text = std::string(what) + " " + buffer->name + "[";
  for (size_t i = 0; i < indices.size(); ++i) text += (i > 0 ? ", " : "") + print(indices[i]);
  return text + "]";
}

struct BufferScope {
  int buffer_class;
  bool inside_parallel;
};

struct Placement {
  Scope scope;
  std::string name;
  int64_t begin, end;
};

class Verifier {
public:
  Verifier(const Function& function, Level level) : function_(function), level_(level) {}

  void run() {
    check_signature();
    for (const Var& dim : function_.dims) {
      context_.bind(dim, {0, kMaxDim});
      define(dim, false);
    }
    for (size_t i = 0; i < function_.parameters.size(); ++i) add_parameter(i);
    stmt(function_.body);
  }

private:
  void check_signature() const {
    const std::string& name = function_.name;
    const auto word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    if (name.empty() || !std::all_of(name.begin(), name.end(), word) || (name[0] >= '0' && name[0] <= '9')) {
      fail("function name \"" + name + "\" is not a symbol");
    }
    if (!function_.body) fail("function " + name + " has no body");
    if (!function_.aliases.empty() && function_.aliases.size() != function_.parameters.size()) {
      fail("function " + name + " has " + std::to_string(function_.parameters.size()) + " parameters and " +
           std::to_string(function_.aliases.size()) + " alias classes");
    }
  }

  void add_parameter(size_t index) {
    const Buffer& buffer = function_.parameters[index].buffer;
    if (buffer->scope != Scope::kParameter) fail("parameter " + buffer->name + " is not of parameter scope");
    if (buffers_.contains(buffer.get())) fail("parameter " + buffer->name + " appears twice");
    const int alias = index < function_.aliases.size() ? function_.aliases[index] : -1;
    for (const Expr& extent : buffer->shape) expr(extent);
    check_rank(buffer);
    // Classes of aliases are kept apart from those of single buffers.
    buffers_[buffer.get()] = {alias >= 0 ? -1 - alias : next_class_++, false};
  }

  void check_rank(const Buffer& buffer) const {
    if (level_ != Level::kLoops && buffer->shape.size() != 1) {
      fail("buffer " + buffer->name + " has " + std::to_string(buffer->shape.size()) + " dimensions, not 1");
    }
  }

  // ---- names and data dependence
  // ------------------------------------------------------------------------------

  void define(const Var& var, bool tainted) {
    if (!variables_.insert(var.get()).second)
      fail("variable " + var->name + " is bound inside its own scope");
    scope_.push_back(var);
    if (tainted) tainted_.insert(var.get());
  }

  void undefine(const Var& var) {
    variables_.erase(var.get());
    tainted_.erase(var.get());
    scope_.pop_back();
    context_.unbind(var);
  }

  /// Whether a value depends on tensor data other than through check_index.
  bool is_tainted(const Expr& expr) const {
    if (expr->op == ExprOp::kLoad) return true;
    if (expr->op == ExprOp::kVar) return tainted_.contains(expr->var.get());
    if (expr->op == ExprOp::kCheckIndex) return is_tainted(expr->args[1]);
    return std::any_of(expr->args.begin(), expr->args.end(),
                       [this](const Expr& arg) { return is_tainted(arg); });
  }

  /// The expression with lets of indices put in: all of them where it matters which task runs, those of
  /// vectors where lanes are looked at one by one. Proofs know what scalar lets are equal to.
  Expr inlined(Expr expr, bool vectors_only) const {
    for (auto let = lets_.rbegin(); let != lets_.rend(); ++let) {
      if (!vectors_only || let->first->lanes > 1) expr = substitute(expr, let->first, let->second);
    }
    return expr;
  }

  // ---- expressions
  // --------------------------------------------------------------------------------------------

  void expr(const Expr& expr) {
    if (expr->op == ExprOp::kVar && !variables_.contains(expr->var.get())) {
      fail("variable " + expr->var->name + " is not bound where it is used");
    }
    if (expr->op == ExprOp::kRead || expr->op == ExprOp::kReduce) {
      fail(std::string(expr_op_name(expr->op)) + " of a tensor in loop IR");
    }
    if (level_ == Level::kCodegen && op_class(expr->op) == OpClass::kVectorMath) {
      fail("operator " + std::string(expr_op_name(expr->op)) + " is not legalized");
    }
    for (const Expr& arg : expr->args) this->expr(arg);
    if (expr->mask) this->expr(expr->mask);
    if (expr->op == ExprOp::kLoad) access("load of", expr->buffer, expr->args, expr->mask, false);
  }

  void access(const char* what, const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask,
              bool is_store) {
    const auto found = buffers_.find(buffer.get());
    if (found == buffers_.end()) fail(describe(what, buffer, indices) + ": the buffer does not exist here");
    const bool crosses = in_parallel_ && !found->second.inside_parallel;
    if (crosses && (buffer->scope == Scope::kWorkerWorkspace || buffer->scope == Scope::kRegister)) {
      fail(describe(what, buffer, indices) +
           ": a worker's buffer is used in a parallel loop outside of which it " + "is allocated");
    }
    LaneView view{{}, {}, context_};
    std::vector<Expr> scalars;
    for (const Expr& index : indices) {
      if (is_tainted(index)) {
        fail(describe(what, buffer, indices) + ": the address depends on data without check_index");
      }
      scalars.push_back(inlined(index, true));
    }
    if (level_ == Level::kCodegen && buffer->scope == Scope::kRegister) check_register(what, buffer, indices);
    if (mask) scalars.push_back(inlined(mask, true));
    scalars = view_lanes(scalars, view);
    if (mask) view.context.assume(scalars.back());
    for (size_t i = 0; i < indices.size(); ++i)
      check_bounds(what, buffer, indices, i, scalars[i], view.context);
    if (!crosses) return;
    TaskAccess access{found->second.buffer_class, buffer->name, is_store, {}, {}, {},
                      std::move(view.context)};
    for (const Expr& index : indices) access.indices.push_back(inlined(index, false));
    if (mask) access.mask.push_back(inlined(mask, false));
    for (const Expr& extent : buffer->shape) {
      if (const int64_t* value = as_int(extent)) access.extents.push_back(*value);
    }
    accesses_.push_back(std::move(access));
  }

  void check_bounds(const char* what, const Buffer& buffer, const std::vector<Expr>& indices,
                    size_t dimension, const Expr& index, const BoundsContext& context) const {
    const Expr& extent = buffer->shape[dimension];
    // Flattening multiplies symbolic extents, and adds up what symbolic ends cut of each dimension, which is
    // past linear reasoning; the same access was shown to be in bounds, dimension by dimension, before.
    const bool is_symbolic =
        !is_const(extent) || (!function_.dims.empty() && buffer->scope == Scope::kParameter);
    if (level_ != Level::kLoops && is_symbolic) return;
    if (context.proves(index >= 0) && context.proves(index < extent)) return;
    fail(describe(what, buffer, indices) + ": index " + print(indices[dimension]) + " of dimension " +
         std::to_string(dimension) + " is not shown to be in [0, " + print(extent) + ")");
  }

  void check_register(const char* what, const Buffer& buffer, const std::vector<Expr>& indices) const {
    for (const Expr& index : indices) {
      const bool constant_ramp =
          index->op == ExprOp::kRamp && is_const(index->args[0]) && is_const(index->args[1]);
      if (!is_const(index) && !constant_ramp) {
        fail(describe(what, buffer, indices) + ": the index of a register buffer is not constant");
      }
    }
  }

  // ---- statements
  // ---------------------------------------------------------------------------------------------

  void stmt(const Stmt& stmt) {
    switch (stmt->op) {
      case StmtOp::kFor:
        return loop(*stmt);
      case StmtOp::kStore:
        return store(*stmt);
      case StmtOp::kAllocate:
        return allocate(*stmt);
      case StmtOp::kIf:
        return branch(*stmt);
      case StmtOp::kSeq:
        for (const Stmt& child : stmt->children) this->stmt(child);
        return;
      case StmtOp::kLet:
        return let(*stmt);
    }
  }

  void store(const StmtNode& node) {
    for (const Expr& index : node.indices) expr(index);
    expr(node.value);
    if (node.mask) expr(node.mask);
    access("store to", node.buffer, node.indices, node.mask, true);
  }

  void loop(const StmtNode& node) {
    expr(node.min);
    expr(node.extent);
    const bool fixed = node.for_kind == ForKind::kVectorized || node.for_kind == ForKind::kUnrolled;
    if (fixed && level_ == Level::kCodegen) {
      fail(std::string(for_kind_name(node.for_kind)) + " loop " + node.var->name + " is left");
    }
    if (fixed && as_int(node.extent) == nullptr) {
      fail(std::string(for_kind_name(node.for_kind)) + " loop " + node.var->name + " has extent " +
           print(node.extent) + ", which is not constant");
    }
    // What never runs is in bounds; its ranges would be empty.
    if (context_.proves(node.extent <= 0)) return;
    if (node.for_kind == ForKind::kParallel) return parallel(node);
    bind_loop(node);
    stmt(node.body);
    undefine(node.var);
  }

  void bind_loop(const StmtNode& node) {
    define(node.var, is_tainted(node.min) || is_tainted(node.extent));
    context_.bind_extent(node.var, node.min, node.extent);
  }

  void parallel(const StmtNode& node) {
    if (in_parallel_) fail("parallel loop " + node.var->name + " is inside a parallel loop");
    const BoundsContext outer = context_;
    const std::vector<Var> outer_variables = scope_;
    bind_loop(node);
    in_parallel_ = true;
    stmt(node.body);
    in_parallel_ = false;
    undefine(node.var);
    // Flattening hides which index is which; what the passes do to a loop body afterwards keeps its tasks
    // apart.
    if (level_ == Level::kLoops) {
      verify_races(node.var, inlined(node.min, false), inlined(node.extent, false), accesses_, outer,
                   outer_variables);
    }
    accesses_.clear();
  }

  void allocate(const StmtNode& node) {
    const Buffer& buffer = node.buffer;
    if (buffer->scope == Scope::kParameter)
      fail("buffer " + buffer->name + " of parameter scope is allocated");
    for (const Expr& extent : buffer->shape) {
      expr(extent);
      if (is_tainted(extent)) fail("the size of buffer " + buffer->name + " depends on data");
      if (buffer->scope == Scope::kRegister && !is_const(extent)) {
        fail("register buffer " + buffer->name + " has extent " + print(extent) + ", which is not constant");
      }
    }
    check_rank(buffer);
    if (!buffers_.try_emplace(buffer.get(), BufferScope{next_class_++, in_parallel_}).second) {
      fail("buffer " + buffer->name + " is allocated inside its own scope");
    }
    const bool placed = level_ != Level::kLoops && buffer->scope != Scope::kRegister;
    if (placed) place(node);
    stmt(node.body);
    if (placed) placements_.pop_back();
    buffers_.erase(buffer.get());
  }

  void place(const StmtNode& node) {
    const Buffer& buffer = node.buffer;
    const int64_t* count = as_int(buffer->shape[0]);
    const bool shared = buffer->scope == Scope::kSharedWorkspace;
    const int64_t workspace = shared ? function_.shared_workspace_bytes : function_.worker_workspace_bytes;
    Placement here{buffer->scope, buffer->name, node.offset, node.offset};
    if (count != nullptr) here.end += *count * static_cast<int64_t>(dtype_bytes(buffer->dtype));
    if (node.offset < 0 || node.offset % 64 != 0 || here.end > workspace) {
      fail("buffer " + buffer->name + " at [" + std::to_string(here.begin) + ", " + std::to_string(here.end) +
           ") is not aligned or leaves its workspace of " + std::to_string(workspace) + " bytes");
    }
    for (const Placement& other : placements_) {
      if (other.scope != here.scope || other.end <= here.begin || here.end <= other.begin) continue;
      fail("buffers " + other.name + " and " + here.name + " overlap in the workspace");
    }
    placements_.push_back(std::move(here));
  }

  void branch(const StmtNode& node) {
    expr(node.condition);
    const Expr& condition = node.condition;
    const BoundsContext outside = context_;
    const Expr negation = logical_not(condition);
    if (!outside.proves(negation)) {
      context_.assume(condition);
      stmt(node.body);
      context_ = outside;
    }
    if (!node.else_body || outside.proves(condition)) return;
    context_.assume(negation);
    stmt(node.else_body);
    context_ = outside;
  }

  void let(const StmtNode& node) {
    expr(node.value);
    const bool tainted = is_tainted(node.value);
    define(node.var, tainted);
    const bool is_index = node.value->type.dtype == DType::kInt64 || node.value->type.dtype == DType::kBool;
    const bool pure = !tainted && is_index;
    std::optional<BoundsContext> outside;
    if (node.value->op == ExprOp::kCheckIndex) outside = context_;
    context_.bind_value(node.var, inlined(node.value, true));
    if (outside) assume_checked(node.var, inlined(node.value->args[1], true));
    if (pure) lets_.emplace_back(node.var, node.value);
    stmt(node.body);
    if (pure) lets_.pop_back();
    undefine(node.var);
    if (outside) context_ = std::move(*outside);
  }

  /// What the variable's range does not say where the extent that the index was checked with is symbolic.
  void assume_checked(const Var& index, const Expr& extent) {
    if (context_.proves(extent >= 1)) context_.assume(Expr(index) < extent);
  }

  const Function& function_;
  Level level_;
  BoundsContext context_;
  std::unordered_map<const BufferNode*, BufferScope> buffers_;
  int next_class_ = 0;
  std::set<const VarNode*> variables_, tainted_;
  std::vector<Var> scope_;
  std::vector<std::pair<Var, Expr>> lets_;
  std::vector<Placement> placements_;
  bool in_parallel_ = false;
  std::vector<TaskAccess> accesses_;
};

}  // namespace

void verify(const Function& function, Level level) { Verifier(function, level).run(); }

}  // namespace tensormill::te
