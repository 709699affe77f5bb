/// Packages with free dims: a plan for each bucket, a generic plan for all other shapes; equal weights once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/op_def.h"
#include "runtime/base/error.h"
#include "runtime/exec/graph_executor.h"
#include "tests/driver/support.h"

namespace tensormill::driver_test::dynamic_test {
namespace {

using driver::CompileResult;
using testing::HasSubstr;

/// A padded strided convolution, pooling, a mean over the image, a product and a softmax.
ir::Graph net(int64_t n, int64_t h) {
  const std::string rows = std::to_string(n), in = std::to_string(h), out = std::to_string((h - 1) / 2 + 1);
  return parse("graph \"net\" (%x: f32[" + rows + ",2," + in + ",7]) {\n" +
               "  %w = const f32[4,2,1,1] {0.5, -1.0, 0.25, 2.0, 1.5, -0.5, 0.75, 1.0}\n"
               "  %m = const f32[4,3] {1.0, 2.0, 3.0, 4.0, 0.5, 0.25, -1.0, -2.0, 1.0, 0.0, 1.0, -3.0}\n"
               "  %c: f32[" +
               rows + ",4," + out + ",4] = conv(%x, %w) {strides: ints[2, 2]} from [\"conv\"]\n" +
               "  %r: f32[" + rows + ",4," + out + ",4] = relu(%c) from [\"relu\"]\n" + "  %mean: f32[" +
               rows + ",4] = reduce_mean(%r) {axes: ints[2, 3], keepdims: 0} from [\"mean\"]\n" +
               "  %y: f32[" + rows + ",3] = matmul(%mean, %m) from [\"fc\"]\n" + "  %s: f32[" + rows +
               ",3] = softmax(%y) {axis: 1} from [\"softmax\"]\n" + "  return %s, %r\n}\n");
}

constexpr const char* kSymbolic = R"(graph "net" dims(H: 33, N: 3) (%x: f32[N,2,H,7]) {
  %w = const f32[4,2,1,1] {0.5, -1.0, 0.25, 2.0, 1.5, -0.5, 0.75, 1.0}
  %m = const f32[4,3] {1.0, 2.0, 3.0, 4.0, 0.5, 0.25, -1.0, -2.0, 1.0, 0.0, 1.0, -3.0}
  %c: f32[N,4,(H + 1)//2,4] = conv(%x, %w) {strides: ints[2, 2]} from ["conv"]
  %r: f32[N,4,(H + 1)//2,4] = relu(%c) from ["relu"]
  %mean: f32[N,4] = reduce_mean(%r) {axes: ints[2, 3], keepdims: 0} from ["mean"]
  %y: f32[N,3] = matmul(%mean, %m) from ["fc"]
  %s: f32[N,3] = softmax(%y) {axis: 1} from ["softmax"]
  return %s, %r
}
)";

ir::Variants variants() {
  ir::Variants result;
  result.free_dims = {"N", "H"};
  result.input_shapes = {{"N", int64_t{2}, "H", int64_t{7}}};
  for (const int64_t n : {1, 4}) result.graphs.push_back({{n, 8}, net(n, 8)});
  result.symbolic = ir::SymbolicModel{parse(kSymbolic), {"N", "H"}};
  return result;
}

/// The package of both variants and the generic plan.
const CompileResult& compiled() {
  static const CompileResult result = driver::compile(variants(), host_options(3));
  return result;
}

Tensor ramp(const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_element(i, static_cast<double>(i % 11) - 5);
  return tensor;
}

void expect_reference(exec::GraphExecutor& executor, const ir::Graph& graph, const Tensor& input) {
  parallel::ThreadPool pool(2);
  executor.set_input(0, {input.dtype(), input.shape(), input.data()});
  executor.run(pool, {.threads = 2});
  const std::vector<Tensor> expected = ir::evaluate_reference(graph, {input});
  for (size_t k = 0; k < expected.size(); ++k) {
    const Tensor actual = executor.copy_output(k);
    ASSERT_EQ(actual.shape(), expected[k].shape());
    for (int64_t i = 0; i < actual.num_elements(); ++i)
      ASSERT_NEAR(actual.element_as_double(i), expected[k].element_as_double(i), 1e-4) << "element " << i;
  }
}

TEST(Dynamic, EveryShapeIsServed) {
  exec::GraphExecutor executor(load(compiled()), {.max_threads = 2});
  EXPECT_EQ(executor.dims(), (std::vector<int64_t>{1, 8}));
  for (const auto& [n, h] :
       {std::pair<int64_t, int64_t>{4, 8}, {3, 8}, {1, 1}, {1, 8}, {0, 9}, {9, 40}, {2, 17}, {4, 8}}) {
    expect_reference(executor, net(n, h), ramp({n, 2, h, 7}));
    EXPECT_EQ(executor.is_generic(), h != 8 || (n != 1 && n != 4)) << n << " " << h;
  }
}

TEST(Dynamic, MetadataNamesFreeDims) {
  const CompileResult& result = compiled();
  EXPECT_EQ(result.generic_refused, "");
  const package::Metadata metadata = package::metadata_from_json(result.metadata_json);
  EXPECT_EQ(to_string(metadata.inputs.at(0).shape), "[N,2,H,7]");
  EXPECT_EQ(to_string(metadata.outputs.at(0).shape), "[N,3]");
  EXPECT_EQ(to_string(metadata.outputs.at(1).shape), "[N,4,-1,4]");
}

TEST(Dynamic, TheSamePackageTwice) {
  EXPECT_EQ(package_text(compiled()), package_text(driver::compile(variants(), host_options(3))));
}

TEST(Dynamic, WeightsOfAllVariantsStandOnce) {
  ir::Variants one = variants();
  one.symbolic.reset();
  const CompileResult two_shapes = driver::compile(one, host_options(0));
  one.graphs.pop_back();
  EXPECT_EQ(two_shapes.params_bytes, driver::compile(one, host_options(0)).params_bytes);
}

TEST(Dynamic, ShapesThatTheModelDoesNotTake) {
  exec::GraphExecutor executor(load(compiled()));
  for (const Shape& shape : {Shape{1, 3, 8, 7}, Shape{1, 2, 8, 8}, Shape{1, 2, 8}, Shape{1, 2, 0, 7}}) {
    const Tensor input = ramp(shape);
    EXPECT_THROW(executor.set_input(0, {input.dtype(), input.shape(), input.data()}), Error)
        << to_string(shape);
  }
  EXPECT_EQ(executor.dims(), (std::vector<int64_t>{1, 8}));
}

TEST(Dynamic, MoreFreeDimsThanAPackageHas) {
  ir::Variants many = variants();
  for (int i = 0; i < 200; ++i) many.free_dims.push_back("d" + std::to_string(i));
  try {
    driver::compile(many, host_options(0));
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("202 free dims, a package has at most 128"));
  }
}

TEST(Dynamic, WithoutAGenericPlanOtherShapesAreRefused) {
  ir::Variants exact = variants();
  exact.symbolic.reset();
  exec::GraphExecutor executor(load(driver::compile(exact, host_options(3))));
  expect_reference(executor, net(4, 8), ramp({4, 2, 8, 7}));
  const Tensor input = ramp({3, 2, 8, 7});
  EXPECT_THROW(executor.set_input(0, {input.dtype(), input.shape(), input.data()}), Error);
}

/// The difference of all rows and all columns.
ir::Graph table(int64_t rows, int64_t columns) {
  const std::string r = std::to_string(rows), c = std::to_string(columns);
  return parse("graph \"table\" (%x: f32[" + r + ",1], %w: f32[1," + c + "]) {\n  %y: f32[" + r + "," + c +
               "] = sub(%x, %w) from [\"table\"]\n  return %y\n}\n");
}

/// Inputs come one after the other: what is refused beside the shapes of the run before waits for the others.
TEST(Dynamic, ShapesThatNoPlanTakesBesideThoseOfTheRunBefore) {
  ir::Variants two;
  two.free_dims = {"R", "C"};
  two.input_shapes = {{"R", int64_t{1}}, {int64_t{1}, "C"}};
  two.graphs.push_back({{3, 4}, table(3, 4)});
  two.graphs.push_back({{7, 9}, table(7, 9)});
  exec::GraphExecutor executor(load(driver::compile(two, host_options(0))));
  parallel::ThreadPool pool(1);
  const auto set = [&](size_t index, const Shape& shape) {
    const Tensor input = ramp(shape);
    executor.set_input(index, {input.dtype(), input.shape(), input.data()});
  };
  const auto expect_sizes = [&](int64_t rows, int64_t columns) {
    executor.run(pool);
    const Tensor found = executor.copy_output(0);
    ASSERT_EQ(found.shape(), (Shape{rows, columns}));
    const Tensor x = ramp({rows, 1}), w = ramp({1, columns});
    for (int64_t i = 0; i < found.num_elements(); ++i)
      EXPECT_EQ(found.element_as_double(i),
                x.element_as_double(i / columns) - w.element_as_double(i % columns));
  };
  set(0, {7, 1});
  set(1, {1, 9});
  expect_sizes(7, 9);
  set(1, {1, 4});
  set(0, {3, 1});
  expect_sizes(3, 4);
  set(0, {7, 1});
  EXPECT_THROW(executor.run(pool), Error);
  set(0, {3, 1});
  set(1, {1, 4});
  expect_sizes(3, 4);
  set(0, {7, 1});
  executor.clear_inputs();
  set(0, {7, 1});
  set(1, {1, 9});
  expect_sizes(7, 9);
}

}  // namespace
}  // namespace tensormill::driver_test::dynamic_test
