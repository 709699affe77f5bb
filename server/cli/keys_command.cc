#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/model_input.h"
#include "server/services/key_file.h"

namespace tensormill::cli {

namespace {

struct KeysArguments {
  std::string file = "tensormill-keys";
  std::string name;
  std::string scopes;
  CLI::App* add = nullptr;
  CLI::App* list = nullptr;
};

int add(const KeysArguments& arguments, bool json) {
  check_output("--keys-file", arguments.file);
  const std::string key = server::add_key(arguments.file, arguments.name, split_list(arguments.scopes));
  if (json) {
    std::cout << Json{{"name", arguments.name}, {"key", key}}.dump() << std::endl;
  } else {
    std::cout << key << std::endl;
    std::cerr << "this is shown once; send it as \"Authorization: Bearer KEY\"" << std::endl;
  }
  return 0;
}

int list(const KeysArguments& arguments, bool json) {
  Json keys = Json::array();
  for (const server::KeyRow& row : server::read_keys(arguments.file)) {
    std::string scopes;
    for (const std::string& scope : row.scopes) scopes += (scopes.empty() ? "" : ",") + scope;
    if (!json) std::cout << row.name << "\t" << scopes << "\t" << row.created << "\n";
    keys.push_back({{"name", row.name}, {"scopes", row.scopes}, {"created", row.created}});
  }
  if (json) std::cout << Json{{"keys", keys}}.dump() << std::endl;
  return 0;
}

int revoke(const KeysArguments& arguments, bool json) {
  server::revoke_key(arguments.file, arguments.name);
  if (json) std::cout << Json{{"revoked", arguments.name}}.dump() << std::endl;
  return 0;
}

}  // namespace

Action keys_command(CLI::App& app) {
  const auto arguments = std::make_shared<KeysArguments>();
  app.require_subcommand(1);
  app.add_option("--keys-file", arguments->file, "file of the keys, as the setting keys_file names it");
  arguments->add = app.add_subcommand("add", "make a key and print it, this once");
  arguments->add->add_option("NAME", arguments->name, "who has the key")->required();
  arguments->add->add_option("--scopes", arguments->scopes, "of infer,read,write,admin")->required();
  arguments->list = app.add_subcommand("list", "names, scopes and ages of the keys");
  CLI::App* gone = app.add_subcommand("revoke", "forget a key; a running server notices at once");
  gone->add_option("NAME", arguments->name, "who has the key")->required();
  return [arguments](const GlobalOptions& globals) {
    if (arguments->add->parsed()) return add(*arguments, globals.json);
    if (arguments->list->parsed()) return list(*arguments, globals.json);
    return revoke(*arguments, globals.json);
  };
}

}  // namespace tensormill::cli
