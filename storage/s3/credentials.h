/// Who asks: keys for S3 from a file, the environment, or a web identity, refreshed before they end. They are
/// in no message, log or setting. Thread-safety: key() may be called from many threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "storage/s3/http_transport.h"
#include "storage/s3/sigv4.h"

namespace tensormill::storage {

class CredentialSource {
public:
  virtual ~CredentialSource() = default;
  /// A key that is valid now. After the store refused one, `refused` asks for another, which may be the same.
  /// Throws Error(kUsage) where there is none, Error(kUnavailable) where it cannot be had at the moment.
  virtual AwsKey key(bool refused = false) = 0;
};

struct CredentialOptions {
  /// INI file as AWS has it; "": the environment decides.
  std::string file;
  /// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN,
  /// AWS_ROLE_SESSION_NAME, AWS_ENDPOINT_URL_STS; AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE, HOME.
  std::map<std::string, std::string> environment;
  std::string region;
  std::string ca_file;  ///< for the token service
  std::function<int64_t()> unix_seconds;
};

/// In this order: `file`; the key of the environment; its web identity; its file, or ~/.aws/credentials.
/// `transport` lives as long. Throws Error(kUsage) where there is none of them.
std::unique_ptr<CredentialSource> make_credentials(const CredentialOptions& options,
                                                   HttpTransport& transport);

/// Throws Error(kUsage) unless the URL is https, or http to this machine; `what` is for the message.
void require_safe_url(const std::string& url, const std::string& what);

}  // namespace tensormill::storage
