#include "server/jobs/limits.h"

#include <array>
#include <charconv>
#include <iterator>

#include "runtime/base/error.h"

namespace tensormill::jobs {

std::string to_text(const ChildLimits& limits) {
  std::string text;
  for (const uint64_t value :
       {limits.data_bytes, limits.cpu_seconds, limits.file_bytes, limits.open_files,
        static_cast<uint64_t>(limits.nice), uint64_t{limits.confine}, static_cast<uint64_t>(limits.kind),
        uint64_t{limits.require_confinement}, uint64_t{limits.user}}) {
    if (!text.empty()) text += ',';
    text += std::to_string(value);
  }
  return text;
}

ChildLimits limits_from_text(std::string_view text) {
  std::array<uint64_t, 9> values{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto [rest, code] = std::from_chars(at, end, values[i]);
    const bool last = i + 1 == values.size();
    TM_CHECK(code == std::errc() && (last ? rest == end : rest != end && *rest == ','),
             "these are no limits: " + std::string(text));
    at = rest + 1;
  }
  TM_CHECK(values[6] < std::size(kChildKinds), "no such kind of child: " + std::string(text));
  return {values[0],
          values[1],
          values[2],
          values[3],
          static_cast<int>(values[4]),
          values[5] != 0,
          kChildKinds[values[6]],
          values[7] != 0,
          static_cast<uint32_t>(values[8])};
}

}  // namespace tensormill::jobs
