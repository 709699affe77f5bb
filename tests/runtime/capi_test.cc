#include "runtime/capi/tensormill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/tensor.h"
#include "tests/runtime/test_package.h"

namespace tensormill {
namespace {

TEST(CApi, LoadsRunsAndReports) {
  const std::string archive = package::relu_add_archive().bytes();
  tm_runtime* runtime = nullptr;
  tm_package* loaded = nullptr;
  tm_executor* executor = nullptr;
  ASSERT_EQ(tm_runtime_create(2, &runtime), 0) << tm_last_error();
  ASSERT_EQ(tm_package_load_memory(archive.data(), archive.size(), &loaded), 0) << tm_last_error();
  EXPECT_THAT(tm_package_metadata(loaded), testing::HasSubstr("abi_version"));
  ASSERT_EQ(tm_executor_create(runtime, loaded, 0, &executor), 0) << tm_last_error();
  tm_package_destroy(loaded);
  EXPECT_STREQ(tm_executor_input_name(executor, 0), "x");
  EXPECT_STREQ(tm_executor_output_name(executor, 0), "y");
  EXPECT_EQ(tm_executor_output_name(executor, 1), nullptr);

  const std::vector<float> x(32, 2.0f);
  const int64_t shape[] = {4, 8};
  tm_tensor input{TM_FLOAT32, 2, shape, x.data(), 128};
  EXPECT_EQ(tm_executor_run(executor, 0, 0), TM_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(tm_last_error(), testing::HasSubstr("\"x\" is not set"));
  EXPECT_EQ(tm_executor_set_input(executor, "nope", &input), TM_ERR_INVALID_ARGUMENT);
  input.bytes = 127;
  EXPECT_EQ(tm_executor_set_input(executor, "x", &input), TM_ERR_INVALID_ARGUMENT);
  input.bytes = 128;
  ASSERT_EQ(tm_executor_set_input(executor, "input_0", &input), 0) << tm_last_error();
  ASSERT_EQ(tm_executor_run(executor, 2, 100000), 0) << tm_last_error();
  tm_tensor output{};
  ASSERT_EQ(tm_executor_get_output(executor, "y", &output), 0) << tm_last_error();
  EXPECT_EQ(output.rank, 2);
  EXPECT_EQ(output.shape[1], 8);
  EXPECT_EQ(static_cast<const float*>(output.data)[9], 12.0f);
  EXPECT_STREQ(tm_last_error(), "");
  tm_executor_destroy(executor);
  tm_runtime_destroy(runtime);
}

/// A runtime, a package and an executor of it.
struct Loaded {
  Loaded() {
    package::Archive made = package::relu_add_archive();
    made.metadata.inputs = {{"x", DType::kFloat32, {int64_t{4}, std::string("N")}}};
    made.metadata.outputs = {{"y", DType::kFloat32, {int64_t{4}, int64_t{8}}}};
    const std::string archive = made.bytes();
    EXPECT_EQ(tm_runtime_create(1, &runtime), 0) << tm_last_error();
    EXPECT_EQ(tm_package_load_memory(archive.data(), archive.size(), &package), 0) << tm_last_error();
    EXPECT_EQ(tm_executor_create(runtime, package, 0, &executor), 0) << tm_last_error();
  }
  ~Loaded() {
    tm_executor_destroy(executor);
    tm_package_destroy(package);
    tm_runtime_destroy(runtime);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  tm_runtime* runtime = nullptr;
  tm_package* package = nullptr;
  tm_executor* executor = nullptr;
};

TEST(CApi, SaysWhatThePortsAre) {
  const Loaded loaded;
  ASSERT_EQ(tm_package_input_count(loaded.package), 1);
  ASSERT_EQ(tm_package_output_count(loaded.package), 1);
  tm_port port{};
  ASSERT_EQ(tm_package_input(loaded.package, 0, &port), 0) << tm_last_error();
  EXPECT_STREQ(port.name, "x");
  EXPECT_EQ(port.dtype, TM_FLOAT32);
  ASSERT_EQ(port.rank, 2);
  EXPECT_EQ(port.shape[0], 4);
  EXPECT_EQ(port.shape[1], -1);
  EXPECT_EQ(port.dim_names[0], nullptr);
  EXPECT_STREQ(port.dim_names[1], "N");
  ASSERT_EQ(tm_package_output(loaded.package, 0, &port), 0) << tm_last_error();
  EXPECT_STREQ(port.name, "y");
  EXPECT_EQ(tm_package_input(loaded.package, 1, &port), TM_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(tm_last_error(), testing::HasSubstr("port 1 is not there, there are 1"));
  int32_t index = -1;
  EXPECT_EQ(tm_executor_input_index(loaded.executor, "input_0", &index), 0);
  EXPECT_EQ(index, 0);
  EXPECT_EQ(tm_executor_output_index(loaded.executor, "x", &index), TM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(tm_dtype_bytes(TM_FLOAT16), 2);
  EXPECT_EQ(tm_dtype_bytes(static_cast<tm_dtype>(99)), 0);
  EXPECT_STREQ(tm_error_name(TM_ERR_MEMORY), "TM_ERR_MEMORY");
  EXPECT_STREQ(tm_error_name(1), "");
  EXPECT_GE(tm_default_threads(), 1);
}

TEST(CApi, ReadsAndWritesTensorsWhereTheyLie) {
  const Loaded loaded;
  Tensor x = Tensor::from<float>({4, 8}, std::vector<float>(32, 2.0f));
  Tensor y(DType::kFloat32, {4, 8});
  const int64_t shape[] = {4, 8};
  const tm_tensor input{TM_FLOAT32, 2, shape, x.data(), 128};
  int32_t lent = 0;
  ASSERT_EQ(tm_executor_lend_input(loaded.executor, 0, &input, &lent), 0) << tm_last_error();
  EXPECT_EQ(lent, 1);
  ASSERT_EQ(tm_executor_output_bytes(loaded.executor, 0), 128);
  ASSERT_EQ(tm_executor_lend_output(loaded.executor, 0, y.data(), 128, &lent), 0) << tm_last_error();
  EXPECT_EQ(lent, 1);
  ASSERT_EQ(tm_executor_run(loaded.executor, 0, 0), 0) << tm_last_error();
  tm_tensor output{};
  ASSERT_EQ(tm_executor_get_output_at(loaded.executor, 0, &output), 0) << tm_last_error();
  EXPECT_EQ(output.data, y.data());
  EXPECT_EQ(y.values<float>()[9], 12.0f);
  x.values<float>()[9] = 3.0f;
  ASSERT_EQ(tm_executor_run(loaded.executor, 0, 0), 0) << tm_last_error();
  EXPECT_EQ(y.values<float>()[9], 13.0f);
  // A copy goes to the executor's own storage, and what was lent stays as it is.
  Tensor other = Tensor::from<float>({4, 8}, std::vector<float>(32, 5.0f));
  const tm_tensor copied{TM_FLOAT32, 2, shape, other.data(), 128};
  ASSERT_EQ(tm_executor_set_input_at(loaded.executor, 0, &copied), 0) << tm_last_error();
  EXPECT_EQ(x.values<float>()[0], 2.0f);
  ASSERT_EQ(tm_executor_lend_output(loaded.executor, 0, nullptr, 0, &lent), 0) << tm_last_error();
  EXPECT_EQ(lent, 0);
  ASSERT_EQ(tm_executor_run(loaded.executor, 0, 0), 0) << tm_last_error();
  ASSERT_EQ(tm_executor_get_output(loaded.executor, "y", &output), 0) << tm_last_error();
  EXPECT_NE(output.data, y.data());
  EXPECT_EQ(static_cast<const float*>(output.data)[9], 15.0f);
  EXPECT_EQ(y.values<float>()[9], 13.0f);
}

TEST(CApi, RefusesToLendWhatKernelsCannotRead) {
  const Loaded loaded;
  Tensor x = Tensor::from<float>({4, 9}, std::vector<float>(36, 2.0f));
  const int64_t shape[] = {4, 8}, wrong[] = {4, 9};
  const tm_tensor askew{TM_FLOAT32, 2, shape, x.values<float>().data() + 1, 128};
  EXPECT_EQ(tm_executor_lend_input(loaded.executor, 0, &askew, nullptr), TM_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(tm_last_error(), testing::HasSubstr("multiple of 64"));
  const tm_tensor wide{TM_FLOAT32, 2, wrong, x.data(), 144};
  EXPECT_EQ(tm_executor_lend_input(loaded.executor, 0, &wide, nullptr), TM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(tm_executor_lend_output(loaded.executor, 0, x.data(), 127, nullptr), TM_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(tm_last_error(), testing::HasSubstr("needs 128 bytes, 127 are given"));
  EXPECT_EQ(tm_executor_lend_output(loaded.executor, 1, x.data(), 128, nullptr), TM_ERR_INVALID_ARGUMENT);
}

TEST(CApi, ARunIsOneCall) {
  const Loaded loaded;
  Tensor x = Tensor::from<float>({4, 8}, std::vector<float>(32, 2.0f));
  Tensor y(DType::kFloat32, {4, 8});
  std::vector<float> copied(32);
  const int64_t shape[] = {4, 8};
  tm_argument input{{TM_FLOAT32, 2, shape, x.data(), 128}, nullptr, 0, 1};
  const auto call = [&](tm_argument& output) {
    return tm_executor_call(loaded.executor, &input, 1, &output, 1, 0, 0);
  };
  tm_argument in_place{{}, y.data(), 128, 1};
  ASSERT_EQ(call(in_place), 0) << tm_last_error();
  EXPECT_EQ(in_place.tensor.data, y.data());
  EXPECT_EQ(in_place.tensor.bytes, 128U);
  ASSERT_EQ(in_place.tensor.rank, 2);
  EXPECT_EQ(in_place.tensor.shape[1], 8);
  EXPECT_EQ(y.values<float>()[9], 12.0f);
  // What is lent stays so.
  x.values<float>()[9] = 3.0f;
  ASSERT_EQ(tm_executor_run(loaded.executor, 0, 0), 0) << tm_last_error();
  EXPECT_EQ(y.values<float>()[9], 13.0f);
  // A copy of an input leaves the one that was lent; a copy of an output may lie anywhere.
  const Tensor other = Tensor::from<float>({4, 8}, std::vector<float>(32, 5.0f));
  input = {{TM_FLOAT32, 2, shape, other.data(), 128}, nullptr, 0, 0};
  tm_argument anywhere{{}, copied.data(), 128, 0};
  ASSERT_EQ(call(anywhere), 0) << tm_last_error();
  EXPECT_EQ(anywhere.tensor.data, copied.data());
  EXPECT_EQ(copied[9], 15.0f);
  EXPECT_EQ(x.values<float>()[9], 3.0f);
  EXPECT_EQ(y.values<float>()[9], 13.0f);
  // Too little room, and no place: the executor's own storage, and nothing is written past the room.
  std::vector<float> narrow(32, -1.0f);
  tm_argument small{{}, narrow.data(), 124, 0}, none{};
  ASSERT_EQ(call(small), 0) << tm_last_error();
  ASSERT_EQ(call(none), 0) << tm_last_error();
  EXPECT_NE(small.tensor.data, narrow.data());
  EXPECT_EQ(small.tensor.data, none.tensor.data);
  EXPECT_EQ(static_cast<const float*>(none.tensor.data)[9], 15.0f);
  EXPECT_THAT(narrow, testing::Each(-1.0f));
}

TEST(CApi, ACallRefusesWhatItsPartsRefuse) {
  const Loaded loaded;
  Tensor x = Tensor::from<float>({4, 9}, std::vector<float>(36, 2.0f));
  const int64_t shape[] = {4, 8};
  tm_argument input{{TM_FLOAT32, 2, shape, x.data(), 128}, nullptr, 0, 0}, output{};
  EXPECT_EQ(tm_executor_call(loaded.executor, &input, 0, &output, 1, 0, 0), TM_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(tm_last_error(), testing::HasSubstr("0 inputs and 1 outputs are given, the model has 1 and 1"));
  EXPECT_EQ(tm_executor_call(loaded.executor, &input, 1, &output, 2, 0, 0), TM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(tm_executor_call(loaded.executor, &input, 1, nullptr, 1, 0, 0), TM_ERR_INVALID_ARGUMENT);
  output = {{}, x.values<float>().data() + 1, 128, 1};
  EXPECT_EQ(tm_executor_call(loaded.executor, &input, 1, &output, 1, 0, 0), TM_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(tm_last_error(), testing::HasSubstr("multiple of 64"));
  input.tensor.bytes = 127;
  EXPECT_EQ(tm_executor_call(loaded.executor, &input, 1, nullptr, 0, 0, 0), TM_ERR_INVALID_ARGUMENT);
  input.tensor.bytes = 128;
  EXPECT_EQ(tm_executor_call(loaded.executor, &input, 1, nullptr, 0, 0, 0), 0) << tm_last_error();
}

TEST(CApi, InputsAreWrittenIntoAndForgotten) {
  const Loaded loaded;
  void* data = nullptr;
  tm_tensor input{};
  ASSERT_EQ(tm_executor_input_buffer(loaded.executor, 0, &data, &input), 0) << tm_last_error();
  ASSERT_EQ(input.bytes, 128u);
  EXPECT_EQ(input.shape[1], 8);
  std::fill_n(static_cast<float*>(data), 32, 1.0f);
  ASSERT_EQ(tm_executor_set_profiling(loaded.executor, 1), 0);
  ASSERT_EQ(tm_executor_run(loaded.executor, 0, 0), 0) << tm_last_error();
  ASSERT_EQ(tm_executor_step_count(loaded.executor), 2);
  tm_step step{};
  ASSERT_EQ(tm_executor_step(loaded.executor, 1, &step), 0) << tm_last_error();
  EXPECT_STRNE(step.name, "");
  EXPECT_GE(step.duration_ns, 0);
  EXPECT_EQ(tm_executor_step(loaded.executor, 2, &step), TM_ERR_INVALID_ARGUMENT);
  ASSERT_EQ(tm_executor_clear_inputs(loaded.executor), 0);
  EXPECT_EQ(tm_executor_run(loaded.executor, 0, 0), TM_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(tm_last_error(), testing::HasSubstr("is not set"));
}

TEST(CApi, FailuresAreCodes) {
  tm_runtime* runtime = nullptr;
  tm_package* loaded = nullptr;
  EXPECT_EQ(tm_runtime_create(0, &runtime), TM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(tm_package_load("/no/such/file", &loaded), TM_ERR_NOT_FOUND);
  EXPECT_EQ(tm_package_load(nullptr, &loaded), TM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(tm_package_load_memory("x", 1, &loaded), TM_ERR_INVALID_PACKAGE);
  EXPECT_EQ(loaded, nullptr);
  tm_package_destroy(nullptr);
  tm_executor_destroy(nullptr);
}

}  // namespace
}  // namespace tensormill
