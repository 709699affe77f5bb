#include <algorithm>
#include <numeric>
#include <random>

#include "compiler/te/machine.h"
#include "compiler/te/op_class.h"
#include "compiler/te/scalar_ops.h"
#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

class Sequence : public Action {
public:
  explicit Sequence(std::vector<ActionPtr> actions) : actions_(std::move(actions)) {}
  void run(Machine& machine) const override {
    for (const ActionPtr& action : actions_) action->run(machine);
  }

private:
  std::vector<ActionPtr> actions_;
};

class Straight : public Action {
public:
  explicit Straight(Code code) : code_(std::move(code)) {}
  void run(Machine& machine) const override { machine.run(code_); }

private:
  Code code_;
};

struct Loop {
  Code code;
  uint32_t min, extent, variable;
};

class SerialLoop : public Action {
public:
  SerialLoop(Loop loop, ActionPtr body) : loop_(std::move(loop)), body_(std::move(body)) {}
  void run(Machine& machine) const override {
    machine.run(loop_.code);
    const int64_t min = machine.cells[loop_.min].i, extent = machine.cells[loop_.extent].i;
    for (int64_t i = 0; i < extent; ++i) {
      machine.cells[loop_.variable].i = wrapping_add(min, i);
      body_->run(machine);
    }
  }

private:
  Loop loop_;
  ActionPtr body_;
};

class ParallelLoop : public Action {
public:
  ParallelLoop(Loop loop, ActionPtr body) : loop_(std::move(loop)), body_(std::move(body)) {}

  void run(Machine& machine) const override {
    if (machine.task != 0) throw InternalError("interpreter: parallel loop inside a parallel loop");
    machine.run(loop_.code);
    const int64_t min = machine.cells[loop_.min].i;
    const std::vector<int64_t> order = order_of(machine.cells[loop_.extent].i, machine.seed);
    const InterpretResult before = machine.status;
    InterpretResult worst;
    int64_t worst_task = 0;
    machine.first_task = machine.next_task;
    for (const int64_t i : order) {
      machine.task = machine.next_task++;
      machine.status = {};
      machine.cells[loop_.variable].i = wrapping_add(min, i);
      body_->run(machine);
      if (machine.status.code != 0 && (worst.code == 0 || i < worst_task)) {
        worst = machine.status;
        worst_task = i;
      }
    }
    machine.task = 0;
    machine.status = before.code != 0 ? before : worst;
  }

private:
  /// Fisher-Yates with the generator's own numbers: the same order on every platform. Seed 0 keeps the order.
  static std::vector<int64_t> order_of(int64_t extent, uint64_t seed) {
    std::vector<int64_t> order(static_cast<size_t>(std::max<int64_t>(0, extent)));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::mt19937_64 random(seed);
    for (size_t i = order.size(); seed != 0 && i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    return order;
  }

  Loop loop_;
  ActionPtr body_;
};

class Branch : public Action {
public:
  Branch(Code code, uint32_t condition, ActionPtr body, ActionPtr else_body)
      : code_(std::move(code)),
        condition_(condition),
        body_(std::move(body)),
        else_body_(std::move(else_body)) {}
  void run(Machine& machine) const override {
    machine.run(code_);
    if (machine.cells[condition_].i != 0) {
      body_->run(machine);
    } else if (else_body_) {
      else_body_->run(machine);
    }
  }

private:
  Code code_;
  uint32_t condition_;
  ActionPtr body_, else_body_;
};

/// Makes the buffer anew each time: its contents are undefined at the start of the body.
class Allocation : public Action {
public:
  Allocation(Code code, std::vector<uint32_t> extents, uint32_t buffer, int64_t offset, ActionPtr body)
      : code_(std::move(code)),
        extents_(std::move(extents)),
        buffer_(buffer),
        offset_(offset),
        body_(std::move(body)) {}

  void run(Machine& machine) const override {
    machine.run(code_);
    std::vector<int64_t> extents;
    for (const uint32_t cell : extents_) extents.push_back(machine.cells[cell].i);
    machine.bind(buffer_, extents, placed(machine, extents));
    body_->run(machine);
  }

private:
  /// Memory in the workspace, once the storage pass has said how large that is.
  std::byte* placed(Machine& machine, const std::vector<int64_t>& extents) const {
    const BufferNode& node = *machine.buffers[buffer_].node;
    std::vector<std::byte>& workspace =
        node.scope == Scope::kSharedWorkspace ? machine.shared_workspace : machine.worker_workspace;
    if (workspace.empty() || node.scope == Scope::kRegister) return nullptr;
    const int64_t bytes = num_bytes(extents, node.dtype);
    if (offset_ < 0 || offset_ + bytes > static_cast<int64_t>(workspace.size())) {
      throw InternalError("interpreter: buffer " + node.name + " of " + std::to_string(bytes) + " bytes at " +
                          std::to_string(offset_) + " leaves its workspace of " +
                          std::to_string(workspace.size()));
    }
    return workspace.data() + offset_;
  }

  Code code_;
  std::vector<uint32_t> extents_;
  uint32_t buffer_;
  int64_t offset_;
  ActionPtr body_;
};

}  // namespace

uint32_t ActionBuilder::allocate_cells(int lanes) {
  const size_t first = machine_.cells.size();
  machine_.cells.resize(first + static_cast<size_t>(lanes));
  return static_cast<uint32_t>(first);
}

uint32_t ActionBuilder::constant_cell(const Expr& expr) {
  const uint32_t first = allocate_cells(expr->type.lanes);
  for (int lane = 0; lane < expr->type.lanes; ++lane) {
    Cell& cell = machine_.cells[first + static_cast<uint32_t>(lane)];
    cell.i = expr->int_value;
    if (expr->type.dtype == DType::kFloat64) {
      cell.f = expr->float_value;
    } else if (expr->type.is_float()) {
      cell.s = static_cast<float>(expr->float_value);
    }
  }
  return first;
}

uint32_t ActionBuilder::declare(const Var& var) {
  auto [it, fresh] = variables_.try_emplace(var.get(), Value{0, 0});
  if (fresh) it->second.cell = allocate_cells(var->lanes);
  it->second.depth = frames_.size();
  return it->second.cell;
}

uint32_t ActionBuilder::buffer_of(const Buffer& buffer) {
  auto [it, fresh] = buffers_.try_emplace(buffer.get(), static_cast<uint32_t>(machine_.buffers.size()));
  if (fresh) {
    machine_.buffers.emplace_back();
    machine_.buffers.back().node = buffer.get();
  }
  return it->second;
}

ActionBuilder::Value ActionBuilder::value_of(const Expr& expr, Code& code) {
  if (expr->op == ExprOp::kVar) {
    const auto found = variables_.find(expr->var.get());
    TM_CHECK(found != variables_.end(), "variable " + expr->var->name + " is not bound");
    return found->second;
  }
  if (const auto found = values_.find(expr.get()); found != values_.end()) return found->second;
  for (const Frame& frame : frames_) {
    if (const auto found = frame.values.find(expr.get()); found != frame.values.end()) return found->second;
  }
  const Value value = is_const(expr) ? Value{constant_cell(expr), 0} : value_uncached(expr, code);
  const bool hoisted = !is_const(expr) && value.depth < frames_.size();
  (hoisted ? frames_[value.depth].values : values_).emplace(expr.get(), value);
  return value;
}

Access ActionBuilder::access_of(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask,
                                Code& code) {
  Access access;
  const auto found = buffers_.find(buffer.get());
  TM_CHECK(found != buffers_.end(), "buffer " + buffer->name + " is used where it does not exist");
  access.buffer = found->second;
  for (const Expr& index : indices) access.indices.push_back({compile(index, code), index->type.lanes > 1});
  if (mask) {
    access.masked = true;
    access.mask = compile(mask, code);
  }
  return access;
}

ActionBuilder::Value ActionBuilder::value_uncached(const Expr& expr, Code& code) {
  Instruction in;
  in.op = expr->op;
  in.dtype = expr->type.dtype;
  in.lanes = static_cast<uint32_t>(expr->type.lanes);
  // Memory changes and a failed check is an effect: these stay where they are.
  size_t depth = expr->op == ExprOp::kLoad || expr->op == ExprOp::kCheckIndex ? frames_.size() : 0;
  if (expr->op == ExprOp::kLoad) {
    in.access = access_of(expr->buffer, expr->args, expr->mask, code);
    in.run = load_handler(in.dtype);
  } else {
    TM_CHECK(op_class(expr->op) != OpClass::kMemory, "tensor expression in loop IR");
    for (size_t i = 0; i < expr->args.size(); ++i) {
      const Value arg = value_of(expr->args[i], code);
      in.args[i] = arg.cell;
      depth = std::max(depth, arg.depth);
    }
    in.arg_dtype = expr->args[0]->type.dtype;
    if (op_class(expr->op) == OpClass::kLaneReduce)
      in.lanes = static_cast<uint32_t>(expr->args[0]->type.lanes);
    in.table = expr->table;
    in.run = arithmetic_handler(in.op, in.arg_dtype);
  }
  const Value value{allocate_cells(expr->type.lanes), depth};
  in.target = value.cell;
  (depth < frames_.size() ? frames_[depth].code : code).push_back(std::move(in));
  return value;
}

ActionPtr ActionBuilder::build_for(const StmtNode& node) {
  Loop loop;
  forget();
  loop.min = compile(node.min, loop.code);
  loop.extent = compile(node.extent, loop.code);
  frames_.emplace_back();
  loop.variable = declare(node.var);
  ActionPtr body = build(node.body);
  for (Instruction& instruction : frames_.back().code) loop.code.push_back(std::move(instruction));
  frames_.pop_back();
  if (node.for_kind == ForKind::kParallel) {
    return std::make_unique<const ParallelLoop>(std::move(loop), std::move(body));
  }
  return std::make_unique<const SerialLoop>(std::move(loop), std::move(body));
}

ActionPtr ActionBuilder::build_store(const StmtNode& node) {
  Code code;
  forget();
  Instruction in;
  in.lanes = static_cast<uint32_t>(node.value->type.lanes);
  in.target = compile(node.value, code);
  in.access = access_of(node.buffer, node.indices, node.mask, code);
  machine_.buffers[in.access.buffer].stored = true;
  in.run = store_handler(node.buffer->dtype);
  code.push_back(std::move(in));
  return std::make_unique<const Straight>(std::move(code));
}

ActionPtr ActionBuilder::build_allocate(const StmtNode& node) {
  Code code;
  forget();
  std::vector<uint32_t> extents;
  for (const Expr& extent : node.buffer->shape) extents.push_back(compile(extent, code));
  const uint32_t buffer = buffer_of(node.buffer);
  ActionPtr body = build(node.body);
  return std::make_unique<const Allocation>(std::move(code), std::move(extents), buffer, node.offset,
                                            std::move(body));
}

ActionPtr ActionBuilder::build(const Stmt& stmt) {
  const StmtNode& node = *stmt;
  switch (node.op) {
    case StmtOp::kFor:
      return build_for(node);
    case StmtOp::kStore:
      return build_store(node);
    case StmtOp::kAllocate:
      return build_allocate(node);
    case StmtOp::kSeq: {
      std::vector<ActionPtr> actions;
      for (const Stmt& child : node.children) actions.push_back(build(child));
      return std::make_unique<const Sequence>(std::move(actions));
    }
    default:
      break;
  }
  Code code;
  forget();
  if (node.op == StmtOp::kLet) {
    const Value value = value_of(node.value, code);
    // A variable bound a second time makes other values of the same expressions.
    if (!variables_.insert_or_assign(node.var.get(), value).second) {
      for (Frame& frame : frames_) frame.values.clear();
    }
    std::vector<ActionPtr> actions;
    actions.push_back(std::make_unique<const Straight>(std::move(code)));
    actions.push_back(build(node.body));
    return std::make_unique<const Sequence>(std::move(actions));
  }
  const uint32_t condition = compile(node.condition, code);
  ActionPtr body = build(node.body);
  ActionPtr else_body = node.else_body ? build(node.else_body) : nullptr;
  return std::make_unique<const Branch>(std::move(code), condition, std::move(body), std::move(else_body));
}

}  // namespace tensormill::te
