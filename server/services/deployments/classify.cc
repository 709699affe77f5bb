#include <chrono>
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
  const std::span<const std::byte> file = std::as_bytes(std::span(image.data(), image.size()));
  const image::PictureHead head = image::read_head(file, options_.max_pixels);
  const Shape shape = input_shape(inputs.front());
  const image::Preprocess preprocess = preprocess_of(live->spec.preprocess, live->picture, shape);
  std::optional<Tensor> tensor;
  {
    const auto bytes = static_cast<uint64_t>(head.bytes + image::tensor_bytes(head, preprocess, shape));
    const MemoryLoan decoding(context.memory.get(), bytes);
    tensor = image::to_tensor(image::decode(file, options_.max_pixels), preprocess, inputs.front().dtype,
                              shape, inputs.front().quantization);
  }
  if (context.memory) context.memory->add(tensor->num_bytes());
  const std::chrono::duration<double, std::milli> decoded = std::chrono::steady_clock::now() - start;
  services::NamedTensors feed;
  feed.emplace_back(inputs.front().name, *std::move(tensor));
  place.reset();
  live->package->run(std::move(feed), {}, context,
                     [live, top, decoded = decoded.count(),
                      done = std::move(done)](services::Outcome<services::RunResult> run) {
                       done(services::Outcome<services::ClassifyResult>::of([&] {
                         services::ClassifyResult result =
                             best_classes(live->spec, live->labels,
                                          live->package->outputs().front().quantization, top, run.take());
                         result.timing.decode_ms = decoded;
                         return result;
                       }));
                     });
}

}  // namespace tensormill::server
