#include "server/cli/cli.h"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <utility>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/children/child_commands.h"
#include "server/cli/run.h"
#include "server/cli/terminal.h"

namespace tensormill::cli {

namespace {

constexpr int kUsageExit = 2;

int report(const GlobalOptions& globals, std::string_view code, int exit_code, const std::string& message,
           const std::vector<ErrorDetail>& details) {
  std::cerr << coloured("error:", Colour::kRed, Stream::kErr) << " " << printable(message) << std::endl;
  if (is_terminal(Stream::kErr) && !globals.json)
    std::cerr << coloured("`tensormill explain " + std::string(code) + "` says more", Colour::kFaint,
                          Stream::kErr)
              << std::endl;
  if (globals.json) {
    Json list = Json::array();
    for (const ErrorDetail& detail : details)
      list.push_back({{"pointer", detail.pointer}, {"detail", detail.detail}});
    print_json(Json{{"error", {{"code", code}, {"detail", message}, {"errors", list}}}});
  }
  return exit_code;
}

int run_action(const Action& action, const GlobalOptions& globals) {
  try {
    return action(globals);
  } catch (const Error& error) {
    const ErrorCodeInfo& info = error_code_info(error.code());
    return report(globals, info.name, info.exit_code, error.message(), error.details());
  } catch (const std::exception& error) {
    // InternalError, or an exception of the standard library that no layer expected: a bug either way.
    const ErrorCodeInfo& info = error_code_info(ErrorCode::kInternal);
    return report(globals, info.name, info.exit_code, error.what(), {});
  }
}

struct CommandHelp {
  std::string_view name;
  std::string_view group;
  std::string_view examples;  ///< lines
};

/// The heading of a command and its examples.
void add_help(CLI::App& command) {
  static const std::vector<CommandHelp> rows = {
#define TM_COMMAND_HELP(name, group, examples) {name, group, examples},
#include "server/cli/command_help.def"
#undef TM_COMMAND_HELP
  };
  for (const CommandHelp& row : rows) {
    if (row.name != command.get_name()) continue;
    command.group(std::string(row.group));
    std::string text = "Examples:";
    for (size_t at = 0; at <= row.examples.size();) {
      const size_t end = std::min(row.examples.find('\n', at), row.examples.size());
      text.append("\n  ").append(row.examples.substr(at, end - at));
      at = end + 1;
    }
    command.footer(text);
  }
}

/// What is wrong with a line that names no command.
std::string unknown_command(int argc, char** argv, const CLI::App& app) {
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) known += (known.empty() ? "" : ", ") + command->get_name();
  }
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.empty() && word.front() != '-') return "unknown command \"" + word + "\", known are " + known;
  }
  return "a command is missing, known are " + known;
}

}  // namespace

CLI::Validator seed_number() {
  const auto problem = [](const std::string& text) -> std::string {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool fits = error == std::errc() && end == text.data() + text.size() && value >= 0;
    return fits ? "" : "\"" + text + "\" is no whole number from 0 to 2^63 - 1";
  };
  return {problem, "0 to 2^63 - 1"};
}

int run(int argc, char** argv) {
  if (argc > 2) {
    if (const auto child = find_child(argv[1]))
      jobs::run_child(argc, argv, child, [argv] { prepare_child(argv[1]); });
  }
  CLI::App app{"TensorMill: compiles trained models to fast packages and serves them over HTTP",
               "tensormill"};
  app.set_version_flag("--version", driver::compiler_build());
  app.require_subcommand(1);
  app.fallthrough();
  app.footer("`tensormill COMMAND --help` has the options of a command, with examples.");
  GlobalOptions globals;
  app.add_flag("--json", globals.json, "print the report as JSON");
  app.add_flag("-v,--verbose", globals.verbosity, "say more; repeat for more");
  std::vector<std::pair<CLI::App*, Action>> commands;
  const auto add = [&](Action (*make)(CLI::App&), std::string name, const char* doc) {
    const bool hidden = name.front() == '-';
    if (hidden) name.erase(0, 1);
    CLI::App* command = app.add_subcommand(name, hidden ? "" : doc);
    if (hidden) {
      command->group("");
    } else {
      add_help(*command);
    }
    commands.emplace_back(command, make(*command));
  };
#define TM_COMMAND(function, name, doc) add(&function, name, doc);
#include "server/cli/commands.def"
#undef TM_COMMAND
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    const std::string what = app.get_subcommands().empty() ? unknown_command(argc, argv, app) : error.what();
    std::cerr << "error: " << printable(what) << "; see tensormill --help" << std::endl;
    return kUsageExit;
  }
  for (const auto& [command, action] : commands) {
    if (command->parsed()) return run_action(action, globals);
  }
  return kUsageExit;
}

}  // namespace tensormill::cli
