#include "api/http/labels.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::http {
namespace {

constexpr size_t kMaxWord = 64;

bool is_word(std::string_view text) {
  if (text.empty() || text.size() > kMaxWord) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

std::string_view name_of(std::string_view label) { return label.substr(0, label.find('=')); }

}  // namespace

bool is_label(std::string_view text) {
  const size_t equals = text.find('=');
  return equals != std::string_view::npos && is_word(text.substr(0, equals)) &&
         is_word(text.substr(equals + 1));
}

std::vector<std::string> parse_labels(std::string_view text) {
  std::vector<std::string> labels;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view label = text.substr(0, comma);
    if (!is_label(label))
      throw Error(ErrorCode::kInvalidArgument,
                  "\"" + std::string(label.substr(0, 2 * kMaxWord)) + "\" is no label such as board=rpi4");
    labels.emplace_back(label);
    if (labels.size() > kMaxLabels)
      throw Error(ErrorCode::kInvalidArgument,
                  "there are more than " + std::to_string(kMaxLabels) + " labels");
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  std::sort(labels.begin(), labels.end());
  for (size_t i = 1; i < labels.size(); ++i) {
    if (name_of(labels[i]) == name_of(labels[i - 1]))
      throw Error(ErrorCode::kInvalidArgument,
                  "the label " + std::string(name_of(labels[i])) + " is there twice");
  }
  return labels;
}

std::string join_labels(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : ",") + label;
  return text;
}

std::vector<std::string> label_sets(const std::vector<std::string>& labels) {
  TM_CHECK(labels.size() <= 2 * kMaxLabels, "too many labels for all their sets");
  std::vector<std::string> sets = {""};
  for (const std::string& label : labels) {
    const size_t known = sets.size();
    for (size_t i = 0; i < known; ++i) sets.push_back(sets[i].empty() ? label : sets[i] + "," + label);
  }
  return sets;
}

}  // namespace tensormill::http
