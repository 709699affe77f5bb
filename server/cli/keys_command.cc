#include <array>
#include <charconv>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "api/http/time.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/model_input.h"
#include "server/cli/settings_input.h"
#include "server/cli/terminal.h"
#include "server/services/keys/key_file.h"

namespace tensormill::cli {

namespace {

struct KeysArguments {
  std::string file;
  std::string name;
  std::string scopes;
  std::string expires;
  CLI::App* add = nullptr;
  CLI::App* list = nullptr;
};

/// As serve finds it; without a setting the file is here.
std::string file_of(const KeysArguments& arguments) {
  if (!arguments.file.empty()) return arguments.file;
  const std::string configured = settings_of({}).keys_file;
  return configured.empty() ? "tensormill-keys" : configured;
}

/// "2027-01-31T12:00:00Z", "2027-01-31" (its start, in UTC), or a time from now: "90d", "12h", "30m". Throws
/// Error(kUsage).
std::optional<services::Timestamp> end_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  constexpr std::array<std::pair<char, int64_t>, 3> kUnits = {
      {{'d', 86'400'000}, {'h', 3'600'000}, {'m', 60'000}}};
  int64_t number = 0;
  const char* last = text.data() + text.size() - 1;
  const auto [stop, error] = std::from_chars(text.data(), last, number);
  std::optional<int64_t> end = http::parse_timestamp(text);
  if (!end) end = http::parse_timestamp(text + "T00:00:00Z");
  for (const auto& [unit, ms] : kUnits) {
    if (error == std::errc() && stop == last && *last == unit && number > 0 && number <= 100'000)
      end = now_ms + number * ms;
  }
  if (!end || *end <= now_ms) {
    throw Error(ErrorCode::kUsage, "--expires " + text +
                                       ": expected a time to come such as 2027-01-31, "
                                       "2027-01-31T12:00:00Z, 90d, 12h or 30m");
  }
  return services::Timestamp{*end};
}

std::string end_text(const server::KeyRow& row) {
  return row.expires ? http::format_timestamp(row.expires->ms) : "";
}

int add(const KeysArguments& arguments, bool json) {
  const std::string file = file_of(arguments);
  check_output("--keys-file", file);
  const std::string key =
      server::add_key(file, arguments.name, split_list(arguments.scopes), end_of(arguments.expires));
  if (json) {
    print_json(Json{{"name", arguments.name}, {"key", key}});
  } else {
    std::cout << key << std::endl;
    std::cerr << "this is shown once; send it as \"Authorization: Bearer KEY\"" << std::endl;
  }
  return 0;
}

int list(const KeysArguments& arguments, bool json) {
  Json keys = Json::array();
  for (const server::KeyRow& row : server::read_keys(file_of(arguments))) {
    const std::string end = end_text(row);
    if (!json) {
      std::cout << row.name << "\t" << server::join_scopes(row.scopes) << "\t" << row.created
                << (end.empty() ? "" : "\texpires " + end) << "\n";
    }
    keys.push_back({{"name", row.name},
                    {"scopes", row.scopes},
                    {"created", row.created},
                    {"expires", end.empty() ? Json() : Json(end)}});
  }
  if (json) print_json(Json{{"keys", keys}});
  return 0;
}

int revoke(const KeysArguments& arguments, bool json) {
  server::revoke_key(file_of(arguments), arguments.name);
  if (json) print_json(Json{{"revoked", arguments.name}});
  return 0;
}

}  // namespace

Action keys_command(CLI::App& app) {
  const auto arguments = std::make_shared<KeysArguments>();
  app.require_subcommand(1);
  app.add_option("--keys-file", arguments->file,
                 "file of the keys; default: the setting keys_file, else tensormill-keys");
  arguments->add = app.add_subcommand("add", "make a key and print it, this once");
  arguments->add->add_option("NAME", arguments->name, "who has the key")->required();
  arguments->add->add_option("--scopes", arguments->scopes, "of infer,read,write,admin,infer:NAME,read:NAME")
      ->required();
  arguments->add->add_option("--expires", arguments->expires, "a time (2027-01-31) or how long (90d, 12h)");
  arguments->list = app.add_subcommand("list", "names, scopes, ages and ends of the keys");
  CLI::App* gone = app.add_subcommand("revoke", "forget a key; a running server notices at once");
  gone->add_option("NAME", arguments->name, "who has the key")->required();
  return [arguments](const GlobalOptions& globals) {
    if (arguments->add->parsed()) return add(*arguments, globals.json);
    if (arguments->list->parsed()) return list(*arguments, globals.json);
    return revoke(*arguments, globals.json);
  };
}

}  // namespace tensormill::cli
