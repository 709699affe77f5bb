#include "tests/fuzz/targets.h"

namespace tensormill::fuzz {

const std::vector<TargetRow>& all_targets() {
  static const std::vector<TargetRow> rows = {
#define TM_FUZZ(name, meaning, files) {#name, &fuzz_##name},
#include "tests/fuzz/targets.def"
#undef TM_FUZZ
  };
  return rows;
}

void check_error(const Error& error) {
  TM_CHECK(error.code() != ErrorCode::kInternal, "an internal error told as the input's: " + error.message());
  TM_CHECK(!error.message().empty(), "an error without words");
}

}  // namespace tensormill::fuzz
