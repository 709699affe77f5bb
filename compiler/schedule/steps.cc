#include <algorithm>
#include <sstream>

#include "compiler/schedule/schedule.h"
#include "compiler/schedule/state.h"
#include "runtime/base/error.h"

namespace tensormill::schedule {

std::string print(const Schedule& schedule) {
  std::string text;
  for (const Step& step : schedule.steps) {
    text += step.primitive;
    for (const std::string& arg : step.args) text += " " + arg;
    text += "\n";
  }
  return text;
}

Schedule parse_schedule(std::string_view text) {
  Schedule schedule;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line);
    Step step;
    if (!(words >> step.primitive)) continue;
    for (std::string word; words >> word;) step.args.push_back(word);
    const auto& rows = primitives();
    const bool known = std::any_of(rows.begin(), rows.end(),
                                   [&](const Primitive& row) { return row.name == step.primitive; });
    if (!known) reject("line " + std::to_string(number) + ": no primitive '" + step.primitive + "'");
    schedule.steps.push_back(std::move(step));
  }
  return schedule;
}

}  // namespace tensormill::schedule
