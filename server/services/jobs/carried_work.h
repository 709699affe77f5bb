/// Work that is carried by hand to a machine without a network, and what came of it carried back.
///
///   item:   {"format":"tensormill-item-1","server","lease":{…},"blobs":[{"digest","size"}…]} LF, the blobs
///   result: {"format":"tensormill-result-1","lease":ID} LF, the end of the lease (worker_finish.h), and the
///           block with which the worker signs all before it (package_signature.h)
///
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/json.h"
#include "server/services/store/package_signature.h"

namespace tensormill::server {

struct CarriedItem {
  std::string server;  ///< URL that it was taken from
  Json lease;          ///< as POST /v1/workers/lease answered
  struct Part {
    Digest digest;
    std::span<const std::byte> bytes;  ///< of the file
  };
  std::vector<Part> blobs;
};

/// The line of an item, with its line feed; of the parts their digests and sizes alone are used.
std::string item_line(const CarriedItem& item);
/// Reads the bytes of an item, which outlive what is returned. Throws Error(kInvalidRequest) for bytes that
/// are none, Error(kDigestMismatch) for a damaged part.
CarriedItem read_item(std::span<const std::byte> file);

/// The line of a result, with its line feed.
std::string result_line(const std::string& lease);
struct CarriedResult {
  std::string lease;
  std::span<const std::byte> end;  ///< the message of the end
};
/// The result behind a good signature. Throws Error(kForeignCode), Error(kInvalidRequest).
CarriedResult read_result_file(std::span<const std::byte> file, const TrustedKeys& trusted);

}  // namespace tensormill::server
