// Host steps that make of each string another one, or a number.
#include "runtime/host_ops/text_changes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/host_ops/fingerprint.h"

namespace tensormill::host_ops {
namespace {

TensorView view_of(const Tensor& tensor) { return {tensor.dtype(), tensor.shape(), tensor.data()}; }

/// The strings that a step makes, `width` bytes each.
std::vector<std::string> changed(HostFunction step, const std::vector<Tensor>& operands, int64_t width,
                                 const std::string& attributes) {
  std::vector<TensorView> inputs;
  for (const Tensor& operand : operands) inputs.push_back(view_of(operand));
  Tensor out = Tensor::zeros(kString, {operands[0].shape()[0], width});
  std::vector<void*> outputs{out.data()};
  std::vector<size_t> bytes{out.num_bytes()};
  step({inputs, outputs, bytes, attributes});
  const Texts texts(view_of(out));
  std::vector<std::string> all;
  for (int64_t i = 0; i < texts.count(); ++i) all.emplace_back(texts[i]);
  return all;
}

Tensor strings(const std::vector<std::string>& texts) {
  return text_tensor({static_cast<int64_t>(texts.size())}, texts);
}

Tensor numbers(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>({static_cast<int64_t>(values.size())}, values);
}

TEST(TextChanges, CountWhatARewriteNames) {
  const RewriteParts none = parts_of_rewrite("ab"), groups = parts_of_rewrite(R"( \1-\0)"),
                     escaped = parts_of_rewrite(R"(\\1)");
  EXPECT_EQ(none.groups, 0);
  EXPECT_EQ(none.bytes, 2);
  EXPECT_EQ(groups.groups, 2);
  EXPECT_EQ(groups.bytes, 2);
  EXPECT_EQ(escaped.groups, 0);
  EXPECT_EQ(escaped.bytes, 2);
}

TEST(TextChanges, ReplaceAllOrTheFirst) {
  const Tensor x = strings({"banana", "", "öäö"});
  EXPECT_EQ(changed(&replace_text, {x}, 32, R"({"pattern":"an","rewrite":"<\\0>","all":1})"),
            (std::vector<std::string>{"b<an><an>a", "", "öäö"}));
  EXPECT_EQ(changed(&replace_text, {x}, 32, R"({"pattern":"a","rewrite":"","all":0})"),
            (std::vector<std::string>{"bnana", "", "öäö"}));
  EXPECT_EQ(changed(&replace_text, {x}, 32, R"({"pattern":"","rewrite":"-","all":1})"),
            (std::vector<std::string>{"-b-a-n-a-n-a-", "-", "-ö-ä-ö-"}));
}

TEST(TextChanges, RefuseARewriteOfOtherGroups) {
  const Tensor x = strings({"a"});
  try {
    changed(&replace_text, {x}, 32, R"json({"pattern":"(a)","rewrite":"\\2","all":1})json");
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidModel) << error.message();
  }
}

TEST(TextChanges, TakeParts) {
  const Tensor x = strings({"abcd", "日本語"});
  EXPECT_EQ(changed(&part_of_text, {x, numbers({-3, 1}), numbers({2, 9})}, 16, R"({"letters":1})"),
            (std::vector<std::string>{"bc", "本語"}));
  EXPECT_EQ(changed(&part_of_text, {x, numbers({4, 3}), numbers({2, 3})}, 16, R"({"letters":0})"),
            (std::vector<std::string>{"", "本"}));
}

TEST(TextChanges, RefusePartsThatAreOutsideOrCutALetter) {
  const Tensor x = strings({"日本"});
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{7, 1}, {-9, 1}, {1, 3}}) {
    SCOPED_TRACE(first);
    try {
      changed(&part_of_text, {x, numbers({first}), numbers({count})}, 16, R"({"letters":0})");
      FAIL() << "taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTensorData) << error.message();
      EXPECT_NE(error.message().find("string 0 of 6 bytes"), std::string::npos) << error.message();
    }
  }
}

// What TensorFlow's to_hash_bucket_fast gives for 2^60 buckets.
TEST(TextChanges, HashAsFarmHashDoes) {
  constexpr uint64_t kMask = (uint64_t{1} << 60) - 1;
  EXPECT_EQ(fingerprint64("") & kMask, 784024612572774479u);
  EXPECT_EQ(fingerprint64(std::string(1, 'q')) & kMask, 750899833180936525u);
  EXPECT_EQ(fingerprint64(std::string(3, 'q')) & kMask, 7426343881355896u);
  EXPECT_EQ(fingerprint64(std::string(4, 'q')) & kMask, 865951741521477866u);
  EXPECT_EQ(fingerprint64(std::string(7, 'q')) & kMask, 989772006841666379u);
  EXPECT_EQ(fingerprint64(std::string(8, 'q')) & kMask, 408458499629581238u);
  EXPECT_EQ(fingerprint64(std::string(16, 'q')) & kMask, 375873685829899336u);
  EXPECT_EQ(fingerprint64(std::string(17, 'q')) & kMask, 425773382729862857u);
  EXPECT_EQ(fingerprint64(std::string(32, 'q')) & kMask, 788079708439840833u);
  EXPECT_EQ(fingerprint64(std::string(33, 'q')) & kMask, 337133943010535267u);
  EXPECT_EQ(fingerprint64(std::string(64, 'q')) & kMask, 921759474893120631u);
  EXPECT_EQ(fingerprint64(std::string(65, 'q')) & kMask, 775115284615191337u);
  EXPECT_EQ(fingerprint64(std::string(128, 'q')) & kMask, 743647671857563274u);
  EXPECT_EQ(fingerprint64(std::string(129, 'q')) & kMask, 154208312781622945u);
  EXPECT_EQ(fingerprint64(std::string(200, 'q')) & kMask, 78498500977052785u);
}

}  // namespace
}  // namespace tensormill::host_ops
