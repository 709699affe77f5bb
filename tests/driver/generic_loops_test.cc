/// The loops of generic kernels, run by the interpreter at many extents: it sees each access that is outside
/// of its buffer, each element that is read before it is written, and each race of parallel loops.
#include <gtest/gtest.h>

#include "compiler/plan/generic_join.h"
#include "compiler/plan/generic_nest.h"
#include "compiler/plan/generic_tiling.h"
#include "compiler/te/interpret.h"
#include "compiler/te/simplify.h"
#include "compiler/te/text.h"
#include "compiler/te/verify.h"

namespace tensormill::plan {
namespace {

using te::Expr;
using te::Tensor;

using Extents = std::vector<Expr>;
/// What is computed of the inputs for these extents.
using MakeNest = Nest (*)(const Extents&);

/// `tensor` of other extents than the numbers that it was made with.
Tensor with_extents(const Tensor& tensor, Extents shape, const Extents& reduced) {
  te::TensorNode node = *tensor;
  for (size_t i = 0; i < shape.size(); ++i) node.axes[i].extent = shape[i];
  node.shape = std::move(shape);
  if (!node.reduction) return std::make_shared<const te::TensorNode>(std::move(node));
  te::Reduction reduction = *node.reduction;
  for (size_t i = 0; i < reduced.size(); ++i) reduction.axes[i].extent = reduced[i];
  node.reduction = std::make_shared<const te::Reduction>(std::move(reduction));
  return std::make_shared<const te::TensorNode>(std::move(node));
}

Nest nest_of(const Tensor& tensor, const std::vector<Tensor>& inputs) {
  Nest nest{tensor, inputs, {}};
  for (size_t i = 0; i < inputs.size(); ++i) nest.sources.push_back({true, i, 0});
  return nest;
}

/// x [N, 3, P] by weights [8, 3, 3]: [N, 8, W] for extents {N, P, W}. P is W + 2, which nothing says.
Nest conv(const Extents& extents) {
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
Nest batched(const Extents& extents) {
  const Tensor a = te::placeholder("a", DType::kFloat32, {extents[0], Expr(8), extents[1], Expr(4)});
  const Tensor b = te::placeholder("b", DType::kFloat32, {extents[0], Expr(8), Expr(4), Expr(16)});
  const Tensor sum =
      te::reduce("sum", te::ReduceOp::kSum, Shape{2, 8, 2, 16}, Shape{4}, [&](const auto& at, const auto& k) {
        return te::read(a, {at[0], at[1], at[2], k[0]}) * te::read(b, {at[0], at[1], k[0], at[3]});
      });
  return nest_of(with_extents(sum, {extents[0], Expr(8), extents[1], Expr(16)}, {Expr(4)}), {a, b});
}

/// [M, K] by a transposed [12, K] for extents {M, K}.
Nest transposed(const Extents& extents) {
  const Tensor a = te::placeholder("a", DType::kFloat32, {extents[0], extents[1]});
  const Tensor b = te::placeholder("b", DType::kFloat32, {Expr(12), extents[1]});
  const Tensor sum =
      te::reduce("sum", te::ReduceOp::kSum, Shape{2, 12}, Shape{2}, [&](const auto& at, const auto& k) {
        return te::read(a, {at[0], k[0]}) * te::read(b, {at[1], k[0]});
      });
  return nest_of(with_extents(sum, {extents[0], Expr(12)}, {extents[1]}), {a, b});
}

/// 1x1 convolution of x [N, 5, H, W] by weights [8, 5, 1, 1] for extents {N, H, W}.
Nest pointwise(const Extents& extents) {
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
Nest pooled(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(3), extents[1], extents[2]});
  const Tensor sum =
      te::reduce("sum", te::ReduceOp::kSum, Shape{2, 3}, Shape{2, 2}, [&](const auto& at, const auto& k) {
        return te::read(x, {at[0], at[1], k[0], k[1]});
      });
  return nest_of(with_extents(sum, {extents[0], Expr(3)}, {extents[1], extents[2]}), {x});
}

Expr clamped(const Expr& index, const Expr& extent) {
  return te::max(te::min(index, extent - Expr(1)), Expr(0));
}

/// The largest of each 3x3 window of x [N, 8, H, W], every other one from a border of 1 on, of which there
/// are [P, Q], for extents {N, H, W, P, Q}.
Nest largest_of_windows(const Extents& extents) {
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

/// x [N, 3, H, W] times a factor for each of [N, 3].
Nest scaled(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(3), extents[1], extents[2]});
  const Tensor by = te::placeholder("by", DType::kFloat32, {extents[0], Expr(3), Expr(1), Expr(1)});
  const Tensor product =
      te::compute("product", {extents[0], Expr(3), extents[1], extents[2]}, [&](const auto& at) {
        return te::read(x, {at[0], at[1], at[2], at[3]}) * te::read(by, {at[0], at[1], Expr(0), Expr(0)});
      });
  return nest_of(product, {x, by});
}

/// x [N, 3, H, W] plus a row [W] for all of its rows.
Nest with_row(const Extents& extents) {
  const Tensor x = te::placeholder("x", DType::kFloat32, {extents[0], Expr(3), extents[1], extents[2]});
  const Tensor row = te::placeholder("row", DType::kFloat32, {extents[2]});
  const Tensor sum = te::compute("added", {extents[0], Expr(3), extents[1], extents[2]}, [&](const auto& at) {
    return te::read(x, {at[0], at[1], at[2], at[3]}) + te::read(row, {at[3]});
  });
  return nest_of(sum, {x, row});
}

/// Twice x [N, 2, H, W] in [N, 2, P, Q] from row 1 and column 2 on, 7 around it, for extents {N, H, W, P, Q},
/// of which nothing says that it fits.
Nest padded(const Extents& extents) {
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
Nest padded_gather(const Extents& extents) {
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
Nest side_by_side(const Extents& extents) {
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
Nest stacked(const Extents& extents) {
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
Symbolic symbolic(MakeNest make, size_t dims) {
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
Loops loops_of(const Symbolic& form, int lanes) {
  Loops loops{build_generic_loops(form.nest, form.vars, lanes), form.vars.formulas()};
  te::verify(loops.function, te::Level::kLoops);
  return loops;
}

/// Small integers, so that sums of any order are equal.
tensormill::Tensor small_integers(const Shape& shape) {
  tensormill::Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set_element(i, static_cast<double>(i * 7 % 11 - 5));
  return tensor;
}

/// What the loops compute at `dims`, in the order `seed` of parallel tasks, is what the definition says.
void expect_equal(MakeNest make, const Loops& loops, const std::vector<int64_t>& dims, uint64_t seed) {
  const Nest nest = make(Extents(dims.begin(), dims.end()));
  std::vector<tensormill::Tensor> arguments;
  for (const Tensor& input : nest.inputs) arguments.push_back(small_integers(input->constant_shape()));
  const tensormill::Tensor expected = te::evaluate({nest.inputs, {nest.tensor}}, arguments)[0];
  arguments.emplace_back(DType::kFloat32, nest.tensor->constant_shape());
  for (size_t i = 0; i < arguments.size(); ++i) arguments[i] = arguments[i].reshaped(loops.shape_at(i, dims));
  ASSERT_EQ(te::interpret(loops.function, arguments, loops.dims_at(dims), seed).code, 0);
  for (int64_t i = 0; i < expected.num_elements(); ++i)
    ASSERT_EQ(arguments.back().element_as_double(i), expected.element_as_double(i)) << i;
}

class GenericLoops : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Lanes, GenericLoops, testing::Values(1, 4, 8, 16));

TEST_P(GenericLoops, ConvolutionsOfAnyExtents) {
  const Loops loops = loops_of(symbolic(&conv, 3), GetParam());
  for (const int64_t width : {1, 3, 4, 7, 8, 9, 16, 17, 33}) {
    for (const int64_t batch : {1, 2}) expect_equal(&conv, loops, {batch, width + 2, width}, 3);
  }
}

TEST_P(GenericLoops, ProductsOfAnyExtents) {
  for (const MakeNest make : {&product<64>, &product<72>, &product<76>, &product<37>}) {
    const Loops loops = loops_of(symbolic(make, 1), GetParam());
    for (const int64_t rows : {1, 2, 3, 4, 5, 8, 11}) expect_equal(make, loops, {rows}, 5);
  }
  const Loops own = loops_of(symbolic(&batched, 2), GetParam());
  for (const int64_t rows : {1, 3, 4, 6}) expect_equal(&batched, own, {2, rows}, 7);
  const Loops along = loops_of(symbolic(&transposed, 2), GetParam());
  for (const int64_t depth : {1, 3, 4, 8, 15, 16, 33}) expect_equal(&transposed, along, {3, depth}, 9);
}

TEST_P(GenericLoops, ColumnsOfAnyNumber) {
  // Rows that are blocks of 6, 4 or 8, of an even and an odd number, or none.
  for (const MakeNest make :
       {&columns<48>, &columns<12>, &columns<162>, &columns<18>, &columns<32>, &columns<20>, &columns<7>}) {
    const Loops loops = loops_of(symbolic(make, 1), GetParam());
    for (const int64_t width : {1, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 41})
      expect_equal(make, loops, {width}, 5);
  }
}

TEST_P(GenericLoops, JoinedAxesOfAnyExtents) {
  for (const MakeNest make : {&pointwise, &pooled, &scaled, &with_row}) {
    const Loops loops = loops_of(symbolic(make, 3), GetParam());
    for (const int64_t width : {1, 2, 3, 7, 8, 16, 17}) {
      for (const int64_t height : {1, 2, 5}) expect_equal(make, loops, {1 + width % 2, height, width}, 3);
    }
  }
}

TEST_P(GenericLoops, PadsOfAnyExtents) {
  const Loops loops = loops_of(symbolic(&padded, 5), GetParam());
  for (const int64_t width : {1, 2, 3, 8, 9, 17}) {
    // As much as fits is there, be it all, a part or nothing.
    for (const int64_t more : {-9, -8, -1, 0, 1, 2, 3, 12}) {
      if (width + more < 1) continue;
      for (const int64_t height : {1, 4}) {
        expect_equal(&padded, loops, {2, height, width, height + 2, width + more}, 3);
        expect_equal(&padded, loops, {1, height + 3, width, height, width + more}, 5);
      }
    }
  }
}

TEST_P(GenericLoops, PadsOfGatheredElements) {
  const Loops loops = loops_of(symbolic(&padded_gather, 5), GetParam());
  for (const int64_t width : {1, 7, 16}) {
    for (const int64_t more : {-6, 0, 2, 9}) {
      if (width + more > 0) expect_equal(&padded_gather, loops, {2, 3, width, 3, width + more}, 3);
    }
  }
}

TEST_P(GenericLoops, WindowsAcrossBordersOfAnyExtents) {
  const Loops loops = loops_of(symbolic(&largest_of_windows, 5), GetParam());
  for (const int64_t width : {1, 2, 7, 15, 16, 33}) {
    for (const int64_t height : {1, 4}) {
      expect_equal(&largest_of_windows, loops, {2, height, width, (height + 1) / 2, (width + 1) / 2}, 3);
      expect_equal(&largest_of_windows, loops, {1, height, width, height, width + 5}, 5);
    }
  }
}

TEST_P(GenericLoops, BlocksOfChannelsOfAnyExtents) {
  // As the graph makes them for these lanes, a tile of all blocks and of some; and of two vectors.
  const std::vector<MakeNest> wide = {&blocked<16, 4, 1>, &blocked<16, 3, 2>};
  const std::vector<MakeNest> narrow = {&blocked<8, 5, 1>, &blocked<8, 2, 2>};
  for (const MakeNest make : GetParam() == 16 ? wide : narrow) {
    const Loops loops = loops_of(symbolic(make, 5), GetParam());
    for (const int64_t width : {1, 2, 3, 7, 13}) expect_equal(make, loops, {1, 3, width, 2, width}, 3);
    expect_equal(make, loops, {2, 1, 6, 1, 3}, 5);
    expect_equal(make, loops, {1, 2, 5, 2, 8}, 7);
  }
}

TEST_P(GenericLoops, ConcatenationsOfAnyExtents) {
  const Loops along = loops_of(symbolic(&side_by_side, 3), GetParam());
  const Loops channels = loops_of(symbolic(&stacked, 3), GetParam());
  for (const int64_t width : {1, 2, 7, 8, 16, 17}) {
    for (const int64_t other : {1, 3, 8}) {
      expect_equal(&side_by_side, along, {2, width, other}, 3);
      expect_equal(&stacked, channels, {2, other, width}, 5);
    }
  }
}

/// Where what is read ends before what is computed, no formula of the two being known, reads stay inside.
TEST_P(GenericLoops, WhatEndsTooEarlyIsNotReadPastItsEnd) {
  const Symbolic sum = symbolic(&conv, 3);
  const Loops loops = loops_of(sum, GetParam());
  std::vector<tensormill::Tensor> arguments = {small_integers({1, 3, 5}), small_integers({8, 3, 3}),
                                               tensormill::Tensor(DType::kFloat32, {1, 8, 9})};
  EXPECT_EQ(te::interpret(loops.function, arguments, {1, 5, 9}).code, 0);
}

TEST(GenericJoin, AxesAreJoinedThatAreReadAsNeighbours) {
  const auto rank = [](MakeNest make) { return symbolic(make, 3).nest.tensor->axes.size(); };
  EXPECT_EQ(rank(&pointwise), 3U);
  EXPECT_EQ(rank(&scaled), 3U);
  EXPECT_EQ(rank(&with_row), 4U);
  EXPECT_EQ(symbolic(&pointwise, 3).nest.tensor->reduction->axes.size(), 1U);
  EXPECT_EQ(symbolic(&pooled, 3).nest.tensor->reduction->axes.size(), 1U);
  EXPECT_EQ(symbolic(&conv, 3).nest.tensor->reduction->axes.size(), 2U);
}

TEST(GenericParts, NoIndexIsClampedInsideAPad) {
  const std::string text = te::print(loops_of(symbolic(&padded, 5), 8).function);
  EXPECT_EQ(text.find("max("), std::string::npos);
  const std::string channels = te::print(loops_of(symbolic(&stacked, 3), 8).function);
  EXPECT_EQ(channels.find("max("), std::string::npos);
  EXPECT_EQ(channels.find("select("), std::string::npos);
}

TEST(GenericParts, LoadsAreMaskedWhereASelectLeavesThemOut) {
  const std::string text = te::print(loops_of(symbolic(&largest_of_windows, 5), 8).function);
  EXPECT_EQ(text.find("min("), std::string::npos);
}

TEST(GenericTiling, WholeVectorsAreStoredWithoutAMask) {
  const std::string text = te::print(loops_of(symbolic(&scaled, 3), 8).function);
  EXPECT_NE(text.find("else"), std::string::npos);
}

TEST(GenericTiling, BoundsAreAskedOnceForASum) {
  const std::string text = te::print(loops_of(symbolic(&conv, 3), 8).function);
  const size_t other = text.rfind("} else");
  ASSERT_NE(other, std::string::npos);
  EXPECT_EQ(text.substr(0, other).find("min("), std::string::npos);
  EXPECT_NE(text.find("min(", other), std::string::npos);
}

TEST(GenericTiling, RowsThatShareWhatTheyReadAreOneBlock) {
  const Tiling conv_tiling = choose_tiling(*symbolic(&conv, 3).nest.tensor, 8);
  EXPECT_EQ(conv_tiling.block_axis, 1U);
  EXPECT_EQ(conv_tiling.block, 4);
  EXPECT_EQ(conv_tiling.vectors, 2);
  EXPECT_EQ(conv_tiling.blocks, 2);
  EXPECT_EQ(conv_tiling.vector_axis, 2U);
  EXPECT_FALSE(conv_tiling.is_ragged);

  const Tiling matrix = choose_tiling(*symbolic(&product<64>, 1).nest.tensor, 8);
  EXPECT_EQ(matrix.block_axis, 0U);
  EXPECT_TRUE(matrix.is_ragged);
  EXPECT_EQ(matrix.vectors, 2);
  EXPECT_TRUE(matrix.panels_first);
  EXPECT_EQ(matrix.parallel_axis, 1U);
  EXPECT_EQ(matrix.loop_order(2), (std::vector<size_t>{0, 1}));
  EXPECT_FALSE(matrix.by_one);
  EXPECT_TRUE(choose_tiling(*symbolic(&product<76>, 1).nest.tensor, 8).by_one);

  // Not the heads, of which there are whole blocks: nothing is the same for two of them.
  const Tiling own = choose_tiling(*symbolic(&batched, 2).nest.tensor, 8);
  EXPECT_EQ(own.block_axis, 2U);
  EXPECT_FALSE(own.panels_first);
}

TEST(GenericTiling, PixelsAndBlocksOfChannelsAreOneTile) {
  const Tiling wide = choose_tiling(*symbolic(&blocked<16, 4, 1>, 5).nest.tensor, 16);
  EXPECT_EQ(wide.vector_axis, 4U);
  EXPECT_EQ(wide.block_axis, 3U);
  EXPECT_EQ(wide.block, 7);
  EXPECT_EQ(wide.column_axis, 1U);
  EXPECT_EQ(wide.columns, 4);
  // One tile has all channels: threads share the rows.
  EXPECT_EQ(wide.shared_axis, 2U);
  EXPECT_EQ(wide.parts, 8);
  EXPECT_EQ(choose_tiling(*symbolic(&blocked<8, 2, 1>, 5).nest.tensor, 8).block, 6);
  const std::string text = te::print(loops_of(symbolic(&blocked<16, 4, 1>, 5), 16).function);
  EXPECT_EQ(text.find("max("), std::string::npos) << "taps are asked for, not clamped";
}

TEST(GenericTiling, BlocksFillRegisters) {
  const auto tiling = [](MakeNest make, int lanes) {
    return choose_tiling(*symbolic(make, 1).nest.tensor, lanes);
  };
  EXPECT_EQ(tiling(&columns<48>, 8).block, 6);
  EXPECT_EQ(tiling(&columns<48>, 8).blocks, 2);
  EXPECT_EQ(tiling(&columns<192>, 8).blocks, 4);
  EXPECT_EQ(tiling(&columns<48>, 16).block, 8);
  // Two blocks of four are one of eight where columns come vector by vector; a block of six has no other.
  EXPECT_EQ(tiling(&columns<32>, 8).block, 4);
  EXPECT_EQ(tiling(&columns<18>, 8).block, 6);
  EXPECT_EQ(tiling(&columns<18>, 8).blocks, 1);
  EXPECT_EQ(tiling(&columns<162>, 8).blocks, 3);
  EXPECT_TRUE(tiling(&columns<7>, 8).is_ragged);
}

TEST(GenericTiling, ABatchOfOneIsSharedByThreads) {
  const Tiling own = choose_tiling(*symbolic(&batched, 2).nest.tensor, 8);
  EXPECT_EQ(own.parallel_axis, 0U);
  EXPECT_TRUE(own.joined);
}

}  // namespace
}  // namespace tensormill::plan
