/// Letters' case: ASCII, Latin-1 and Latin Extended-A, Greek and Cyrillic, by the simple mappings of the
/// Unicode Character Database whose two forms have as many bytes in UTF-8. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace tensormill::host_ops {

char32_t lower_point(char32_t point);
char32_t upper_point(char32_t point);
std::string lower_case(std::string_view text);
std::string upper_case(std::string_view text);

}  // namespace tensormill::host_ops
