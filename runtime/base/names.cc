#include "runtime/base/names.h"

namespace tensormill {

bool is_name(std::string_view text) {
  constexpr size_t kLongest = 128;
  constexpr std::string_view kBegins = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::string_view kHas = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= kLongest && kBegins.find(text.front()) != std::string_view::npos &&
         text.find_first_not_of(kHas) == std::string_view::npos;
}

}  // namespace tensormill
