// The parts of the S3 store that need no store: XML, credentials, URLs.
#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <mutex>

#include "storage/s3/credentials.h"
#include "storage/s3/s3_answers.h"
#include "storage/s3/s3_blob_store.h"
#include "storage/s3/xml.h"
#include "tests/storage/support.h"

namespace tensormill::storage::s3_parts_test {
namespace {

TEST(S3XmlTest, ReadsWhatStoresAnswer) {
  const XmlElement root = parse_xml(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- a list -->\n<ListBucketResult xmlns=\"http://s3/\">"
      "<IsTruncated>false</IsTruncated><Contents><Key>a&amp;b&#x2F;c</Key><Size>5</Size></Contents>"
      "<Contents><Key>d</Key></Contents><Empty/></ListBucketResult>\n");
  EXPECT_EQ(root.name, "ListBucketResult");
  ASSERT_EQ(root.children.size(), 4U);
  EXPECT_EQ(root.children[1].text_of("Key"), "a&b/c");
  EXPECT_EQ(parse_count(root.children[1].text_of("Size")), 5U);
  EXPECT_EQ(root.text_of("IsTruncated"), "false");
  EXPECT_EQ(root.find("Absent"), nullptr);
  EXPECT_EQ(parse_xml("<a>" + xml_escape("<&>\"'") + "</a>").text, "<&>\"'");
}

TEST(S3XmlTest, RefusesWhatIsNone) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  for (const std::string& text :
       {std::string(), std::string("text"), std::string("<a>"), std::string("<a></b>"),
        std::string("<a></a><b/>"), std::string("<a>&unknown;</a>"), std::string("<a>&#300;</a>"),
        std::string("<a>&amp</a>"), std::string("<!DOCTYPE x [<!ENTITY e \"x\">]><a>&e;</a>"),
        std::string("<>"), std::string("<?xml"), deep})
    EXPECT_ERROR(parse_xml(text), ErrorCode::kUnavailable);
}

TEST(S3UrlTest, IsBucketAndPrefix) {
  S3Options options;
  parse_s3_url("s3://my-bucket/a/b/", options);
  EXPECT_EQ(options.bucket, "my-bucket");
  EXPECT_EQ(options.prefix, "a/b/");
  parse_s3_url("s3://my-bucket", options);
  EXPECT_EQ(options.prefix, "");
  for (const char* url :
       {"", "http://x", "s3://", "s3://ab", "s3://Upper", "s3://buck_et/a", "s3://bucket//a",
        "s3://bucket/../a", "s3://bucket/.", "s3://bucket/a?b", "s3://bucket/\xE1"})
    EXPECT_ERROR(parse_s3_url(url, options), ErrorCode::kUsage);
}

TEST(S3UrlTest, PlainHttpIsForThisMachineAlone) {
  for (const char* url : {"https://s3.example.com", "http://127.0.0.1:9000", "http://localhost",
                          "http://[::1]:9000/", "http://127.8.0.1"})
    EXPECT_NO_THROW(require_safe_url(url, "s3.endpoint")) << url;
  for (const char* url :
       {"http://s3.example.com", "http://127.0.0.1.example.com", "http://localhost.example.com",
        "http://10.0.0.1", "ftp://127.0.0.1", "", "http://[::2]"})
    EXPECT_ERROR(require_safe_url(url, "s3.endpoint"), ErrorCode::kUsage);
}

/// Answers in turn, and keeps what it was asked.
class Script final : public HttpTransport {
public:
  HttpAnswer send(const HttpExchange& exchange, const HttpSink&) override {
    asked.push_back(std::string(exchange.body));
    urls.push_back(exchange.url);
    if (answers.empty()) return {.status = 0, .failure = "nobody is there", .headers = {}, .body = ""};
    HttpAnswer answer = answers.front();
    answers.pop_front();
    return answer;
  }
  std::deque<HttpAnswer> answers;
  std::vector<std::string> asked, urls;
};

std::string token_answer(const std::string& id, const std::string& ends) {
  return "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>" +
         id +
         "</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</"
         "SessionToken><Expiration>" +
         ends +
         "</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
}

class CredentialsTest : public testing::Test {
protected:
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() + "/" + name, std::ios::trunc) << text;
  }
  TemporaryFolder folder_;
  Script transport_;
  int64_t now_ = 1'440'936'000;  // 2015-08-30T12:00:00Z
};

TEST_F(CredentialsTest, AFileIsReadAgainWhenItHasChanged) {
  write("keys",
        "[other]\naws_access_key_id = no\n[default]\n# aws_access_key_id = old\naws_access_key_id=first\n"
        "aws_secret_access_key = s1\n");
  CredentialOptions options;
  options.file = folder_.path() + "/keys";
  const auto source = make_credentials(options, transport_);
  EXPECT_EQ(source->key().id, "first");
  write("keys", "[default]\naws_access_key_id = second\naws_secret_access_key = s2\naws_session_token = t\n");
  EXPECT_EQ(source->key().id, "second");
  EXPECT_EQ(source->key().token, "t");
  write("keys", "[default]\naws_access_key_id = third\n");
  EXPECT_ERROR(source->key(), ErrorCode::kUsage);
}

TEST_F(CredentialsTest, TheEnvironmentHasAKeyOrAFile) {
  CredentialOptions options;
  options.environment = {
      {"AWS_ACCESS_KEY_ID", "id"}, {"AWS_SECRET_ACCESS_KEY", "s"}, {"AWS_SESSION_TOKEN", "t"}};
  EXPECT_EQ(make_credentials(options, transport_)->key().id, "id");
  write("shared", "[team]\naws_access_key_id = of-team\naws_secret_access_key = s\n");
  options.environment = {{"AWS_SHARED_CREDENTIALS_FILE", folder_.path() + "/shared"},
                         {"AWS_PROFILE", "team"}};
  EXPECT_EQ(make_credentials(options, transport_)->key().id, "of-team");
  options.environment = {{"HOME", folder_.path()}};
  EXPECT_ERROR(make_credentials(options, transport_), ErrorCode::kUsage);
}

TEST_F(CredentialsTest, AWebIdentityIsExchangedAgainBeforeItsKeyEnds) {
  write("token", "signed-by-somebody\n");
  CredentialOptions options;
  options.environment = {{"AWS_WEB_IDENTITY_TOKEN_FILE", folder_.path() + "/token"},
                         {"AWS_ROLE_ARN", "arn:aws:iam::1:role/blobs"},
                         {"AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1"}};
  options.unix_seconds = [this] { return now_; };
  const auto source = make_credentials(options, transport_);
  transport_.answers.push_back({200, "", {}, token_answer("one", "2015-08-30T13:00:00Z")});
  EXPECT_EQ(source->key().id, "one");
  EXPECT_EQ(transport_.asked.at(0),
            "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fblobs&"
            "RoleSessionName=tensormill&Version=2011-06-15&WebIdentityToken=signed-by-somebody");
  now_ += 3'000;
  EXPECT_EQ(source->key().id, "one") << "ten minutes are left";
  EXPECT_EQ(transport_.asked.size(), 1U);
  // The service is away: the key serves to its end, and not longer.
  now_ += 400;
  EXPECT_EQ(source->key().id, "one");
  EXPECT_EQ(transport_.asked.size(), 2U);
  write("token", "renewed");
  transport_.answers.push_back({200, "", {}, token_answer("two", "2015-08-30T14:00:00Z")});
  EXPECT_EQ(source->key().id, "two");
  EXPECT_TRUE(transport_.asked.back().ends_with("WebIdentityToken=renewed"));
  now_ += 10'000;
  EXPECT_ERROR(source->key(), ErrorCode::kUnavailable);
  transport_.answers.push_back({200, "", {}, token_answer("old", "2015-08-30T14:00:00Z")});
  EXPECT_ERROR(source->key(), ErrorCode::kUnavailable);  // it has ended already
  transport_.answers.push_back({403, "", {}, "<ErrorResponse/>"});
  EXPECT_ERROR(source->key(), ErrorCode::kUnavailable);
  options.environment["AWS_ENDPOINT_URL_STS"] = "http://sts.example.com";
  EXPECT_ERROR(make_credentials(options, transport_), ErrorCode::kUsage);
}

TEST_F(CredentialsTest, ARefusedKeyIsReplacedOnceAndRequestsAreTriedAgainAsOftenAsTheOptionsSay) {
  write("keys", "[default]\naws_access_key_id=first\naws_secret_access_key = s1\n");
  CredentialOptions keys;
  keys.file = folder_.path() + "/keys";
  const auto source = make_credentials(keys, transport_);
  S3Options options;
  options.endpoint = "http://127.0.0.1:1";
  options.bucket = "bucket";
  options.unix_seconds = [this] { return now_; };
  std::vector<int64_t> pauses;
  options.retries.attempts = 4;
  options.retries.first_pause = std::chrono::milliseconds(100);
  options.retries.longest_pause = std::chrono::milliseconds(150);
  options.retries.pause = [&](std::chrono::milliseconds wait) { pauses.push_back(wait.count()); };
  S3Client client(options, transport_, *source);
  transport_.answers.push_back({403, "", {}, "<Error><Code>ExpiredToken</Code></Error>"});
  transport_.answers.push_back({200, "", {{"content-length", "7"}}, ""});
  EXPECT_EQ(client.head("a key").value().bytes, 7U);
  EXPECT_EQ(transport_.urls.at(0), "http://127.0.0.1:1/bucket/a%20key");
  EXPECT_TRUE(pauses.empty());
  transport_.urls.clear();
  EXPECT_ERROR(client.head("key"), ErrorCode::kUnavailable);
  EXPECT_EQ(transport_.urls.size(), 4U);
  ASSERT_EQ(pauses.size(), 3U);
  for (const int64_t wait : pauses) EXPECT_TRUE(wait >= 0 && wait <= 150) << wait;
  for (int i = 0; i < 2; ++i)
    transport_.answers.push_back(
        {403, "", {}, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"});
  try {
    client.head("key");
    ADD_FAILURE() << "the store refused";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("AccessDenied: no"), std::string::npos) << error.message();
    EXPECT_EQ(error.message().find("s1"), std::string::npos);
    EXPECT_EQ(error.message().find("first"), std::string::npos);
  }
}

}  // namespace
}  // namespace tensormill::storage::s3_parts_test
