#include <algorithm>
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/error_help.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/terminal.h"

namespace tensormill::cli {

namespace {

Json code_json(const ErrorCodeInfo& row) {
  const ErrorHelp help = error_help(row.code);
  return {
      {"code", row.name}, {"http_status", row.http_status}, {"exit_code", row.exit_code}, {"when", row.when},
      {"why", help.why},  {"what_to_do", help.what_to_do}};
}

void print_code(const ErrorCodeInfo& row) {
  const ErrorHelp help = error_help(row.code);
  std::cout << coloured(row.name, Colour::kBold, Stream::kOut) << ": " << row.when << "\n"
            << "HTTP status " << row.http_status << ", exit code " << row.exit_code << "\n\n"
            << "Why: " << help.why << "\n\n"
            << "What to do: " << help.what_to_do << "\n";
}

/// In how many places the shorter of two words differs from the other, at each of its best places.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

const ErrorCodeInfo& find_code(std::string name) {
  constexpr size_t kLongest = 64;
  std::replace(name.begin(), name.end(), '-', '_');
  const std::vector<ErrorCodeInfo>& rows = all_error_codes();
  for (const ErrorCodeInfo& row : rows) {
    if (row.name == name) return row;
  }
  name = name.substr(0, kLongest);
  const ErrorCodeInfo& near = *std::min_element(rows.begin(), rows.end(), [&](const auto& a, const auto& b) {
    return distance(name, a.name) < distance(name, b.name);
  });
  throw Error(ErrorCode::kUsage, "there is no error code \"" + printable(name) + "\"; the nearest is \"" +
                                     std::string(near.name) + "\", `tensormill explain` lists all");
}

int explain(const std::string& name, bool json) {
  if (!name.empty()) {
    const ErrorCodeInfo& row = find_code(name);
    if (json) {
      print_json(code_json(row));
    } else {
      print_code(row);
    }
    return 0;
  }
  Json list = Json::array();
  size_t longest = 0;
  for (const ErrorCodeInfo& row : all_error_codes()) {
    list.push_back(code_json(row));
    longest = std::max(longest, row.name.size());
  }
  if (json) {
    print_json(Json{{"codes", list}});
    return 0;
  }
  for (const ErrorCodeInfo& row : all_error_codes())
    std::cout << row.name << std::string(longest + 2 - row.name.size(), ' ') << row.when << "\n";
  return 0;
}

}  // namespace

Action explain_command(CLI::App& app) {
  const auto name = std::make_shared<std::string>();
  app.add_option("CODE", *name, "an error code, such as invalid_npz; without it all are listed");
  return [name](const GlobalOptions& globals) { return explain(*name, globals.json); };
}

}  // namespace tensormill::cli
