#include "server/metrics/registry.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>

#include "runtime/base/error.h"

namespace tensormill::metrics {

namespace {

enum Kind : int { kCounter, kGauge, kHistogram, kSizes };

constexpr std::array<double, 16> kSeconds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                             0.05,   0.1,     0.25,   0.5,   1,      2.5,   10,   60};
constexpr std::array<double, 8> kCounts = {1, 2, 4, 8, 16, 32, 64, 128};

std::span<const double> bounds_of(int kind) {
  if (kind == kSizes) return kCounts;
  return kSeconds;
}

/// As Prometheus reads numbers.
std::string number(double value) {
  char text[32];
  const auto [end, code] = std::to_chars(text, text + sizeof text, value);
  TM_CHECK(code == std::errc(), "a number that does not fit");
  return std::string(text, end);
}

/// A bucket's bound: OpenMetrics has a point in each.
std::string bound(double value, bool is_open) {
  std::string text = number(value);
  if (is_open && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string label_text(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += (text.empty() ? "" : ",") + std::string(name) + "=\"";
    for (const char c : value) {
      if (c == '\\' || c == '"') text += '\\';
      text += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    text += '"';
  }
  return text;
}

/// Whether the labels of `series` are those of `prefix`, or these and more.
bool begins_with(std::string_view series, std::string_view prefix) {
  return series.starts_with(prefix) && (series.size() == prefix.size() || series[prefix.size()] == ',');
}

std::string braced(const std::string& labels, const std::string& more = "") {
  const std::string both = labels + (labels.empty() || more.empty() ? "" : ",") + more;
  return both.empty() ? "" : "{" + both + "}";
}

}  // namespace

Registry::Registry() {
  const auto add = [this](int kind, std::string_view name, std::string_view meaning) {
    order_.push_back(name);
    families_[name].kind = kind;
    families_[name].meaning = meaning;
  };
#define TM_METRIC(kind, name, meaning) add(kind, name, meaning);
#include "server/metrics/metrics.def"
#undef TM_METRIC
}

Registry::Family& Registry::family(std::string_view name) {
  const auto found = families_.find(name);
  TM_CHECK(found != families_.end(), "no metric " + std::string(name));
  return found->second;
}

void Registry::count(std::string_view name, const Labels& labels, double by) {
  const std::lock_guard lock(mutex_);
  Family& counter = family(name);
  TM_CHECK(counter.kind == kCounter && by >= 0, std::string(name) + " is no counter");
  counter.values[label_text(labels)] += by;
}

void Registry::set(std::string_view name, const Labels& labels, double value) {
  const std::lock_guard lock(mutex_);
  Family& gauge = family(name);
  TM_CHECK(gauge.kind == kGauge, std::string(name) + " is no gauge");
  gauge.values[label_text(labels)] = value;
}

void Registry::add(std::string_view name, const Labels& labels, double by) {
  const std::lock_guard lock(mutex_);
  Family& gauge = family(name);
  TM_CHECK(gauge.kind == kGauge, std::string(name) + " is no gauge");
  gauge.values[label_text(labels)] += by;
}

void Registry::observe(std::string_view name, const Labels& labels, double value, std::string_view trace_id) {
  const std::lock_guard lock(mutex_);
  Family& observed = family(name);
  TM_CHECK(observed.kind == kHistogram || observed.kind == kSizes, std::string(name) + " is no histogram");
  const std::span<const double> bounds = bounds_of(observed.kind);
  Histogram& histogram = observed.histograms[label_text(labels)];
  histogram.buckets.resize(bounds.size());
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value);
  const auto at = static_cast<size_t>(bucket - bounds.begin());
  if (bucket != bounds.end()) ++histogram.buckets[at];
  if (!trace_id.empty()) {
    const std::chrono::duration<double> since = std::chrono::system_clock::now().time_since_epoch();
    histogram.exemplars.resize(bounds.size() + 1);
    histogram.exemplars[at] = {std::string(trace_id), value, since.count()};
  }
  histogram.sum += value;
  ++histogram.count;
}

void Registry::clear(std::string_view name) {
  const std::lock_guard lock(mutex_);
  family(name).values.clear();
}

void Registry::forget(const Labels& labels, const std::vector<Labels>& but) {
  const std::string prefix = label_text(labels);
  std::vector<std::string> kept;
  for (const Labels& one : but) kept.push_back(label_text(one));
  const auto goes = [&](const std::string& series) {
    return begins_with(series, prefix) && std::none_of(kept.begin(), kept.end(), [&](const std::string& one) {
             return begins_with(series, one);
           });
  };
  const std::lock_guard lock(mutex_);
  for (auto& [name, family] : families_) {
    const bool is_gauge = family.kind == kGauge;
    std::erase_if(family.values,
                  [&](const auto& one) { return goes(one.first) && (!is_gauge || one.second == 0); });
    std::erase_if(family.histograms, [&](const auto& one) { return goes(one.first); });
  }
}

void Registry::on_collect(std::function<void(Registry&)> collect) {
  const std::lock_guard lock(collecting_);
  collectors_.push_back(std::move(collect));
}

std::string Registry::text_of(std::string_view name, const Family& shown, Form form) {
  constexpr std::string_view kTotal = "_total";
  const bool is_open = form == Form::kOpenMetrics;
  const std::string label(name);
  // OpenMetrics calls a family of counters what its samples are called without the ending.
  const std::string family_name =
      is_open && shown.kind == kCounter ? label.substr(0, label.size() - kTotal.size()) : label;
  const char* type = shown.kind == kCounter ? "counter" : shown.kind == kGauge ? "gauge" : "histogram";
  std::string text = "# HELP " + family_name + " " + std::string(shown.meaning) + "\n# TYPE " + family_name +
                     " " + type + "\n";
  for (const auto& [labels, value] : shown.values)
    text += label + braced(labels) + " " + number(value) + "\n";
  for (const auto& [labels, histogram] : shown.histograms) {
    const std::span<const double> bounds = bounds_of(shown.kind);
    const auto exemplar = [&, &kept = histogram.exemplars](size_t at) -> std::string {
      if (!is_open || at >= kept.size() || kept[at].trace_id.empty()) return "\n";
      return " # {trace_id=\"" + kept[at].trace_id + "\"} " + number(kept[at].value) + " " +
             number(kept[at].time_s) + "\n";
    };
    uint64_t below = 0;
    for (size_t i = 0; i < bounds.size(); ++i) {
      below += histogram.buckets[i];
      text += label + "_bucket" + braced(labels, "le=\"" + bound(bounds[i], is_open) + "\"") + " " +
              std::to_string(below) + exemplar(i);
    }
    text += label + "_bucket" + braced(labels, "le=\"+Inf\"") + " " + std::to_string(histogram.count) +
            exemplar(bounds.size());
    text += label + "_sum" + braced(labels) + " " + number(histogram.sum) + "\n";
    text += label + "_count" + braced(labels) + " " + std::to_string(histogram.count) + "\n";
  }
  return text;
}

std::string Registry::text(Form form) {
  // One at a time: what is cleared here and set again must not be seen between.
  const std::lock_guard collecting(collecting_);
  for (const auto& collect : collectors_) collect(*this);
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string_view name : order_) text += text_of(name, families_.at(name), form);
  if (form == Form::kOpenMetrics) text += "# EOF\n";
  return text;
}

}  // namespace tensormill::metrics
