/// KServe's system shared memory: parts of shared memory objects that clients on this machine have named,
/// from which inputs are copied and into which outputs are. Nothing is mapped: an object that a client makes
/// shorter meanwhile is an error of its request and no fault of this process. Thread-safety: all methods from
/// many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/file.h"

namespace tensormill::endpoints {

struct SharedRegion {
  std::string name;
  std::string key;      ///< of the object: "/" and a name that begins as the server allows
  uint64_t offset = 0;  ///< of the region in it
  uint64_t byte_size = 0;
};

/// Where an input or an output stands.
struct SharedPlace {
  std::string region;
  uint64_t offset = 0;  ///< in the region
  uint64_t byte_size = 0;
};

class SharedRegions {
public:
  /// Objects are taken whose names begin with one of `prefixes`, behind the "/" of their keys.
  explicit SharedRegions(std::vector<std::string> prefixes = {"tensormill-"})
      : prefixes_(std::move(prefixes)) {}

  /// Throws Error(kInvalidArgument) for a key with none of the prefixes, an object that is not there, is no
  /// file of this user's or is shorter than the region, Error(kNameTaken) for a name that another region has,
  /// Error(kUnavailable) past the most regions.
  void add(SharedRegion region);
  /// One, or all. Throws Error(kNotFound).
  void remove(const std::optional<std::string>& name);
  /// As remove().
  std::vector<SharedRegion> list(const std::optional<std::string>& name) const;
  /// Copies. Throws Error(kInvalidTensor) for a place outside of its region and for an object that has become
  /// shorter.
  void read(const SharedPlace& place, std::span<std::byte> into) const;
  void write(const SharedPlace& place, std::span<const std::byte> from) const;

private:
  struct Held {
    SharedRegion region;
    FileDescriptor file;
  };
  std::shared_ptr<const Held> find(const SharedPlace& place, uint64_t bytes) const;

  const std::vector<std::string> prefixes_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Held>> regions_;
};

}  // namespace tensormill::endpoints
