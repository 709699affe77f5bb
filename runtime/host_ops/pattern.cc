#include "runtime/host_ops/pattern.h"

#ifdef TENSORMILL_RE2
#include <re2/re2.h>
#endif

#include <string>

#include "runtime/base/error.h"

namespace tensormill::host_ops {

#ifdef TENSORMILL_RE2

namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

re2::RE2::Options options_of(Pattern::Prefers prefers) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_longest_match(prefers == Pattern::Prefers::kLongest);
  return options;
}

}  // namespace

struct Pattern::Compiled {
  Compiled(std::string_view pattern, Prefers prefers) : expression(piece(pattern), options_of(prefers)) {}
  re2::RE2 expression;
};

Pattern::Pattern(std::string_view pattern, Prefers prefers)
    : compiled_(std::make_unique<Compiled>(pattern, prefers)) {
  if (compiled_->expression.ok()) return;
  throw Error(ErrorCode::kInvalidModel,
              "pattern \"" + std::string(pattern.substr(0, 200)) + "\": " + compiled_->expression.error());
}

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::FullMatch(piece(text), compiled_->expression);
}

std::optional<std::string_view> Pattern::find(std::string_view text) const {
  re2::StringPiece found;
  if (!compiled_->expression.Match(piece(text), 0, text.size(), re2::RE2::UNANCHORED, &found, 1) ||
      found.empty())
    return std::nullopt;
  return text.substr(static_cast<size_t>(found.data() - text.data()), found.size());
}

std::string Pattern::replaced(std::string_view text, std::string_view rewrite, bool all) const {
  std::string wrong;
  if (!compiled_->expression.CheckRewriteString(piece(rewrite), &wrong))
    throw Error(ErrorCode::kInvalidModel,
                "rewrite \"" + std::string(rewrite.substr(0, 200)) + "\": " + wrong);
  std::string result(text);
  if (all) {
    re2::RE2::GlobalReplace(&result, compiled_->expression, piece(rewrite));
  } else {
    re2::RE2::Replace(&result, compiled_->expression, piece(rewrite));
  }
  return result;
}

#else

struct Pattern::Compiled {};

Pattern::Pattern(std::string_view, Prefers) {
  throw Error(ErrorCode::kNotSupported, "this runtime was built without regular expressions");
}

bool Pattern::matches(std::string_view) const { return false; }

std::optional<std::string_view> Pattern::find(std::string_view) const { return std::nullopt; }

std::string Pattern::replaced(std::string_view text, std::string_view, bool) const {
  return std::string(text);
}

#endif

Pattern::~Pattern() = default;

}  // namespace tensormill::host_ops
