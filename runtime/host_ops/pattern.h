/// Regular expressions in the syntax of RE2 (github.com/google/re2/wiki/Syntax), by that library: in time
/// linear in the text's length, whatever the pattern. Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tensormill::host_ops {

class Pattern {
public:
  /// Which of several matches that begin at one place is found.
  enum class Prefers : uint8_t { kFirst, kLongest };
  /// Throws Error(kInvalidModel) saying what is wrong with the pattern; Error(kNotSupported) in a runtime
  /// that was built without the library, as those for other machines are.
  explicit Pattern(std::string_view pattern, Prefers prefers = Prefers::kFirst);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  /// Whether all of `text`, UTF-8, matches.
  bool matches(std::string_view text) const;
  /// The part of `text`, UTF-8, that matches and begins first; nothing where none does, or it is empty.
  std::optional<std::string_view> find(std::string_view text) const;
  /// `text`, UTF-8, with `rewrite` in place of its first match, or of all; \0 to \9 in it are the match and
  /// its groups. Throws Error(kInvalidModel) for a rewrite that names other groups than there are.
  std::string replaced(std::string_view text, std::string_view rewrite, bool all) const;

private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tensormill::host_ops
