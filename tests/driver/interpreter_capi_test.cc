/// The C interface, of packages that have no kernels for some shapes or for all of them.
#include "compiler/capi/tensormill_interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "compiler/frontend/onnx/free_dims/shape_variants.h"
#include "compiler/ops/ops.h"
#include "compiler/package/writer.h"
#include "tests/driver/support.h"
#include "tests/frontend/model_bytes.h"

namespace tensormill {
namespace {

namespace onnx = frontend::onnx;
using onnx::field;

std::string node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output) {
  std::string bytes;
  for (const std::string& input : inputs) bytes += field(1, input);
  return field(1, bytes + field(2, output) + field(4, op));
}

/// A vector of one int64.
std::string number(const std::string& name, char value) {
  return field(5, field(1, 1) + field(2, 7) + field(8, name) + field(9, value + std::string(7, '\0')));
}

/// y: the largest of N numbers, N * N % 7 + 1 times; no formula of N says how often.
onnx::ModelSource times_model() {
  return onnx::source_of(
      node("Shape", {"x"}, "n") + node("Mul", {"n", "n"}, "nn") + node("Mod", {"nn", "seven"}, "less") +
      node("Add", {"less", "one"}, "times") + node("ReduceMax", {"x"}, "most") +
      node("Expand", {"most", "times"}, "y") + field(2, "g") + number("seven", 7) + number("one", 1) +
      field(11, onnx::tensor_value("x", 1, {"N"})) + field(12, onnx::tensor_value("y", 1, {"M"})));
}

std::string package_of(const onnx::ModelSource& source, const ShapeBuckets& buckets) {
  const driver::CompileResult result = driver::compile(
      onnx::import_for_package(source, {}, buckets, ops::standard_ops()), driver_test::host_options(3));
  const std::string path = testing::TempDir() + "capi-" + std::to_string(::getpid()) + ".tar";
  package::write_archive(
      path, {result.metadata_json, result.plan_json, result.code, &result.params, result.params_bytes});
  return path;
}

class InterpreterCApi : public testing::Test {
protected:
  ~InterpreterCApi() override {
    tm_executor_destroy(executor_);
    tm_package_destroy(package_);
    tm_runtime_destroy(runtime_);
  }

  void load(const std::string& path) {
    ASSERT_EQ(tm_runtime_create(2, &runtime_), 0) << tm_last_error();
    ASSERT_EQ(tm_package_load(path.c_str(), &package_), 0) << tm_last_error();
    std::filesystem::remove(path);
  }

  void renew_executor() {
    tm_executor_destroy(executor_);
    executor_ = nullptr;
    ASSERT_EQ(tm_executor_create(runtime_, package_, 0, &executor_), 0) << tm_last_error();
  }

  /// The first code that is not 0. x: 1, 2 ... n.
  int32_t run(int64_t n) {
    std::vector<float> x(static_cast<size_t>(n));
    std::iota(x.begin(), x.end(), 1.0f);
    const tm_tensor input{TM_FLOAT32, 1, &n, x.data(), x.size() * sizeof(float)};
    const int32_t code = tm_executor_set_input(executor_, "x", &input);
    return code != 0 ? code : tm_executor_run(executor_, 0, 0);
  }

  void expect_times(int64_t n) {
    ASSERT_EQ(run(n), 0) << tm_last_error();
    tm_tensor output{};
    ASSERT_EQ(tm_executor_get_output(executor_, "y", &output), 0) << tm_last_error();
    ASSERT_EQ(output.rank, 1);
    ASSERT_EQ(output.shape[0], n * n % 7 + 1);
    const std::span<const float> y(static_cast<const float*>(output.data), output.bytes / sizeof(float));
    EXPECT_THAT(y, testing::Each(static_cast<float>(n)));
    EXPECT_EQ(std::ssize(y), output.shape[0]);
  }

  tm_runtime* runtime_ = nullptr;
  tm_package* package_ = nullptr;
  tm_executor* executor_ = nullptr;
};

TEST_F(InterpreterCApi, ServesEveryShape) {
  load(package_of(times_model(), {}));
  ASSERT_EQ(tm_package_use_interpreter(package_), 0) << tm_last_error();
  renew_executor();
  const std::string name = tm_executor_input_name(executor_, 0);
  const char* const kept = tm_executor_input_name(executor_, 0);
  for (const int64_t n : {5, 3, 1, 40, 5}) expect_times(n);
  EXPECT_EQ(name, kept);
}

TEST_F(InterpreterCApi, ServesWhatIsBesideTheKernels) {
  load(package_of(times_model(), {{"N", {4, 6}}}));
  renew_executor();
  expect_times(4);
  EXPECT_EQ(run(5), TM_ERR_INVALID_ARGUMENT) << tm_last_error();
  expect_times(6);
  ASSERT_EQ(tm_package_use_interpreter(package_), 0) << tm_last_error();
  // Those made before stay as they are.
  EXPECT_EQ(run(5), TM_ERR_INVALID_ARGUMENT) << tm_last_error();
  renew_executor();
  for (const int64_t n : {4, 5, 6, 100, 4}) expect_times(n);
}

TEST_F(InterpreterCApi, ReportsWhatTheModelDoesNotTake) {
  EXPECT_EQ(tm_package_use_interpreter(nullptr), TM_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(tm_last_error(), testing::HasSubstr("package is null"));
  load(package_of(times_model(), {}));
  ASSERT_EQ(tm_package_use_interpreter(package_), 0) << tm_last_error();
  renew_executor();
  const int64_t shape[] = {2, 2};
  const float x[] = {1, 2, 3, 4};
  const tm_tensor matrix{TM_FLOAT32, 2, shape, x, sizeof x};
  EXPECT_EQ(tm_executor_set_input(executor_, "x", &matrix), TM_ERR_INVALID_ARGUMENT) << tm_last_error();
  expect_times(3);
}

}  // namespace
}  // namespace tensormill
