#include "compiler/te/interpret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/te/text.h"
#include "runtime/base/error.h"

namespace tensormill::te {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using HostTensor = tensormill::Tensor;

HostTensor floats(Shape shape, std::vector<float> values) {
  return HostTensor::from<float>(std::move(shape), std::span<const float>(values));
}

template <typename T>
std::vector<T> values_of(const HostTensor& tensor) {
  const std::span<const T> values = tensor.values<T>();
  return {values.begin(), values.end()};
}

/// One input and one output of `extent` floats each.
struct Kernel {
  Buffer in, out;
  Function function;
  explicit Kernel(int64_t extent) {
    in = make_buffer("in", DType::kFloat32, {Expr(extent)}, Scope::kParameter);
    out = make_buffer("out", DType::kFloat32, {Expr(extent)}, Scope::kParameter);
    function.name = "kernel";
    function.parameters = {{in, false}, {out, true}};
  }
  std::string error(uint64_t seed = 0) {
    std::vector<HostTensor> arguments = {floats({8}, {0, 1, 2, 3, 4, 5, 6, 7}),
                                         HostTensor::zeros(DType::kFloat32, {8})};
    try {
      interpret(function, arguments, {}, seed);
    } catch (const InternalError& e) {
      return e.what();
    }
    return "none";
  }
};

TEST(Interpret, RunsLoopsBranchesAndLets) {
  Kernel kernel(8);
  const Var i = make_var("i"), x = make_var("x", DType::kFloat32);
  const Stmt doubled = make_store(kernel.out, {Expr(i)}, Expr(x) + Expr(x));
  const Stmt negated = make_store(kernel.out, {Expr(i)}, -Expr(x));
  const Stmt body = make_let(x, load(kernel.in, {Expr(i)}), make_if(Expr(i) < 4, doubled, negated));
  kernel.function.body = make_for(i, 0, 8, ForKind::kSerial, body);
  std::vector<HostTensor> arguments = {floats({8}, {0, 1, 2, 3, 4, 5, 6, 7}),
                                       HostTensor(DType::kFloat32, {8})};
  EXPECT_EQ(interpret(kernel.function, arguments).code, 0);
  EXPECT_THAT(values_of<float>(arguments[1]), ElementsAre(0, 2, 4, 6, -4, -5, -6, -7));
}

TEST(Interpret, RunsMaskedVectors) {
  Kernel kernel(8);
  const Expr lanes = ramp(Expr(6), 1, 4);
  const Expr mask = lanes < 8;
  const Stmt reversed = make_store(kernel.out, {ramp(Expr(3), -1, 4)},
                                   load(kernel.in, {lanes}, mask) + float_imm(DType::kFloat32, 1));
  const Stmt tail = make_store(kernel.out, {lanes}, float_imm(DType::kFloat32, 9, 4), mask);
  const Stmt total = make_store(kernel.out, {Expr(4)},
                                make(ExprOp::kLaneReduceAdd, {load(kernel.in, {ramp(Expr(0), 2, 4)})}));
  kernel.function.body = make_seq({reversed, tail, total});
  std::vector<HostTensor> arguments = {floats({8}, {0, 1, 2, 3, 4, 5, 6, 7}),
                                       HostTensor::zeros(DType::kFloat32, {8})};
  EXPECT_EQ(interpret(kernel.function, arguments).code, 0);
  EXPECT_THAT(values_of<float>(arguments[1]), ElementsAre(1, 1, 8, 7, 12, 0, 9, 9));
}

// One variable and one expression node under two lets: what was computed before the loop for one is not the
// other's.
TEST(Interpret, RebindsVariables) {
  Kernel kernel(8);
  const Var i = make_var("i"), j = make_var("j"), x = make_var("x");
  const Expr shifted = Expr(x) + 1;
  const Stmt body =
      make_for(j, 0, 2, ForKind::kSerial,
               make_store(kernel.out, {Expr(x) * 2 + j}, cast(DType::kFloat32, shifted * 10 + i)));
  kernel.function.body = make_for(i, 0, 2, ForKind::kSerial,
                                  make_seq({make_let(x, Expr(i), body), make_let(x, Expr(i) + 2, body)}));
  std::vector<HostTensor> arguments = {floats({8}, {0, 1, 2, 3, 4, 5, 6, 7}),
                                       HostTensor(DType::kFloat32, {8})};
  EXPECT_EQ(interpret(kernel.function, arguments).code, 0);
  EXPECT_THAT(values_of<float>(arguments[1]), ElementsAre(10, 10, 21, 21, 30, 30, 41, 41));
}

TEST(Interpret, FindsOutOfBounds) {
  Kernel kernel(8);
  const Var i = make_var("i");
  kernel.function.body =
      make_for(i, 0, 8, ForKind::kSerial, make_store(kernel.out, {Expr(i)}, load(kernel.in, {Expr(i) + 1})));
  EXPECT_THAT(kernel.error(),
              HasSubstr("load of buffer in outside its bounds: index 8 of dimension 0, extent 8"));
  kernel.function.body = make_store(kernel.out, {Expr(-1)}, float_imm(DType::kFloat32, 0));
  EXPECT_THAT(kernel.error(), HasSubstr("store of buffer out outside its bounds: index -1"));
}

TEST(Interpret, FindsUninitializedReads) {
  Kernel kernel(8);
  const Buffer scratch = make_buffer("scratch", DType::kFloat32, {Expr(4)}, Scope::kRegister);
  const Stmt use = make_store(kernel.out, {Expr(0)}, load(scratch, {Expr(3)}));
  kernel.function.body =
      make_allocate(scratch, make_seq({make_store(scratch, {Expr(2)}, float_imm(DType::kFloat32, 1)), use}));
  EXPECT_THAT(kernel.error(), HasSubstr("load of buffer scratch at element 3, which was never written"));
  kernel.function.body = make_store(kernel.out, {Expr(0)}, load(kernel.out, {Expr(1)}));
  EXPECT_THAT(kernel.error(), HasSubstr("load of buffer out at element 1, which was never written"));
}

TEST(Interpret, FindsRaces) {
  Kernel kernel(8);
  const Var i = make_var("i");
  const auto parallel = [&](const Stmt& body) {
    kernel.function.body = make_for(i, 0, 4, ForKind::kParallel, body);
  };
  parallel(make_store(kernel.out, {floordiv(Expr(i), 2)}, float_imm(DType::kFloat32, 1)));
  EXPECT_THAT(kernel.error(5), HasSubstr("race: store of buffer out"));
  const Stmt own = make_store(kernel.out, {Expr(i)}, float_imm(DType::kFloat32, 1));
  parallel(own);
  EXPECT_EQ(kernel.error(5), "none");
  parallel(make_seq({own, make_store(kernel.out, {Expr(i) + 4}, load(kernel.out, {Expr(0)}))}));
  EXPECT_THAT(kernel.error(), HasSubstr("race: load of buffer out at element 0, which another task writes"));
  parallel(make_store(kernel.in, {Expr(i) + 1}, load(kernel.in, {Expr(4)})));
  EXPECT_THAT(kernel.error(), HasSubstr("race: store of buffer in at element 4, which another task reads"));
}

TEST(Interpret, WorkerBuffersBelongToOneTask) {
  Kernel kernel(8);
  const Var i = make_var("i");
  const Buffer scratch = make_buffer("scratch", DType::kFloat32, {Expr(1)}, Scope::kWorkerWorkspace);
  const Stmt body = make_seq({make_store(scratch, {Expr(0)}, load(kernel.in, {Expr(i)})),
                              make_store(kernel.out, {Expr(i)}, load(scratch, {Expr(0)}))});
  kernel.function.body = make_for(i, 0, 8, ForKind::kParallel, make_allocate(scratch, body));
  EXPECT_EQ(kernel.error(3), "none");
  kernel.function.body = make_allocate(scratch, make_for(i, 0, 8, ForKind::kParallel, body));
  EXPECT_THAT(kernel.error(3), HasSubstr("outside of which its worker allocated it"));
}

TEST(Interpret, ReportsTheFirstBadIndexOfTheLowestTask) {
  const Buffer index = make_buffer("index", DType::kInt64, {Expr(4)}, Scope::kParameter);
  const Buffer data = make_buffer("data", DType::kFloat32, {Expr(3)}, Scope::kParameter);
  const Buffer out = make_buffer("out", DType::kFloat32, {Expr(4)}, Scope::kParameter);
  const Var i = make_var("i");
  Function function;
  function.name = "gather";
  function.parameters = {{index, false}, {data, false}, {out, true}};
  const Expr at = check_index(load(index, {Expr(i)}), Expr(3));
  function.body = make_for(i, 0, 4, ForKind::kParallel, make_store(out, {Expr(i)}, load(data, {at})));
  const std::vector<int64_t> indices = {2, 7, -5, 1};
  for (const uint64_t seed : {0, 1, 2, 3}) {
    std::vector<HostTensor> arguments = {HostTensor::from<int64_t>({4}, indices), floats({3}, {5, 6, 7}),
                                         HostTensor(DType::kFloat32, {4})};
    const InterpretResult result = interpret(function, arguments, {}, seed);
    EXPECT_EQ(result.code, kIndexOutOfRange);
    EXPECT_EQ(result.error_index, 7);
    EXPECT_THAT(values_of<float>(arguments[2]), ElementsAre(7, 5, 5, 6));
  }
}

TEST(Interpret, PlacesBuffersInTheWorkspace) {
  Kernel kernel(8);
  const Buffer a = make_buffer("a", DType::kFloat32, {Expr(1)}, Scope::kSharedWorkspace);
  const Buffer b = make_buffer("b", DType::kFloat32, {Expr(1)}, Scope::kSharedWorkspace);
  const Stmt stores = make_seq({make_store(a, {Expr(0)}, float_imm(DType::kFloat32, 1)),
                                make_store(b, {Expr(0)}, float_imm(DType::kFloat32, 2)),
                                make_store(kernel.out, {Expr(0)}, load(a, {Expr(0)}))});
  kernel.function.shared_workspace_bytes = 128;
  kernel.function.body = make_allocate(a, make_allocate(b, stores, 64), 0);
  std::vector<HostTensor> arguments = {floats({8}, {0, 1, 2, 3, 4, 5, 6, 7}),
                                       HostTensor(DType::kFloat32, {8})};
  interpret(kernel.function, arguments);
  EXPECT_EQ(arguments[1].values<float>()[0], 1);
  kernel.function.body = make_allocate(a, make_allocate(b, stores, 0), 0);
  interpret(kernel.function, arguments);
  EXPECT_EQ(arguments[1].values<float>()[0], 2);
  kernel.function.body = make_allocate(a, make_allocate(b, stores, 128), 0);
  EXPECT_THAT(kernel.error(), HasSubstr("buffer b of 4 bytes at 128 leaves its workspace of 128"));
}

TEST(Evaluate, Matmul) {
  const Tensor a = placeholder("a", DType::kFloat32, Shape{2, 3}),
               b = placeholder("b", DType::kFloat32, Shape{3, 2});
  const Tensor product = reduce("c", ReduceOp::kSum, Shape{2, 2}, {3}, [&](const auto& i, const auto& r) {
    return read(a, {i[0], r[0]}) * read(b, {r[0], i[1]});
  });
  const Tensor shifted = compute("d", Shape{2, 2}, [&](const auto& i) {
    return read(product, {i[1], i[0]}) + float_imm(DType::kFloat32, 0.5);
  });
  const auto outputs = evaluate({{a, b}, {shifted, product}},
                                {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({3, 2}, {1, 0, 0, 1, 1, 1})});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].shape(), (Shape{2, 2}));
  EXPECT_THAT(values_of<float>(outputs[0]), ElementsAre(4.5, 10.5, 5.5, 11.5));
  EXPECT_THAT(values_of<float>(outputs[1]), ElementsAre(4, 5, 10, 11));
}

TEST(Evaluate, ArgReduceWithTiesAndNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor x = placeholder("x", DType::kFloat32, Shape{4, 4});
  const HostTensor data = floats({4, 4}, {1, 5, 5, 2, nan, 9, nan, 0, -inf, -inf, -inf, -inf, 3, 3, 2, 2});
  const auto index = [&](bool largest, bool last) {
    const Tensor y = arg_reduce("y", largest, last, {4}, 4, [&](const auto& i, const Expr& r) {
      return read(x, {i[0], r});
    });
    return values_of<int64_t>(evaluate({{x}, {y}}, {data})[0]);
  };
  EXPECT_THAT(index(true, false), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(index(true, true), ElementsAre(2, 2, 3, 1));
  EXPECT_THAT(index(false, false), ElementsAre(0, 0, 0, 2));
  EXPECT_THAT(index(false, true), ElementsAre(0, 2, 3, 3));
}

TEST(Evaluate, MinMaxKeepNanAndIdentities) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = placeholder("x", DType::kFloat32, Shape{2, 2});
  const Tensor y = reduce("y", ReduceOp::kMax, Shape{2}, {2}, [&](const auto& i, const auto& r) {
    return read(x, {i[0], r[0]});
  });
  const Tensor empty = reduce("e", ReduceOp::kMin, Shape{1}, {0}, [&](const auto& i, const auto& r) {
    return read(x, {i[0], r[0]});
  });
  const auto outputs = evaluate({{x}, {y, empty}}, {floats({2, 2}, {nan, 1, -3, -2})});
  EXPECT_TRUE(std::isnan(outputs[0].values<float>()[0]));
  EXPECT_EQ(outputs[0].values<float>()[1], -2);
  EXPECT_EQ(outputs[1].values<float>()[0], std::numeric_limits<float>::infinity());
}

TEST(Evaluate, SymbolicDims) {
  const Var n = make_var("n");
  const Tensor x = placeholder("x", DType::kFloat32, std::vector<Expr>{Expr(n)});
  const Tensor y = compute("y", std::vector<Expr>{Expr(n) * 2},
                           [&](const auto& i) { return read(x, {floordiv(i[0], 2)}); });
  const auto outputs = evaluate({{x}, {y}}, {floats({2}, {3, 4})});
  EXPECT_THAT(values_of<float>(outputs[0]), ElementsAre(3, 3, 4, 4));
}

}  // namespace
}  // namespace tensormill::te
