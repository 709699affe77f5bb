/// Kernels with symbolic extents: the tensor expressions of one computation as nests, and the loops of a nest
/// whose extents are formulas over the free dims. Thread-safety: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/loop_facts.h"
#include "compiler/te/stmt.h"
#include "compiler/te/tensor_expr.h"
#include "runtime/base/extents/dim_formula.h"

namespace tensormill::plan {

/// What a nest reads: an input of the program, or an output of an earlier nest.
struct NestSource {
  bool is_input = true;
  size_t index = 0;
  int output = 0;
  auto operator<=>(const NestSource&) const = default;
};

/// What is stored in place of a sum's elements.
struct Epilogue {
  te::Var value;  ///< the element of the sum
  te::Expr body;  ///< over the value and the sum's axes; reads inputs
  /// Where it is stored: the element of the output, as a read of it, over the sum's axes.
  te::Expr target;
  /// Which elements of the sum are stored, over its axes: those past the end of the last block of a row are
  /// not. Null: all.
  te::Expr where;
};

/// Where one of several elements is stored that an iteration computes together.
struct NestPlace {
  std::vector<te::Expr> at;  ///< over the tensor's axes
  te::Expr inside;           ///< whether the tensor has that element; null: always
};

/// One computed tensor: the stages before it are inlined, or nests of their own (reductions, and what is read
/// more than once).
struct Nest {
  /// Reads placeholders only. Where there are places, the axes count iterations, and it has a body a place.
  te::Tensor tensor;
  std::vector<te::Tensor> inputs;      ///< placeholders
  std::vector<NestSource> sources;     ///< one per placeholder
  std::vector<NestPlace> places = {};  ///< empty: an iteration computes the element at its axes
  std::optional<Epilogue> epilogue = std::nullopt;
  std::vector<te::Expr> joined = {};  ///< extents of axes of which several became one
};

/// The program's outputs as nests, in an order in which they can run. `outputs`: where each program output
/// is.
struct Nests {
  std::vector<Nest> nests;
  std::vector<NestSource> outputs;
};
Nests split_nests(const te::Program& program);

/// The symbolic extents of a kernel, passed as arguments: free dims, quotients of them, and whole sums and
/// products, about which nothing can be shown but that the kernel's extents are 1 at least.
class TermVars {
public:
  explicit TermVars(size_t free_dims) : free_dims_(free_dims) {}

  /// The formula's value, with a var for each quotient in it; equal terms are one var.
  te::Expr expr(const DimFormula& formula);
  /// The formula's value as one var, unless it is a number.
  te::Expr whole(const DimFormula& formula);
  /// Of what `expr` gave for two formulas; nothing where packages cannot say it.
  std::optional<te::Expr> product(const te::Expr& a, const te::Expr& b);
  const std::vector<DimFormula>& formulas() const { return formulas_; }
  const std::vector<te::Var>& vars() const { return vars_; }
  /// By var: free dims are 1 at least; another formula may be 0.
  bool is_positive(size_t var) const;

private:
  te::Expr argument(const DimFormula& formula);
  DimFormula formula_of(const te::Expr& expr) const;

  size_t free_dims_;
  std::vector<DimFormula> formulas_;
  std::vector<te::Var> vars_;
};

/// Which inputs of a nest have no elements where the output has some: none of them where a free dim is 0.
using EmptyInputs = std::vector<bool>;
struct EmptyCase {
  EmptyInputs inputs;
  bool is_any = false;  ///< one or more of them
  auto operator<=>(const EmptyCase&) const = default;
};
/// Whether data say which element of an empty input is read: none of them is there.
bool checks_index(const Nest& nest, const EmptyInputs& empty);
/// In which cases the output of a nest has elements and inputs, or a free dim, have none: as the given dims
/// show. What they do not show the executor refuses. Of several inputs that may have none any may, as of what
/// is joined: that is one case. `shapes`: of the output, then of the inputs.
std::vector<EmptyCase> empty_cases(const Nest& nest, const std::vector<std::vector<DimFormula>>& shapes,
                                   const TermVars& vars, const std::vector<std::vector<int64_t>>& points);

/// Loops for any extents: a parallel axis, vectors of facts.lanes elements of the last axis with a masked
/// tail, registers for sums over a block of a constant axis; where memory runs along what is reduced instead,
/// each lane sums up a part. Dims are `vars`; every index is in bounds whatever their values: where bounds
/// cannot be shown, the index is clamped. Nothing is written where the output or an input has no elements,
/// but in the cases of `empties`: what is not there adds nothing to a sum, and no other element is of it.
te::Function build_generic_loops(const Nest& nest, const TermVars& vars, const LoopFacts& facts,
                                 const std::vector<EmptyCase>& empties = {});

}  // namespace tensormill::plan
