#include "api/endpoints/shared_regions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/names.h"

namespace tensormill::endpoints {
namespace {

constexpr size_t kMostRegions = 1024;

[[noreturn]] void refuse(const SharedRegion& region, const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, "region \"" + region.name + "\": " + what);
}

[[noreturn]] void refuse(const SharedPlace& place, const std::string& what) {
  throw Error(ErrorCode::kInvalidTensor, "region \"" + place.region + "\": " + what);
}

uint64_t size_of(const FileDescriptor& file, const SharedRegion& region) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_errno(errno, "cannot look at " + region.key);
  if (!S_ISREG(status.st_mode)) refuse(region, region.key + " is no shared memory object");
  return static_cast<uint64_t>(status.st_size);
}

std::string beginnings(const std::vector<std::string>& prefixes) {
  std::string all;
  for (const std::string& prefix : prefixes) all += (all.empty() ? "/" : ", /") + prefix;
  return all;
}

}  // namespace

void SharedRegions::add(SharedRegion region) {
  if (!is_name(region.name)) refuse(region, "the name is none");
  const std::string object = region.key.starts_with('/') ? region.key.substr(1) : "";
  const bool is_ours =
      is_name(object) && std::any_of(prefixes_.begin(), prefixes_.end(),
                                     [&](const std::string& prefix) { return object.starts_with(prefix); });
  if (!is_ours)
    refuse(region, "key \"" + region.key + "\" begins with none of " + beginnings(prefixes_) +
                       ", which v2.shared_memory_prefixes allows");
  auto held = std::make_shared<Held>();
  // Where the C library keeps such objects. No link is followed, and nothing blocks.
  const std::string path = "/dev/shm" + region.key;
  held->file = FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!held->file.valid()) refuse(region, region.key + " cannot be opened");
  const uint64_t size = size_of(held->file, region);
  if (region.byte_size == 0 || region.offset > size || size - region.offset < region.byte_size)
    refuse(region, "byte_size " + std::to_string(region.byte_size) + " from offset " +
                       std::to_string(region.offset) + " is not in the " + std::to_string(size) +
                       " bytes of " + region.key);
  held->region = std::move(region);
  const std::lock_guard lock(mutex_);
  if (regions_.size() >= kMostRegions)
    throw Error(ErrorCode::kUnavailable, std::to_string(kMostRegions) + " regions are registered");
  const std::string name = held->region.name;
  if (!regions_.emplace(name, std::move(held)).second)
    throw Error(ErrorCode::kNameTaken, "region \"" + name + "\" is registered already");
}

void SharedRegions::remove(const std::optional<std::string>& name) {
  const std::lock_guard lock(mutex_);
  if (!name) return regions_.clear();
  if (regions_.erase(*name) == 0) throw Error(ErrorCode::kNotFound, "there is no region \"" + *name + "\"");
}

std::vector<SharedRegion> SharedRegions::list(const std::optional<std::string>& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<SharedRegion> all;
  for (const auto& [key, held] : regions_) {
    if (!name || key == *name) all.push_back(held->region);
  }
  if (name && all.empty()) throw Error(ErrorCode::kNotFound, "there is no region \"" + *name + "\"");
  return all;
}

std::shared_ptr<const SharedRegions::Held> SharedRegions::find(const SharedPlace& place,
                                                               uint64_t bytes) const {
  std::shared_ptr<const Held> held;
  {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(place.region);
    if (found == regions_.end()) refuse(place, "is not registered");
    held = found->second;
  }
  const uint64_t size = held->region.byte_size;
  if (place.offset > size || size - place.offset < bytes)
    refuse(place, std::to_string(bytes) + " bytes from offset " + std::to_string(place.offset) +
                      " are not in its " + std::to_string(size));
  return held;
}

void SharedRegions::read(const SharedPlace& place, std::span<std::byte> into) const {
  const std::shared_ptr<const Held> held = find(place, into.size());
  uint64_t at = held->region.offset + place.offset;
  while (!into.empty()) {
    const ssize_t got = ::pread(held->file.get(), into.data(), into.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(errno, "cannot read " + held->region.key);
    if (got == 0) refuse(place, held->region.key + " has become shorter");
    into = into.subspan(static_cast<size_t>(got));
    at += static_cast<uint64_t>(got);
  }
}

void SharedRegions::write(const SharedPlace& place, std::span<const std::byte> from) const {
  const std::shared_ptr<const Held> held = find(place, from.size());
  uint64_t at = held->region.offset + place.offset;
  // A write past the end would make it longer, which is not ours to do.
  if (size_of(held->file, held->region) < at + from.size())
    refuse(place, held->region.key + " has become shorter");
  while (!from.empty()) {
    const ssize_t put = ::pwrite(held->file.get(), from.data(), from.size(), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_errno(errno, "cannot write " + held->region.key);
    from = from.subspan(static_cast<size_t>(put));
    at += static_cast<uint64_t>(put);
  }
}

}  // namespace tensormill::endpoints
