/// Header fields of a message: ordered, names compared without case, values as they were sent with the white
/// space around them removed.
/// Thread-safety: values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensormill::http {

/// Equal but for the case of ASCII letters.
bool equals_ignoring_case(std::string_view a, std::string_view b);
/// ASCII lower case.
std::string to_lower(std::string_view text);
/// `text` without spaces and tabs at its ends.
std::string_view trim(std::string_view text);
/// The members of a comma-separated list, trimmed; empty members are left out.
std::vector<std::string_view> split_list(std::string_view text);

/// In a request that one replica has passed on to another, which then answers it.
inline constexpr std::string_view kPassedOn = "X-Tensormill-Passed-On";

class Headers {
public:
  using Field = std::pair<std::string, std::string>;

  /// Appends a field. TM_CHECKs that neither part holds CR, LF or NUL: a value cannot split a response.
  void add(std::string_view name, std::string_view value);
  /// Replaces all fields of that name by one.
  void set(std::string_view name, std::string_view value);
  void remove(std::string_view name);
  /// The first field of that name.
  std::optional<std::string_view> get(std::string_view name) const;
  std::vector<std::string_view> get_all(std::string_view name) const;
  bool has(std::string_view name) const { return get(name).has_value(); }
  const std::vector<Field>& fields() const { return fields_; }

private:
  std::vector<Field> fields_;
};

}  // namespace tensormill::http
