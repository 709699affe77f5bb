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

re2::RE2::Options silent() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return options;
}

}  // namespace

struct Pattern::Compiled {
  explicit Compiled(std::string_view pattern) : expression(piece(pattern), silent()) {}
  re2::RE2 expression;
};

Pattern::Pattern(std::string_view pattern) : compiled_(std::make_unique<Compiled>(pattern)) {
  if (compiled_->expression.ok()) return;
  throw Error(ErrorCode::kInvalidModel,
              "pattern \"" + std::string(pattern.substr(0, 200)) + "\": " + compiled_->expression.error());
}

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::FullMatch(piece(text), compiled_->expression);
}

#else

struct Pattern::Compiled {};

Pattern::Pattern(std::string_view) {
  throw Error(ErrorCode::kNotSupported, "this runtime was built without regular expressions");
}

bool Pattern::matches(std::string_view) const { return false; }

#endif

Pattern::~Pattern() = default;

}  // namespace tensormill::host_ops
