#include "server/registry/reference.h"

#include <regex>

#include "runtime/base/digest.h"
#include "runtime/base/error.h"

namespace tensormill::registry {

Reference parse_reference(std::string_view text) {
  constexpr size_t kMaxReference = 512;
  // The patterns of the distribution specification for <name> and <reference>.
  static const std::regex pattern(
      R"(((?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?)/)"
      R"(([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*))"
      R"((?::([A-Za-z0-9_][A-Za-z0-9._-]{0,127})|@(sha256:[0-9a-f]{64}))?)");
  const std::string whole(text);
  std::smatch match;
  if (whole.size() > kMaxReference || !std::regex_match(whole, match, pattern))
    throw Error(ErrorCode::kUsage, "\"" + whole.substr(0, kMaxReference) +
                                       "\" is no HOST[:PORT]/REPOSITORY[:TAG|@sha256:DIGEST]");
  Reference reference{match[1], match[2], match[3]};
  if (match[4].matched) reference.version = match[4];
  if (reference.version.empty()) reference.version = "latest";
  return reference;
}

std::string url_of(const Reference& reference) {
  const std::string& host = reference.host;
  const std::string name =
      host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  const bool is_address = name.find_first_not_of("0123456789.") == std::string::npos;
  const bool is_here = name == "localhost" || name == "[::1]" || (is_address && name.starts_with("127."));
  return (is_here ? "http://" : "https://") + host;
}

}  // namespace tensormill::registry
