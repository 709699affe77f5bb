#include "runtime/base/shape_buckets.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"

namespace tensormill {

namespace {

[[noreturn]] void bad_bucket(std::string_view text, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument,
              "shape bucket \"" + std::string(text) + "\": " + why + "; write \"1,8\" or \"32..640:32\"");
}

int64_t parse_extent(std::string_view text, std::string_view word) {
  int64_t extent = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), extent);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || extent < 1)
    bad_bucket(text, "\"" + std::string(word) + "\" is no extent");
  return extent;
}

void add_range(std::string_view text, std::string_view word, std::vector<int64_t>& extents) {
  const size_t dots = word.find("..");
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos || colon < dots) bad_bucket(text, "a range has no step");
  const int64_t first = parse_extent(text, word.substr(0, dots));
  const int64_t last = parse_extent(text, word.substr(dots + 2, colon - dots - 2));
  const int64_t step = parse_extent(text, word.substr(colon + 1));
  if (last < first || (last - first) / step >= kMaxBucketExtents)
    bad_bucket(text, "a range has 1 to " + std::to_string(kMaxBucketExtents) + " extents");
  // Not one step past the last: that may be more than 64 bits hold.
  for (int64_t i = 0; i <= (last - first) / step; ++i) extents.push_back(first + i * step);
}

}  // namespace

std::vector<int64_t> parse_bucket(std::string_view text) {
  std::vector<int64_t> extents;
  size_t start = 0;
  while (start <= text.size()) {
    const size_t end = std::min(text.find(',', start), text.size());
    const std::string_view word = text.substr(start, end - start);
    if (word.find("..") != std::string_view::npos) {
      add_range(text, word, extents);
    } else {
      extents.push_back(parse_extent(text, word));
    }
    start = end + 1;
  }
  if (static_cast<int64_t>(extents.size()) > kMaxBucketExtents)
    bad_bucket(text, "more than " + std::to_string(kMaxBucketExtents) + " extents");
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i] <= extents[i - 1]) bad_bucket(text, "extents are not ascending");
  }
  return extents;
}

ShapeBuckets parse_shape_buckets(std::string_view text) {
  ShapeBuckets buckets;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find(';', start), text.size());
    const std::string_view item = text.substr(start, end - start);
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) bad_bucket(item, "expected DIM=EXTENTS");
    if (!buckets.emplace(item.substr(0, equals), parse_bucket(item.substr(equals + 1))).second)
      bad_bucket(item, "the dim stands twice");
    start = end + 1;
  }
  return buckets;
}

}  // namespace tensormill
