/// Numbers of the process for operators, in Prometheus' text format (version 0.0.4) or as OpenMetrics
/// (1.0.0), which has exemplars: metrics.def is the list of families. Thread-safety: all methods from many
/// threads.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tensormill::metrics {

/// Name and value, in the order in which they are shown. Values must come from a bounded set.
using Labels = std::vector<std::pair<std::string_view, std::string>>;

class Registry {
public:
  Registry();
  /// Adds to a counter or, with set(), sets a gauge. TM_CHECKs the family and its kind.
  void count(std::string_view family, const Labels& labels, double by = 1);
  void set(std::string_view family, const Labels& labels, double value);
  void add(std::string_view family, const Labels& labels, double by);
  /// One observation of a histogram. `trace_id`: of the recorded trace that it is of, 32 hexadecimal digits,
  /// or "": each bucket shows the last that it has.
  void observe(std::string_view family, const Labels& labels, double value, std::string_view trace_id = "");
  /// Forgets the series of a gauge, before its present ones are set.
  void clear(std::string_view family);
  /// Forgets the series of all families whose labels begin with `labels`, but not those that begin with one
  /// of `but`: what they measure is gone. A gauge stays until it stands at 0: something will count it down.
  void forget(const Labels& labels, const std::vector<Labels>& but = {});
  /// `collect` is called before each text(), to set gauges that are looked up and not followed.
  void on_collect(std::function<void(Registry&)> collect);
  enum class Form { kPrometheus, kOpenMetrics };
  /// Families in the table's order, series sorted by label.
  std::string text(Form form = Form::kPrometheus);

private:
  struct Exemplar {
    std::string trace_id;  ///< "": none
    double value = 0;
    double time_s = 0;  ///< since 1970
  };
  struct Histogram {
    std::vector<uint64_t> buckets;
    std::vector<Exemplar> exemplars;  ///< of each bucket, and of those past the last
    double sum = 0;
    uint64_t count = 0;
  };
  struct Family {
    int kind = 0;
    std::string_view meaning;
    std::map<std::string, double> values;
    std::map<std::string, Histogram> histograms;
  };
  Family& family(std::string_view name);
  static std::string text_of(std::string_view name, const Family& shown, Form form);

  std::mutex mutex_;
  std::vector<std::string_view> order_;
  std::map<std::string_view, Family> families_;
  std::mutex collecting_;
  std::vector<std::function<void(Registry&)>> collectors_;
};

}  // namespace tensormill::metrics
