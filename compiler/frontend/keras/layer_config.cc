#include "compiler/frontend/keras/layer_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "runtime/base/error.h"

namespace tensormill::frontend::keras {

namespace {

const Json kNull;

constexpr std::array kUnread = {
#define KERAS_UNREAD(name, reason) std::string_view(name),
#include "compiler/frontend/keras/unread_options.def"
#undef KERAS_UNREAD
};

int64_t integer_of(const Json& json, const std::string& what) {
  if (json.is_number_integer()) return json.get<int64_t>();
  // JavaScript and old versions write whole numbers as real ones.
  if (json.is_number_float()) {
    const auto number = json.get<double>();
    if (std::floor(number) == number && std::fabs(number) < 1e15) return static_cast<int64_t>(number);
  }
  throw Error(ErrorCode::kInvalidModel, what + " is no integer");
}

}  // namespace

const Json& LayerConfig::at(const std::string& name) const {
  read_.insert(name);
  return json_.is_object() && json_.contains(name) ? json_.at(name) : kNull;
}

void LayerConfig::fail(const std::string& name, const char* expected) {
  throw Error(ErrorCode::kInvalidModel, "option " + name + " is no " + expected);
}

bool LayerConfig::flag(const std::string& name, bool usual) const {
  const Json& value = at(name);
  if (value.is_null()) return usual;
  if (!value.is_boolean()) fail(name, "boolean");
  return value.get<bool>();
}

int64_t LayerConfig::integer(const std::string& name) const { return integer_of(at(name), "option " + name); }

int64_t LayerConfig::integer(const std::string& name, int64_t usual) const {
  return has(name) ? integer(name) : usual;
}

double LayerConfig::number(const std::string& name, double usual) const {
  const Json& value = at(name);
  if (value.is_null()) return usual;
  if (!value.is_number()) fail(name, "number");
  return value.get<double>();
}

std::string LayerConfig::text(const std::string& name, const std::string& usual) const {
  const Json& value = at(name);
  if (value.is_null()) return usual;
  if (!value.is_string()) fail(name, "text");
  return value.get<std::string>();
}

ir::Ints LayerConfig::integers(const std::string& name, size_t count) const {
  ir::Ints values = integers_of(at(name), "option " + name);
  if (values.size() == 1) values.assign(count, values.front());
  if (values.size() != count) {
    throw Error(ErrorCode::kInvalidModel, "option " + name + " has " + std::to_string(values.size()) +
                                              " numbers, expected " + std::to_string(count));
  }
  return values;
}

ir::Ints LayerConfig::integers(const std::string& name, size_t count, int64_t usual) const {
  return has(name) ? integers(name, count) : std::vector<int64_t>(count, usual);
}

ir::Ints LayerConfig::list(const std::string& name) const { return integers_of(at(name), "option " + name); }

ir::CheckedList<double> LayerConfig::numbers(const std::string& name) const {
  std::vector<double> values;
  const auto collect = [&](const auto& self, const Json& json, int depth) -> void {
    if (depth > 8) fail(name, "list of numbers");
    if (json.is_array()) {
      for (const Json& element : json) self(self, element, depth + 1);
    } else if (json.is_number()) {
      values.push_back(json.get<double>());
    } else {
      fail(name, "list of numbers");
    }
  };
  collect(collect, at(name), 0);
  return values;
}

void LayerConfig::skip_all() const {
  if (!json_.is_object()) return;
  for (const auto& [name, value] : json_.items()) read_.insert(name);
}

std::optional<std::string> LayerConfig::unread() const {
  if (!json_.is_object()) return std::nullopt;
  for (const auto& [name, value] : json_.items()) {
    const bool is_off = value.is_null() || value == false;
    const bool is_known = std::find(kUnread.begin(), kUnread.end(), name) != kUnread.end();
    if (!is_off && !is_known && read_.count(name) == 0) return name;
  }
  return std::nullopt;
}

ir::Ints integers_of(const Json& json, const std::string& what) {
  std::vector<int64_t> values;
  if (!json.is_array()) return {integer_of(json, what)};
  for (const Json& element : json) values.push_back(integer_of(element, what));
  return values;
}

std::string policy_name(const Json& json) {
  if (json.is_null()) return "float32";
  if (json.is_string()) return json.get<std::string>();
  if (json.is_object() && json.contains("config") && json.at("config").is_object() &&
      json.at("config").contains("name") && json.at("config").at("name").is_string())
    return json.at("config").at("name").get<std::string>();
  throw Error(ErrorCode::kInvalidModel, "option dtype is no policy");
}

}  // namespace tensormill::frontend::keras
