// The form in which a package's model is read again to be its reference.
#include "server/services/jobs/verify_runner.h"

#include <gtest/gtest.h>

namespace tensormill::server {
namespace {

package::Metadata compiled(std::map<std::string, std::string> options) {
  package::Metadata metadata;
  metadata.model_digest = "sha256:m";
  metadata.target = "llvm";
  metadata.options = std::move(options);
  metadata.outputs.resize(1);
  metadata.outputs[0].name = "y";
  return metadata;
}

TEST(ReferenceForm, HasWhatChangesWhatTheModelComputes) {
  const Json form = reference_form(compiled({{"input_values", R"({"n":3})"},
                                             {"outputs", "y"},
                                             {"signature", "serve"},
                                             {"quantized", "exact"},
                                             {"opt_level", "3"}}),
                                   {{"format", "tflite"}}, {{"x", {2, 3}}});
  EXPECT_EQ(form.at("model_format"), "tflite");
  EXPECT_EQ(form.at("input_shapes"), Json({{"x", {2, 3}}}));
  EXPECT_EQ(form.at("input_values"), Json({{"n", 3}}));
  EXPECT_EQ(form.at("outputs"), Json({"y"}));
  EXPECT_EQ(form.at("signature"), "serve");
  EXPECT_EQ(form.at("quantized"), "exact");
  EXPECT_EQ(form.at("opt_level"), 0) << "the reference is not optimized";
}

TEST(ReferenceForm, IsTheModelsOwnWhereNothingWasChosen) {
  const Json form = reference_form(compiled({}), {{"format", "onnx"}}, {});
  EXPECT_EQ(form.at("outputs"), Json::array());
  EXPECT_EQ(form.at("signature"), "");
  EXPECT_EQ(form.at("quantized"), "");
  EXPECT_EQ(form.at("input_values"), Json::object());
}

}  // namespace
}  // namespace tensormill::server
