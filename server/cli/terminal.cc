#include "server/cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "runtime/base/json.h"

namespace tensormill::cli {

namespace {

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kBold:
      return "\x1b[1m";
    case Colour::kFaint:
      return "\x1b[2m";
    case Colour::kRed:
      return "\x1b[31m";
    case Colour::kGreen:
      return "\x1b[32m";
    case Colour::kYellow:
      return "\x1b[33m";
  }
  return "";
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

bool is_terminal(Stream stream) {
  return ::isatty(stream == Stream::kOut ? STDOUT_FILENO : STDERR_FILENO) == 1;
}

bool has_colours(Stream stream) {
  return is_terminal(stream) && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

std::string coloured(std::string_view text, Colour colour, Stream stream) {
  if (colour == Colour::kNone || !has_colours(stream)) return std::string(text);
  return std::string(code_of(colour)).append(text).append("\x1b[0m");
}

std::string printable(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // The second row of controls is C2 80 to C2 9F in UTF-8.
    const bool is_second_row = byte == 0xC2 && i + 1 < text.size() &&
                               static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
                               static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_second_row) ++i;
    const bool is_space = byte == '\n' || byte == '\r' || byte == '\t';
    result += is_space ? ' ' : byte < 0x20 || byte == 0x7F || is_second_row ? '?' : text[i];
  }
  return result;
}

void print_json(const Json& value) {
  std::cout << value.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

std::string progress_bar(std::string_view what, int64_t done, int64_t total, int width) {
  const int64_t of = std::max<int64_t>(total, 1);
  const auto filled = static_cast<size_t>(std::clamp<int64_t>(done, 0, of) * width / of);
  return "[" + std::string(filled, '#') + std::string(static_cast<size_t>(width) - filled, '.') + "] " +
         std::to_string(done) + "/" + std::to_string(total) + " " + std::string(what);
}

std::string bytes_text(double bytes) {
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = next;
  }
  char text[32];
  std::snprintf(text, sizeof text, *unit == 'B' ? "%.0f %s" : "%.1f %s", bytes, unit);
  return text;
}

void ProgressLine::show(std::string_view what, int64_t done, int64_t total) {
  if (!is_shown_) return;
  const std::lock_guard lock(mutex_);
  std::string line = progress_bar(what, done, total);
  if (line == last_) return;
  std::cerr << "\r" << line << "\x1b[K" << std::flush;
  last_ = std::move(line);
}

void ProgressLine::clear() {
  if (!is_shown_) return;
  const std::lock_guard lock(mutex_);
  if (!last_.empty()) std::cerr << "\r\x1b[K" << std::flush;
  last_.clear();
}

}  // namespace tensormill::cli
