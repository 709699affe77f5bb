// Files of pictures as the rows of one request, over a real package of four rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/services/services.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "tests/outcome.h"
#include "tests/server/store.h"

namespace tensormill::server {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Pictures : public testing::Test {
protected:
  Pictures() : server_(bounded(settings_for(folder_.path()))) {
    services::DeploymentSpec spec;
    spec.package = compile_digits(server_, 4);
    spec.version = "1";
    spec.max_batch = 4;
    spec.preprocess.emplace().encoded = true;
    server_.services().deployments->put("d", spec, {});
  }
  static config::Settings bounded(config::Settings settings) {
    settings.max_image_pixels = 200;
    return settings;
  }
  services::RunResult infer(const std::vector<std::string>& files, const services::RunOptions& options = {},
                            const services::CallContext& context = {}) {
    services::PictureFiles pictures{"image", {files.begin(), files.end()}, nullptr};
    return result_of<services::RunResult>([&](const auto& done) {
      server_.services().deployments->infer_pictures("d", "", pictures, options, context, done);
    });
  }

  storage::TemporaryFolder folder_;
  Server server_;
  const std::string picture_ =
      read_file(TM_SOURCE_DIR "/tests/fuzz/corpus/picture/gray.png");  ///< of 7 times 9 pixels
};

TEST_F(Pictures, AllOfARequestTogetherHaveNoMorePixelsThanOneMay) {
  EXPECT_EQ(infer({picture_, picture_, picture_}).outputs.at(0).second.shape().at(0), 3);
  std::string refusal;
  try {
    infer({picture_, picture_, picture_, picture_});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidImage);
    refusal = error.what();
  }
  EXPECT_THAT(refusal,
              AllOf(HasSubstr("picture 3"), HasSubstr("252 pixels"), HasSubstr("limits.image_pixels")));
  EXPECT_EQ(infer({picture_}).outputs.size(), 1U);
}

TEST_F(Pictures, NobodyDecodesForWhoHasGoneOrWhoseTimeIsOver) {
  const std::vector<std::string> broken = {"no picture", "no picture"};
  EXPECT_ERROR(infer(broken), ErrorCode::kUnsupportedMediaType);
  services::RunOptions late;
  late.timeout = std::chrono::microseconds(0);
  EXPECT_ERROR(infer(broken, late), ErrorCode::kDeadlineExceeded);
  std::stop_source gone;
  gone.request_stop();
  services::CallContext context;
  context.cancelled = gone.get_token();
  EXPECT_ERROR(infer(broken, {}, context), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace tensormill::server
