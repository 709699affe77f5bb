#include "storage/s3/s3_answers.h"

#include <openssl/evp.h>

#include <charconv>

#include "runtime/base/digest.h"
#include "runtime/base/error.h"
#include "storage/s3/xml.h"

namespace tensormill::storage {
namespace {

/// The <Error> of the body; an empty element where there is none.
XmlElement error_of(const HttpAnswer& answer) {
  if (answer.body.find("<Error") == std::string::npos) return {};
  try {
    const XmlElement root = parse_xml(answer.body);
    if (root.name == "Error") return root;
    const XmlElement* inner = root.find("Error");
    return inner == nullptr ? XmlElement{} : *inner;
  } catch (const Error&) {
    // A proxy's page; the status says enough.
    return {};
  }
}

}  // namespace

std::string error_code_of(const HttpAnswer& answer) { return error_of(answer).text_of("Code"); }

bool is_expired_key(const HttpAnswer& answer) {
  if (answer.status != 400 && answer.status != 401 && answer.status != 403) return false;
  const std::string code = error_code_of(answer);
  return code == "ExpiredToken" || code == "ExpiredTokenException" || code == "InvalidToken" ||
         code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch" || code == "AccessDenied";
}

bool may_help_to_try_again(const HttpAnswer& answer) {
  switch (answer.status) {
    case 0:
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return true;
    default:
      return error_code_of(answer) == "RequestTimeout";
  }
}

void throw_answer(const HttpAnswer& answer, const std::string& method, const std::string& key,
                  const std::string& bucket) {
  const std::string what = method + " " + (key.empty() ? "of the bucket" : key);
  const XmlElement error = error_of(answer);
  const std::string code = error.text_of("Code");
  std::string why = answer.status == 0 ? answer.failure : "status " + std::to_string(answer.status);
  if (!code.empty()) why += " " + code + ": " + error.text_of("Message");
  if (code == "NoSuchBucket") throw Error(ErrorCode::kUsage, "there is no S3 bucket " + bucket);
  if (answer.status == 507 || code.find("QuotaExceeded") != std::string::npos)
    throw Error(ErrorCode::kDiskFull, "the S3 bucket " + bucket + " is full (" + what + "): " + why);
  throw Error(ErrorCode::kUnavailable, "the S3 bucket " + bucket + " cannot be used (" + what + "): " + why);
}

uint64_t parse_count(std::string_view digits) {
  uint64_t value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return parsed.ec == std::errc() ? value : 0;
}

std::string sha256_base64(std::string_view bytes) {
  const Digest digest = Digest::of(bytes);
  std::string text(4 * ((digest.bytes().size() + 2) / 3), '\0');
  // OpenSSL writes a zero behind, where std::string has one.
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), digest.bytes().data(),
                  static_cast<int>(digest.bytes().size()));
  return text;
}

}  // namespace tensormill::storage
