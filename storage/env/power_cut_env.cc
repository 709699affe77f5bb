#include "storage/env/power_cut_env.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::storage {
namespace {

constexpr uint64_t kSectorBytes = 512;

/// SplitMix64: a good bit from any counter.
bool toss(uint64_t seed, uint64_t number) {
  uint64_t z = seed + number * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return ((z ^ (z >> 31)) & 1) != 0;
}

}  // namespace

void PowerCutEnv::cut_after(uint64_t count) { cut_at_ = operations_ + count; }

void PowerCutEnv::fail_operations(uint64_t first, uint64_t times, int error_number) {
  fail_first_ = operations_ + first;
  fail_times_ = times;
  fail_errno_ = error_number;
}

bool PowerCutEnv::admit(Operation operation, const std::string& path, uint64_t pending) {
  if (cut_at_ && operations_ >= *cut_at_) off_ = true;
  admit_read(path);
  ++operations_;
  if (fail_times_ != 0 && operations_ >= fail_first_ && operations_ < fail_first_ + fail_times_) {
    throw_errno(fail_errno_, "injected fault at " + path);
  }
  if (operation == Operation::kSync || operation == Operation::kSyncFolder) {
    syncs_.push_back({operation, path, operations_, pending});
    return ignored_sync_ != syncs_.size();
  }
  return true;
}

void PowerCutEnv::admit_read(const std::string& path) {
  if (off_) throw Error(ErrorCode::kIo, "the power is off: " + path);
}

void PowerCutEnv::reboot(Survival survival, uint64_t seed) {
  const std::lock_guard lock(mutex_);
  coin_ = 0;
  if (survival != Survival::kAll) settle(*root_, survival, seed);
  off_ = false;
  cut_at_.reset();
  fail_times_ = 0;
  locks_.clear();
}

void PowerCutEnv::settle(Node& node, Survival survival, uint64_t seed) {
  if (survival == Survival::kPart) {
    for (const auto& [name, change] : node.pending_entries) {
      if (!toss(seed, change.ticket)) continue;
      if (change.node) {
        node.durable_entries[name] = change.node;
      } else {
        node.durable_entries.erase(name);
      }
    }
    for (const PendingWrite& write : node.pending_writes) {
      std::string& data = node.durable_data;
      if (write.truncates) {
        if (toss(~seed, ++coin_)) data.resize(write.offset);
        continue;
      }
      for (uint64_t at = 0; at < write.bytes.size();) {
        const uint64_t offset = write.offset + at;
        const uint64_t count =
            std::min<uint64_t>(kSectorBytes - offset % kSectorBytes, write.bytes.size() - at);
        if (toss(~seed, ++coin_)) {
          if (data.size() < offset + count) data.resize(offset + count);
          data.replace(offset, count, write.bytes, at, count);
        }
        at += count;
      }
    }
  }
  node.data = node.durable_data;
  node.entries = node.durable_entries;
  node.pending_writes.clear();
  node.pending_entries.clear();
  for (const auto& [name, child] : node.entries) settle(*child, survival, seed);
}

}  // namespace tensormill::storage
