#include "runtime/capi/tensormill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
