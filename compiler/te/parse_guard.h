/// Makes of what construction refuses an error of the text. Included by the parser's files only.
#pragma once

#include "compiler/te/parser.h"
#include "runtime/base/error.h"

namespace tensormill::te {

template <typename Make>
auto Parser::guarded(Make&& make) const {
  try {
    return make();
  } catch (const InternalError& error) {
    fail(error.what());
  }
}

}  // namespace tensormill::te
