#include <type_traits>

#include "compiler/te/machine.h"
#include "compiler/te/op_class.h"
#include "compiler/te/scalar_ops.h"

namespace tensormill::te {
namespace {

template <typename T>
T& as(Cell& cell) {
  if constexpr (std::is_same_v<T, float>) {
    return cell.s;
  } else if constexpr (std::is_same_v<T, double>) {
    return cell.f;
  } else {
    return cell.i;
  }
}

// ---- fast paths: f32, f64 and i64, the types of nearly all work
// -----------------------------------------------

struct Add {
  static int64_t of(int64_t a, int64_t b) { return wrapping_add(a, b); }
  template <typename T>
  static T of(T a, T b) {
    return a + b;
  }
};
struct Sub {
  static int64_t of(int64_t a, int64_t b) { return wrapping_sub(a, b); }
  template <typename T>
  static T of(T a, T b) {
    return a - b;
  }
};
struct Mul {
  static int64_t of(int64_t a, int64_t b) { return wrapping_mul(a, b); }
  template <typename T>
  static T of(T a, T b) {
    return a * b;
  }
};
struct Div {
  static int64_t of(int64_t a, int64_t b) { return signed_div(a, b); }
  template <typename T>
  static T of(T a, T b) {
    return a / b;
  }
};
struct Min {
  static int64_t of(int64_t a, int64_t b) { return a < b ? a : b; }
  template <typename T>
  static T of(T a, T b) {
    return float_min(a, b);
  }
};
struct Max {
  static int64_t of(int64_t a, int64_t b) { return a < b ? b : a; }
  template <typename T>
  static T of(T a, T b) {
    return float_max(a, b);
  }
};

template <typename T, typename Operation>
void binary(Machine& machine, const Instruction& in) {
  Cell* const cells = machine.cells.data();
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    as<T>(cells[in.target + lane]) =
        Operation::of(as<T>(cells[in.args[0] + lane]), as<T>(cells[in.args[1] + lane]));
  }
}

struct DotOfBytes {
  static int64_t of(int64_t a, int64_t b) { return dot_of_bytes(a, b); }
};

template <typename T>
void fused_multiply_add(Machine& machine, const Instruction& in) {
  Cell* const cells = machine.cells.data();
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    as<T>(cells[in.target + lane]) = std::fma(
        as<T>(cells[in.args[0] + lane]), as<T>(cells[in.args[1] + lane]), as<T>(cells[in.args[2] + lane]));
  }
}

template <typename T, ExprOp op>
void comparison(Machine& machine, const Instruction& in) {
  Cell* const cells = machine.cells.data();
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    const T a = as<T>(cells[in.args[0] + lane]), b = as<T>(cells[in.args[1] + lane]);
    bool result = false;
    if constexpr (op == ExprOp::kEq) result = a == b;
    if constexpr (op == ExprOp::kNe) result = a != b;
    if constexpr (op == ExprOp::kLt) result = a < b;
    if constexpr (op == ExprOp::kLe) result = a <= b;
    if constexpr (op == ExprOp::kGt) result = a > b;
    if constexpr (op == ExprOp::kGe) result = a >= b;
    cells[in.target + lane].i = result ? 1 : 0;
  }
}

template <typename T>
Handler fast_handler(ExprOp op) {
  switch (op) {
    case ExprOp::kAdd:
      return binary<T, Add>;
    case ExprOp::kSub:
      return binary<T, Sub>;
    case ExprOp::kMul:
      return binary<T, Mul>;
    case ExprOp::kDiv:
      return binary<T, Div>;
    case ExprOp::kMin:
      return binary<T, Min>;
    case ExprOp::kMax:
      return binary<T, Max>;
    case ExprOp::kEq:
      return comparison<T, ExprOp::kEq>;
    case ExprOp::kNe:
      return comparison<T, ExprOp::kNe>;
    case ExprOp::kLt:
      return comparison<T, ExprOp::kLt>;
    case ExprOp::kLe:
      return comparison<T, ExprOp::kLe>;
    case ExprOp::kGt:
      return comparison<T, ExprOp::kGt>;
    case ExprOp::kGe:
      return comparison<T, ExprOp::kGe>;
    default:
      return nullptr;
  }
}

struct FloorDivision {
  static int64_t of(int64_t a, int64_t b) { return signed_floordiv(a, b); }
};
struct FloorModulo {
  static int64_t of(int64_t a, int64_t b) { return signed_floormod(a, b); }
};

// Bitwise operators keep extended integers of every width, and bools, as they are.
struct And {
  static int64_t of(int64_t a, int64_t b) { return a & b; }
};
struct Or {
  static int64_t of(int64_t a, int64_t b) { return a | b; }
};
struct Xor {
  static int64_t of(int64_t a, int64_t b) { return a ^ b; }
};

// ---- any operator on any type
// ---------------------------------------------------------------------------------

Scalar scalar_of(const Cell& cell, DType dtype) {
  if (dtype == DType::kFloat64) return {0, cell.f};
  return is_float(dtype) ? Scalar{0, cell.s} : Scalar{cell.i, 0};
}

Cell cell_of(const Scalar& value, DType dtype) {
  Cell cell;
  cell.i = value.i;
  if (dtype == DType::kFloat64) {
    cell.f = value.f;
  } else if (is_float(dtype)) {
    cell.s = static_cast<float>(value.f);
  }
  return cell;
}

void generic(Machine& machine, const Instruction& in) {
  Cell* const cells = machine.cells.data();
  const size_t count = static_cast<size_t>(expr_op_arity(in.op));
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    Scalar values[3];
    for (size_t i = 0; i < count; ++i) values[i] = scalar_of(cells[in.args[i] + lane], in.arg_dtype);
    cells[in.target + lane] = cell_of(evaluate_op(in.op, in.arg_dtype, in.dtype, values, count), in.dtype);
  }
}

void lane_reduction(Machine& machine, const Instruction& in) {
  std::vector<Scalar> values;
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    values.push_back(scalar_of(machine.cells[in.args[0] + lane], in.arg_dtype));
  }
  const ExprOp step = lane_reduce_step(in.op);
  for (size_t half = in.lanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) {
      const Scalar pair[2] = {values[lane], values[lane + half]};
      values[lane] = evaluate_op(step, in.arg_dtype, in.dtype, pair, 2);
    }
  }
  machine.cells[in.target] = cell_of(values[0], in.dtype);
}

void selection(Machine& machine, const Instruction& in) {
  Cell* const cells = machine.cells.data();
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    cells[in.target + lane] = cells[in.args[cells[in.args[0] + lane].i != 0 ? 1 : 2] + lane];
  }
}

void ramp_of(Machine& machine, const Instruction& in) {
  const int64_t base = machine.cells[in.args[0]].i, stride = machine.cells[in.args[1]].i;
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    machine.cells[in.target + lane].i = wrap_to(in.dtype, wrapping_add(base, wrapping_mul(stride, lane)));
  }
}

void broadcast_of(Machine& machine, const Instruction& in) {
  for (uint32_t lane = 0; lane < in.lanes; ++lane)
    machine.cells[in.target + lane] = machine.cells[in.args[0]];
}

void lookup_of(Machine& machine, const Instruction& in) {
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    const auto index = static_cast<uint8_t>(machine.cells[in.args[0] + lane].i);
    machine.cells[in.target + lane].i = (*in.table)[index];
  }
}

/// The first index at fault of a task is the one that is reported.
void index_check(Machine& machine, const Instruction& in) {
  for (uint32_t lane = 0; lane < in.lanes; ++lane) {
    int64_t index = machine.cells[in.args[0] + lane].i;
    if (index < 0 || index >= machine.cells[in.args[1] + lane].i) {
      if (machine.status.code == 0) machine.status = {kIndexOutOfRange, index};
      index = 0;
    }
    machine.cells[in.target + lane].i = index;
  }
}

}  // namespace

Handler arithmetic_handler(ExprOp op, DType arg_dtype) {
  switch (op) {
    case ExprOp::kSelect:
      return selection;
    case ExprOp::kRamp:
      return ramp_of;
    case ExprOp::kBroadcast:
      return broadcast_of;
    case ExprOp::kLookup:
      return lookup_of;
    case ExprOp::kCheckIndex:
      return index_check;
    default:
      break;
  }
  if (op_class(op) == OpClass::kLaneReduce) return lane_reduction;
  if (op == ExprOp::kDot4) return binary<int64_t, DotOfBytes>;
  Handler fast = nullptr;
  if (arg_dtype == DType::kFloat32)
    fast = op == ExprOp::kFma ? fused_multiply_add<float> : fast_handler<float>(op);
  if (arg_dtype == DType::kFloat64)
    fast = op == ExprOp::kFma ? fused_multiply_add<double> : fast_handler<double>(op);
  if (arg_dtype == DType::kInt64) {
    fast = fast_handler<int64_t>(op);
    if (op == ExprOp::kFloorDiv) fast = binary<int64_t, FloorDivision>;
    if (op == ExprOp::kFloorMod) fast = binary<int64_t, FloorModulo>;
  }
  return fast != nullptr ? fast : generic;
}

}  // namespace tensormill::te
