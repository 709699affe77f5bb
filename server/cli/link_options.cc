#include "server/cli/link_options.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/cli/model_input.h"

namespace tensormill::cli {

namespace {

/// The first line of the file.
std::string first_line(const std::string& path) {
  std::string text = in_context("--key-file", [&] { return read_file(path); });
  text.resize(std::min(text.find_first_of("\r\n"), text.size()));
  if (text.empty()) throw Error(ErrorCode::kUsage, "--key-file " + path + ": the first line is empty");
  return text;
}

}  // namespace

worker::ServerLinkOptions link_options(const std::string& url, const std::string& key_file,
                                       const std::string& ca_file, const std::vector<std::string>& pins) {
  worker::ServerLinkOptions options;
  options.url = url;
  if (!key_file.empty()) options.key = first_line(key_file);
  options.ca_file = ca_file;
  for (const std::string& pin : pins) {
    const auto digest = Digest::parse(pin);
    if (!digest) throw Error(ErrorCode::kUsage, "--pin " + pin + ": expected sha256: and 64 hex digits");
    options.pins.push_back(*digest);
  }
  return options;
}

}  // namespace tensormill::cli
