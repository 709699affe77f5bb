#include "api/endpoints/shared_regions.h"

#include <algorithm>
#include <iterator>

#include "api/shared/system_memory.h"
#include "runtime/base/error.h"
#include "runtime/base/names.h"

namespace tensormill::endpoints {
namespace {

constexpr size_t kMostRegions = 1024;

std::string region_of(const std::string& name) { return "region \"" + name + "\""; }

[[noreturn]] void refuse(const SharedPlace& place, const std::string& what) {
  throw Error(ErrorCode::kInvalidTensor, region_of(place.region) + ": " + what);
}

[[noreturn]] void no_region(const std::string& name) {
  throw Error(ErrorCode::kNotFound, "there is no region \"" + name + "\"");
}

/// What `action` gives; its errors name the region.
template <typename Action>
auto in_region(const std::string& name, Action action) {
  try {
    return action();
  } catch (Error& error) {
    error.add_context(region_of(name));
    throw;
  }
}

std::string beginnings(const std::vector<std::string>& prefixes) {
  std::string all;
  for (const std::string& prefix : prefixes) all += (all.empty() ? "/" : ", /") + prefix;
  return all;
}

void check_key(const std::string& key, const std::vector<std::string>& prefixes) {
  const std::string object = key.starts_with('/') ? key.substr(1) : "";
  const bool is_ours =
      is_name(object) && std::any_of(prefixes.begin(), prefixes.end(),
                                     [&](const std::string& prefix) { return object.starts_with(prefix); });
  if (!is_ours)
    throw Error(ErrorCode::kInvalidArgument, "key \"" + key + "\" begins with none of " +
                                                 beginnings(prefixes) +
                                                 ", which v2.shared_memory_prefixes allows");
}

void check_extent(const SharedRegion& region, uint64_t size) {
  if (region.byte_size > 0 && region.offset <= size && size - region.offset >= region.byte_size) return;
  const bool is_system = region.kind == RegionKind::kSystem;
  throw Error(ErrorCode::kInvalidArgument, "byte_size " + std::to_string(region.byte_size) + " from offset " +
                                               std::to_string(region.offset) + " is not in the " +
                                               std::to_string(size) + " bytes of " +
                                               (is_system ? region.key : "the GPU's allocation"));
}

}  // namespace

std::unique_ptr<const shared::ClientMemory> SharedRegions::open(const SharedRegion& region) {
  if (!is_name(region.name)) throw Error(ErrorCode::kInvalidArgument, "the name is none");
  if (region.kind == RegionKind::kSystem) check_key(region.key, prefixes_);
  auto memory = region.kind == RegionKind::kSystem ? shared::open_object(region.key)
                                                   : cuda_.open(region.key, region.device_id);
  check_extent(region, memory->size());
  return memory;
}

void SharedRegions::add(SharedRegion region) {
  auto held = std::make_shared<Held>();
  held->memory = in_region(region.name, [&] { return open(region); });
  held->region = std::move(region);
  const std::lock_guard lock(mutex_);
  if (regions_.size() >= kMostRegions)
    throw Error(ErrorCode::kUnavailable, std::to_string(kMostRegions) + " regions are registered");
  const std::string name = held->region.name;
  if (!regions_.try_emplace(name, held).second)
    throw Error(ErrorCode::kNameTaken, region_of(name) + " is registered already");
}

void SharedRegions::remove(RegionKind kind, const std::optional<std::string>& name) {
  // They are closed without the lock, and by who uses them last: a driver takes its time.
  std::vector<std::shared_ptr<const Held>> gone;
  const std::lock_guard lock(mutex_);
  for (auto at = regions_.begin(); at != regions_.end();) {
    const bool is_meant = at->second->region.kind == kind && (!name || at->first == *name);
    if (is_meant) gone.push_back(std::move(at->second));
    at = is_meant ? regions_.erase(at) : std::next(at);
  }
  if (name && gone.empty()) no_region(*name);
}

std::vector<SharedRegion> SharedRegions::list(RegionKind kind, const std::optional<std::string>& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<SharedRegion> all;
  for (const auto& [key, held] : regions_) {
    if (held->region.kind == kind && (!name || key == *name)) all.push_back(held->region);
  }
  if (name && all.empty()) no_region(*name);
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
  in_region(place.region, [&] { held->memory->read(held->region.offset + place.offset, into); });
}

void SharedRegions::write(const SharedPlace& place, std::span<const std::byte> from) const {
  const std::shared_ptr<const Held> held = find(place, from.size());
  in_region(place.region, [&] { held->memory->write(held->region.offset + place.offset, from); });
}

}  // namespace tensormill::endpoints
