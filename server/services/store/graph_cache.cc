#include "server/services/store/graph_cache.h"

namespace tensormill::server {

std::optional<std::string> GraphCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(key);
  if (place == places_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, place->second);
  return entries_.front().second;
}

void GraphCache::put(const std::string& key, const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (text.size() > max_bytes_ / 4 || places_.contains(key)) return;
  entries_.emplace_front(key, text);
  places_[key] = entries_.begin();
  bytes_ += text.size();
  while (bytes_ > max_bytes_) {
    bytes_ -= entries_.back().second.size();
    places_.erase(entries_.back().first);
    entries_.pop_back();
  }
}

}  // namespace tensormill::server
