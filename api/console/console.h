/// The web console's files, embedded at build time.
/// Thread-safety: constants.
#pragma once

#include <string_view>

namespace tensormill::console {

std::string_view index_html();
std::string_view console_js();
std::string_view console_css();

}  // namespace tensormill::console
