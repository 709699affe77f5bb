/// KServe's system and CUDA shared memory: parts of shared memory objects, and memory of GPUs, that clients
/// on this machine have named, from which inputs are copied and into which outputs are. Thread-safety: all
/// methods from many threads.
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

#include "api/shared/client_memory.h"
#include "api/shared/cuda_memory.h"

namespace tensormill::endpoints {

enum class RegionKind { kSystem, kCuda };

struct SharedRegion {
  std::string name;
  std::string key;      ///< of the object: "/" and a name that begins as the server allows; kCuda: the raw
                        ///< bytes of a cudaIpcMemHandle_t
  uint64_t offset = 0;  ///< of the region in it
  uint64_t byte_size = 0;
  RegionKind kind = RegionKind::kSystem;
  int64_t device_id = 0;  ///< kCuda: the GPU's number
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
  /// `cuda_library`: as shared::CudaDriver.
  explicit SharedRegions(std::vector<std::string> prefixes = {"tensormill-"},
                         std::string cuda_library = "libcuda.so.1")
      : prefixes_(std::move(prefixes)), cuda_(std::move(cuda_library)) {}

  /// Throws Error(kInvalidArgument) for a key with none of the prefixes, an object that is not there, is no
  /// file of this user's or is shorter than the region, Error(kNameTaken) for a name that another region of
  /// either kind has, Error(kUnavailable) past the most regions, and what CudaDriver::open throws.
  void add(SharedRegion region);
  /// One, or all, of that kind. A request that copies meanwhile ends its copy. Throws Error(kNotFound).
  void remove(RegionKind kind, const std::optional<std::string>& name);
  /// As remove().
  std::vector<SharedRegion> list(RegionKind kind, const std::optional<std::string>& name) const;
  /// Copies. Throws Error(kInvalidTensor) for a place outside of its region and for an object that has become
  /// shorter, Error(kIo) for what the system or the driver refuses.
  void read(const SharedPlace& place, std::span<std::byte> into) const;
  void write(const SharedPlace& place, std::span<const std::byte> from) const;

private:
  struct Held {
    SharedRegion region;
    std::unique_ptr<const shared::ClientMemory> memory;
  };
  std::unique_ptr<const shared::ClientMemory> open(const SharedRegion& region);
  std::shared_ptr<const Held> find(const SharedPlace& place, uint64_t bytes) const;

  const std::vector<std::string> prefixes_;
  shared::CudaDriver cuda_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Held>> regions_;
};

}  // namespace tensormill::endpoints
