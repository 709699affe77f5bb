#include "storage/postgresql/pg_url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "storage/postgresql/libpq.h"

namespace tensormill::storage {
namespace {

constexpr size_t kMaxPassword = 1024;

/// They would stand in the list of processes, in settings and in logs.
constexpr std::array<std::string_view, 2> kSecrets = {"password", "sslpassword"};
/// What could lead elsewhere than the URL says, or is set here.
constexpr std::array<std::string_view, 3> kRefused = {"service", "hostaddr", "client_encoding"};

using Options = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

std::map<std::string, std::string> values_of(const PQconninfoOption* options) {
  std::map<std::string, std::string> values;
  for (const PQconninfoOption* option = options; option != nullptr && option->keyword != nullptr; ++option) {
    if (option->val != nullptr && *option->val != '\0') values[option->keyword] = option->val;
  }
  return values;
}

std::map<std::string, std::string> parse(const std::string& url) {
  char* message = nullptr;
  const Options parsed(libpq().PQconninfoParse(url.c_str(), &message), libpq().PQconninfoFree);
  const std::unique_ptr<char, decltype(&PQfreemem)> owned(message, libpq().PQfreemem);
  // The library's own text repeats the URL, which may hold a password after all.
  if (!parsed) throw Error(ErrorCode::kUsage, "catalog: the URL cannot be parsed");
  return values_of(parsed.get());
}

/// Hosts are separated by commas; an empty one is the default, a socket.
bool all_local(const std::string& hosts) {
  size_t begin = 0;
  while (true) {
    const size_t end = std::min(hosts.find(',', begin), hosts.size());
    if (!is_local_pg_host(std::string_view(hosts).substr(begin, end - begin))) return false;
    if (end == hosts.size()) return true;
    begin = end + 1;
  }
}

}  // namespace

bool is_pg_url(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

bool is_local_pg_host(std::string_view host) {
  if (host.empty() || host.front() == '/' || host.front() == '@' || host == "localhost") return true;
  const std::string text(host);
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  return ::inet_pton(AF_INET6, text.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

PgParameters parse_pg_url(const std::string& url) {
  if (!is_pg_url(url)) throw Error(ErrorCode::kUsage, "catalog: expected postgresql://HOST/DATABASE");
  std::map<std::string, std::string> values = parse(url);
  for (const std::string_view name : kSecrets) {
    if (values.contains(std::string(name))) {
      throw Error(
          ErrorCode::kUsage,
          "catalog: the URL holds a " + std::string(name) +
              ", which others can read; use the setting catalog.password_file, PGPASSWORD or PGPASSFILE");
    }
  }
  for (const std::string_view name : kRefused) {
    if (values.contains(std::string(name)))
      throw Error(ErrorCode::kUsage, "catalog: \"" + std::string(name) + "\" is not taken in the URL");
  }
  const Options defaults(libpq().PQconndefaults(), libpq().PQconninfoFree);
  const std::map<std::string, std::string> given = values_of(defaults.get());
  if (given.contains("hostaddr") || given.contains("service"))
    throw Error(ErrorCode::kUsage, "catalog: PGHOSTADDR and PGSERVICE are not taken");
  for (const char* name : {"host", "sslmode", "sslrootcert"}) {
    const auto found = given.find(name);
    // The default mode of the library itself, prefer, is nothing that anybody asked for.
    if (found == given.end() || (std::string_view(name) == "sslmode" && found->second == "prefer")) continue;
    values.try_emplace(name, found->second);
  }
  if (!all_local(values["host"])) {
    const auto [mode, added] = values.try_emplace("sslmode", "verify-full");
    if (mode->second != "verify-full") {
      throw Error(ErrorCode::kUsage, "catalog: sslmode=" + mode->second + " to " + values["host"] +
                                         "; a database on another machine needs sslmode=verify-full");
    }
  }
  PgParameters parameters;
  for (auto& [name, value] : values) {
    if (!value.empty()) parameters.emplace_back(name, std::move(value));
  }
  return parameters;
}

std::string read_password(const std::string& file) {
  std::string text;
  try {
    text = MappedFile::open(file)->text().substr(0, kMaxPassword + 1);
  } catch (const Error& error) {
    throw Error(ErrorCode::kUsage, "catalog.password_file: " + error.message());
  }
  text.resize(std::min(text.find_first_of("\r\n"), text.size()));
  if (text.empty() || text.size() > kMaxPassword) {
    throw Error(ErrorCode::kUsage, "catalog.password_file: the first line of " + file + " has " +
                                       std::to_string(text.size()) + " bytes, expected 1 to " +
                                       std::to_string(kMaxPassword));
  }
  return text;
}

}  // namespace tensormill::storage
