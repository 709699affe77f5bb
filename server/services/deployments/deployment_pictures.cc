// Pictures in place of the input of a deployment's package: …/classify and, where `preprocess` says so,
// KServe v2.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/image/image.h"
#include "server/services/deployments/deployment_service.h"

namespace tensormill::server {

namespace {

/// As the deployment says, else as the model's file does, else by the input's shape.
image::Preprocess preprocess_of(const std::optional<services::Preprocess>& said, const ValueNotes& notes,
                                const Shape& shape) {
  const services::Preprocess given = said.value_or(services::Preprocess());
  image::Preprocess options;
  options.resize = given.resize.value_or(0);
  options.crop_width = given.crop.value_or(0);
  options.crop_height = options.crop_width;
  options.mean = given.mean;
  options.std = given.std;
  if (given.scale) options.scale = *given.scale;
  options.nhwc = given.layout == "NHWC" || image::looks_nhwc(shape);
  options.bgr = given.color == "bgr";
  image::set_noted(options, given.scale.has_value(), notes);
  return options;
}

/// One picture's part of a batch, when requests share runs.
Shape input_shape(const services::TensorSpec& spec) {
  DimShape shape = spec.shape;
  if (!shape.empty() && std::holds_alternative<std::string>(shape.front())) shape.front() = Dim(int64_t{1});
  return concrete_shape(shape);
}

[[noreturn]] void throw_late() {
  throw Error(ErrorCode::kDeadlineExceeded, "the request's time was over before its pictures were decoded");
}

services::ClassifyResult best_classes(const services::DeploymentSpec& spec,
                                      const std::vector<std::string>& labels,
                                      const std::optional<Quantization>& quantization, int top,
                                      const services::RunResult& run) {
  const Tensor& given = run.outputs.front().second;
  const Tensor scores =
      quantization ? dequantize({given.dtype(), given.shape(), given.data()}, *quantization) : given;
  services::ClassifyResult result;
  result.timing = run.timing;
  result.version = spec.version;
  result.batch_rows = run.batch_rows;
  const bool logits = spec.output == "logits";
  for (const image::Score& score :
       image::top_k({scores.dtype(), scores.shape(), scores.data()}, top, logits)) {
    const auto index = static_cast<size_t>(score.index);
    const std::string label = index < labels.size() ? labels[index] : "";
    result.top.push_back({label, score.index, score.probability});
  }
  return result;
}

}  // namespace

services::NamedTensors DeploymentServiceImpl::decoded(const Version& version,
                                                      const services::PictureFiles& pictures,
                                                      const services::CallContext& context,
                                                      std::optional<TimePoint> deadline) {
  const services::TensorSpec& input = version.package->inputs().front();
  Shape shape = input_shape(input);
  const image::Preprocess preprocess = preprocess_of(version.spec.preprocess, version.picture, shape);
  // One thread decodes them all: however many there are, it is no more work than one may be.
  int64_t left = options_.max_pixels;
  const auto decode = [&](std::string_view text) {
    const std::span<const std::byte> file = std::as_bytes(std::span(text.data(), text.size()));
    const image::PictureHead head = image::read_head(file, options_.max_pixels);
    left -= head.width * head.height;
    if (left < 0) {
      throw Error(ErrorCode::kInvalidImage,
                  "the pictures up to this one have " + std::to_string(options_.max_pixels - left) +
                      " pixels together, limits.image_pixels is " + std::to_string(options_.max_pixels));
    }
    const auto bytes = static_cast<uint64_t>(head.bytes + image::tensor_bytes(head, preprocess, shape));
    const MemoryLoan decoding(context.memory.get(), bytes);
    return image::to_tensor(image::decode(file, options_.max_pixels), preprocess, input.dtype, shape,
                            input.quantization);
  };
  services::NamedTensors feed;
  if (pictures.files.size() == 1) {
    feed.emplace_back(pictures.input, decode(pictures.files.front()));
    if (context.memory) context.memory->add(feed.front().second.num_bytes());
    return feed;
  }
  const auto row = static_cast<size_t>(num_bytes(shape, input.dtype));
  if (context.memory) context.memory->take(row * pictures.files.size());
  shape.front() = static_cast<int64_t>(pictures.files.size());
  Tensor rows(input.dtype, shape);
  shape.front() = 1;
  auto* to = static_cast<std::byte*>(rows.data());
  for (size_t i = 0; i < pictures.files.size(); ++i) {
    if (context.cancelled.stop_requested()) throw Error(ErrorCode::kCancelled, "the client has gone");
    if (deadline && std::chrono::steady_clock::now() >= *deadline) throw_late();
    try {
      std::memcpy(to + i * row, decode(pictures.files[i]).data(), row);
    } catch (Error& error) {
      error.add_context("picture " + std::to_string(i));
      throw;
    }
  }
  feed.emplace_back(pictures.input, std::move(rows));
  return feed;
}

void DeploymentServiceImpl::check_pictures(const Version& version) {
  if (!version.spec.preprocess || !version.spec.preprocess->encoded) return;
  const auto refuse = [](const std::string& detail) {
    throw Error(ErrorCode::kInvalidArgument, "preprocess/encoded: " + detail,
                {{"/preprocess/encoded", detail}});
  };
  if (version.spec.sequence) refuse("the deployment has sequences, whose requests are tensors");
  const std::vector<services::TensorSpec>& inputs = version.package->inputs();
  if (inputs.size() != 1)
    refuse("the package has " + std::to_string(inputs.size()) +
           " inputs; a picture can be the input of one alone");
  const Shape shape = input_shape(inputs.front());
  try {
    image::tensor_bytes({1, 1, 3, 0}, preprocess_of(version.spec.preprocess, version.picture, shape), shape);
  } catch (const Error& error) {
    refuse(error.message());
  }
}

bool DeploymentServiceImpl::takes_pictures(const std::string& name, const std::string& version) {
  const EntryPtr entry = find(name);
  if (!entry) return false;
  const auto takes = [](const VersionPtr& one) {
    return one && one->package && one->spec.preprocess && one->spec.preprocess->encoded;
  };
  const std::map<int, VersionPtr> shared = version.empty() ? sharing(*entry) : std::map<int, VersionPtr>();
  return shared.empty()
             ? takes(find_version(*entry, version))
             : std::any_of(shared.begin(), shared.end(), [&](const auto& one) { return takes(one.second); });
}

void DeploymentServiceImpl::infer_pictures(const std::string& name, const std::string& version,
                                           services::PictureFiles pictures,
                                           const services::RunOptions& options,
                                           const services::CallContext& context,
                                           services::Done<services::RunResult> done) {
  const VersionPtr live = require_for(name, version, options);
  touch(*live);
  if (!live->spec.preprocess || !live->spec.preprocess->encoded)
    throw Error(ErrorCode::kInvalidTensor, "version " + live->spec.version + " of deployment \"" + name +
                                               "\" takes no files of pictures");
  const size_t count = pictures.files.size();
  if (count == 0 || count > static_cast<size_t>(live->spec.max_batch))
    throw Error(ErrorCode::kInvalidTensor, "input \"" + pictures.input + "\" has " + std::to_string(count) +
                                               " pictures, the deployment takes 1 to " +
                                               std::to_string(live->spec.max_batch));
  // Pictures are decoded for a request that will be taken, in memory that is there.
  std::shared_ptr<void> place = live->package->admit();
  const auto start = std::chrono::steady_clock::now();
  std::optional<TimePoint> deadline;
  if (options.timeout) deadline = start + *options.timeout;
  services::NamedTensors feed = decoded(*live, pictures, context, deadline);
  pictures = {};
  const auto spent = std::chrono::steady_clock::now() - start;
  services::RunOptions rest = options;
  if (rest.timeout) {
    *rest.timeout -= std::chrono::duration_cast<std::chrono::microseconds>(spent);
    if (rest.timeout->count() <= 0) throw_late();
  }
  const double decode_ms = std::chrono::duration<double, std::milli>(spent).count();
  place.reset();
  live->package->run(std::move(feed), rest, context,
                     [live, decode_ms, done = std::move(done)](services::Outcome<services::RunResult> run) {
                       done(services::Outcome<services::RunResult>::of([&] {
                         services::RunResult result = run.take();
                         result.timing.decode_ms = decode_ms;
                         result.version = live->spec.version;
                         result.labels = {live, &live->labels};
                         return result;
                       }));
                     });
}

void DeploymentServiceImpl::classify(const std::string& name, std::string_view image, int top,
                                     const services::CallContext& context,
                                     services::Done<services::ClassifyResult> done) {
  const VersionPtr live = require_next(name, "");
  touch(*live);
  const std::vector<services::TensorSpec>& inputs = live->package->inputs();
  if (inputs.size() != 1) {
    throw Error(ErrorCode::kInvalidTensor, "the package has " + std::to_string(inputs.size()) +
                                               " inputs; a picture can be the input of one alone");
  }
  // A picture is decoded for a request that will be taken, in memory that is there.
  std::shared_ptr<void> place = live->package->admit();
  const auto start = std::chrono::steady_clock::now();
  services::NamedTensors feed =
      decoded(*live, {inputs.front().name, {image}, nullptr}, context, std::nullopt);
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  place.reset();
  live->package->run(std::move(feed), {}, context,
                     [live, top, decode_ms = spent.count(),
                      done = std::move(done)](services::Outcome<services::RunResult> run) {
                       done(services::Outcome<services::ClassifyResult>::of([&] {
                         services::ClassifyResult result =
                             best_classes(live->spec, live->labels,
                                          live->package->outputs().front().quantization, top, run.take());
                         result.timing.decode_ms = decode_ms;
                         return result;
                       }));
                     });
}

}  // namespace tensormill::server
