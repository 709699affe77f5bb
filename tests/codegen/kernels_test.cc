#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "compiler/te/interpret.h"
#include "runtime/base/error.h"
#include "tests/codegen/support.h"

namespace tensormill::codegen_test {
namespace {

using te::Buffer;
using te::Expr;
using te::ForKind;
using te::Stmt;
using te::Var;

Tensor random_floats(int64_t count, uint64_t seed) {
  Tensor tensor(DType::kFloat32, {count});
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < count; ++i) {
    tensor.set_element(i, static_cast<double>(random() % 2048) / 1024.0 - 1.0);
  }
  return tensor;
}

Stmt serial(const Var& var, const Expr& extent, Stmt body) {
  return te::make_for(var, Expr(0), extent, ForKind::kSerial, std::move(body));
}

/// Runs the kernel on every target of this machine, with 1 and 3 workers, and the interpreter: all must
/// agree.
void expect_equal_interpreter(const te::Function& function, const std::vector<Tensor>& arguments,
                              const std::vector<int64_t>& dims = {}, bool only_code = false) {
  std::vector<Tensor> expected;
  for (const Tensor& tensor : arguments) expected.push_back(tensor.clone());
  const te::InterpretResult wanted = te::interpret(function, expected, dims);
  for (const target::Target& target : runnable_targets()) {
    const Kernel kernel(function, target);
    for (const int workers : {1, 3}) {
      std::vector<Tensor> actual;
      for (const Tensor& tensor : arguments) actual.push_back(tensor.clone());
      const RunResult result = kernel.run(actual, dims, workers);
      EXPECT_EQ(result.code, wanted.code) << target.cpu;
      if (!only_code) {
        EXPECT_EQ(result.error_index, wanted.error_index) << target.cpu;
      }
      for (size_t i = 0; i < actual.size() && !only_code; ++i) {
        EXPECT_EQ(difference(actual[i], expected[i]), "") << "parameter " << i << " on " << target.cpu;
      }
    }
  }
}

TEST(Kernels, MaskedTailTouchesNoMemoryPastTheEnd) {
  constexpr int64_t kSize = 1003;
  constexpr int kLanes = 16;
  for (const DType dtype : {DType::kFloat32, DType::kInt8, DType::kFloat16, DType::kBool, DType::kInt64}) {
    const Buffer a = flat("a", dtype, kSize);
    const Buffer out = flat("out", dtype, kSize);
    const Var i = te::make_var("i");
    const Expr index = te::ramp(Expr(i) * Expr(kLanes), Expr(1), kLanes);
    const Expr mask = index < te::broadcast(Expr(kSize), kLanes);
    const Stmt body = serial(i, Expr((kSize + kLanes - 1) / kLanes),
                             te::make_store(out, {index}, te::load(a, {index}, mask), mask));
    Tensor input = Tensor::zeros(dtype, {kSize});
    for (int64_t k = 0; k < kSize; ++k) input.set_element(k, static_cast<double>((k * 7) % 100));
    expect_equal_interpreter(make_function("tail", {a, out}, 1, body),
                             {input, Tensor::zeros(dtype, {kSize})});
  }
}

TEST(Kernels, StridedReversedAndGatheredLanes) {
  constexpr int64_t kSize = 128;
  constexpr int kLanes = 8;
  for (const DType dtype : {DType::kFloat32, DType::kUInt8, DType::kFloat64}) {
    const Buffer a = flat("a", dtype, kSize);
    const Buffer at = flat("at", DType::kInt64, kSize);
    const Buffer out = flat("out", dtype, kSize * 4);
    const Var i = te::make_var("i");
    const Expr base = Expr(i) * Expr(kLanes);
    const Expr lane = te::ramp(Expr(0), Expr(1), kLanes);
    const Expr here = te::ramp(base, Expr(1), kLanes);
    const auto place = [&](int64_t row) { return te::ramp(base + Expr(row * kSize), Expr(1), kLanes); };
    const Expr indices = te::check_index(te::load(at, {here}), te::broadcast(Expr(kSize), kLanes));
    const Expr odd = te::make(te::ExprOp::kNe, {te::floormod(lane, te::broadcast(Expr(2), kLanes)),
                                                te::broadcast(Expr(0), kLanes)});
    const Stmt body = serial(
        i, Expr(kSize / kLanes),
        te::make_seq(
            {te::make_store(out, {place(0)}, te::load(a, {te::ramp(Expr(i), Expr(kSize / kLanes), kLanes)})),
             te::make_store(out, {place(1)},
                            te::load(a, {te::ramp(base + Expr(kLanes - 1), Expr(-1), kLanes)})),
             te::make_store(out, {place(2)}, te::load(a, {indices})),
             te::make_store(out, {place(3)}, te::load(a, {indices}, odd)),
             te::make_store(out, {te::ramp(Expr(i), Expr(kSize / kLanes), kLanes)}, te::load(a, {here}),
                            odd)}));
    Tensor input = Tensor::zeros(dtype, {kSize});
    Tensor positions = Tensor::zeros(DType::kInt64, {kSize});
    for (int64_t k = 0; k < kSize; ++k) {
      input.set_element(k, static_cast<double>(k));
      positions.set_element_int(k, (k * 37 + 5) % kSize);
    }
    expect_equal_interpreter(make_function("lanes", {a, at, out}, 1, body),
                             {input, positions, Tensor::zeros(dtype, {kSize * 4})});
  }
}

TEST(Kernels, ShortStridesLoadWholeVectors) {
  const std::vector<int64_t> strides = {-1, 0, 2, 3, 4, 5, -2};
  for (const DType dtype : {DType::kFloat32, DType::kBool, DType::kFloat64}) {
    for (const int lanes : {2, 7, 16}) {
      const int64_t size = 5 * (lanes - 1) + 4;  // the longest stride ends at the last element
      const Buffer a = flat("a", dtype, size);
      const Buffer out = flat("out", dtype, 4 * lanes * static_cast<int64_t>(strides.size()));
      const Var i = te::make_var("i");
      std::vector<Stmt> stores;
      for (const int64_t stride : strides) {
        const int64_t reach = stride < 0 ? -stride * (lanes - 1) : size - 4 - stride * (lanes - 1);
        const Expr row = Expr(i) + Expr(4 * static_cast<int64_t>(stores.size()));
        stores.push_back(te::make_store(out, {te::ramp(row * Expr(lanes), Expr(1), lanes)},
                                        te::load(a, {te::ramp(Expr(i) + Expr(reach), Expr(stride), lanes)})));
      }
      Tensor input = Tensor::zeros(dtype, {size});
      for (int64_t k = 0; k < size; ++k) input.set_element(k, static_cast<double>((k * 5) % 11));
      expect_equal_interpreter(
          make_function("strides", {a, out}, 1, serial(i, Expr(4), te::make_seq(stores))),
          {input, Tensor::zeros(dtype, {*te::as_int(out->shape[0])})});
    }
  }
}

TEST(Kernels, EveryOtherElementIsLoadedWhereItsMaskIsOn) {
  constexpr int64_t kSize = 21, kStarts = 64;
  for (const DType dtype : {DType::kFloat32, DType::kBool, DType::kFloat64, DType::kInt8}) {
    for (const int lanes : {4, 6, 8, 16}) {
      const Buffer a = flat("a", dtype, kSize);
      const Buffer out = flat("out", dtype, kStarts * lanes);
      const Var i = te::make_var("i");
      // From lanes that all lie before the first element to such as lie behind the last one.
      const Expr index = te::ramp(Expr(i) - Expr(36), Expr(2), lanes);
      const Expr is_there =
          te::logical_and(index >= te::broadcast(Expr(0), lanes), index < te::broadcast(Expr(kSize), lanes));
      const Stmt body = te::make_store(out, {te::ramp(Expr(i) * Expr(lanes), Expr(1), lanes)},
                                       te::load(a, {index}, is_there));
      Tensor input = Tensor::zeros(dtype, {kSize});
      for (int64_t k = 0; k < kSize; ++k) input.set_element(k, static_cast<double>(k % 5));
      expect_equal_interpreter(make_function("every_other", {a, out}, 1, serial(i, Expr(kStarts), body)),
                               {input, Tensor::zeros(dtype, {kStarts * lanes})});
    }
  }
}

TEST(Kernels, CheckedIndicesEndTheKernelWithTheFirstOneAtFault) {
  constexpr int64_t kSize = 40;
  const Buffer a = flat("a", DType::kFloat32, 10);
  const Buffer at = flat("at", DType::kInt64, kSize);
  const Buffer out = flat("out", DType::kFloat32, kSize);
  const Var i = te::make_var("i");
  const Expr index = te::check_index(te::load(at, {Expr(i)}), Expr(10));
  const te::Function function =
      make_function("gather", {a, at, out}, 1,
                    serial(i, Expr(kSize), te::make_store(out, {Expr(i)}, te::load(a, {index}))));
  for (const int64_t bad :
       {int64_t{10}, int64_t{-1}, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    Tensor positions = Tensor::zeros(DType::kInt64, {kSize});
    positions.set_element_int(17, bad);
    positions.set_element_int(30, 99);
    expect_equal_interpreter(function,
                             {random_floats(10, 1), positions, Tensor::zeros(DType::kFloat32, {kSize})});
  }
  std::vector<Tensor> arguments = {random_floats(10, 1), Tensor::zeros(DType::kInt64, {kSize}),
                                   Tensor::zeros(DType::kFloat32, {kSize})};
  arguments[1].set_element_int(3, -7);
  const RunResult result = Kernel(function, host()).run(arguments);
  EXPECT_EQ(result.code, TM_INDEX_OUT_OF_RANGE);
  EXPECT_EQ(result.error_index, -7);
}

TEST(Kernels, SymbolicExtentsConditionsAndLets) {
  const Var n = te::make_var("n");
  const Buffer a = te::make_buffer("a", DType::kFloat32, {Expr(n) * Expr(n)}, te::Scope::kParameter);
  const Buffer out = te::make_buffer("out", DType::kFloat32, {Expr(n) * Expr(n)}, te::Scope::kParameter);
  const Var i = te::make_var("i");
  const Var j = te::make_var("j");
  const Var x = te::make_var("x", DType::kFloat32);
  const Expr place = Expr(i) * Expr(n) + Expr(j);
  const Stmt body = serial(
      i, Expr(n),
      serial(j, Expr(n),
             te::make_let(x, te::load(a, {Expr(j) * Expr(n) + Expr(i)}),
                          te::make_if(Expr(j) > Expr(i), te::make_store(out, {place}, Expr(x) * Expr(x)),
                                      te::make_store(out, {place}, -Expr(x))))));
  te::Function function = make_function("symbolic", {a, out}, 1, body);
  function.dims = {n};
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{13}}) {
    expect_equal_interpreter(
        function, {random_floats(size * size, 2), Tensor::zeros(DType::kFloat32, {size * size})}, {size});
  }
}

TEST(Kernels, VectorLets) {
  const Buffer a = flat("a", DType::kFloat32, 64);
  const Buffer out = flat("out", DType::kFloat32, 64);
  const Var i = te::make_var("i");
  const Var x = te::make_var("x", DType::kFloat32, 8);
  const Expr index = te::ramp(Expr(i) * Expr(8), Expr(1), 8);
  const Expr vector(x);
  const Stmt body = serial(
      i, Expr(8),
      te::make_let(x, te::load(a, {index}), te::make_store(out, {index}, te::fma(vector, vector, vector))));
  expect_equal_interpreter(make_function("lets", {a, out}, 1, body),
                           {random_floats(64, 3), Tensor::zeros(DType::kFloat32, {64})});
}

/// Rows are reduced by parallel tasks that use both workspaces and values of the outer body.
te::Function parallel_function(int64_t rows, int64_t columns) {
  const Buffer a = flat("a", DType::kFloat32, rows * columns);
  const Buffer out = flat("out", DType::kFloat32, rows);
  const Buffer scale = flat("scale", DType::kFloat32, columns, te::Scope::kSharedWorkspace);
  const Buffer other = flat("other", DType::kFloat32, columns, te::Scope::kSharedWorkspace);
  const Buffer scratch = flat("scratch", DType::kFloat32, columns, te::Scope::kWorkerWorkspace);
  const Buffer sum = flat("sum", DType::kFloat32, 1, te::Scope::kRegister);
  const Var c = te::make_var("c");
  const Var d = te::make_var("d");
  const Var e = te::make_var("e");
  const Var r = te::make_var("r");
  const Var factor = te::make_var("factor", DType::kFloat32);
  const Expr zero(0);
  const Stmt fill = serial(
      c, Expr(columns),
      te::make_seq(
          {te::make_store(scale, {Expr(c)}, te::load(a, {Expr(c)}) + te::float_imm(DType::kFloat32, 2)),
           te::make_store(other, {Expr(c)}, te::cast(DType::kFloat32, Expr(c)))}));
  const Stmt task = te::make_allocate(
      scratch,
      te::make_seq(
          {serial(
               d, Expr(columns),
               te::make_store(scratch, {Expr(d)},
                              te::load(a, {Expr(r) * Expr(columns) + Expr(d)}) * te::load(scale, {Expr(d)}))),
           te::make_allocate(
               sum,
               te::make_seq({te::make_store(sum, {zero}, te::float_imm(DType::kFloat32, 0)),
                             serial(e, Expr(columns),
                                    te::make_store(sum, {zero},
                                                   te::load(sum, {zero}) + te::load(scratch, {Expr(e)}) *
                                                                               te::load(other, {Expr(e)}))),
                             te::make_store(out, {Expr(r)}, te::load(sum, {zero}) * Expr(factor))}))}));
  const Stmt loop = te::make_for(r, zero, Expr(rows), ForKind::kParallel, task);
  const int64_t bytes = (columns * 4 + 63) / 64 * 64;
  const Stmt body = te::make_allocate(
      scale, te::make_allocate(
                 other, te::make_seq({fill, te::make_let(factor, te::load(scale, {zero}), loop)}), bytes));
  te::Function function = make_function("rows", {a, out}, 1, body);
  function.shared_workspace_bytes = 2 * bytes;
  function.worker_workspace_bytes = bytes;
  return function;
}

TEST(Kernels, ParallelTasksShareAndOwnWorkspaces) {
  expect_equal_interpreter(parallel_function(37, 51),
                           {random_floats(37 * 51, 4), Tensor::zeros(DType::kFloat32, {37})});
}

/// Task t runs as worker t: what each leaves in its scratch memory stands in its own slice.
TEST(Kernels, EveryWorkerHasItsOwnSlice) {
  constexpr int64_t kRows = 3, kColumns = 51;
  const te::Function function = parallel_function(kRows, kColumns);
  const Tensor a = random_floats(kRows * kColumns, 4);
  Tensor out = Tensor::zeros(DType::kFloat32, {kRows});
  const int64_t stride = function.worker_workspace_bytes;
  Tensor workers = Tensor::zeros(DType::kFloat32, {kRows, stride / 4});
  Tensor shared = Tensor::zeros(DType::kFloat32, {function.shared_workspace_bytes / 4});
  const auto launch = [](const tm_call* call, tm_task task, void* closure, int64_t tasks) {
    for (int64_t t = 0; t < tasks; ++t) {
      const int32_t code = task(call, closure, t, static_cast<int32_t>(t));
      if (code != TM_OK) return code;
    }
    return int32_t{TM_OK};
  };
  const tm_parallel parallel = {nullptr, kRows, 0, launch};
  Tensor input = a.clone();
  std::vector<void*> buffers = {input.data(), out.data()};
  int64_t error_index = 0;
  const tm_call call = {TM_ABI_VERSION, 2,      buffers.data(), nullptr,     0, 0, shared.data(),
                        workers.data(), stride, &parallel,      &error_index};
  ASSERT_EQ(Kernel(function, host()).run_raw(call).code, TM_OK);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      const float scale = static_cast<float>(a.element_as_double(c)) + 2.0f;
      const float expected = static_cast<float>(a.element_as_double(r * kColumns + c)) * scale;
      ASSERT_EQ(workers.element_as_double(r * (stride / 4) + c), expected) << "worker " << r << ", " << c;
    }
  }
}

/// What tasks write is seen by the code after the loop, in a parameter and in the shared workspace.
TEST(Kernels, ResultsOfTasksAreReadAfterTheLoop) {
  constexpr int64_t kSize = 48;
  const Buffer a = flat("a", DType::kFloat32, kSize);
  const Buffer out = flat("out", DType::kFloat32, kSize);
  const Buffer last = flat("last", DType::kFloat32, 2);
  const Buffer shared = flat("shared", DType::kFloat32, kSize, te::Scope::kSharedWorkspace);
  const Var i = te::make_var("i");
  const Var j = te::make_var("j");
  const Var k = te::make_var("k");
  const auto parallel = [](const Var& var, Stmt body) {
    return te::make_for(var, Expr(0), Expr(kSize), ForKind::kParallel, std::move(body));
  };
  const Stmt body = te::make_seq(
      {te::make_store(out, {Expr(0)}, te::float_imm(DType::kFloat32, -1)),
       te::make_store(shared, {Expr(5)}, te::float_imm(DType::kFloat32, -1)),
       parallel(i, te::make_store(shared, {Expr(i)}, te::load(a, {Expr(i)}) * te::load(a, {Expr(i)}))),
       parallel(j, te::make_store(out, {Expr(j)}, te::load(shared, {Expr(kSize - 1) - Expr(j)}))),
       te::make_store(last, {Expr(0)}, te::load(out, {Expr(0)}) + te::load(shared, {Expr(5)})),
       serial(k, Expr(kSize),
              te::make_store(out, {Expr(k)}, te::load(out, {Expr(k)}) - te::load(a, {Expr(k)}))),
       te::make_store(last, {Expr(1)}, te::load(out, {Expr(7)}))});
  te::Function function = make_function("after", {a, out, last}, 2, te::make_allocate(shared, body));
  function.shared_workspace_bytes = kSize * 4;
  expect_equal_interpreter(function, {random_floats(kSize, 9), Tensor::zeros(DType::kFloat32, {kSize}),
                                      Tensor::zeros(DType::kFloat32, {2})});
}

TEST(Kernels, ErrorsOfTasksReachTheCaller) {
  const Buffer at = flat("at", DType::kInt64, 24);
  const Buffer out = flat("out", DType::kFloat32, 24);
  const Var i = te::make_var("i");
  const Expr index = te::check_index(te::load(at, {Expr(i)}), Expr(24));
  const Stmt loop = te::make_for(i, Expr(0), Expr(24), ForKind::kParallel,
                                 te::make_store(out, {Expr(i)}, te::cast(DType::kFloat32, index)));
  Tensor positions = Tensor::zeros(DType::kInt64, {24});
  positions.set_element_int(11, 24);
  const te::Function function = make_function("tasks", {at, out}, 1, loop);
  expect_equal_interpreter(function, {positions, Tensor::zeros(DType::kFloat32, {24})}, {}, true);
  std::vector<Tensor> arguments = {positions, Tensor::zeros(DType::kFloat32, {24})};
  EXPECT_EQ(Kernel(function, host()).run(arguments, {}, 4).error_index, 24);
}

TEST(Kernels, AliasedParametersAreNotReordered) {
  const Buffer a = flat("a", DType::kInt32, 32);
  const Buffer b = flat("b", DType::kInt32, 32);
  const Var i = te::make_var("i");
  const Stmt body = serial(
      i, Expr(31),
      te::make_seq(
          {te::make_store(b, {Expr(i) + Expr(1)}, te::load(a, {Expr(i)}) + te::int_imm(DType::kInt32, 1)),
           te::make_store(b, {Expr(0)}, te::load(a, {Expr(i) + Expr(1)}))}));
  te::Function function = make_function("alias", {a, b}, 1, body);
  function.aliases = {0, 0};
  for (const target::Target& target : runnable_targets()) {
    Tensor shared = Tensor::zeros(DType::kInt32, {32});
    std::vector<Tensor> arguments = {shared, shared};
    ASSERT_EQ(Kernel(function, target).run(arguments).code, 0);
    std::vector<int32_t> expected(32, 0);
    for (size_t k = 0; k < 31; ++k) {
      expected[k + 1] = expected[k] + 1;
      expected[0] = expected[k + 1];
    }
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), shared.values<int32_t>().begin())) << target.cpu;
  }
}

TEST(Kernels, RefuseACallOfAnotherShape) {
  const Buffer out = flat("out", DType::kFloat32, 1);
  const Kernel kernel(
      make_function("one", {out}, 1, te::make_store(out, {Expr(0)}, te::float_imm(DType::kFloat32, 1))),
      host());
  Tensor tensor = Tensor::zeros(DType::kFloat32, {1});
  void* buffers[1] = {tensor.data()};
  tm_call call = {};
  call.abi_version = TM_ABI_VERSION;
  call.num_buffers = 1;
  call.buffers = buffers;
  EXPECT_EQ(kernel.run_raw(call).code, TM_OK);
  EXPECT_EQ(tensor.element_as_double(0), 1.0);
  call.abi_version = TM_ABI_VERSION + 1;
  EXPECT_EQ(kernel.run_raw(call).code, TM_ABI_MISMATCH);
  call.abi_version = TM_ABI_VERSION;
  call.num_buffers = 2;
  EXPECT_EQ(kernel.run_raw(call).code, TM_ABI_MISMATCH);
  call.num_buffers = 1;
  call.num_dims = 1;
  EXPECT_EQ(kernel.run_raw(call).code, TM_ABI_MISMATCH);
}

TEST(Kernels, WhatIsNotLoweredIsRefused) {
  const Buffer out = flat("out", DType::kFloat32, 8);
  const Var i = te::make_var("i");
  const Stmt store = te::make_store(out, {Expr(i)}, te::float_imm(DType::kFloat32, 1));
  const auto emit = [](const Buffer& buffer, const Stmt& body) {
    return codegen::make_llvm_backend()->emit(make_function("f", {buffer}, 1, body), host(), {});
  };
  EXPECT_THROW(emit(out, te::make_for(i, Expr(0), Expr(8), ForKind::kVectorized, store)), InternalError);
  EXPECT_THROW(emit(out, serial(i, Expr(8),
                                te::make_store(out, {Expr(i)},
                                               te::make(te::ExprOp::kExp, {te::load(out, {Expr(i)})})))),
               InternalError);
  const Var r = te::make_var("r");
  const Stmt nested = te::make_for(r, Expr(0), Expr(2), ForKind::kParallel,
                                   te::make_for(i, Expr(0), Expr(8), ForKind::kParallel, store));
  EXPECT_THROW(emit(out, nested), InternalError);
}

}  // namespace
}  // namespace tensormill::codegen_test
