// KServe v2: memory that clients share, of this machine and of its GPUs; the GPUs are the stand-in's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api/fakes.h"
#include "tests/api/shared_object.h"

namespace tensormill::testing_api {
namespace {

std::string base64_of(std::string bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t over = bytes.size() % 3;
  bytes.resize(bytes.size() + (over == 0 ? 0 : 3 - over));
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = i; j < i + 3; ++j) bits = bits << 8 | static_cast<unsigned char>(bytes[j]);
    for (int shift = 18; shift >= 0; shift -= 6) text += kLetters[bits >> shift & 63];
  }
  if (over > 0) text.replace(text.size() - (3 - over), 3 - over, 3 - over, '=');
  return text;
}

/// A deployment "m" with one input x of [1,3] floats that it echoes.
class V2Shared : public ApiTest {
protected:
  V2Shared() {
    deployments_.hold_three_numbers();
    options_.cuda_library = TM_TEST_CUDA_DRIVER;
  }
  void share() {
    options_.cuda_shared_memory = true;
    rebuild();
  }
  std::string spec(int device_id = 0, int byte_size = 64) const {
    return Json{{"raw_handle", {{"b64", base64_of(object_.handle())}}},
                {"device_id", device_id},
                {"byte_size", byte_size}}
        .dump();
  }
  Answer post(const std::string& target, const std::string& body = "") {
    return send("POST", target, {}, body);
  }
  Answer add(const std::string& body) { return post("/v2/cudasharedmemory/region/r/register", body); }
  void refused(const Answer& answer, int status, const std::string& says) {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_THAT(answer.json().at("error").get<std::string>(), testing::HasSubstr(says));
  }

  SharedObject object_;
};

TEST_F(V2Shared, AKindThatIsOffHasNoRegionsAndTakesNone) {
  for (const std::string kind : {"system", "cuda"}) {
    const std::string all = "/v2/" + kind + "sharedmemory", one = all + "/region/r";
    EXPECT_EQ(get(all + "/status").json(), Json::array());
    EXPECT_EQ(post(all + "/unregister").status, 200);
    refused(get(one + "/status"), 404, "there is no region");
    refused(post(one + "/unregister"), 404, "there is no region");
    refused(post(one + "/register", "{}"), 501, "v2." + kind + "_shared_memory");
  }
  const Json off = get("/v2").json().at("extensions");
  share();
  const Json extensions = get("/v2").json().at("extensions");
  EXPECT_EQ(extensions.size(), off.size() + 1);
  EXPECT_EQ(extensions.back(), "cuda_shared_memory");
  // One kind that is on opens nothing of the other.
  refused(post("/v2/systemsharedmemory/region/r/register", "{}"), 501, "v2.system_shared_memory");
}

TEST_F(V2Shared, TensorsAreTakenFromAGpuAndPutThere) {
  share();
  EXPECT_EQ(add(spec(1)).status, 200);
  EXPECT_EQ(get("/v2/cudasharedmemory/status").json(),
            Json::parse(R"([{"name":"r","device_id":1,"byte_size":64}])"));
  EXPECT_EQ(get("/v2/cudasharedmemory/region/r/status").json().size(), 1U);
  EXPECT_EQ(get("/v2/systemsharedmemory/status").json(), Json::array());
  const Json place = {{"shared_memory_region", "r"}, {"shared_memory_byte_size", 12}};
  Json behind = place;
  behind["shared_memory_offset"] = 48;
  const Json asked = {
      {"inputs", {{{"name", "x"}, {"shape", {1, 3}}, {"datatype", "FP32"}, {"parameters", place}}}},
      {"outputs", {{{"name", "x"}, {"parameters", behind}}}}};
  const Answer answer = post("/v2/models/m/infer", asked.dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json().at("outputs").at(0).at("parameters"), behind);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(object_.at(48 + i), i);
  EXPECT_EQ(object_.at(60), 60);
  refused(add(spec()), 409, "region \"r\" is registered already");
  EXPECT_EQ(post("/v2/cudasharedmemory/region/r/unregister").status, 200);
  refused(post("/v2/models/m/infer", asked.dump()), 400, "region \"r\": is not registered");
}

TEST_F(V2Shared, WhatIsNoRegionOfAGpuIsNamed) {
  share();
  refused(add("{}"), 400, "b64");
  refused(add(R"({"raw_handle":{"b64":"!"},"byte_size":8})"), 400, "is not of base64");
  refused(add(R"({"raw_handle":"AAAA","byte_size":8})"), 400, "raw_handle");
  refused(add(R"({"raw_handle":{"b64":"AAAA"},"byte_size":8})"), 400, "raw_handle has 3 bytes");
  refused(add(R"({"raw_handle":{"b64":")" + base64_of(std::string(64, 'x')) + R"("},"byte_size":8})"), 400,
          "CUDA_ERROR_INVALID_VALUE");
  refused(add(spec(2)), 400, "device_id 2 is none of the 2 GPUs");
  refused(add(spec(-1)), 400, "device_id");
  refused(add(spec(0, 65)), 400, "is not in the 64 bytes");
  options_.cuda_library = "/nowhere/libcuda.so.1";
  rebuild();
  refused(add(spec()), 501, "/nowhere/libcuda.so.1");
}

}  // namespace
}  // namespace tensormill::testing_api
