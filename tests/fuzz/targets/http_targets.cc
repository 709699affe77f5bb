#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "api/endpoints/shared_regions.h"
#include "api/endpoints/v2_reader.h"
#include "api/http/conditional.h"
#include "api/http/headers.h"
#include "api/http/message.h"
#include "api/http/target.h"
#include "api/schema/requests.h"
#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/percent.h"
#include "runtime/base/text.h"
#include "runtime/image/image.h"
#include "server/transport/framing.h"
#include "tests/fuzz/targets.h"

namespace tensormill::fuzz {
namespace {

/// The fields of a head that check_raw_head has let pass.
http::Headers fields_of(std::string_view head) {
  http::Headers headers;
  head.remove_prefix(std::min(head.size(), head.find("\r\n") + 2));
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos)
      headers.add(line.substr(0, colon), http::trim(line.substr(colon + 1)));
    head.remove_prefix(line.size() + 2);
  }
  return headers;
}

/// A thousand bytes that a client may ask a part of.
class SomeContent final : public http::Content {
public:
  uint64_t size() const override { return 1000; }
  size_t read_at(uint64_t offset, std::span<std::byte> buffer) override {
    TM_CHECK(offset <= size(), "a read past the content");
    const size_t count = std::min<size_t>(buffer.size(), size() - offset);
    std::memset(buffer.data(), 0, count);
    return count;
  }
};

/// The answer's head must be made of whole lines, whatever the request asked for.
void check_head(const http::Response& response) {
  for (const bool http_1_1 : {true, false}) {
    const std::string head = transport::serialize_head(response, http_1_1, false);
    TM_CHECK(head.ends_with("\r\n\r\n") && head.find("\r\n\r\n") == head.size() - 4,
             "a broken head:\n" + head);
  }
}

void check_range(const http::Request& request) {
  const http::Response answer =
      http::serve_content(request, std::make_shared<SomeContent>(), "tag", "text/plain");
  if (const auto* body = std::get_if<http::ContentBody>(&answer.body)) {
    TM_CHECK(body->offset <= 1000 && body->length <= 1000 - body->offset, "a range outside the content");
  }
  check_head(answer);
}

class Slices : public JsonText {
public:
  Slices(std::string_view text, size_t size) : text_(text), size_(size) {}
  std::string_view next() override {
    piece_ = std::string(text_.substr(0, size_));
    text_.remove_prefix(piece_.size());
    return piece_;
  }

private:
  std::string_view text_;
  size_t size_;
  std::string piece_;
};

http::TensorBody body_of(std::string_view raw) {
  http::TensorBody body;
  body.owner = allocate_aligned(raw.size());
  body.data = static_cast<std::byte*>(body.owner.get());
  body.size = raw.size();
  if (!raw.empty()) std::memcpy(body.data, raw.data(), raw.size());
  return body;
}

/// Whether `text` can stand in an answer.
bool fits_json(const std::string& text) {
  try {
    canonical_json(text);
    return true;
  } catch (const Error&) {
    return false;
  }
}

void read_head(std::string_view bytes) {
  transport::check_raw_head(bytes);
  const http::Headers headers = fields_of(bytes);
  attempt([&] { transport::check_framing(headers, true); });
  attempt([&] { transport::check_framing(headers, false); });
  const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return;
  http::Request request;
  request.headers = headers;
  const std::string_view rest = line.substr(space + 1);
  http::parse_target(rest.substr(0, rest.find(' ')), request);
  for (const std::string& segment : request.segments) {
    TM_CHECK(fits_json(segment), "a segment that is not UTF-8");
    TM_CHECK(http::percent_decode(percent_encode(segment), false) == segment, "a segment changed");
  }
  attempt([&] { request.query_int("limit", 1, 1, 100); });
  attempt([&] { request.query_flag("wait"); });
  attempt([&] { check_range(request); });
  request.accepts("application/json", "application/x-npz");
  request.content_type();
}

/// An object of shared memory that requests may name as "r". Nothing is left of it behind the process.
class OneRegion {
public:
  OneRegion() {
    const std::string key = "/tensormill-fuzz-" + std::to_string(::getpid());
    const FileDescriptor file(::shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    TM_CHECK(file.valid() && ::ftruncate(file.get(), kBytes) == 0, "there is no shared memory");
    regions_.add({"r", key, 0, kBytes});
    ::shm_unlink(key.c_str());
  }
  const endpoints::SharedRegions& regions() const { return regions_; }
  void fill(std::string_view bytes) const {
    bytes = bytes.substr(0, kBytes);
    regions_.write({"r", 0, bytes.size()}, std::as_bytes(std::span(bytes)));
  }

private:
  static constexpr size_t kBytes = 64;
  endpoints::SharedRegions regions_;
};

/// What is read, or the error's code.
std::string outcome_of(const std::function<endpoints::V2Request()>& read) {
  try {
    const endpoints::V2Request request = read();
    std::string outcome;
    for (const auto& [name, tensor] : request.inputs) {
      outcome += name + to_string(tensor.shape());
      outcome.append(static_cast<const char*>(tensor.data()), tensor.num_bytes());
    }
    if (request.pictures)
      for (const std::string_view file : request.pictures->files) outcome += file;
    return outcome;
  } catch (const Error& error) {
    check_error(error);
    return std::string(error_code_info(error.code()).name);
  }
}

}  // namespace

void fuzz_http_head(std::string_view bytes) {
  try {
    read_head(bytes);
  } catch (const Error& error) {
    check_head(transport::refusal(error, "id"));
    throw;
  }
}

void fuzz_http_body(std::string_view bytes) {
  attempt([&] { schema::read_target(bytes); });
  attempt([&] { schema::read_job_request(bytes); });
  attempt([&] { schema::read_deployment_spec(bytes); });
  attempt([&] { schema::read_version_weights(bytes); });
  attempt([&] { schema::read_worker_offer(bytes); });
  attempt([&] { schema::read_worker_beat(bytes); });
  attempt([&] { schema::read_worker_leave(bytes); });
  attempt([&] { schema::read_worker_kernels(bytes); });
  attempt([&] { schema::read_key_spec(bytes); });
}

/// The request in front of a zero byte, and what is binary behind it, which also stands in shared memory.
void fuzz_v2_request(std::string_view bytes) {
  static const OneRegion shared;
  const size_t end = std::min(bytes.size(), bytes.find('\0'));
  const std::string_view json = bytes.substr(0, end);
  const std::string_view raw = bytes.substr(std::min(bytes.size(), end + 1));
  constexpr uint64_t kTensorBytes = uint64_t{1} << 20, kElements = uint64_t{1} << 18;
  shared.fill(raw);
  endpoints::V2Limits plain{kTensorBytes, [] { return kElements; }}, with_shared = plain;
  with_shared.regions = &shared.regions();
  endpoints::V2Limits with_pictures = with_shared;
  with_pictures.takes_pictures = [] { return true; };
  for (const endpoints::V2Limits* limits : {&plain, &with_shared, &with_pictures}) {
    std::vector<std::string> seen;
    for (const size_t size : {json.size() + 1, size_t{1}, size_t{5}}) {
      seen.push_back(outcome_of([&] {
        Slices slices(json, size);
        return endpoints::read_v2_request(slices, *limits, [&] { return body_of(raw); });
      }));
    }
    TM_CHECK(seen[0] == seen[1] && seen[0] == seen[2], "pieces change a request");
  }
  for (const DType dtype : {DType::kInt16, kString}) {
    const services::TensorSpec spec{"x", dtype, {std::string("N"), Dim(int64_t{2})}};
    for (const bool takes_pictures : {false, true})
      outcome_of([&] { return endpoints::read_v2_raw_request(body_of(raw), {spec}, takes_pictures); });
  }
}

void fuzz_preprocess(std::string_view bytes) {
  const std::string spec =
      R"({"package":")" + Digest().text() + R"(","preprocess":)" + std::string(bytes) + "}";
  const auto given = schema::read_deployment_spec(spec).preprocess;
  if (!given) return;
  image::Preprocess options;
  options.resize = given->resize.value_or(0);
  options.crop_width = options.crop_height = given->crop.value_or(0);
  options.mean = given->mean;
  options.std = given->std;
  options.scale = given->scale.value_or(options.scale);
  options.nhwc = given->layout == "NHWC";
  options.bgr = given->color == "bgr";
  const image::Image picture{4, 3, 3, std::vector<uint8_t>(36, 128)};
  if (options.resize > 64 || options.crop_width > 64 || options.crop_height > 64) return;
  attempt([&] {
    const Shape shape = options.nhwc ? Shape{1, 8, 8, 3} : Shape{1, 3, 8, 8};
    TM_CHECK(image::looks_nhwc(shape) == options.nhwc, "channels at the other end");
    TM_CHECK(image::tensor_bytes({4, 3, 3, 36}, options, shape) > 0, "a tensor without bytes");
    image::Preprocess noted = options;
    image::set_noted(noted, given->scale.has_value(), {{127.5}, {127.5}, {}});
    const Quantization quantization{1.0 / 64, 3};
    for (const DType dtype : {DType::kInt8, DType::kUInt8, DType::kInt64})
      attempt([&] { image::to_tensor(picture, noted, dtype, shape, quantization); });
    attempt([&] { image::to_tensor(picture, noted, DType::kInt64, shape); });
    attempt([&] {
      image::to_tensor({400, 1, 3, std::vector<uint8_t>(1200, 1)}, noted, DType::kFloat32, shape);
    });
  });
  attempt([&] {
    // The scores may be anything that scale, mean and std make of a picture.
    const Tensor scores = image::to_tensor(picture, options, DType::kFloat32, {1, 3, 8, 8});
    const TensorView view{scores.dtype(), scores.shape(), scores.data()};
    for (const bool softmax : {false, true}) {
      TM_CHECK(image::top_k(view, 5, softmax).size() == 5, "fewer scores than were asked for");
    }
  });
  attempt([&] { image::to_tensor(picture, options, DType::kUInt8, {1, 8, 8, 3}); });
  attempt([&] { image::to_tensor(picture, options, DType::kUInt8, {1, 1, 8, 8}); });
}

}  // namespace tensormill::fuzz
