#include "runtime/base/memory_budget.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include "runtime/base/error.h"

namespace tensormill {

namespace {

/// The number in a file of the kernel's; nothing for "max" and where there is no such file.
std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

/// The bounds of this process's control group and of those that it lies in. In a container the group is
/// mostly the root of what can be seen.
uint64_t bound_of_groups(const std::string& root, std::string group, const char* file, uint64_t most) {
  while (true) {
    most = std::min(most, number_in(root + group + "/" + file).value_or(most));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos) return most;
    group.resize(slash);
  }
}

}  // namespace

void MemoryShare::refuse(uint64_t more, uint64_t used) {
  budget_->refusals_.fetch_add(1, std::memory_order_relaxed);
  const std::string bound = budget_->name() + " is " + std::to_string(budget_->bytes());
  if (taken_ + more > budget_->bytes()) {
    throw Error(ErrorCode::kTooLarge, "the request needs " + std::to_string(taken_ + more) +
                                          " bytes of memory or more, and " + bound);
  }
  throw Error(ErrorCode::kUnavailable, "requests in work have " + std::to_string(used) +
                                           " bytes of memory, " + std::to_string(more) +
                                           " more do not fit, and " + bound);
}

void MemoryShare::take(uint64_t more) {
  uint64_t used = budget_->used_.load(std::memory_order_relaxed);
  do {
    const uint64_t left = budget_->bytes_ - std::min(budget_->bytes_, used);
    if (budget_->bytes_ != 0 && more > left) refuse(more, used);
  } while (!budget_->used_.compare_exchange_weak(used, used + more, std::memory_order_relaxed));
  taken_ += more;
}

void MemoryShare::check(uint64_t more) {
  const uint64_t used = budget_->used();
  if (budget_->bytes_ != 0 && more > budget_->bytes_ - std::min(budget_->bytes_, used)) refuse(more, used);
}

void MemoryShare::add(uint64_t more) {
  budget_->used_.fetch_add(more, std::memory_order_relaxed);
  taken_ += more;
}

void MemoryShare::give(uint64_t less) {
  TM_CHECK(less <= taken_, "more memory is given back than was taken");
  budget_->used_.fetch_sub(less, std::memory_order_relaxed);
  taken_ -= less;
}

uint64_t memory_of_this_machine() {
  uint64_t most =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream groups("/proc/self/cgroup");
  // "0::/group" is the second version's, "5:memory:/group" the first one's.
  for (std::string line; std::getline(groups, line);) {
    const size_t name = line.find(':');
    const size_t path = line.find(':', name == std::string::npos ? name : name + 1);
    if (path == std::string::npos) continue;
    const std::string controllers = line.substr(name + 1, path - name - 1);
    std::string group = line.substr(path + 1);
    if (group == "/") group.clear();
    if (controllers.empty()) most = bound_of_groups("/sys/fs/cgroup", group, "memory.max", most);
    if (controllers.find("memory") != std::string::npos)
      most = bound_of_groups("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", most);
  }
  return most;
}

}  // namespace tensormill
