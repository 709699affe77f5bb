// Deployments with sequences: what the model is told, what is kept between requests, and for how long.
#include "server/services/deployments/sequenced_package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/text.h"
#include "tests/expect_error.h"
#include "tests/outcome.h"

// Of its own: files of this folder are compiled together.
namespace tensormill::server::sequences_test {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

const DimShape kRows = {Dim(std::string()), Dim(int64_t{1})};

/// Adds what it is sent to its state; keeps what it was given, and answers when it is told to.
class Adder final : public HostedPackage {
public:
  const std::vector<services::TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<services::TensorSpec>& outputs() const override { return outputs_; }
  void run(services::NamedTensors inputs, const services::RunOptions&, const services::CallContext&,
           services::Done<services::RunResult> done) override {
    given.clear();
    for (const auto& [name, tensor] : inputs) given.emplace(name, tensor);
    answer = [this, done = std::move(done)](bool fails) {
      using Outcome = services::Outcome<services::RunResult>;
      done(Outcome::of([&] {
        if (fails) throw Error(ErrorCode::kTensorData, "the model refuses it");
        const Tensor& x = given.at("x");
        Tensor sum = Tensor::zeros(DType::kInt32, x.shape());
        for (int64_t i = 0; i < x.num_elements(); ++i)
          sum.set_element_int(i, x.element_as_int(i) + given.at("state").element_as_int(i));
        services::RunResult result;
        result.outputs = {{"next", sum}, {"y", sum.clone()}};
        return result;
      }));
    };
    if (is_quick_to_answer) std::exchange(answer, nullptr)(false);
  }
  services::InferStatistics statistics() const override { return {}; }
  bool is_quick() const override { return true; }

  std::map<std::string, Tensor> given;
  std::function<void(bool fails)> answer;
  bool is_quick_to_answer = true;

private:
  std::vector<services::TensorSpec> inputs_ = {
      {"x", DType::kInt32, kRows},     {"begins", DType::kBool, kRows},  {"ends", DType::kFloat32, kRows},
      {"there", DType::kInt32, kRows}, {"which", DType::kUInt64, kRows}, {"state", DType::kInt32, kRows}};
  std::vector<services::TensorSpec> outputs_ = {{"y", DType::kInt32, kRows}, {"next", DType::kInt32, kRows}};
};

services::SequenceSpec spec_of() {
  services::SequenceSpec spec;
  spec.start = "begins";
  spec.end = "ends";
  spec.ready = "there";
  spec.id = "which";
  spec.states = {{"state", "next"}};
  spec.idle_s = 10;
  spec.max_sequences = 2;
  return spec;
}

std::vector<std::string> names_of(const std::vector<services::TensorSpec>& specs) {
  std::vector<std::string> names;
  for (const services::TensorSpec& spec : specs) names.push_back(spec.name);
  return names;
}

class Sequences : public testing::Test {
protected:
  services::RunResult run(int value, services::SequencePart part, int64_t rows = 1) {
    services::RunOptions options;
    options.sequence = std::move(part);
    Tensor x = Tensor::zeros(DType::kInt32, {rows, 1});
    x.set_element_int(0, value);
    return result_of<services::RunResult>([&](const auto& done) {
      package_.run({{"x", x}}, options, caller_, done);
    });
  }
  /// What the model answers.
  int64_t send(int value, const std::string& id, bool start = false, bool end = false) {
    const services::RunResult result = run(value, {id, true, start, end});
    EXPECT_EQ(result.outputs.size(), 1U) << "the state is nobody's";
    EXPECT_EQ(result.outputs.front().first, "y");
    return result.outputs.front().second.element_as_int(0);
  }
  void unknown(const std::string& id) {
    expect_error(ErrorCode::kInvalidArgument, "sequence " + id + " is not known here", [&] { send(1, id); });
  }

  std::shared_ptr<Adder> adder_ = std::make_shared<Adder>();
  SequencedPackage::Clock::time_point now_{};
  services::CallContext caller_;
  SequencedPackage package_{adder_, spec_of(), 4, [this] { return now_; }};
};

TEST_F(Sequences, WhatARequestLeavesTheNextOneHas) {
  EXPECT_THAT(names_of(package_.inputs()), ElementsAre("x"));
  EXPECT_THAT(names_of(package_.outputs()), ElementsAre("y"));
  EXPECT_EQ(send(5, "1", true), 5);
  EXPECT_EQ(send(100, "2", true), 100);
  EXPECT_EQ(send(6, "1"), 11);
  EXPECT_EQ(send(7, "2"), 107);
  EXPECT_EQ(send(1, "1", false, true), 12);
  unknown("1");
  EXPECT_EQ(send(1, "2", true), 1) << "one that begins again forgets what it was";
  unknown("3");
  EXPECT_EQ(run(1, {"2", false, true, false}).outputs.size(), 1U) << "a string is another sequence";
}

TEST_F(Sequences, TheModelIsToldWhereTheRequestStands) {
  run(5, {"7", true, true, false}, 3);
  EXPECT_EQ(adder_->given.at("begins").shape(), Shape({3, 1}));
  const auto told = [&] {
    std::vector<int64_t> values;
    for (const char* name : {"begins", "ends", "there", "which"})
      values.push_back(adder_->given.at(name).element_as_int(adder_->given.at(name).num_elements() - 1));
    return values;
  };
  EXPECT_THAT(told(), ElementsAre(1, 0, 1, 7));
  run(5, {"7", true, false, false}, 3);
  EXPECT_THAT(told(), ElementsAre(0, 0, 1, 7));
  expect_error(ErrorCode::kInvalidTensor, "as many rows", [&] { run(5, {"7", true, false, false}, 2); });
  run(5, {"7", true, false, true}, 3);
  EXPECT_THAT(told(), ElementsAre(0, 1, 1, 7));
  expect_error(ErrorCode::kInvalidArgument, "sequence_id", [&] { run(5, {"seven", false, true, false}); });
}

TEST_F(Sequences, WhatACallerBeganNoOtherContinues) {
  EXPECT_EQ(send(5, "1", true), 5);
  caller_.submitter = "other";
  unknown("1");
  EXPECT_EQ(send(7, "1", true), 7);
  caller_.submitter = "";
  EXPECT_EQ(send(1, "1"), 6);
}

TEST_F(Sequences, ARequestThatFailsLeavesItAsItWas) {
  EXPECT_EQ(send(5, "1", true), 5);
  adder_->is_quick_to_answer = false;
  services::RunOptions options;
  options.sequence = {"1", true, false, true};
  bool failed = false;
  package_.run({{"x", Tensor::zeros(DType::kInt32, {1, 1})}}, options, {}, [&](auto outcome) {
    expect_error(ErrorCode::kTensorData, "refuses", [&] { outcome.take(); });
    failed = true;
  });
  expect_error(ErrorCode::kConflict, "not answered yet", [&] { send(1, "1"); });
  expect_error(ErrorCode::kConflict, "not answered yet", [&] { send(1, "1", true); });
  now_ += seconds(100);
  std::exchange(adder_->answer, nullptr)(true);
  EXPECT_TRUE(failed);
  adder_->is_quick_to_answer = true;
  EXPECT_EQ(send(1, "1"), 6) << "one that runs is not idle, and its end was none";
}

TEST_F(Sequences, WhatIsIdleIsForgottenAndThereAreNoMoreThanTheDeploymentSays) {
  send(1, "1", true);
  now_ += seconds(6);
  send(1, "2", true);
  expect_error(ErrorCode::kUnavailable, "2 sequences", [&] { send(1, "3", true); });
  now_ += seconds(6);
  EXPECT_EQ(send(1, "3", true), 1);
  unknown("1");
  EXPECT_EQ(send(1, "2"), 2);
}

TEST_F(Sequences, RequestsSayWhichAndSendNoneOfItsInputs) {
  const Tensor x = Tensor::zeros(DType::kInt32, {1, 1});
  const auto ignore = [](const auto&) {};
  expect_error(ErrorCode::kInvalidArgument, "sequence_id is missing", [&] {
    package_.run({{"x", x}}, {}, {}, ignore);
  });
  services::RunOptions options;
  options.sequence = {"1", true, true, false};
  expect_error(ErrorCode::kInvalidTensor, "\"state\" is the sequence's own", [&] {
    package_.run({{"x", x}, {"state", x}}, options, {}, ignore);
  });
  expect_error(ErrorCode::kInvalidTensor, "extents of inputs that are missing",
               [&] { package_.run({}, options, {}, ignore); });
  EXPECT_EQ(send(1, "1", true), 1) << "what was refused holds nobody up";
}

TEST_F(Sequences, WhatThePackageDoesNotHaveIsRefused) {
  const auto refused = [&](const std::string& text,
                           const std::function<void(services::SequenceSpec&)>& change,
                           ErrorCode code = ErrorCode::kInvalidArgument) {
    services::SequenceSpec spec = spec_of();
    change(spec);
    expect_error(code, text, [&] { SequencedPackage(adder_, spec, 4); });
  };
  refused("sequence/start: there is no \"none\"", [](auto& spec) { spec.start = "none"; });
  refused("sequence/end: there is no \"begins\", or something else", [](auto& spec) { spec.end = "begins"; });
  refused("sequence/states/none", [](auto& spec) { spec.states["none"] = "y"; });
  refused("another dtype", [](auto& spec) {
    spec.end = "";
    spec.states["ends"] = "y";
  });
  refused(
      "sequences have more than", [](auto& spec) { spec.max_sequences = 1'000'000'000; },
      ErrorCode::kMemoryBudget);
  expect_error(ErrorCode::kInvalidArgument, "has a free dim, so that",
               [&] { SequencedPackage(adder_, spec_of(), 1); });
}

}  // namespace
}  // namespace tensormill::server::sequences_test
