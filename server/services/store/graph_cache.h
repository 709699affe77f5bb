/// Texts that were costly to make, the last used ones, of a bounded size in all.
/// Thread-safety: all methods from many threads.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace tensormill::server {

class GraphCache {
public:
  explicit GraphCache(uint64_t max_bytes = uint64_t{32} << 20) : max_bytes_(max_bytes) {}

  std::optional<std::string> find(const std::string& key);
  /// A text of more than a quarter of the bound is not stored.
  void put(const std::string& key, const std::string& text);

private:
  using Entries = std::list<std::pair<std::string, std::string>>;

  const uint64_t max_bytes_;
  std::mutex mutex_;
  Entries entries_;  ///< the last used first
  std::map<std::string, Entries::iterator> places_;
  uint64_t bytes_ = 0;
};

}  // namespace tensormill::server
