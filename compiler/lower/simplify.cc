// The last look: index normal form, decided conditions, loops of one iteration.
#include "compiler/lower/passes.h"
#include "compiler/lower/range_rewriter.h"

namespace tensormill::lower {

te::Function run_simplify(const te::Function& input, const target::Target&) {
  te::Function result = input;
  result.body = RangeRewriter().rewrite(input.body);
  return result;
}

}  // namespace tensormill::lower
