/// The operators' cases: for each operator, attribute variants with operand shapes, to be instantiated for
/// every dtype that the type rule accepts. Every executor's tests run the same cases. Thread-safety: pure
/// functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/op_def.h"
#include "compiler/te/tensor_expr.h"

namespace tensormill::ops_cases {

/// What values an operand gets.
enum class Fill : uint8_t {
  kAny,   ///< floats in [-4,4] with some integral values and zeros; integers small, with extremes among them
  kUnit,  ///< floats in [-1,1]
  kPositive,  ///< floats in [0.25,4]; integers in [1,9]
  kIndex,     ///< integers in [-limit, limit)
  kCount,     ///< integers in [0, limit)
};

struct Operand {
  Shape shape;
  std::optional<DType> dtype = std::nullopt;  ///< the case's dtype when not set
  Fill fill = Fill::kAny;
  int64_t limit = 1;
  bool absent = false;
};

struct Case {
  std::string op;
  std::string variant;  ///< the attributes and what is special, in words
  ir::Attrs attrs;
  std::vector<Operand> operands;
};

/// The operators that have a tensor expression: those without are computed by host steps.
std::vector<std::string> operator_names();

/// All cases, in a fixed order.
const std::vector<Case>& all_cases();

/// A case with dtypes; types are null where an operand is absent.
struct Instance {
  const Case* source = nullptr;
  const ir::OpDef* def = nullptr;
  DType dtype = DType::kFloat32;
  std::vector<std::optional<ir::ValueType>> inputs;
  std::vector<ir::ValueType> outputs;
  std::string name() const;
};
/// Nothing when the type rule refuses the dtype.
std::optional<Instance> instantiate(const Case& from, DType dtype);
/// Every case with every dtype that it takes.
std::vector<Instance> all_instances();

/// Seeded tensors for the operands that are given.
std::vector<Tensor> make_inputs(const Instance& instance, uint64_t seed);
/// One tensor of `type` by `operand`'s fill.
Tensor make_tensor(const Operand& operand, DType dtype, uint64_t seed);
/// Operand values that executors get wrong: NaN, infinities, -0, denormals; extremes, 0 and -1 for integers.
Tensor make_hostile(const Shape& shape, DType dtype, uint64_t seed);

std::vector<Tensor> run_reference(const Instance& instance, const std::vector<Tensor>& inputs);
/// One placeholder per given operand, in order.
te::Program make_program(const Instance& instance);

/// The tolerance of `def` for outputs of `dtype`: at least one rounding of a 16-bit float, unless it is 0.
double tolerance_of(const ir::OpDef& def, DType dtype);
/// Empty when they agree: NaN with NaN, infinities equal, the rest within tolerance * max|expected|; with
/// tolerance 0 equal in value (and in the sign of zero). `actual` may have the type that stores a narrow one.
/// Else where and how they differ first.
std::string difference(const Tensor& actual, const Tensor& expected, double tolerance);

}  // namespace tensormill::ops_cases
