/// What the command line prints: JSON for programs, and on a terminal alone colours and a line of progress.
/// In a pipe, with NO_COLOR set or on a dumb terminal the text is plain, and progress is not shown.
/// Thread-safety: functions of the environment and the two streams; a ProgressLine takes calls from any
/// thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/base/json_fwd.h"

namespace tensormill::cli {

enum class Stream { kOut, kErr };
enum class Colour { kNone, kBold, kFaint, kRed, kGreen, kYellow };

/// Whether the stream is a terminal at all.
bool is_terminal(Stream stream);
/// Whether it takes colours.
bool has_colours(Stream stream);
/// The text in that colour where the stream takes it, else the text.
std::string coloured(std::string_view text, Colour colour, Stream stream);
/// One line of printable text: ends of lines become blanks, what a terminal would take for an instruction
/// "?". For names and messages that come from files.
std::string printable(std::string_view text);
/// "[#####.....] 5/10 kernels", `width` places between the brackets.
std::string progress_bar(std::string_view what, int64_t done, int64_t total, int width = 24);
/// One line on standard output. Names of files and of what is in them need not be UTF-8: such bytes become
/// U+FFFD.
void print_json(const Json& value);
/// "1.5 MiB"
std::string bytes_text(double bytes);

/// A line on stderr that is written again and again, and gone at the end. Does nothing in a pipe.
class ProgressLine {
public:
  ProgressLine() : is_shown_(is_terminal(Stream::kErr)) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(std::string_view what, int64_t done, int64_t total);
  /// Before other lines are written.
  void clear();

private:
  const bool is_shown_;
  std::mutex mutex_;
  std::string last_;
};

}  // namespace tensormill::cli
