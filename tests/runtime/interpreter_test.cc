/// Shapes that no plan takes, and an interpreter for them.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "tests/expect_error.h"
#include "tests/runtime/rows_package.h"

namespace tensormill::package {
namespace {

const std::string kModel = "the model's bytes";

PlanSet set_with_model() {
  PlanSet set = plan_set();
  set.generic->plan.params_bytes = 128;
  for (GenericPlan& special : set.special) special.plan.params_bytes = 128;
  set.model = KeptModel{{{"", 0, static_cast<int64_t>(kModel.size())}}, R"({"outputs":[]})"};
  return set;
}

/// z of the larger number of rows: the first element of x plus that of y, plus a constant; no more rows than
/// nine. Of seven rows of x each run has a plan of its own, whose constant is as large as y says.
class AnyRows final : public Interpreter {
public:
  explicit AnyRows(int& bound) : bound_(bound) {}

  std::shared_ptr<const BoundPlan> bind(const std::vector<int64_t>& dims,
                                        const RunValues& values) const override {
    if (std::max(dims[0], dims[1]) > 9) throw Error(ErrorCode::kInvalidTensor, "more rows than nine");
    ++bound_;
    auto bound = std::make_shared<BoundPlan>();
    bound->dims = dims;
    bound->is_generic = bound->is_interpreted = true;
    bound->is_single_use = dims[0] == 7;
    if (bound->is_single_use && values.empty()) {
      bound->plan = plan_of_model(set_with_model(), dims, "y decides");
      bound->memory = plan_memory(bound->plan);
      bound->interpreted.resize(1);
      return bound;
    }
    const float constant = bound->is_single_use ? 100 * values.at("y").values<float>()[0] : 100;
    bound->plan = rows_plan(dims[0], dims[1], add_step("none", {kX, kY, kC, kZ}, {}));
    bound->plan.buffers.push_back({"c", BufferKind::kConstant, DType::kFloat32, {1}, 4, -1, 0, 0});
    bound->memory = plan_memory(bound->plan);
    bound->constants.emplace(kC, Tensor::from<float>({1}, std::vector<float>{constant}));
    const auto elements = static_cast<size_t>(std::max(dims[0], dims[1]) * 8);
    bound->interpreted = {[elements](std::span<void* const> buffers) {
      const auto at = [&](size_t i) { return static_cast<float*>(buffers[i]); };
      if (*at(0) < 0) throw Error(ErrorCode::kTensorData, "x is negative");
      std::fill_n(at(3), elements, *at(0) + *at(1) + *at(2));
    }};
    return bound;
  }

private:
  static constexpr int32_t kC = 3;
  int& bound_;
};

class Interpreted : public testing::Test {
protected:
  exec::GraphExecutor executor() {
    const std::shared_ptr<const Package> package =
        Package::from_archive_bytes(as_bytes(rows_archive(set_with_model(), kModel).bytes()));
    return exec::GraphExecutor(
        LoadedPackage::load(package, [this](const std::shared_ptr<const Package>& loaded) {
          EXPECT_TRUE(loaded->plans().model.has_value());
          return std::make_unique<AnyRows>(bound_);
        }));
  }

  /// The elements of z, which are all the same.
  float run(exec::GraphExecutor& executor, int64_t n, int64_t m) {
    set_rows(executor, "x", n, 2);
    set_rows(executor, "y", m, 30);
    executor.run(pool_);
    const Tensor z = executor.copy_output(0);
    EXPECT_EQ(z.shape(), (Shape{std::max(n, m), 8}));
    for (const float value : z.values<float>()) EXPECT_EQ(value, z.values<float>()[0]);
    return z.values<float>()[0];
  }

  parallel::ThreadPool pool_{2};
  int bound_ = 0;  ///< plans that the interpreter has made
};

TEST_F(Interpreted, ServesWhatNoPlanTakes) {
  exec::GraphExecutor own = executor();
  EXPECT_EQ(run(own, 4, 4), 2);
  EXPECT_FALSE(own.is_interpreted());
  EXPECT_EQ(run(own, 5, 4), 132);
  EXPECT_TRUE(own.is_interpreted());
  EXPECT_EQ(run(own, 5, 1), 32);
  EXPECT_FALSE(own.is_interpreted());
  // Plans are kept.
  EXPECT_EQ(run(own, 5, 4), 132);
  EXPECT_EQ(bound_, 1);
  EXPECT_EQ(run(own, 3, 9), 132);
  EXPECT_EQ(bound_, 2);
}

TEST_F(Interpreted, TakesThePlaceOfKernelsForGood) {
  exec::GraphExecutor own = executor();
  EXPECT_EQ(run(own, 4, 4), 2);
  EXPECT_TRUE(own.package().interpret(own.dims())->is_interpreted);
  EXPECT_EQ(run(own, 5, 4), 132);
  EXPECT_EQ(run(own, 4, 4), 132);
  EXPECT_TRUE(own.is_interpreted());
  EXPECT_EQ(bound_, 2);
}

TEST_F(Interpreted, ShapesAreSettledBeforeAllInputsAreThere) {
  exec::GraphExecutor own = executor();
  set_rows(own, "x", 5, 2);
  own.settle_shapes();
  EXPECT_EQ(own.dims(), (std::vector<int64_t>{5, 5}));
  set_rows(own, "y", 4, 30);
  own.settle_shapes();
  EXPECT_EQ(own.dims(), (std::vector<int64_t>{5, 4}));
  EXPECT_TRUE(own.is_interpreted());
  expect_error(ErrorCode::kInvalidTensor, "more rows than nine", [&] {
    set_rows(own, "y", 11, 30);
    own.settle_shapes();
  });
}

TEST_F(Interpreted, RunsThatHavePlansOfTheirOwn) {
  exec::GraphExecutor own = executor();
  for (const float y : {2.0f, 3.0f, 3.0f}) {
    set_rows(own, "x", 7, 2);
    set_rows(own, "y", 4, y);
    for (int i = 0; i < 2; ++i) {
      own.run(pool_);
      EXPECT_EQ(own.copy_output(0).values<float>()[0], 2 + y + 100 * y);
    }
  }
  EXPECT_EQ(run(own, 4, 4), 2);
  EXPECT_FALSE(own.is_interpreted());
  EXPECT_EQ(run(own, 7, 5), 30 + 2 + 3000);
}

TEST_F(Interpreted, SaysWhatTheModelDoesNotTake) {
  exec::GraphExecutor own = executor();
  expect_error(ErrorCode::kInvalidTensor, "more rows than nine", [&] { run(own, 3, 10); });
  EXPECT_EQ(run(own, 4, 4), 2);
}

TEST_F(Interpreted, AnInputIsMissing) {
  exec::GraphExecutor own = executor();
  set_rows(own, "x", 5, 2);
  expect_error(ErrorCode::kInvalidTensor, "input \"y\" is not set", [&] { own.run(pool_); });
  EXPECT_EQ(bound_, 0);
}

TEST_F(Interpreted, ErrorsOfStepsAreTheRuns) {
  exec::GraphExecutor own = executor();
  set_rows(own, "x", 5, -1);
  set_rows(own, "y", 4, 0);
  expect_error(ErrorCode::kTensorData, "x is negative", [&] { own.run(pool_); });
}

TEST_F(Interpreted, WithoutAnInterpreterTheyAreRefused) {
  exec::GraphExecutor own(load_archive(rows_archive(set_with_model(), kModel).bytes()));
  EXPECT_EQ(run(own, 4, 4), 2);
  expect_error(ErrorCode::kInvalidTensor, "beside the other inputs the model takes", [&] { run(own, 5, 4); });
}

TEST(KeptModel, IsWhereThePackageSays) {
  const std::string bytes = rows_archive(set_with_model(), kModel).bytes();
  const auto package = Package::from_archive_bytes(as_bytes(bytes));
  const KeptModel& model = package->plans().model.value();
  ASSERT_EQ(model.files.size(), 1u);
  EXPECT_EQ(model.files[0].bytes, static_cast<int64_t>(kModel.size()));
  EXPECT_EQ(model.options, R"({"outputs":[]})");
  EXPECT_EQ(plan_set_to_json(plan_set_from_json(plan_set_to_json(set_with_model()))),
            plan_set_to_json(set_with_model()));
}

TEST(KeptModel, OutsideOfTheWeightsItIsRefused) {
  const auto error_of = [](const KeptModel& model) {
    PlanSet set = set_with_model();
    set.model = model;
    return plan_set_to_json(set);
  };
  expect_error(ErrorCode::kInvalidPackage, "/model/files", [&] { error_of({}); });
  expect_error(ErrorCode::kInvalidPackage, "does not lie in mod.params", [&] {
    error_of({{{"", 8, 4}}, ""});
  });
  expect_error(ErrorCode::kInvalidPackage, "does not lie in mod.params", [&] {
    error_of({{{"", 64, 65}}, ""});
  });
  expect_error(ErrorCode::kInvalidPackage, "does not lie in mod.params", [&] {
    error_of({{{"", int64_t{1} << 62, 0}}, ""});
  });
  expect_error(ErrorCode::kInvalidPackage, "the same name", [&] {
    error_of({{{"a", 0, 4}, {"a", 0, 4}}, ""});
  });
}

}  // namespace
}  // namespace tensormill::package
