#include "server/report/confusion.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/narrow.h"
#include "runtime/npz/npz.h"

namespace tensormill::report {

namespace {

constexpr int64_t kMaxClass = int64_t{1} << 20;
constexpr size_t kMaxMatrix = 200;
constexpr size_t kMaxPairs = 20;

using Counts = std::map<std::pair<int64_t, int64_t>, int64_t>;

std::string name_of(int64_t index, const std::vector<std::string>& names) {
  const auto at = static_cast<size_t>(index);
  return at < names.size() && !names[at].empty() ? names[at] : std::to_string(index);
}

void check_class(int64_t value, size_t sample) {
  if (value < 0 || value >= kMaxClass) {
    throw Error(ErrorCode::kInvalidArgument, "class " + std::to_string(value) + " of sample " +
                                                 std::to_string(sample) + " is outside 0 to " +
                                                 std::to_string(kMaxClass - 1));
  }
}

Json ratio(int64_t part, int64_t of) {
  return of == 0 ? Json() : Json(static_cast<double>(part) / static_cast<double>(of));
}

/// The harmonic mean; null where either is.
Json f1_of(const Json& precision, const Json& recall) {
  if (precision.is_null() || recall.is_null()) return {};
  const double p = precision.get<double>(), r = recall.get<double>();
  return p + r == 0 ? Json(0.0) : Json(2 * p * r / (p + r));
}

/// A value that is null counts as 0: a class that is never predicted has no precision to be proud of.
double macro(const Json& classes, const char* key) {
  double sum = 0;
  int64_t count = 0;
  for (const Json& row : classes) {
    if (row["samples"] == 0) continue;
    if (!row[key].is_null()) sum += row[key].get<double>();
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

Json class_rows(const Counts& counts, const std::set<int64_t>& present,
                const std::vector<std::string>& names) {
  std::map<int64_t, int64_t> samples, predicted, right;
  for (const auto& [pair, count] : counts) {
    samples[pair.first] += count;
    predicted[pair.second] += count;
    if (pair.first == pair.second) right[pair.first] += count;
  }
  Json rows = Json::array();
  for (const int64_t index : present) {
    const Json precision = ratio(right[index], predicted[index]);
    const Json recall = ratio(right[index], samples[index]);
    rows.push_back({{"class", index},
                    {"name", name_of(index, names)},
                    {"samples", samples[index]},
                    {"predicted", predicted[index]},
                    {"right", right[index]},
                    {"precision", precision},
                    {"recall", recall},
                    {"f1", f1_of(precision, recall)}});
  }
  return rows;
}

Json matrix(const Counts& counts, const std::set<int64_t>& present) {
  if (present.size() > kMaxMatrix) return {};
  Json rows = Json::array();
  for (const int64_t truth : present) {
    Json row = Json::array();
    for (const int64_t predicted : present) {
      const auto found = counts.find({truth, predicted});
      row.push_back(found == counts.end() ? 0 : found->second);
    }
    rows.push_back(row);
  }
  return rows;
}

Json most_confused(const Counts& counts, const std::vector<std::string>& names) {
  std::vector<std::pair<std::pair<int64_t, int64_t>, int64_t>> pairs;
  for (const auto& one : counts) {
    if (one.first.first != one.first.second) pairs.push_back(one);
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (pairs.size() > kMaxPairs) pairs.resize(kMaxPairs);
  Json rows = Json::array();
  for (const auto& [pair, count] : pairs) {
    rows.push_back({{"truth", name_of(pair.first, names)},
                    {"predicted", name_of(pair.second, names)},
                    {"samples", count}});
  }
  return rows;
}

std::vector<int64_t> numbers_of(const Tensor& tensor, const std::string& path) {
  if (tensor.shape().size() != 1 || !is_integer(tensor.dtype()) || tensor.dtype() == kString) {
    throw Error(ErrorCode::kInvalidArgument, path + ": labels are one whole number a sample, this is " +
                                                 std::string(dtype_long_name(tensor.dtype())) +
                                                 to_string(tensor.shape()));
  }
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.push_back(tensor.element_as_int(i));
  return values;
}

int64_t class_of(std::string_view word, const std::map<std::string, int64_t, std::less<>>& numbers,
                 const std::string& where) {
  if (const auto found = numbers.find(word); found != numbers.end()) return found->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size()) return value;
  throw Error(ErrorCode::kInvalidArgument, where + ": \"" + std::string(word.substr(0, 80)) +
                                               "\" is neither a class number nor a class name");
}

std::vector<int64_t> read_lines(std::string_view text, const std::string& path,
                                const std::vector<std::string>& names) {
  std::map<std::string, int64_t, std::less<>> numbers;
  for (size_t i = 0; i < names.size(); ++i) numbers.emplace(names[i], static_cast<int64_t>(i));
  std::vector<int64_t> values;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    values.push_back(class_of(line, numbers, path + ", line " + std::to_string(values.size() + 1)));
    at = end + 1;
  }
  return values;
}

}  // namespace

Json compare_classes(const std::vector<int64_t>& truth, const std::vector<int64_t>& predicted,
                     const std::vector<std::string>& names) {
  if (truth.size() < predicted.size()) {
    throw Error(ErrorCode::kInvalidArgument, "there are " + std::to_string(predicted.size()) +
                                                 " samples and " + std::to_string(truth.size()) + " labels");
  }
  Counts counts;
  std::set<int64_t> present;
  int64_t right = 0;
  for (size_t i = 0; i < predicted.size(); ++i) {
    check_class(truth[i], i);
    check_class(predicted[i], i);
    ++counts[{truth[i], predicted[i]}];
    present.insert({truth[i], predicted[i]});
    right += truth[i] == predicted[i];
  }
  const Json classes = class_rows(counts, present, names);
  return {{"samples", predicted.size()},
          {"right", right},
          {"accuracy", ratio(right, static_cast<int64_t>(predicted.size()))},
          {"macro_precision", macro(classes, "precision")},
          {"macro_recall", macro(classes, "recall")},
          {"macro_f1", macro(classes, "f1")},
          {"classes", classes},
          {"confusion", matrix(counts, present)},
          {"most_confused", most_confused(counts, names)}};
}

std::vector<int64_t> read_truth(const std::string& path, const std::vector<std::string>& names) {
  return read_truth(*MappedFile::open(path), path, names);
}

std::vector<int64_t> read_truth(const MappedFile& file, const std::string& name,
                                const std::vector<std::string>& names) {
  const std::string_view text = file.text();
  if (text.starts_with("\x93NUMPY")) return numbers_of(npz::read_npy(file.bytes()), name);
  if (!text.starts_with("PK")) return read_lines(text, name, names);
  const std::vector<npz::NamedTensor> entries = npz::read_npz(file.bytes());
  if (entries.size() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                name + " has " + std::to_string(entries.size()) + " arrays, labels are one");
  }
  return numbers_of(entries.front().tensor, name);
}

}  // namespace tensormill::report
