#include "runtime/base/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

namespace tensormill {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return file ? text.str() : "";
}

std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

/// Whole CPUs for `quota` microseconds in each `period`; 0 for no limit ("max", -1).
int cores_of(std::string_view quota, std::string_view period) {
  const auto time = number_of(quota);
  const auto every = number_of(period);
  if (!time || !every || *time <= 0 || *every <= 0) return 0;
  return static_cast<int>(std::clamp<int64_t>((*time - 1) / *every + 1, 1, 1 << 16));
}

int lesser(int a, int b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

/// The least quota of the group at `path` and of those above it, as `read` tells them.
template <typename Read>
int least_quota(std::string path, const Read& read) {
  int cores = 0;
  while (true) {
    cores = lesser(cores, read(path == "/" ? "" : path));
    const size_t slash = path.rfind('/');
    if (path.empty() || path == "/" || slash == std::string::npos) return cores;
    path.resize(slash);
  }
}

int quota_of_version_2(const std::string& folder) {
  const std::string text = read_text(folder + "/cpu.max");
  const size_t space = text.find(' ');
  return space == std::string::npos ? 0 : cores_of(text.substr(0, space), text.substr(space + 1));
}

int quota_of_version_1(const std::string& folder) {
  return cores_of(read_text(folder + "/cpu.cfs_quota_us"), read_text(folder + "/cpu.cfs_period_us"));
}

bool has_cpu(std::string_view controllers) {
  for (size_t start = 0; start <= controllers.size();) {
    const size_t end = std::min(controllers.find(',', start), controllers.size());
    if (controllers.substr(start, end - start) == "cpu") return true;
    start = end + 1;
  }
  return false;
}

}  // namespace

int quota_cores(const std::string& root, std::string_view groups) {
  int cores = 0;
  std::stringstream lines{std::string(groups)};
  for (std::string line; std::getline(lines, line);) {
    // "0::/path" of version 2, "4:cpu,cpuacct:/path" of version 1.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      // With both versions in use, the second one is mounted in a folder of its own.
      for (const std::string& mount : {root, root + "/unified"})
        cores = lesser(
            cores, least_quota(path, [&](const std::string& at) { return quota_of_version_2(mount + at); }));
    } else if (has_cpu(controllers)) {
      // In a container the path is often the host's, and what is mounted is the container's own group.
      for (const std::string& mount : {root + "/" + controllers, root + "/cpu"})
        cores = lesser(
            cores, least_quota(path, [&](const std::string& at) { return quota_of_version_1(mount + at); }));
    }
  }
  return cores;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int allowed = sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
  const int quota = quota_cores("/sys/fs/cgroup", read_text("/proc/self/cgroup"));
  return quota == 0 ? allowed : std::min(allowed, quota);
}

}  // namespace tensormill
