#include "server/services/jobs/carried_work.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::server {

namespace {

constexpr const char* kItemFormat = "tensormill-item-1";
constexpr const char* kResultFormat = "tensormill-result-1";
constexpr size_t kMaxCarriedLine = size_t{16} << 20;

Error no_file(const std::string& format, const std::string& why) {
  return Error(ErrorCode::kInvalidRequest, "it is no file of the format " + format + ": " + why);
}

/// The line that the file begins with; `file` is what follows.
Json first_object(std::span<const std::byte>& file, const std::string& format) {
  const auto head = file.first(std::min(file.size(), kMaxCarriedLine));
  const auto end = std::find(head.begin(), head.end(), std::byte{'\n'});
  if (end == head.end()) throw no_file(format, "it has no first line");
  const std::string_view text(reinterpret_cast<const char*>(head.data()),
                              static_cast<size_t>(end - head.begin()));
  file = file.subspan(text.size() + 1);
  Json line;
  try {
    line = parse_json(text, 128);
  } catch (const Error& error) {
    throw no_file(format, error.message());
  }
  if (!line.is_object() || line.value("format", Json()) != format)
    throw no_file(format, "its first line says otherwise");
  return line;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string item_line(const CarriedItem& item) {
  Json blobs = Json::array();
  for (const CarriedItem::Part& part : item.blobs)
    blobs.push_back({{"digest", part.digest.text()}, {"size", part.bytes.size()}});
  return Json{{"format", kItemFormat}, {"server", item.server}, {"lease", item.lease}, {"blobs", blobs}}
             .dump() +
         "\n";
}

CarriedItem read_item(std::span<const std::byte> file) {
  const Json line = first_object(file, kItemFormat);
  CarriedItem item;
  try {
    line.at("server").get_to(item.server);
    item.lease = line.at("lease");
    for (const Json& blob : line.at("blobs")) {
      const auto digest = Digest::parse(blob.at("digest").get<std::string>());
      const auto size = blob.at("size").get<uint64_t>();
      if (!digest) throw no_file(kItemFormat, "a blob has no digest");
      if (size > file.size()) throw no_file(kItemFormat, "it ends within a blob");
      item.blobs.push_back({*digest, file.first(static_cast<size_t>(size))});
      file = file.subspan(static_cast<size_t>(size));
    }
  } catch (const Json::exception& error) {
    throw no_file(kItemFormat, error.what());
  }
  if (!file.empty()) throw no_file(kItemFormat, "something follows its blobs");
  for (const CarriedItem::Part& part : item.blobs) {
    if (Digest::of(text_of(part.bytes)) != part.digest)
      throw Error(ErrorCode::kDigestMismatch, "the blob " + part.digest.text() + " in the file is damaged");
  }
  return item;
}

std::string result_line(const std::string& lease) {
  return Json{{"format", kResultFormat}, {"lease", lease}}.dump() + "\n";
}

CarriedResult read_result_file(std::span<const std::byte> file, const TrustedKeys& trusted) {
  if (file.size() <= kSignatureBytes) throw no_file(kResultFormat, "it is too short");
  std::span<const std::byte> rest = file.first(file.size() - kSignatureBytes);
  trusted.check(text_of(file.last(kSignatureBytes)), Digest::of(text_of(rest)));
  const Json line = first_object(rest, kResultFormat);
  const Json lease = line.value("lease", Json());
  if (!lease.is_string()) throw no_file(kResultFormat, "it names no lease");
  return {lease.get<std::string>(), rest};
}

}  // namespace tensormill::server
