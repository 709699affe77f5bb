// KServe v2: request bytes and the answer's bytes, written from the protocol's text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api/fakes.h"

namespace tensormill::testing_api {
namespace {

using testing::HasSubstr;

constexpr std::string_view kLength = "Inference-Header-Content-Length: ";

/// A body whose client goes once it has sent `until` bytes: what comes after is there, for nobody.
class LeavingBody final : public http::BodySource {
public:
  LeavingBody(const std::string& bytes, size_t until, std::stop_source client)
      : inner_(bytes), size_(bytes.size()), until_(until), client_(std::move(client)) {}
  size_t read(std::span<std::byte> buffer) override {
    const size_t count = inner_.read(buffer);
    taken_ += count;
    largest_ = std::max(largest_, count);
    if (taken_ >= until_) client_.request_stop();
    return count;
  }
  std::optional<uint64_t> length() const override { return size_; }
  size_t taken() const { return taken_; }
  size_t largest() const { return largest_; }

private:
  http::BytesBody inner_;
  const size_t size_;
  const size_t until_;
  std::stop_source client_;
  size_t taken_ = 0;
  size_t largest_ = 0;
};

/// A deployment "m" with one input x of [1,3] floats that it echoes.
class V2 : public ApiTest {
protected:
  V2() {
    deployments_.hold_three_numbers();
    deployments_.labels = {"zero", "one"};
  }
  services::DeploymentVersion& version() { return deployments_.deployment.versions.at(0); }
  Answer infer(const std::string& json, const std::string& raw = "", std::vector<std::string> fields = {}) {
    if (!raw.empty()) fields.push_back(std::string(kLength) + std::to_string(json.size()));
    return send("POST", "/v2/models/m/infer", fields, json + raw);
  }
  void refused(const Answer& answer, int status = 400) {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_TRUE(answer.json().at("error").is_string());
  }

  /// 1.0, -2.0, 0.5 as little-endian floats.
  const std::string raw_{"\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x00\x3f", 12};
  const std::string binary_input_ =
      R"({"name":"x","shape":[1,3],"datatype":"FP32","parameters":{"binary_data_size":12}})";
  const std::string json_input_ = R"({"name":"x","shape":[1,3],"datatype":"FP32","data":[1.0,-2.0,0.5]})";
};

TEST_F(V2, JsonInJsonOut) {
  const Answer answer = infer(R"({"id":"a1","inputs":[)" + json_input_ + "]}");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Content-Type"), "application/json");
  EXPECT_EQ(answer.body, R"({"id":"a1","model_name":"m","model_version":"7","outputs":[)"
                         R"({"data":[1.0,-2.0,0.5],"datatype":"FP32","name":"x","shape":[1,3]}]})");
}

TEST_F(V2, BinaryInBinaryOut) {
  const Answer answer =
      infer("{\"inputs\":[" + binary_input_ + R"(],"parameters":{"binary_data_output":true}})", raw_);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("Content-Type"), "application/octet-stream");
  const std::string head =
      R"({"model_name":"m","model_version":"7","outputs":[)"
      R"({"datatype":"FP32","name":"x","parameters":{"binary_data_size":12},"shape":[1,3]}]})";
  EXPECT_EQ(answer.header("Inference-Header-Content-Length"), std::to_string(head.size()));
  EXPECT_EQ(answer.body, head + raw_);
}

TEST_F(V2, TensorsStayAlignedWhereTheirBytesArrive) {
  const std::string second =
      R"({"name":"y","shape":[1,3],"datatype":"FP32","parameters":{"binary_data_size":12}})";
  for (size_t spaces = 0; spaces < 70; spaces += 7) {
    const std::string json = std::string(spaces, ' ') + "{\"inputs\":[" + binary_input_ + "," + second + "]}";
    const Answer answer = infer(json, raw_ + raw_);
    ASSERT_EQ(answer.status, 200) << answer.body;
    ASSERT_EQ(deployments_.inputs.size(), 2u);
    for (const auto& [name, tensor] : deployments_.inputs) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % kTensorAlignment, 0u) << name;
      EXPECT_EQ(tensor.element_as_double(1), -2.0) << name;
    }
  }
}

TEST_F(V2, ABodyThatIsOneTensor) {
  const Answer answer = send("POST", "/v2/models/m/infer",
                             {std::string(kLength) + "0", "Content-Type: application/octet-stream"}, raw_);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(answer.body.ends_with(raw_));
  refused(send("POST", "/v2/models/m/infer", {std::string(kLength) + "0"}, raw_ + "x"));
  version().inputs.push_back(version().inputs.front());
  refused(send("POST", "/v2/models/m/infer", {std::string(kLength) + "0"}, raw_));
}

TEST_F(V2, HeaderLengthsAreChecked) {
  const std::string json = "{\"inputs\":[" + binary_input_ + "]}";
  for (const std::string length : {"99999", "-1", "x", "", "18446744073709551617", "3"}) {
    refused(send("POST", "/v2/models/m/infer", {std::string(kLength) + length}, json + raw_));
  }
  refused(infer(json, raw_ + "x"));
  refused(infer(json, raw_.substr(1)));
}

TEST_F(V2, AClientThatGoesWhileItsJsonIsReadEndsTheReading) {
  constexpr int64_t kElements = 300'000;
  version().inputs = {{"x", DType::kFloat32, {Dim(int64_t{1}), Dim(kElements)}}};
  deployments_.deployment.inputs = version().inputs;
  std::string json = R"({"inputs":[{"name":"x","shape":[1,300000],"datatype":"FP32","data":[1.0)";
  for (int64_t i = 1; i < kElements; ++i) json += ",1.0";
  json += "]}]}";
  const auto post = [&](size_t until, std::shared_ptr<LeavingBody>& body) {
    const std::stop_source client;
    http::Request request;
    request.method = "POST";
    request.target = "/v2/models/m/infer";
    request.headers.add("Host", "localhost:8080");
    body = std::make_shared<LeavingBody>(json, until, client);
    request.body = body;
    request.cancelled = client.get_token();
    return api_->handle(request);
  };
  std::shared_ptr<LeavingBody> body;
  EXPECT_EQ(post(json.size() + 1, body).status, 200) << "of a client that stays";
  EXPECT_EQ(body->taken(), json.size());
  deployments_.inputs.clear();
  const http::Response answer = post(json.size() / 2, body);
  EXPECT_EQ(answer.status, 409);
  EXPECT_THAT(std::get<std::string>(answer.body), HasSubstr("the client has gone"));
  EXPECT_LT(body->taken(), json.size() / 2 + body->largest()) << "nothing is read once it went";
  EXPECT_TRUE(deployments_.inputs.empty()) << "and nothing is run";
}

TEST_F(V2, StringsAreBytes) {
  const std::string json =
      R"({"inputs":[{"name":"x","shape":[2,1],"datatype":"BYTES","data":[["pear"],["\u20ac"]]}]})";
  const Answer answer = infer(json);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json().at("outputs").at(0).dump(),
            R"({"data":["pear","€"],"datatype":"BYTES","name":"x","shape":[2,1]})");
  const auto head = [](size_t bytes) {
    return R"({"inputs":[{"name":"x","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":)" +
           std::to_string(bytes) + R"(}}],"parameters":{"binary_data_output":true}})";
  };
  const std::string raw("\x04\x00\x00\x00pear\x00\x00\x00\x00", 12);
  const Answer binary = infer(head(12), raw);
  EXPECT_EQ(binary.status, 200) << binary.body;
  EXPECT_TRUE(binary.body.ends_with(raw));
  EXPECT_NE(binary.body.find("\"binary_data_size\":12"), std::string::npos);
  // A length past the end, no UTF-8, one string for two, one string that is much longer than the others.
  refused(infer(head(8), raw.substr(0, 7) + "\xff"));
  refused(infer(head(10), std::string("\x04\x00\x00\x00pea\xff\x00\x00", 10)));
  refused(infer(head(8), std::string("\x04\x00\x00\x00pear", 8)));
}

TEST_F(V2, ClassificationNamesTheBest) {
  const std::string wish = R"(],"outputs":[{"name":"x","parameters":{"classification":2}}]})";
  const Answer answer = infer("{\"inputs\":[" + json_input_ + wish);
  EXPECT_EQ(answer.status, 200) << answer.body;
  const Json output = answer.json().at("outputs").at(0);
  EXPECT_EQ(output.dump(),
            R"({"data":["1.000000:0:zero","0.500000:2"],"datatype":"BYTES","name":"x","shape":[2]})");
  const std::string binary =
      R"(],"outputs":[{"name":"x","parameters":{"classification":1,"binary_data":true}}]})";
  const Answer raw = infer("{\"inputs\":[" + json_input_ + binary);
  EXPECT_TRUE(
      raw.body.ends_with(std::string("\x0f\x00\x00\x00"
                                     "1.000000:0:zero",
                                     19)));
  EXPECT_NE(raw.body.find("\"binary_data_size\":19"), std::string::npos);
}

TEST_F(V2, EachRowOfABatchIsClassified) {
  version().max_batch = 4;
  const Answer answer = infer(R"({"inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","data":[1,2,4,3]}],)"
                              R"("outputs":[{"name":"x","parameters":{"classification":1}}]})");
  const Json output = answer.json().at("outputs").at(0);
  EXPECT_EQ(output.at("data").dump(), R"(["2.000000:1:one","4.000000:0:zero"])");
  EXPECT_EQ(output.at("shape").dump(), "[2,1]");
}

TEST_F(V2, ParametersAreUnderstoodOrRefused) {
  const auto with = [&](const std::string& parameters) {
    return infer("{\"inputs\":[" + json_input_ + "],\"parameters\":{" + parameters + "}}");
  };
  EXPECT_EQ(with(R"("priority":2,"timeout":1500,"my_own":"x")").status, 200);
  EXPECT_EQ(deployments_.options.priority, 2);
  EXPECT_EQ(deployments_.options.timeout, std::chrono::microseconds(1500));
  EXPECT_EQ(with(R"("priority":0,"timeout":0,"sequence_id":0)").status, 200);
  EXPECT_EQ(deployments_.options.priority, services::kDefaultPriority);
  EXPECT_EQ(deployments_.options.timeout, std::nullopt);
  EXPECT_EQ(deployments_.options.sequence, std::nullopt);
  refused(with(R"("sequence_id":-1)"));
  refused(with(R"("sequence_start":true)"));
  refused(with(R"("sequence_id":5,"sequence_end":"yes")"));
  refused(with(R"("sequence_id":")" + std::string(129, 'x') + "\""));
  refused(with(R"("triton_enable_empty_final_response":true)"));
  refused(with(R"("priority":"high")"));
  refused(with(R"("own":{"a":1})"));
}

TEST_F(V2, ARequestSaysWhichOfWhichSequenceItIs) {
  const auto part = [&](const std::string& parameters) {
    EXPECT_EQ(infer("{\"inputs\":[" + json_input_ + "],\"parameters\":{" + parameters + "}}").status, 200);
    return deployments_.options.sequence.value();
  };
  const services::SequencePart first = part(R"("sequence_id":7,"sequence_start":true)");
  EXPECT_TRUE(first.id == "7" && first.is_number && first.start && !first.end);
  const services::SequencePart last = part(R"("sequence_id":"7","sequence_end":true)");
  EXPECT_TRUE(last.id == "7" && !last.is_number && !last.start && last.end);
}

TEST_F(V2, WhatIsHostileIsRefused) {
  const std::vector<std::string> inputs = {
      R"({"name":"x","shape":[-1,3],"datatype":"FP32","data":[1,2,3]})",
      R"({"name":"x","shape":[4611686018427387904,4],"datatype":"FP32","data":[1]})",
      R"({"name":"x","shape":[18446744073709551615],"datatype":"FP32","data":[1]})",
      R"({"name":"x","shape":[1073741824],"datatype":"FP64","data":[1]})",
      R"({"name":"x","shape":[1.5],"datatype":"FP32","data":[1]})",
      R"({"name":"x","shape":[3],"datatype":"FP32","data":[1,2,3],"parameters":{"binary_data_size":12}})",
      R"({"name":"x","shape":[3],"datatype":"FP32"})",
      R"({"name":"x","shape":[3],"datatype":"FP32","parameters":{"binary_data_size":-1}})",
      R"({"name":"x","shape":[3],"datatype":"FP32","parameters":{"shared_memory_region":"r"}})"};
  for (const std::string& input : inputs) refused(infer("{\"inputs\":[" + input + "]}"));
  for (const char* data : {R"(["a"])", R"(["a",1])", R"(["a","b","c"])", R"(["a","b\u0000"])"}) {
    refused(infer(R"({"inputs":[{"name":"x","shape":[2],"datatype":"BYTES","data":)" + std::string(data) +
                  "}]}"));
  }
  refused(infer("{\"inputs\":" + std::string(200, '[') + std::string(200, ']') + "}"));
  refused(infer("{\"inputs\":[" + json_input_ + R"(],"outputs":[{"name":"x"},{"name":"x"}]})"));
  refused(infer("{\"inputs\":[" + json_input_ + "],\"inputs\":[]}"));
}

TEST_F(V2, ServerAndModelMetadata) {
  const Json server = get("/v2").json();
  EXPECT_EQ(server.at("name"), "tensormill");
  EXPECT_EQ(server.at("extensions").dump(),
            R"(["binary_tensor_data","classification","model_configuration","model_repository",)"
            R"("parameters","schedule_policy","statistics"])");
  const Answer model = get("/v2/models/m/versions/7");
  EXPECT_EQ(model.json().at("inputs").dump(), R"([{"datatype":"FP32","name":"x","shape":[1,3]}])");
  EXPECT_EQ(get("/v2/models/m/versions/8").status, 404);
  EXPECT_EQ(send("HEAD", "/v2/models/m").status, 200);
}

TEST_F(V2, Configuration) {
  const Json fixed = get("/v2/models/m/config").json();
  EXPECT_EQ(fixed.at("max_batch_size"), 0);
  EXPECT_EQ(fixed.at("input").at(0).at("dims").dump(), "[1,3]");
  EXPECT_EQ(fixed.at("input").at(0).at("data_type"), "TYPE_FP32");
  EXPECT_FALSE(fixed.contains("dynamic_batching"));
  version().max_batch = 4;
  version().max_delay_us = 300;
  version().inputs.front().shape.front() = Dim(std::string());
  const Json batched = get("/v2/models/m/versions/7/config").json();
  EXPECT_EQ(batched.at("max_batch_size"), 4);
  EXPECT_EQ(batched.at("input").at(0).at("dims").dump(), "[3]");
  EXPECT_EQ(batched.at("dynamic_batching").at("max_queue_delay_microseconds"), 300);
  EXPECT_EQ(get("/v2/models/m").json().at("inputs").at(0).at("shape").dump(), "[-1,3]");
  EXPECT_EQ(batched.at("model_transaction_policy").at("decoupled"), false);
  refused(get("/v2/models/m/versions/8/config"), 404);
  version().state = services::DeploymentState::kLoading;
  refused(get("/v2/models/m/config"), 503);
}

TEST_F(V2, Statistics) {
  deployments_.counted.version = "7";
  deployments_.counted.inference_count = 5;
  deployments_.counted.execution_count = 2;
  deployments_.counted.success.add(1500);
  deployments_.counted.batches[4].compute.add(900);
  for (const char* path : {"/v2/models/stats", "/v2/models/m/stats", "/v2/models/m/versions/7/stats"}) {
    const Json stats = get(path).json().at("model_stats").at(0);
    EXPECT_EQ(stats.at("name"), "m");
    EXPECT_EQ(stats.at("inference_count"), 5);
    EXPECT_EQ(stats.at("inference_stats").at("success").dump(), R"({"count":1,"ns":1500})");
    EXPECT_EQ(stats.at("batch_stats").at(0).at("batch_size"), 4);
    EXPECT_EQ(stats.at("batch_stats").at(0).at("compute_infer").at("ns"), 900);
  }
  refused(get("/v2/models/n/stats"), 404);
}

TEST_F(V2, RepositoryControl) {
  const auto post = [&](const std::string& path, const std::string& body = "") {
    return send("POST", "/v2/repository/" + path, {}, body);
  };
  EXPECT_EQ(post("index").json().dump(), R"([{"name":"m","reason":"","state":"READY","version":"7"}])");
  EXPECT_EQ(post("models/m/unload", R"({"parameters":{"unload_dependents":false}})").status, 200);
  EXPECT_EQ(post("index").json().at(0).at("state"), "UNAVAILABLE");
  EXPECT_EQ(post("index").json().at(0).at("reason"), "unloaded");
  EXPECT_EQ(post("index", R"({"ready":true})").json().dump(), "[]");
  EXPECT_EQ(get("/v2/models/m/ready").status, 400);
  EXPECT_EQ(post("models/m/load", "{}").status, 200);
  EXPECT_EQ(get("/v2/models/m/ready").status, 200);
  refused(post("models/n/load"), 404);
  EXPECT_THAT(post("models/n/load").body, HasSubstr("failed to load 'n'"));
  EXPECT_THAT(get("/v2/models/n").body, HasSubstr("Request for unknown model: 'n' is not found"));
  refused(post("models/m/load", R"({"parameters":{"file:1/model.so":"AA"}})"), 501);
  refused(post("index", "[]"));
  refused(post("index", R"({"ready":1})"));
  refused(post("index", "{"));
}

TEST_F(V2, ALoadMayHaveAConfigurationOfItsOwn) {
  deployments_.put_spec.package = "sha256:" + std::string(64, '0');
  deployments_.put_spec.version = "7";
  deployments_.put_spec.max_queue = 9;
  const auto load = [&](const std::string& config) {
    return send("POST", "/v2/repository/models/m/load", {},
                Json{{"parameters", {{"config", config}}}}.dump());
  };
  EXPECT_EQ(
      load(R"({"name":"m","max_batch_size":"16","dynamic_batching":{"max_queue_delay_microseconds":250},)"
           R"("instance_group":[{"count":2,"kind":"KIND_CPU"}]})")
          .status,
      200);
  const services::DeploymentSpec& spec = deployments_.put_spec;
  EXPECT_EQ(spec.version, "7");
  EXPECT_EQ(spec.max_queue, 9) << "what it does not say stays";
  EXPECT_EQ(spec.max_batch, 16);
  EXPECT_EQ(spec.max_delay_us, 250);
  EXPECT_EQ(spec.instances, 2);
  EXPECT_EQ(load(R"({"max_batch_size":0})").status, 200);
  EXPECT_EQ(spec.max_batch, 1);
  for (const char* wrong :
       {"", "[]", R"("max_batch_size": 16)", R"({"max_batch_size":-1})", R"({"max_batch_size":"x"})",
        R"({"name":"other"})", R"({"backend":"onnxruntime"})", R"({"input":[]})", R"({"instance_group":[]})",
        R"({"instance_group":[{"kind":"KIND_GPU"}]})",
        R"({"dynamic_batching":{"preserve_ordering":true}})"}) {
    const Answer answer = load(wrong);
    EXPECT_EQ(answer.status, 400) << wrong;
    EXPECT_THAT(answer.body, HasSubstr("failed to load 'm'")) << wrong;
  }
  deployments_.ready = false;
  EXPECT_EQ(load("{}").status, 503);
}

TEST_F(V2, ThePicturesLayoutIsToldWhereItIsOnesDims) {
  version().layout = "NHWC";
  EXPECT_EQ(get("/v2/models/m/config").json().at("input").at(0).at("format"), "FORMAT_NONE");
  version().inputs.front().shape = {Dim(int64_t{8}), Dim(int64_t{8}), Dim(int64_t{3})};
  EXPECT_EQ(get("/v2/models/m/config").json().at("input").at(0).at("format"), "FORMAT_NHWC");
}

TEST_F(V2, SequencesAreToldInTritonsWords) {
  version().sequence.emplace();
  version().sequence->start = "START";
  version().sequence->states = {{"in", "out"}};
  const Json told = get("/v2/models/m/config").json();
  EXPECT_FALSE(told.contains("dynamic_batching"));
  const Json& sequences = told.at("sequence_batching");
  EXPECT_EQ(sequences.at("control_input").dump(),
            R"([{"control":[{"int32_false_true":[0,1],"kind":"CONTROL_SEQUENCE_START"}],"name":"START"}])");
  EXPECT_EQ(sequences.at("state").dump(), R"([{"input_name":"in","output_name":"out"}])");
  EXPECT_EQ(sequences.at("max_sequence_idle_microseconds"), 60'000'000);
}

/// Files behind the JSON, each with its length in front.
std::string binary_texts(const std::vector<std::string>& texts) {
  std::string raw;
  for (const std::string& text : texts) {
    for (int shift = 0; shift < 32; shift += 8) raw += static_cast<char>(text.size() >> shift & 0xff);
    raw += text;
  }
  return raw;
}

TEST_F(V2, FilesOfPicturesTakeTheInputsPlaceWhereTheDeploymentSaysSo) {
  const std::vector<std::string> files = {std::string("\x89PNG\xff\0", 6), "\xff\xd8\xff"};
  const std::string raw = binary_texts(files);
  const auto asked = [&](const std::string& shape) {
    return R"({"inputs":[{"name":"x","shape":)" + shape + R"(,"datatype":"BYTES","parameters":)" +
           R"({"binary_data_size":)" + std::to_string(raw.size()) + "}}]}";
  };
  refused(infer(asked("[2,1]"), raw));
  version().takes_pictures = true;
  version().max_batch = 4;
  for (const char* shape : {"[2,1]", "[2]"}) {
    const Answer answer = infer(asked(shape), raw);
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(deployments_.files, files);
  }
  for (const char* shape : {"[]", "[1,2]", "[3,1]", "[1,1]"}) {
    const Answer answer = infer(asked(shape), raw);
    refused(answer);
    EXPECT_THAT(answer.body, HasSubstr("input \\\"x\\\": "));
  }
  // JSON has no strings for such bytes, and a file is no row among others.
  refused(infer(R"({"inputs":[{"name":"x","shape":[1],"datatype":"BYTES","data":["P5"]}]})"));
  const std::string two = R"({"name":"y","shape":[1],"datatype":"FP32","data":[1]},)";
  refused(infer(asked("[2,1]").insert(std::string(R"({"inputs":[)").size(), two), raw));
  // Without JSON the body is one file; tensors are taken as before.
  const Answer bare = send("POST", "/v2/models/m/infer", {std::string(kLength) + "0"}, files[0]);
  EXPECT_EQ(bare.status, 200) << bare.body;
  EXPECT_EQ(deployments_.files, std::vector<std::string>{files[0]});
  EXPECT_EQ(infer("{\"inputs\":[" + binary_input_ + "]}", raw_).json().at("outputs").at(0).at("datatype"),
            "FP32");
  const Json shown = send("GET", "/v2/models/m").json().at("inputs").at(0);
  EXPECT_EQ(shown, Json::parse(R"({"name":"x","datatype":"BYTES","shape":[-1,1]})"));
  const Json config = send("GET", "/v2/models/m/config").json().at("input").at(0);
  EXPECT_EQ(config.at("data_type"), "TYPE_STRING");
  EXPECT_EQ(config.at("dims"), Json::parse("[1]"));
}

}  // namespace
}  // namespace tensormill::testing_api
