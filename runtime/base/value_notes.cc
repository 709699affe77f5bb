#include "runtime/base/value_notes.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill {

namespace {

std::vector<double> numbers_of(const Json& json, const char* key) {
  std::vector<double> numbers;
  if (!json.contains(key)) return numbers;
  json.at(key).get_to(numbers);
  return numbers;
}

bool is_normal_form(const ValueNotes& notes) {
  const auto is_channels = [](const std::vector<double>& values) {
    return values.size() == 1 || values.size() == 3;
  };
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (notes.mean.empty() != notes.std.empty()) return false;
  if (!notes.mean.empty() && (!is_channels(notes.mean) || !is_channels(notes.std))) return false;
  return std::all_of(notes.mean.begin(), notes.mean.end(), is_finite) &&
         std::all_of(notes.std.begin(), notes.std.end(),
                     [&](double value) { return is_finite(value) && value > 0; });
}

}  // namespace

Json notes_to_json(const ValueNotes& notes) {
  Json json = Json::object();
  if (!notes.mean.empty()) json["mean"] = notes.mean;
  if (!notes.std.empty()) json["std"] = notes.std;
  if (!notes.labels.empty()) json["labels"] = notes.labels;
  return json;
}

ValueNotes notes_from_json(const Json& json) {
  ValueNotes notes;
  bool is_good = json.is_object();
  try {
    if (is_good) {
      notes.mean = numbers_of(json, "mean");
      notes.std = numbers_of(json, "std");
      if (json.contains("labels")) json.at("labels").get_to(notes.labels);
    }
  } catch (const Json::exception&) {
    is_good = false;
  }
  size_t bytes = 0;
  for (const std::string& label : notes.labels) bytes += label.size();
  if (!is_good || !is_normal_form(notes) || notes.labels.size() > kMostNotedLabels || bytes > kMostNotedBytes)
    throw Error(ErrorCode::kInvalidJson,
                "notes are {\"mean\", \"std\", \"labels\"}: 1 or 3 numbers each with std above 0, and texts");
  return notes;
}

}  // namespace tensormill
