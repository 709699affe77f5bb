#include "compiler/lower/lower.h"

#include "compiler/lower/passes.h"
#include "compiler/te/verify.h"
#include "runtime/base/error.h"

namespace tensormill::lower {

namespace {

struct Pass {
  std::string_view name;
  te::Function (*run)(const te::Function&, const target::Target&);
  te::Level level;
};

const Pass kPasses[] = {
#define TM_LOWER_PASS(name, function, level, meaning) {#name, function, te::Level::level},
#include "compiler/lower/lower_passes.def"
#undef TM_LOWER_PASS
};

}  // namespace

te::Function lower(const te::Function& function, const target::Target& target, const Observer& observer) {
  te::Function current = function;
  if (observer) observer("start", current);
  for (const Pass& pass : kPasses) {
    current = pass.run(current, target);
    te::verify(current, pass.level);
    if (observer) observer(pass.name, current);
  }
  return current;
}

}  // namespace tensormill::lower
