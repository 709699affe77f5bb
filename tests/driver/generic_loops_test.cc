/// The loops of generic kernels, run by the interpreter at many extents: it sees each access that is outside
/// of its buffer, each element that is read before it is written, and each race of parallel loops.
#include <gtest/gtest.h>

#include "compiler/plan/generic_epilogue.h"
#include "compiler/te/interpret.h"
#include "tests/driver/generic_nests.h"

namespace tensormill::plan::generic_nests {
namespace {

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

/// Runs of rows that the cache holds, the last of which is not whole.
TEST(GenericLoopsOfChunks, EachRowMeetsEachPanelOnce) {
  const MakeNest make = &blocks_of_columns<32, 96>;
  for (const int64_t l2_bytes : {1024, 32768, 1 << 20}) {
    const Loops loops = loops_of(symbolic(make, 1), LoopFacts{16, l2_bytes});
    for (const int64_t rows : {1, 5, 6, 12, 13, 41, 100}) expect_equal(make, loops, {rows}, 3);
  }
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

TEST_P(GenericLoops, StridesOfAnyExtents) {
  for (const MakeNest make : {&strided<16, 4>, &strided<8, 2>, &strided<4, 2>, &strided<8, 1>}) {
    const Loops loops = loops_of(symbolic(make, 3), GetParam());
    for (const int64_t width : {1, 3, 7, 13}) expect_equal(make, loops, {1, 5 * width + 7, width}, 3);
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

/// [M, 12] by three blocks of kLanes columns; and `sums`, the blocks first, plus a row and a matrix of all
/// columns, or of `columns`, as they stand side by side.
template <int64_t kLanes>
struct Packed {
  explicit Packed(const Expr& rows, int64_t columns = 3 * kLanes)
      : x(te::placeholder("x", DType::kFloat32, {rows, Expr(12)})),
        row(te::placeholder("row", DType::kFloat32, Shape{columns})),
        matrix(te::placeholder("matrix", DType::kFloat32, {rows, Expr(columns)})),
        sum(with_extents(te::reduce("sum", te::ReduceOp::kSum, Shape{3, 2, kLanes}, Shape{12},
                                    [&](const auto& at, const auto& k) {
                                      return te::read(x, {at[1], k[0]}) * te::read(w, {at[0], k[0], at[2]});
                                    }),
                         {Expr(3), rows, Expr(kLanes)}, {Expr(12)})) {}
  Tensor of_columns(const Tensor& sums) const {
    return te::compute("out", matrix->shape, [&](const auto& at) {
      const Expr total =
          te::read(sums, {te::floordiv(at[1], Expr(kLanes)), at[0], te::floormod(at[1], Expr(kLanes))});
      return te::max(total + te::read(row, {at[1]}) + te::read(matrix, {at[0], at[1]}),
                     te::float_imm(DType::kFloat32, 0));
    });
  }

  Tensor x, w = te::placeholder("w", DType::kFloat32, Shape{3, 12, kLanes}), row, matrix, sum;
};

template <int64_t kLanes>
void expect_columns_of_blocks(int lanes, int64_t columns) {
  TermVars vars(1);
  const Packed<kLanes> any(vars.expr({0, {{1, {{0, 1, 0, 1}}}}}), columns);
  const Tensor sums = te::placeholder("sums", DType::kFloat32, any.sum->shape);
  const std::optional<Nest> both = with_epilogue(
      nest_of(any.sum, {any.x, any.w}), nest_of(any.of_columns(sums), {sums, any.row, any.matrix}), 0);
  ASSERT_TRUE(both);
  const Nest nest = with_joined_axes(*both, vars);
  const Loops loops = loops_of({std::move(vars), nest}, lanes);
  for (const int64_t rows : {1, 2, 5, 8, 13}) {
    const Packed<kLanes> now(Expr(rows), columns);
    const std::vector<Tensor> inputs = {now.x, now.w, now.row, now.matrix};
    std::vector<tensormill::Tensor> arguments;
    for (const Tensor& input : inputs) arguments.push_back(small_integers(input->constant_shape()));
    const tensormill::Tensor expected = te::evaluate({inputs, {now.of_columns(now.sum)}}, arguments)[0];
    arguments.emplace_back(DType::kFloat32, expected.shape());
    ASSERT_EQ(te::interpret(loops.function, arguments, loops.dims_at({rows}), 3).code, 0);
    for (int64_t i = 0; i < expected.num_elements(); ++i)
      ASSERT_EQ(arguments.back().element_as_double(i), expected.element_as_double(i)) << rows << " " << i;
  }
}

TEST_P(GenericLoops, BlocksOfColumnsAreStoredSideBySide) {
  for (const int64_t absent : {0, 1, 3}) {
    if (GetParam() == 16) {
      expect_columns_of_blocks<16>(16, 48 - absent);
    } else if (GetParam() == 8) {
      expect_columns_of_blocks<8>(8, 24 - absent);
    } else {
      expect_columns_of_blocks<4>(GetParam(), 12 - absent);
    }
  }
}

/// Elements of another place of the sum, or of a part of it, are not the sum's to store.
TEST(GenericEpilogue, IsOfElementsThatTheSumHasOnceEach) {
  const Packed<4> packed{Expr(5)};
  const Tensor sums = te::placeholder("sums", DType::kFloat32, packed.sum->shape);
  const auto joins = [&](const Shape& shape, const auto& index) {
    const Tensor last = te::compute("last", shape, [&](const auto& at) {
      return te::read(sums, index(at)) + te::float_imm(DType::kFloat32, 1);
    });
    return with_epilogue(nest_of(packed.sum, {packed.x, packed.w}), nest_of(last, {sums}), 0).has_value();
  };
  using Index = std::vector<Expr>;
  EXPECT_TRUE(joins({3, 5, 4}, [](const Index& at) { return at; }));
  EXPECT_TRUE(joins({5, 3, 4}, [](const Index& at) { return Index{at[1], at[0], at[2]}; }));
  EXPECT_FALSE(joins({5, 4}, [](const Index& at) { return Index{Expr(0), at[0], at[1]}; }));
  EXPECT_FALSE(joins({3, 4, 4}, [](const Index& at) { return Index{at[0], at[1], at[2]}; }));
  const auto of_columns = [](const Index& at) {
    return Index{te::floordiv(at[1], Expr(4)), at[0], te::floormod(at[1], Expr(4))};
  };
  EXPECT_TRUE(joins({5, 12}, of_columns));
  EXPECT_TRUE(joins({5, 9}, of_columns)) << "the last block need not be whole";
  EXPECT_FALSE(joins({5, 8}, of_columns));
  EXPECT_FALSE(joins({5, 13}, of_columns));
  EXPECT_FALSE(joins({3, 5, 4}, [](const Index& at) { return Index{at[0], at[1], Expr(3) - at[2]}; }));
}

/// Where what is read ends before what is computed, no formula of the two being known, reads stay inside.
TEST_P(GenericLoops, WhatEndsTooEarlyIsNotReadPastItsEnd) {
  const Symbolic sum = symbolic(&conv, 3);
  const Loops loops = loops_of(sum, GetParam());
  std::vector<tensormill::Tensor> arguments = {small_integers({1, 3, 5}), small_integers({8, 3, 3}),
                                               tensormill::Tensor(DType::kFloat32, {1, 8, 9})};
  EXPECT_EQ(te::interpret(loops.function, arguments, {1, 5, 9}).code, 0);
}

}  // namespace
}  // namespace tensormill::plan::generic_nests
