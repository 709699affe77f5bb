/// Nests of generic kernels for tests: what is computed of inputs of any extents, and their loops.
/// Thread-safety: pure functions.
#pragma once

#include <vector>

#include "compiler/plan/generic_join.h"
#include "compiler/plan/generic_nest.h"
#include "compiler/te/simplify.h"
#include "compiler/te/verify.h"
#include "runtime/base/tensor.h"

namespace tensormill::plan::generic_nests {

using te::Expr;
using te::Tensor;

using Extents = std::vector<Expr>;
/// What is computed of the inputs for these extents.
using MakeNest = Nest (*)(const Extents&);

/// `tensor` of other extents than the numbers that it was made with.
inline Tensor with_extents(const Tensor& tensor, Extents shape, const Extents& reduced) {
  te::TensorNode node = *tensor;
  for (size_t i = 0; i < shape.size(); ++i) node.axes[i].extent = shape[i];
  node.shape = std::move(shape);
  if (!node.reduction) return std::make_shared<const te::TensorNode>(std::move(node));
  te::Reduction reduction = *node.reduction;
  for (size_t i = 0; i < reduced.size(); ++i) reduction.axes[i].extent = reduced[i];
  node.reduction = std::make_shared<const te::Reduction>(std::move(reduction));
  return std::make_shared<const te::TensorNode>(std::move(node));
}

inline Nest nest_of(const Tensor& tensor, const std::vector<Tensor>& inputs) {
  Nest nest{tensor, inputs, {}};
  for (size_t i = 0; i < inputs.size(); ++i) nest.sources.push_back({true, i, 0});
  return nest;
}

/// x [N, 3, P] by weights [8, 3, 3]: [N, 8, W] for extents {N, P, W}. P is W + 2, which nothing says.
inline Nest conv(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(3), extents[1]});
  const Tensor w = te::placeholder("w", DType::kFloat32, {Expr(8), Expr(3), Expr(3)});
  const Tensor sum =
      te::reduce("sum", te::ReduceOp::kSum, Shape{2, 8, 2}, Shape{3, 3}, [&](const auto& at, const auto& k) {
        return te::read(x, {at[0], k[0], at[2] + k[1]}) * te::read(w, {at[1], k[0], k[1]});
      });
  return nest_of(with_extents(sum, {extents[0], Expr(8), extents[2]}, {Expr(3), Expr(3)}), {x, w});
}

/// [M, 12] by [12, kColumns] for extents {M}.
template <int64_t kColumns>
Nest product(const Extents& extents) {
  const Tensor a = te::placeholder("a", DType::kFloat32, {extents[0], Expr(12)});
  const Tensor b = te::placeholder("b", DType::kFloat32, {Expr(12), Expr(kColumns)});
  const Tensor sum = te::reduce("sum", te::ReduceOp::kSum, Shape{2, kColumns}, Shape{12},
                                [&](const auto& at, const auto& k) {
                                  return te::read(a, {at[0], k[0]}) * te::read(b, {k[0], at[1]});
                                });
  return nest_of(with_extents(sum, {extents[0], Expr(kColumns)}, {Expr(12)}), {a, b});
}

/// [M, kDepth] by kBlocks blocks of 16 columns, the blocks first, for extents {M}.
template <int64_t kBlocks, int64_t kDepth>
Nest blocks_of_columns(const Extents& extents) {
  const Tensor a = te::placeholder("a", DType::kFloat32, {extents[0], Expr(kDepth)});
  const Tensor b = te::placeholder("b", DType::kFloat32, Shape{kBlocks, kDepth, 16});
  const Tensor sum = te::reduce("sum", te::ReduceOp::kSum, Shape{kBlocks, 2, 16}, Shape{kDepth},
                                [&](const auto& at, const auto& k) {
                                  return te::read(a, {at[1], k[0]}) * te::read(b, {at[0], k[0], at[2]});
                                });
  return nest_of(with_extents(sum, {Expr(kBlocks), extents[0], Expr(16)}, {Expr(kDepth)}), {a, b});
}

/// [kRows, 3] by [3, W] for extents {W}.
template <int64_t kRows>
Nest columns(const Extents& extents) {
  const Tensor a = te::placeholder("a", DType::kFloat32, {Expr(kRows), Expr(3)});
  const Tensor b = te::placeholder("b", DType::kFloat32, {Expr(3), extents[0]});
  const Tensor sum =
      te::reduce("sum", te::ReduceOp::kSum, Shape{kRows, 2}, Shape{3}, [&](const auto& at, const auto& k) {
        return te::read(a, {at[0], k[0]}) * te::read(b, {k[0], at[1]});
      });
  return nest_of(with_extents(sum, {Expr(kRows), extents[0]}, {Expr(3)}), {a, b});
}

/// [G, 8, M, 4] by [G, 8, 4, 16], for extents {G, M}: each of a batch has a matrix of its own.
inline Nest batched(const Extents& extents) {
  const Tensor a = te::placeholder("a", DType::kFloat32, {extents[0], Expr(8), extents[1], Expr(4)});
  const Tensor b = te::placeholder("b", DType::kFloat32, {extents[0], Expr(8), Expr(4), Expr(16)});
  const Tensor sum =
      te::reduce("sum", te::ReduceOp::kSum, Shape{2, 8, 2, 16}, Shape{4}, [&](const auto& at, const auto& k) {
        return te::read(a, {at[0], at[1], at[2], k[0]}) * te::read(b, {at[0], at[1], k[0], at[3]});
      });
  return nest_of(with_extents(sum, {extents[0], Expr(8), extents[1], Expr(16)}, {Expr(4)}), {a, b});
}

/// [M, K] by a transposed [12, K] for extents {M, K}.
inline Nest transposed(const Extents& extents) {
  const Tensor a = te::placeholder("a", DType::kFloat32, {extents[0], extents[1]});
  const Tensor b = te::placeholder("b", DType::kFloat32, {Expr(12), extents[1]});
  const Tensor sum =
      te::reduce("sum", te::ReduceOp::kSum, Shape{2, 12}, Shape{2}, [&](const auto& at, const auto& k) {
        return te::read(a, {at[0], k[0]}) * te::read(b, {at[1], k[0]});
      });
  return nest_of(with_extents(sum, {extents[0], Expr(12)}, {extents[1]}), {a, b});
}

/// 1x1 convolution of x [N, 5, H, W] by weights [8, 5, 1, 1] for extents {N, H, W}.
inline Nest pointwise(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(5), extents[1], extents[2]});
  const Tensor w = te::placeholder("w", DType::kFloat32, {Expr(8), Expr(5), Expr(1), Expr(1)});
  const Tensor sum = te::reduce("sum", te::ReduceOp::kSum, Shape{2, 8, 2, 2}, Shape{5, 1, 1},
                                [&](const auto& at, const auto& k) {
                                  return te::read(x, {at[0], k[0], at[2] + k[1], at[3] + k[2]}) *
                                         te::read(w, {at[1], k[0], k[1], k[2]});
                                });
  return nest_of(
      with_extents(sum, {extents[0], Expr(8), extents[1], extents[2]}, {Expr(5), Expr(1), Expr(1)}), {x, w});
}

/// The sums of x [N, 3, H, W] over H and W.
inline Nest pooled(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(3), extents[1], extents[2]});
  const Tensor sum =
      te::reduce("sum", te::ReduceOp::kSum, Shape{2, 3}, Shape{2, 2}, [&](const auto& at, const auto& k) {
        return te::read(x, {at[0], at[1], k[0], k[1]});
      });
  return nest_of(with_extents(sum, {extents[0], Expr(3)}, {extents[1], extents[2]}), {x});
}

inline Expr clamped(const Expr& index, const Expr& extent) {
  return te::max(te::min(index, extent - Expr(1)), Expr(0));
}

/// The largest of each 3x3 window of x [N, 8, H, W], every other one from a border of 1 on, of which there
/// are [P, Q], for extents {N, H, W, P, Q}.
inline Nest largest_of_windows(const Extents& extents) {
  const Expr &height = extents[1], &width = extents[2];
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(8), height, width});
  const Tensor out = te::reduce(
      "largest", te::ReduceOp::kMax, Shape{2, 8, 2, 2}, Shape{3, 3}, [&](const auto& at, const auto& k) {
        const Expr row = at[2] * Expr(2) + k[0] - Expr(1), column = at[3] * Expr(2) + k[1] - Expr(1);
        const Expr rows = te::logical_and(row >= Expr(0), row < height);
        const Expr columns = te::logical_and(column >= Expr(0), column < width);
        return te::select(te::logical_and(rows, columns),
                          te::read(x, {at[0], at[1], clamped(row, height), clamped(column, width)}),
                          te::float_imm(DType::kFloat32, -9));
      });
  return nest_of(with_extents(out, {extents[0], Expr(8), extents[3], extents[4]}, {Expr(3), Expr(3)}), {x});
}

/// 3x3 convolution, every kStride-th one from a border of 1 on, of x [N, 2, H, W, kLanes], channels side by
/// side, by weights [kBlocks, 2, 3, 3, kLanes, kLanes], of which there are [P, Q], for extents {N, H, W, P,
/// Q}.
template <int64_t kLanes, int64_t kBlocks, int64_t kStride>
Nest blocked(const Extents& extents) {
  const Expr &height = extents[1], &width = extents[2];
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(2), height, width, Expr(kLanes)});
  const Tensor w = te::placeholder("w", DType::kFloat32, Shape{kBlocks, 2, 3, 3, kLanes, kLanes});
  const Tensor sum = te::reduce(
      "sum", te::ReduceOp::kSum, Shape{2, kBlocks, 2, 2, kLanes}, Shape{2, 3, 3, kLanes},
      [&](const auto& at, const auto& k) {
        const Expr row = at[2] * Expr(kStride) + k[1] - Expr(1),
                   column = at[3] * Expr(kStride) + k[2] - Expr(1);
        const Expr rows = te::logical_and(row >= Expr(0), row < height);
        const Expr columns = te::logical_and(column >= Expr(0), column < width);
        const Expr value = te::read(x, {at[0], k[0], clamped(row, height), clamped(column, width), k[3]}) *
                           te::read(w, {at[1], k[0], k[1], k[2], k[3], at[4]});
        return te::select(te::logical_and(rows, columns), value, te::float_imm(DType::kFloat32, 0));
      });
  return nest_of(with_extents(sum, {extents[0], Expr(kBlocks), extents[3], extents[4], Expr(kLanes)},
                              {Expr(2), Expr(3), Expr(3), Expr(kLanes)}),
                 {x, w});
}

/// Convolution of windows of ten, every fifth one, of x [N, 2, P] by weights [kBlocks, 2, 10, kLanes]: [N,
/// kBlocks, W, kLanes] for extents {N, P, W}. P is 5 W + 5 at least, which nothing says.
template <int64_t kLanes, int64_t kBlocks>
Nest strided(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(2), extents[1]});
  const Tensor w = te::placeholder("w", DType::kFloat32, Shape{kBlocks, 2, 10, kLanes});
  const Tensor sum = te::reduce(
      "sum", te::ReduceOp::kSum, Shape{2, kBlocks, 2, kLanes}, Shape{2, 10},
      [&](const auto& at, const auto& k) {
        return te::read(x, {at[0], k[0], at[2] * Expr(5) + k[1]}) * te::read(w, {at[1], k[0], k[1], at[3]});
      });
  return nest_of(
      with_extents(sum, {extents[0], Expr(kBlocks), extents[2], Expr(kLanes)}, {Expr(2), Expr(10)}), {x, w});
}

/// x [N, 3, H, W] times a factor for each of [N, 3].
inline Nest scaled(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(3), extents[1], extents[2]});
  const Tensor by = te::placeholder("by", DType::kFloat32, {extents[0], Expr(3), Expr(1), Expr(1)});
  const Tensor product =
      te::compute("product", {extents[0], Expr(3), extents[1], extents[2]}, [&](const auto& at) {
        return te::read(x, {at[0], at[1], at[2], at[3]}) * te::read(by, {at[0], at[1], Expr(0), Expr(0)});
      });
  return nest_of(product, {x, by});
}

/// x [N, 3, H, W] plus a row [W] for all of its rows.
inline Nest with_row(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(3), extents[1], extents[2]});
  const Tensor row = te::placeholder("row", DType::kFloat32, {extents[2]});
  const Tensor sum = te::compute("added", {extents[0], Expr(3), extents[1], extents[2]}, [&](const auto& at) {
    return te::read(x, {at[0], at[1], at[2], at[3]}) + te::read(row, {at[3]});
  });
  return nest_of(sum, {x, row});
}

/// Twice x [N, 2, H, W] in [N, 2, P, Q] from row 1 and column 2 on, 7 around it, for extents {N, H, W, P, Q},
/// of which nothing says that it fits.
inline Nest padded(const Extents& extents) {
  const Expr &height = extents[1], &width = extents[2];
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(2), height, width});
  const Tensor out =
      te::compute("padded", {extents[0], Expr(2), extents[3], extents[4]}, [&](const auto& at) {
        const Expr row = at[2] - Expr(1), column = at[3] - Expr(2);
        const Expr rows = te::logical_and(row >= Expr(0), row < height);
        const Expr columns = te::logical_and(column >= Expr(0), column <= width - Expr(1));
        const Expr value = te::read(x, {at[0], at[1], clamped(row, height), clamped(column, width)});
        return te::select(te::logical_and(rows, columns), value * te::float_imm(DType::kFloat32, 2),
                          te::float_imm(DType::kFloat32, 7));
      });
  return nest_of(out, {x});
}

/// As `padded` of one column, elements of x [6, N] that positions [H, W] name, for extents {N, H, W, P, Q}.
inline Nest padded_gather(const Extents& extents) {
  const Expr &height = extents[1], &width = extents[2];
  const Tensor x = te::placeholder("x", DType::kFloat32, {Expr(6), extents[0]});
  const Tensor positions = te::placeholder("positions", DType::kFloat32, {height, width});
  const Tensor out =
      te::compute("padded", {extents[0], Expr(2), extents[3], extents[4]}, [&](const auto& at) {
        const Expr column = at[3] - Expr(1);
        const Expr position = te::read(positions, {clamped(at[2], height), clamped(column, width)});
        const Expr index = te::cast(DType::kInt64, te::make(te::ExprOp::kAbs, {position}));
        const Expr value = te::read(x, {te::make(te::ExprOp::kCheckIndex, {index, Expr(6)}), at[0]});
        return te::select(te::logical_and(column >= Expr(0), column < width), value,
                          te::float_imm(DType::kFloat32, 7));
      });
  return nest_of(out, {x, positions});
}

/// x [N, 3, 2, V] and y [N, 3, 2, W] one behind the other along the last axis, for extents {N, V, W}.
inline Nest side_by_side(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(3), Expr(2), extents[1]});
  const Tensor y = te::placeholder("y", DType::kFloat32, {extents[0], Expr(3), Expr(2), extents[2]});
  const Tensor out =
      te::compute("joined", {extents[0], Expr(3), Expr(2), extents[1] + extents[2]}, [&](const auto& at) {
        const Expr first = te::read(x, {at[0], at[1], at[2], clamped(at[3], extents[1])});
        const Expr second = te::read(y, {at[0], at[1], at[2], clamped(at[3] - extents[1], extents[2])});
        return te::select(extents[1] > at[3], first, second);
      });
  return nest_of(out, {x, y});
}

/// x [N, 2, H, W], y [N, 1, H, W] and x again as channels of one tensor, for extents {N, H, W}.
inline Nest stacked(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(2), extents[1], extents[2]});
  const Tensor y = te::placeholder("y", DType::kFloat32, {extents[0], Expr(1), extents[1], extents[2]});
  const Tensor out =
      te::compute("stacked", {extents[0], Expr(5), extents[1], extents[2]}, [&](const auto& at) {
        const auto part = [&](const Tensor& tensor, int64_t start, int64_t count) {
          return te::read(tensor, {at[0], clamped(at[1] - Expr(start), Expr(count)), at[2], at[3]});
        };
        return te::select(at[1] < Expr(2), part(x, 0, 2),
                          te::select(at[1] < Expr(3), part(y, 2, 1), part(x, 3, 2)));
      });
  return nest_of(out, {x, y});
}

struct Symbolic {
  TermVars vars;
  Nest nest;
};
inline Symbolic symbolic(MakeNest make, size_t dims) {
  TermVars vars(dims);
  Extents extents;
  for (size_t d = 0; d < dims; ++d)
    extents.push_back(vars.expr({0, {{1, {{static_cast<int32_t>(d), 1, 0, 1}}}}}));
  Nest nest = with_joined_axes(make(extents), vars);
  return {std::move(vars), std::move(nest)};
}

struct Loops {
  te::Function function;
  std::vector<DimFormula> dims;  ///< its arguments

  std::vector<int64_t> dims_at(const std::vector<int64_t>& free) const {
    std::vector<int64_t> values;
    for (const DimFormula& formula : dims) values.push_back(evaluate(formula, free));
    return values;
  }
  Shape shape_at(size_t parameter, const std::vector<int64_t>& free) const {
    const std::vector<int64_t> values = dims_at(free);
    Shape shape;
    for (Expr extent : function.parameters[parameter].buffer->shape) {
      for (size_t d = 0; d < values.size(); ++d)
        extent = te::substitute(extent, function.dims[d], Expr(values[d]));
      shape.push_back(*te::as_int(te::simplify(extent)));
    }
    return shape;
  }
};
inline Loops loops_of(const Symbolic& form, const LoopFacts& facts) {
  Loops loops{build_generic_loops(form.nest, form.vars, facts), form.vars.formulas()};
  te::verify(loops.function, te::Level::kLoops);
  return loops;
}
inline Loops loops_of(const Symbolic& form, int lanes) { return loops_of(form, LoopFacts{lanes}); }

/// Small integers, so that sums of any order are equal.
inline tensormill::Tensor small_integers(const Shape& shape) {
  tensormill::Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set_element(i, static_cast<double>(i * 7 % 11 - 5));
  return tensor;
}

}  // namespace tensormill::plan::generic_nests
