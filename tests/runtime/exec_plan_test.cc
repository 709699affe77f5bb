#include "runtime/package/exec_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/base/error.h"
#include "runtime/package/metadata.h"

namespace tensormill::package {
namespace {

/// x -> relu -> y, with a weight that is added in place and a view of the temporary.
ExecPlan small_plan() {
  ExecPlan plan;
  plan.buffers = {{"x", BufferKind::kInput, DType::kFloat32, {4, 8}, 128, -1, 0, 0},
                  {"w", BufferKind::kConstant, DType::kFloat32, {8}, 32, -1, 0, 64},
                  {"t", BufferKind::kTemp, DType::kFloat32, {4, 8}, 128, -1, 0, 0},
                  {"v", BufferKind::kView, DType::kFloat32, {2, 8}, 64, 2, 64, 0},
                  {"y", BufferKind::kOutput, DType::kFloat32, {2, 8}, 64, -1, 0, 0}};
  plan.params_bytes = 64 + 32 + 64;
  plan.inputs = {{"x", DType::kFloat32, {4, 8}, 0}};
  plan.outputs = {{"y", DType::kFloat32, {2, 8}, 4}};
  Step add{"add_0", StepKind::kKernel, "k_add", {0, 1, 2}, {2}, {7}, {{2, 0}}, 128,
           64,      {"node_a"},        "",      32,        9};
  Step copy{"copy_1", StepKind::kCopy, "", {3, 4}, {1}, {}, {}, 0, 0, {}, "", 0, 0};
  add.sharing = Sharing::kAll;
  plan.steps = {add, copy};
  return plan;
}

TEST(ExecPlan, JsonRoundTripsToTheSameBytes) {
  const std::string text = plan_to_json(small_plan());
  const ExecPlan parsed = plan_from_json(text);
  EXPECT_EQ(plan_to_json(parsed), text);
  EXPECT_EQ(parsed.steps[0].dims, std::vector<int64_t>{7});
  EXPECT_EQ(parsed.steps[0].sharing, Sharing::kAll);
  EXPECT_EQ(parsed.steps[1].sharing, Sharing::kLaunches);
  EXPECT_EQ(parsed.steps[0].in_place[0].output, 2);
  EXPECT_EQ(parsed.buffers[3].view_offset, 64);
  EXPECT_EQ(root_buffer(parsed, 3), 2);
}

struct Wrong {
  const char* what;
  std::function<void(ExecPlan&)> change;
  const char* message;
};

TEST(ExecPlan, EachRuleIsEnforcedAndNamed) {
  const Wrong cases[] = {
      {"abi", [](ExecPlan& p) { p.abi_version = 99; }, "kernel ABI is 99"},
      {"argument id", [](ExecPlan& p) { p.steps[0].args[1] = 9; }, "buffer 9 does not exist"},
      {"small bytes", [](ExecPlan& p) { p.buffers[2].bytes = 127; }, "its shape needs 128"},
      {"huge shape",
       [](ExecPlan& p) {
         p.buffers[2].shape = {1 << 30, 1 << 30, 1 << 30};
       },
       "more than"},
      {"view past end", [](ExecPlan& p) { p.buffers[3].view_offset = 128; }, "passes the end"},
      {"view alignment", [](ExecPlan& p) { p.buffers[3].view_offset = 4; }, "not a multiple"},
      {"view of view", [](ExecPlan& p) { p.buffers[3].view_of = 3; }, "a view of a view"},
      {"params end", [](ExecPlan& p) { p.params_bytes -= 1; }, "pass the end of mod.params"},
      {"params wrap", [](ExecPlan& p) { p.buffers[1].params_offset = INT64_MAX - 63; }, "pass the end"},
      {"symbol", [](ExecPlan& p) { p.steps[0].function = "a b"; }, "is not a symbol name"},
      {"duplicate step", [](ExecPlan& p) { p.steps[1].name = "add_0"; }, "used twice"},
      {"writes input", [](ExecPlan& p) { p.steps[0].outputs = {0}; }, "an input or a constant"},
      {"order", [](ExecPlan& p) { std::swap(p.steps[0], p.steps[1]); }, "read before it is written"},
      {"output unwritten", [](ExecPlan& p) { p.steps.pop_back(); }, "read before it is written"},
      {"copy size", [](ExecPlan& p) { p.steps[1].args[0] = 2; }, "a copy of 128 bytes to 64"},
      {"in place",
       [](ExecPlan& p) {
         p.steps[0].in_place = {{0, 1}};
       },
       "is not an output and an input"},
      {"overlap",
       [](ExecPlan& p) {
         p.steps[0].args = {2, 1, 2};
         p.steps[0].in_place = {};
       },
       "overlap"},
      {"workspace", [](ExecPlan& p) { p.steps[0].worker_workspace_bytes = -1; }, "workspace of -1"},
      {"port shape",
       [](ExecPlan& p) {
         p.outputs[0].shape = {2, 9};
       },
       "its buffer"},
      {"port free", [](ExecPlan& p) { p.inputs[0].shape[0] = "N"; }, "a dimension is free"},
      {"input kind", [](ExecPlan& p) { p.buffers[0].kind = BufferKind::kTemp; }, "not of kind input"},
      {"input twice",
       [](ExecPlan& p) {
         p.inputs.push_back({"z", DType::kFloat32, {4, 8}, 0});
       },
       "used twice"},
  };
  for (const Wrong& wrong : cases) {
    SCOPED_TRACE(wrong.what);
    ExecPlan plan = small_plan();
    wrong.change(plan);
    try {
      validate_plan(plan);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidPackage);
      EXPECT_THAT(error.message(), testing::HasSubstr(wrong.message));
    }
  }
}

TEST(ExecPlan, PartsOfAConcatAreWrittenThroughViews) {
  ExecPlan plan = small_plan();
  // Both halves of t are written by copies; only then may t be read.
  plan.buffers.push_back({"low", BufferKind::kView, DType::kFloat32, {2, 8}, 64, 2, 0, 0});
  plan.buffers.push_back({"src", BufferKind::kConstant, DType::kFloat32, {2, 8}, 64, -1, 0, 0});
  plan.buffers.push_back({"sum", BufferKind::kTemp, DType::kFloat32, {4, 8}, 128, -1, 0, 0});
  plan.params_bytes = 256;
  Step low{"low", StepKind::kCopy, "", {6, 5}, {1}, {}, {}, 0, 0, {}, "", 0, 0};
  Step high{"high", StepKind::kCopy, "", {6, 3}, {1}, {}, {}, 0, 0, {}, "", 0, 0};
  Step use{"use", StepKind::kCopy, "", {2, 7}, {1}, {}, {}, 0, 0, {}, "", 0, 0};
  plan.steps = {high, low, use, plan.steps[1]};
  EXPECT_NO_THROW(validate_plan(plan));
  plan.steps = {high, use, low, plan.steps[3]};
  EXPECT_THROW(validate_plan(plan), Error);
}

TEST(ExecPlan, JsonRefusesUnknownMembersAndWrongTypes) {
  const std::string text = plan_to_json(small_plan());
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string result = text;
    const size_t at = result.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return result.replace(at, from.size(), to);
  };
  EXPECT_THROW(plan_from_json(changed("\"params_bytes\"", "\"surprise\":1,\"params_bytes\"")), Error);
  EXPECT_THROW(plan_from_json(changed("\"params_bytes\":160", "\"params_bytes\":\"160\"")), Error);
  EXPECT_THROW(plan_from_json(changed("\"params_bytes\":160", "\"params_bytes\":1e99")), Error);
  EXPECT_THROW(plan_from_json(changed("\"kind\":\"temp\"", "\"kind\":\"tmp\"")), Error);
  EXPECT_THROW(plan_from_json(text + "x"), Error);
}

Metadata small_metadata() {
  Metadata metadata;
  metadata.compiler_version = "0.1.0";
  metadata.target = "llvm -mcpu=core-avx2";
  metadata.triple = "x86_64-unknown-linux-gnu";
  metadata.cpu_features = {"avx2", "fma"};
  metadata.inputs = {{"x", DType::kFloat32, {Dim(std::string("N")), Dim(int64_t{3})}}};
  metadata.outputs = {{"y", DType::kInt64, {}}};
  metadata.options = {{"desired_layout", "NCHW"}};
  metadata.passes = {"fuse"};
  metadata.verify = "sample";
  metadata.kernels = {{"k", std::string(64, '0'), "conv2d", "", "no records given", "full", {"conv1"}}};
  metadata.members = {{"mod.so", {Digest::of(std::string_view("a")), 1}},
                      {"mod.json", {Digest::of(std::string_view("b")), 2}},
                      {"mod.params", {Digest::of(std::string_view("c")), 3}}};
  return metadata;
}

TEST(Metadata, CanonicalTextRoundTrips) {
  const std::string text = metadata_to_json(small_metadata());
  const Metadata parsed = metadata_from_json(text);
  EXPECT_EQ(metadata_to_json(parsed), text);
  EXPECT_EQ(to_string(parsed.inputs[0].shape), "[N,3]");
  EXPECT_EQ(parsed.members.at("mod.json").size, 2);
  EXPECT_THROW(metadata_from_json(" " + text), Error) << "not canonical: another id for the same facts";
}

TEST(Metadata, MissingMemberIsNamed) {
  Metadata metadata = small_metadata();
  metadata.members.erase("mod.so");
  try {
    metadata_from_json(metadata_to_json(metadata));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidPackage);
    EXPECT_THAT(error.message(), testing::HasSubstr("mod.so"));
  }
}

}  // namespace
}  // namespace tensormill::package
