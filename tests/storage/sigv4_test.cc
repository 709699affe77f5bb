// The signer against signatures that AWS publishes: the "AWS Signature Version 4 Test Suite" (cases
// get-vanilla and others, by their names there) and the examples of the "Amazon S3 API Reference", "Signature
// Calculations for the Authorization Header".
#include "storage/s3/sigv4.h"

#include <gtest/gtest.h>

namespace tensormill::storage::sigv4_test {
namespace {

const std::string kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const std::string kUnreserved = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

struct Vector {
  const char* name;
  std::string method;
  std::string path;
  TextPairs query;
  TextPairs headers;
  std::string names;
  std::string signature;
};

TEST(SigV4Test, SignsTheTestSuiteAsPublished) {
  const AwsKey key{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
  const SigningScope scope{"us-east-1", "service", "20150830T123600Z"};
  const std::vector<Vector> vectors = {
      {"get-vanilla",
       "GET",
       "/",
       {},
       {},
       "host;x-amz-date",
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"post-vanilla",
       "POST",
       "/",
       {},
       {},
       "host;x-amz-date",
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"get-space",
       "GET",
       "/example space/",
       {},
       {},
       "host;x-amz-date",
       "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
      {"get-utf8",
       "GET",
       "/\xE1\x88\xB4",
       {},
       {},
       "host;x-amz-date",
       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
      {"get-unreserved",
       "GET",
       "/" + kUnreserved,
       {},
       {},
       "host;x-amz-date",
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
      {"get-slashes-unnormalized",
       "GET",
       "//example//",
       {},
       {},
       "host;x-amz-date",
       "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5"},
      {"get-vanilla-empty-query-key",
       "GET",
       "/",
       {{"Param1", "value1"}},
       {},
       "host;x-amz-date",
       "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
      {"get-vanilla-query-order-key-case",
       "GET",
       "/",
       {{"Param2", "value2"}, {"Param1", "value1"}},
       {},
       "host;x-amz-date",
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-vanilla-query-order-encoded",
       "GET",
       "/",
       {{"Param-3", "Value3"}, {"Param", "Value2"}, {"\xE1\x88\xB4", "Value1"}},
       {},
       "host;x-amz-date",
       "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"},
      {"get-vanilla-query-unreserved",
       "GET",
       "/",
       {{kUnreserved, kUnreserved}},
       {},
       "host;x-amz-date",
       "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
      {"get-vanilla-utf8-query",
       "GET",
       "/",
       {{"\xE1\x88\xB4", "bar"}},
       {},
       "host;x-amz-date",
       "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
      {"get-header-value-order",
       "GET",
       "/",
       {},
       {{"My-Header1", "value4"},
        {"My-Header1", "value1"},
        {"My-Header1", "value3"},
        {"My-Header1", "value2"}},
       "host;my-header1;x-amz-date",
       "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
      {"get-header-value-trim",
       "GET",
       "/",
       {},
       {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}},
       "host;my-header1;my-header2;x-amz-date",
       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
      {"get-vanilla-with-session-token",
       "GET",
       "/",
       {},
       {{"X-Amz-Security-Token", "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"}},
       "host;x-amz-date;x-amz-security-token",
       "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"},
  };
  for (const Vector& vector : vectors) {
    SigningRequest request{vector.method, vector.path, vector.query, vector.headers, kEmpty};
    request.headers.emplace_back("Host", "example.amazonaws.com");
    request.headers.emplace_back("X-Amz-Date", scope.time);
    EXPECT_EQ(
        sign(request, key, scope),
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" +
            vector.names + ", Signature=" + vector.signature)
        << vector.name;
  }
}

TEST(SigV4Test, SignsTheExamplesOfTheS3Reference) {
  const AwsKey key{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
  const SigningScope scope{"us-east-1", "s3", "20130524T000000Z"};
  const std::string welcome = sha256_hex("Welcome to Amazon S3.");
  struct Example {
    Vector vector;
    std::string payload;
  };
  const std::vector<Example> examples = {
      {{"GET object",
        "GET",
        "/test.txt",
        {},
        {{"Range", "bytes=0-9"}},
        "",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
       kEmpty},
      {{"PUT object",
        "PUT",
        "/test$file.text",
        {},
        {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
        "",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
       welcome},
      {{"GET bucket lifecycle: a query without a value",
        "GET",
        "/",
        {{"lifecycle", ""}},
        {},
        "",
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
       kEmpty},
      {{"GET bucket: a list",
        "GET",
        "/",
        {{"prefix", "J"}, {"max-keys", "2"}},
        {},
        "",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
       kEmpty},
  };
  for (const Example& example : examples) {
    const Vector& vector = example.vector;
    SigningRequest request{vector.method, vector.path, vector.query, vector.headers, example.payload};
    request.headers.emplace_back("host", "examplebucket.s3.amazonaws.com");
    request.headers.emplace_back("x-amz-date", scope.time);
    request.headers.emplace_back("x-amz-content-sha256", example.payload);
    const std::string value = sign(request, key, scope);
    EXPECT_TRUE(value.ends_with(", Signature=" + vector.signature)) << vector.name << ": " << value;
  }
}

TEST(SigV4Test, TimesAreThoseOfTheCalendar) {
  EXPECT_EQ(amz_time(1'440'938'160), "20150830T123600Z");
  EXPECT_EQ(amz_time(1'709'164'800), "20240229T000000Z");
  EXPECT_EQ(parse_iso_time("2015-08-30T12:36:00Z"), 1'440'938'160);
  EXPECT_EQ(parse_iso_time("2015-08-30T12:36:00.123Z"), 1'440'938'160);
  EXPECT_EQ(parse_iso_time("yesterday"), 0);
  EXPECT_EQ(parse_iso_time(""), 0);
}

}  // namespace
}  // namespace tensormill::storage::sigv4_test
