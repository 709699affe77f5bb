#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/doctor_checks.h"
#include "server/cli/settings_input.h"
#include "server/cli/terminal.h"

namespace tensormill::cli {

namespace {

Colour colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return Colour::kGreen;
    case Verdict::kMissing:
      return Colour::kYellow;
    case Verdict::kBad:
      return Colour::kRed;
  }
  return Colour::kNone;
}

void print_findings(const std::vector<Finding>& findings) {
  constexpr size_t kVerdictWidth = 9, kNameWidth = 24;
  std::string group;
  for (const Finding& finding : findings) {
    if (finding.group != group) {
      std::cout << (group.empty() ? "" : "\n") << coloured(finding.group, Colour::kBold, Stream::kOut)
                << "\n";
      group = finding.group;
    }
    const std::string verdict = verdict_name(finding.verdict);
    std::cout << "  " << coloured(verdict, colour_of(finding.verdict), Stream::kOut)
              << std::string(kVerdictWidth - verdict.size(), ' ') << finding.name
              << std::string(kNameWidth - std::min(kNameWidth - 1, finding.name.size()), ' ')
              << printable(finding.says) << "\n";
    if (!finding.advice.empty())
      std::cout << std::string(2 + kVerdictWidth + kNameWidth, ' ') << "-> " << finding.advice << "\n";
  }
}

int examine(const SettingsArguments& arguments, bool json) {
  const config::Settings settings = settings_of(arguments);
  std::vector<Finding> findings = check_processor();
  for (const std::vector<Finding>& more :
       {check_room(settings), check_walls(), check_ports(settings), check_tools()}) {
    findings.insert(findings.end(), more.begin(), more.end());
  }
  size_t missing = 0, bad = 0;
  Json list = Json::array();
  for (const Finding& finding : findings) {
    missing += finding.verdict == Verdict::kMissing;
    bad += finding.verdict == Verdict::kBad;
    list.push_back({{"group", finding.group},
                    {"name", finding.name},
                    {"verdict", verdict_name(finding.verdict)},
                    {"says", finding.says},
                    {"advice", finding.advice}});
  }
  if (json) {
    print_json(Json{{"findings", list}, {"missing", missing}, {"bad", bad}});
  } else {
    print_findings(findings);
    std::cout << "\n"
              << (bad > 0       ? std::to_string(bad) + " things keep the program from its work"
                  : missing > 0 ? "all that is needed is there; what is missing is optional"
                                : "all is there")
              << std::endl;
  }
  return bad > 0 ? error_code_info(ErrorCode::kNotSupported).exit_code : 0;
}

}  // namespace

Action doctor_command(CLI::App& app) {
  const std::shared_ptr<SettingsArguments> arguments = add_settings_options(app);
  return [arguments](const GlobalOptions& globals) { return examine(*arguments, globals.json); };
}

}  // namespace tensormill::cli
