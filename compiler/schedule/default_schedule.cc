#include <iterator>

#include "compiler/schedule/builder.h"
#include "compiler/schedule/choose.h"
#include "compiler/schedule/schedule.h"
#include "runtime/base/error.h"

namespace tensormill::schedule {

namespace {

struct Template {
  std::string_view name;
  bool (*schedule)(Builder&);
};

const Template kTemplates[] = {
#define TM_TEMPLATE(name, function, meaning) {#name, function},
#include "compiler/schedule/templates.def"
#undef TM_TEMPLATE
};

}  // namespace

Tuned choose_schedule(const te::Program& program, const target::Target& target, const Chooser& choose) {
  for (const Template& row : kTemplates) {
    Builder builder(program, target, choose);
    // Products and windows are laid out for numbers; the last row takes any extents.
    if (!builder.state().knows_extents() && &row != std::end(kTemplates) - 1) continue;
    if (row.schedule(builder)) return {builder.schedule(), builder.knobs()};
  }
  TM_CHECK(false, "no template accepts the program");
}

Schedule default_schedule(const te::Program& program, const target::Target& target) {
  return choose_schedule(program, target, {}).schedule;
}

}  // namespace tensormill::schedule
