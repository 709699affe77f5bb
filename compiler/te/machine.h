/// The interpreter's insides: a function becomes a tree of control nodes over straight-line code on numbered
/// cells. Not for other folders: use interpret.h. Thread-safety: a machine belongs to one thread.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/te/interpret.h"

namespace tensormill::te {

/// One lane of a value: i for integers and bools, f for f64, s for f32, f16 and bf16 (which it holds
/// exactly).
union Cell {
  int64_t i;
  double f;
  float s;
};

struct Machine;
struct Instruction;
using Handler = void (*)(Machine&, const Instruction&);

/// Where one index of an access stands.
struct IndexCell {
  uint32_t cell;
  bool is_vector;
};

/// A load or a store.
struct Access {
  uint32_t buffer = 0;
  std::vector<IndexCell> indices;
  bool masked = false;
  uint32_t mask = 0;
};

struct Instruction {
  Handler run = nullptr;
  uint32_t target = 0;  ///< first cell of the result; of the value for stores
  uint32_t args[3] = {0, 0, 0};
  uint32_t lanes = 1;  ///< of the result; of the operand for lane reductions
  ExprOp op = ExprOp::kAdd;
  DType arg_dtype = DType::kInt64;
  DType dtype = DType::kInt64;
  Access access;
  std::shared_ptr<const ByteTable> table;  ///< of lookups
};
using Code = std::vector<Instruction>;

/// What is known of each element of some memory. Parameters over the same bytes share one.
struct Shadow {
  std::vector<uint8_t> written;  ///< empty: all elements are
  /// Last task that wrote, that read, and that read before that one: tasks have increasing numbers, so three
  /// suffice.
  struct Tasks {
    uint32_t writer = 0, reader = 0, earlier_reader = 0;
  };
  std::vector<Tasks> tasks;  ///< empty until a parallel loop touches the buffer
};

struct BufferState {
  const BufferNode* node = nullptr;
  std::byte* data = nullptr;
  std::shared_ptr<void> owner;
  int64_t elements = 0;
  std::vector<int64_t> extents, strides;
  std::shared_ptr<Shadow> shadow;
  bool outside_parallel = true;  ///< exists across the tasks of a parallel loop
  bool stored = false;           ///< some statement may write it: only then can its readers race
};

struct Machine {
  std::vector<Cell> cells;
  std::vector<BufferState> buffers;
  std::vector<std::byte> shared_workspace, worker_workspace;
  InterpretResult status;
  uint64_t seed = 0;
  uint32_t task = 0;        ///< number of the running task, 0 outside parallel loops
  uint32_t first_task = 0;  ///< of the running parallel loop
  uint32_t next_task = 1;

  void run(const Code& code) {
    for (const Instruction& instruction : code) instruction.run(*this, instruction);
  }
  /// Gives a buffer its extents and, unless `data` is given, memory of its own. Elements count as unwritten.
  void bind(uint32_t buffer, std::vector<int64_t> extents, std::byte* data = nullptr);
};

/// The handler of an operator on args of a type.
Handler arithmetic_handler(ExprOp op, DType arg_dtype);
Handler load_handler(DType dtype);
Handler store_handler(DType dtype);

/// A control node.
class Action {
public:
  virtual ~Action() = default;
  virtual void run(Machine& machine) const = 0;
};
using ActionPtr = std::unique_ptr<const Action>;

/// Translates expressions to code and statements to actions, and numbers cells and buffers on the way.
class ActionBuilder {
public:
  explicit ActionBuilder(Machine& machine) : machine_(machine) {}
  ActionPtr build(const Stmt& stmt);
  /// Code that leaves the expression in the returned cell. What does not change in the loops around it is
  /// computed before the outermost of these: arithmetic has no effect and no undefined case.
  uint32_t compile(const Expr& expr, Code& code) { return value_of(expr, code).cell; }
  uint32_t buffer_of(const Buffer& buffer);
  /// The cell of a variable bound outside (dims).
  uint32_t declare(const Var& var);
  /// Forgets values computed so far: called between statements, since memory changes there.
  void forget() { values_.clear(); }

private:
  struct Value {
    uint32_t cell;
    size_t depth;  ///< of the innermost loop that it depends on, 0 for none
  };
  /// What is computed once when a loop starts.
  struct Frame {
    Code code;
    std::unordered_map<const ExprNode*, Value> values;
  };
  uint32_t allocate_cells(int lanes);
  uint32_t constant_cell(const Expr& expr);
  Value value_of(const Expr& expr, Code& code);
  Value value_uncached(const Expr& expr, Code& code);
  Access access_of(const Buffer& buffer, const std::vector<Expr>& indices, const Expr& mask, Code& code);
  ActionPtr build_for(const StmtNode& node);
  ActionPtr build_store(const StmtNode& node);
  ActionPtr build_allocate(const StmtNode& node);

  Machine& machine_;
  std::unordered_map<const VarNode*, Value> variables_;
  std::unordered_map<const BufferNode*, uint32_t> buffers_;
  std::unordered_map<const ExprNode*, Value> values_;
  std::vector<Frame> frames_;  ///< of the loops around the statement, outermost first
};

}  // namespace tensormill::te
