#include "compiler/frontend/keras/weights.h"

#include <algorithm>

namespace tensormill::frontend::keras {

namespace {

/// Behind the component `name` of a path, which is not its last one; nothing where the path has none such.
std::string_view behind(std::string_view path, std::string_view name) {
  for (size_t at = 0; at < path.size();) {
    const size_t slash = path.find('/', at);
    if (slash == std::string_view::npos) return {};
    if (path.substr(at, slash - at) == name) return path.substr(slash + 1);
    at = slash + 1;
  }
  return {};
}

/// "bias" of "block/dense/bias:0".
std::string_view last_of(std::string_view path) {
  if (const size_t slash = path.rfind('/'); slash != std::string_view::npos) path = path.substr(slash + 1);
  return path.substr(0, path.find(':'));
}

}  // namespace

Weights::Weights(const std::vector<Weight>& weights, bool is_numbered) : is_numbered_(is_numbered) {
  for (const Weight& weight : weights) entries_.push_back({weight.path, &weight});
}

Weights Weights::part(std::string_view attribute, std::string_view name) const {
  Weights part;
  part.is_numbered_ = is_numbered_;
  for (const Entry& entry : entries_) {
    if (!is_numbered_) {
      const std::string_view rest = behind(entry.path, name);
      if (!rest.empty()) part.entries_.push_back({rest, entry.weight});
    } else if (entry.path.size() > attribute.size() && entry.path.starts_with(attribute) &&
               entry.path[attribute.size()] == '/') {
      part.entries_.push_back({entry.path.substr(attribute.size() + 1), entry.weight});
    }
  }
  return part.entries_.empty() && !is_numbered_ ? *this : part;
}

bool Weights::has(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return !behind(entry.path, name).empty(); });
}

const Weight* Weights::find(std::string_view name, size_t index) const {
  const std::string numbered = "vars/" + std::to_string(index);
  for (const Entry& entry : entries_) {
    if (is_numbered_ ? entry.path == numbered : last_of(entry.path) == name) return entry.weight;
  }
  return nullptr;
}

}  // namespace tensormill::frontend::keras
