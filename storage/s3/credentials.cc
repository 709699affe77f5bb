#include "storage/s3/credentials.h"

#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "storage/s3/xml.h"

namespace tensormill::storage {
namespace {

/// A temporary key is replaced so long before it ends, or at its half where it lives shorter than twice that.
constexpr int64_t kRefreshBefore = 300;

std::string value_of(const std::map<std::string, std::string>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

std::string trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") + 1 - first));
}

class FixedKey final : public CredentialSource {
public:
  explicit FixedKey(AwsKey key) : key_(std::move(key)) {}
  AwsKey key(bool) override { return key_; }

private:
  const AwsKey key_;
};

/// Read again when the file has changed: somebody rotates it.
class KeyOfFile final : public CredentialSource {
public:
  KeyOfFile(std::string path, std::string profile) : path_(std::move(path)), profile_(std::move(profile)) {
    key(false);
  }

  AwsKey key(bool refused) override {
    const std::lock_guard lock(mutex_);
    struct stat now {};
    if (::stat(path_.c_str(), &now) != 0)
      throw Error(ErrorCode::kUsage, "there is no file of S3 credentials " + path_);
    const Stamp stamp{now.st_mtim.tv_sec, now.st_mtim.tv_nsec, now.st_size, now.st_ino};
    if (refused || !key_ || stamp != stamp_) {
      key_ = read();
      stamp_ = stamp;
    }
    return *key_;
  }

private:
  struct Stamp {
    int64_t seconds, nanoseconds, size;
    uint64_t inode;
    bool operator==(const Stamp&) const = default;
  };

  AwsKey read() const {
    AwsKey key;
    std::istringstream lines(read_file(path_));
    std::string line, section;
    while (std::getline(lines, line)) {
      const std::string text = trim(line);
      if (text.starts_with('[') && text.ends_with(']')) section = trim(text.substr(1, text.size() - 2));
      const size_t equals = text.find('=');
      if (section != profile_ || equals == std::string::npos || text.starts_with('#')) continue;
      const std::string name = trim(text.substr(0, equals)), value = trim(text.substr(equals + 1));
      if (name == "aws_access_key_id") key.id = value;
      if (name == "aws_secret_access_key") key.secret = value;
      if (name == "aws_session_token") key.token = value;
    }
    if (key.id.empty() || key.secret.empty())
      throw Error(ErrorCode::kUsage, "the file of S3 credentials " + path_ + " has no profile [" + profile_ +
                                         "] with aws_access_key_id and aws_secret_access_key");
    return key;
  }

  const std::string path_, profile_;
  std::mutex mutex_;
  std::optional<AwsKey> key_;
  Stamp stamp_{};
};

/// What a pod or a CI job is: its token, in a file that somebody renews, is exchanged for a temporary key.
class WebIdentity final : public CredentialSource {
public:
  WebIdentity(const CredentialOptions& options, HttpTransport& transport)
      : transport_(transport),
        now_(options.unix_seconds),
        token_file_(value_of(options.environment, "AWS_WEB_IDENTITY_TOKEN_FILE")),
        role_(value_of(options.environment, "AWS_ROLE_ARN")),
        session_(value_of(options.environment, "AWS_ROLE_SESSION_NAME")),
        url_(value_of(options.environment, "AWS_ENDPOINT_URL_STS")),
        ca_file_(options.ca_file) {
    if (session_.empty()) session_ = "tensormill";
    if (url_.empty()) url_ = "https://sts." + options.region + ".amazonaws.com";
    require_safe_url(url_, "AWS_ENDPOINT_URL_STS");
  }

  AwsKey key(bool refused) override {
    const std::lock_guard lock(mutex_);
    const int64_t now = now_();
    if (key_ && !refused && now < refresh_at_) return *key_;
    try {
      exchange(now);
    } catch (const Error&) {
      // The old one still serves until its end.
      if (!key_ || refused || now >= ends_at_) throw;
    }
    return *key_;
  }

private:
  void exchange(int64_t now) {
    const std::string token = trim_lines(read_file(token_file_));
    const std::string body = query_text({{"Action", "AssumeRoleWithWebIdentity"},
                                         {"Version", "2011-06-15"},
                                         {"RoleArn", role_},
                                         {"RoleSessionName", session_},
                                         {"WebIdentityToken", token}});
    HttpExchange request;
    request.method = "POST";
    request.url = url_ + "/";
    request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
    request.body = body;
    request.ca_file = ca_file_;
    const HttpAnswer answer = transport_.send(request, {});
    if (answer.status != 200)
      throw Error(ErrorCode::kUnavailable,
                  "the token service gives no S3 credentials: " +
                      (answer.status == 0 ? answer.failure : "status " + std::to_string(answer.status)));
    const XmlElement root = parse_xml(answer.body);
    const XmlElement* result = root.find("AssumeRoleWithWebIdentityResult");
    const XmlElement* found = result == nullptr ? nullptr : result->find("Credentials");
    if (found == nullptr) throw Error(ErrorCode::kUnavailable, "the token service's answer has no key");
    const AwsKey key{found->text_of("AccessKeyId"), found->text_of("SecretAccessKey"),
                     found->text_of("SessionToken")};
    const int64_t ends_at = parse_iso_time(found->text_of("Expiration"));
    if (key.id.empty() || key.secret.empty() || ends_at <= now)
      throw Error(ErrorCode::kUnavailable, "the token service's answer has no key that is valid now");
    key_ = key;
    ends_at_ = ends_at;
    refresh_at_ = ends_at - std::min(kRefreshBefore, (ends_at - now) / 2);
  }

  static std::string trim_lines(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return text;
  }

  HttpTransport& transport_;
  const std::function<int64_t()> now_;
  const std::string token_file_, role_;
  std::string session_, url_;
  const std::string ca_file_;
  std::mutex mutex_;
  std::optional<AwsKey> key_;
  int64_t ends_at_ = 0;
  int64_t refresh_at_ = 0;
};

}  // namespace

void require_safe_url(const std::string& url, const std::string& what) {
  if (url.starts_with("https://")) return;
  constexpr std::string_view kPlain = "http://";
  if (url.starts_with(kPlain)) {
    std::string host = url.substr(kPlain.size());
    host = host.substr(0, host.find_first_of("/?#"));
    const size_t end = host.starts_with('[') ? host.find(']') + 1 : host.find(':');
    host = host.substr(0, end);
    if (host == "localhost" || host == "[::1]") return;
    // An address, not a name that begins like one.
    if (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos) return;
  }
  throw Error(ErrorCode::kUsage, what + " " + url + " is no https URL; http is only for this machine");
}

std::unique_ptr<CredentialSource> make_credentials(const CredentialOptions& options,
                                                   HttpTransport& transport) {
  const auto& environment = options.environment;
  std::string profile = value_of(environment, "AWS_PROFILE");
  if (profile.empty()) profile = "default";
  if (!options.file.empty()) return std::make_unique<KeyOfFile>(options.file, profile);
  AwsKey key{value_of(environment, "AWS_ACCESS_KEY_ID"), value_of(environment, "AWS_SECRET_ACCESS_KEY"),
             value_of(environment, "AWS_SESSION_TOKEN")};
  if (!key.id.empty() && !key.secret.empty()) return std::make_unique<FixedKey>(std::move(key));
  if (!value_of(environment, "AWS_WEB_IDENTITY_TOKEN_FILE").empty() &&
      !value_of(environment, "AWS_ROLE_ARN").empty())
    return std::make_unique<WebIdentity>(options, transport);
  std::string file = value_of(environment, "AWS_SHARED_CREDENTIALS_FILE");
  struct stat found {};
  if (file.empty() && !value_of(environment, "HOME").empty()) {
    file = value_of(environment, "HOME") + "/.aws/credentials";
    if (::stat(file.c_str(), &found) != 0) file.clear();
  }
  if (!file.empty()) return std::make_unique<KeyOfFile>(file, profile);
  throw Error(ErrorCode::kUsage,
              "there are no credentials for S3: set s3.credentials_file, AWS_ACCESS_KEY_ID and "
              "AWS_SECRET_ACCESS_KEY, or AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN");
}

}  // namespace tensormill::storage
