#include "server/report/html.h"

#include <algorithm>
#include <cstdio>

#include "runtime/base/json.h"

namespace tensormill::report {

namespace {

constexpr const char* kHead =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>TensorMill report</title>\n<style>\n"
    ":root{color-scheme:light dark;--line:#8885;--bar:#4a7fb5;--good:#4a7fb5;--wrong:#c2553d}\n"
    "body{font:15px/1.45 system-ui,sans-serif;max-width:86rem;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem;border-top:1px solid var(--line);"
    "padding-top:1rem}h3{font-size:1rem}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "td,th{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}\n"
    "td:first-child,th:first-child,td.t,th.t{text-align:left}\n"
    "td,th,li,code,dd,text{unicode-bidi:isolate}\n"
    "svg{width:100%;max-width:46rem;height:auto;display:block;margin:1rem 0}\n"
    "svg text{font-size:12px;fill:currentColor}svg .title{font-weight:600}\n"
    ".failed{color:var(--wrong)}small{opacity:.75}\n</style></head><body>\n";

std::string number(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// A number of the document, "–" where it is not there.
std::string cell(const Json& value, const char* format = "%.4g", double scale = 1) {
  return value.is_number() ? number(value.get<double>() * scale, format) : "–";
}

std::string text_of(const Json& value) { return value.is_string() ? escape(value.get<std::string>()) : "–"; }

/// The member behind names one in the other; null where one is not there.
Json at(const Json& json, const std::vector<const char*>& names) {
  const Json* here = &json;
  for (const char* name : names) {
    const auto found = here->is_object() ? here->find(name) : here->end();
    if (!here->is_object() || found == here->end()) return {};
    here = &*found;
  }
  return *here;
}

struct Column {
  const char* title;
  std::vector<const char*> path;
  const char* format;
  double scale;
};

constexpr double kMi = 1.0 / (1024 * 1024);

const std::vector<Column>& columns() {
  static const std::vector<Column> rows = {
      {"median ms", {"run", "times", "median_ms"}, "%.4f", 1},
      {"p95 ms", {"run", "times", "p95_ms"}, "%.4f", 1},
      {"samples/s", {"run", "samples_per_s"}, "%.1f", 1},
      {"accuracy %", {"quality", "accuracy"}, "%.2f", 100},
      {"precision %", {"quality", "macro_precision"}, "%.2f", 100},
      {"recall %", {"quality", "macro_recall"}, "%.2f", 100},
      {"package MiB", {"package", "archive_bytes"}, "%.2f", kMi},
      {"run peak MiB", {"run", "max_resident_bytes"}, "%.1f", kMi},
      {"compile s", {"compile", "wall_s"}, "%.2f", 1},
      {"compile peak MiB", {"compile", "max_resident_bytes"}, "%.1f", kMi},
      {"mJ/sample", {"run", "energy_j_per_sample"}, "%.3f", 1000},
  };
  return rows;
}

std::string overview(const Json& configurations) {
  std::string html = "<div class=\"wide\"><table><tr><th>configuration";
  for (const Column& column : columns()) html += std::string("<th>") + column.title;
  html += "\n";
  size_t index = 0;
  for (const Json& row : configurations) {
    html += "<tr><td><a href=\"#c" + std::to_string(index++) + "\">" + text_of(row["name"]) + "</a>";
    if (row["state"] != "ok") {
      html += "<td class=\"t failed\" colspan=\"" + std::to_string(columns().size()) + "\">" +
              text_of(at(row, {"error", "message"})) + "\n";
      continue;
    }
    for (const Column& column : columns())
      html += "<td>" + cell(at(row, column.path), column.format, column.scale);
    html += "\n";
  }
  return html +
         "</table></div>\n<p><small>Peaks of memory are of whole processes: the program itself, the package "
         "or model, and the set "
         "of inputs. Times are of a batch.</small></p>\n";
}

std::string charts(const Json& configurations) {
  const struct {
    const char* title;
    std::vector<const char*> path;
    const char* format;
    double scale;
  } rows[] = {{"Latency: median, ms", {"run", "times", "median_ms"}, "%.4f", 1},
              {"Throughput: samples a second", {"run", "samples_per_s"}, "%.1f", 1},
              {"Accuracy, %", {"quality", "accuracy"}, "%.2f", 100},
              {"Package, MiB", {"package", "archive_bytes"}, "%.2f", kMi},
              {"Memory of a run: peak, MiB", {"run", "max_resident_bytes"}, "%.1f", kMi},
              {"Compile time, s", {"compile", "wall_s"}, "%.2f", 1}};
  std::string html;
  for (const auto& row : rows) {
    std::vector<Bar> bars;
    for (const Json& configuration : configurations) {
      const Json value = at(configuration, row.path);
      if (!value.is_number()) continue;
      const double scaled = value.get<double>() * row.scale;
      bars.push_back({configuration["name"].get<std::string>(), scaled, number(scaled, row.format)});
    }
    if (!bars.empty()) html += bar_chart(row.title, bars);
  }
  return html;
}

std::string confusion_table(const Json& quality) {
  const Json& matrix = quality["confusion"];
  const Json& classes = quality["classes"];
  if (!matrix.is_array()) return "";
  std::string html =
      "<h3>Confusion: rows are the truth, columns what was predicted</h3>\n<div "
      "class=\"wide\"><table><tr><th>";
  for (const Json& one : classes) html += "<th>" + text_of(one["name"]);
  html += "\n";
  for (size_t i = 0; i < matrix.size(); ++i) {
    const auto samples = static_cast<double>(std::max<int64_t>(1, classes[i]["samples"].get<int64_t>()));
    html += "<tr><th>" + text_of(classes[i]["name"]);
    for (size_t j = 0; j < matrix[i].size(); ++j) {
      const auto count = matrix[i][j].get<int64_t>();
      const double share = static_cast<double>(count) / samples;
      html += "<td style=\"background:color-mix(in srgb,var(" + std::string(i == j ? "--good" : "--wrong") +
              ") " + number(100 * std::min(1.0, share), "%.0f") + "%,transparent)\">" + std::to_string(count);
    }
    html += "\n";
  }
  return html + "</table></div>\n";
}

std::string quality_tables(const Json& quality) {
  if (!quality.is_object()) return "";
  std::string html = confusion_table(quality);
  html +=
      "<h3>Classes</h3>\n<div "
      "class=\"wide\"><table><tr><th>class<th>samples<th>predicted<th>right<th>precision %"
      "<th>recall %<th>F1 %\n";
  for (const Json& row : quality["classes"]) {
    html += "<tr><td>" + text_of(row["name"]) + "<td>" + cell(row["samples"], "%.0f") + "<td>" +
            cell(row["predicted"], "%.0f") + "<td>" + cell(row["right"], "%.0f") + "<td>" +
            cell(row["precision"], "%.2f", 100) + "<td>" + cell(row["recall"], "%.2f", 100) + "<td>" +
            cell(row["f1"], "%.2f", 100) + "\n";
  }
  html += "</table></div>\n";
  if (!quality["most_confused"].empty()) {
    html += "<h3>Most often confused</h3>\n<table><tr><th>truth<th class=\"t\">predicted<th>samples\n";
    for (const Json& row : quality["most_confused"]) {
      html += "<tr><td>" + text_of(row["truth"]) + "<td class=\"t\">" + text_of(row["predicted"]) + "<td>" +
              cell(row["samples"], "%.0f") + "\n";
    }
    html += "</table>\n";
  }
  return html;
}

std::string parts_table(const Json& package) {
  std::string html = "<h3>Package</h3>\n<table><tr><th>part<th>bytes\n";
  for (const auto& [name, bytes] : package["parts"].items())
    html += "<tr><td>" + escape(name) + "<td>" + cell(bytes, "%.0f") + "\n";
  const std::initializer_list<std::pair<const char*, const char*>> more = {
      {"file", "archive_bytes"},
      {"arena of a run", "arena_bytes"},
      {"workspace of a thread", "worker_workspace_bytes"}};
  for (const auto& [title, key] : more)
    html += std::string("<tr><td>") + title + "<td>" + cell(at(package, {key}), "%.0f") + "\n";
  return html + "</table>\n<p><small>" + text_of(package["id"]) + "</small></p>\n";
}

std::string details(const Json& row, size_t index) {
  std::string html = "<h2 id=\"c" + std::to_string(index) + "\">" + text_of(row["name"]) +
                     "</h2>\n<p>model <code>" + text_of(row["model"]) + "</code>, target <code>" +
                     text_of(row["target"]) + "</code>, opt level " + cell(row["opt_level"], "%.0f") +
                     (row["layout"].is_null() ? "" : ", layout " + text_of(row["layout"])) + "</p>\n";
  if (row["state"] != "ok") {
    return html + "<p class=\"failed\">" + text_of(at(row, {"error", "step"})) + ": " +
           text_of(at(row, {"error", "message"})) + "</p>\n";
  }
  if (!row["remarks"].empty()) {
    html += "<h3>What held it back</h3>\n<ul>\n";
    for (const Json& line : row["remarks"]) html += "<li>" + text_of(line) + "\n";
    html += "</ul>\n";
  }
  return html + quality_tables(row["quality"]) + parts_table(row["package"]);
}

}  // namespace

std::string escape(std::string_view text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::string_view next = text.substr(i, 3);
    // U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
    const bool turns = next.size() == 3 && next[0] == '\xE2' &&
                       ((next[1] == '\x80' && (next[2] == '\x8E' || next[2] == '\x8F' ||
                                               (next[2] >= '\xAA' && next[2] <= '\xAE'))) ||
                        (next[1] == '\x81' && next[2] >= '\xA6' && next[2] <= '\xA9'));
    if (turns || byte < 0x20 || byte == 0x7F) {
      escaped += byte == '\n' || byte == '\t' ? " " : "\xEF\xBF\xBD";
      if (turns) i += 2;
      continue;
    }
    switch (text[i]) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += text[i];
    }
  }
  return escaped;
}

std::string bar_chart(const std::string& title, const std::vector<Bar>& bars) {
  constexpr int kRow = 22, kLabels = 300, kWidth = 360, kTop = 26, kAll = 740;
  double largest = 0;
  for (const Bar& bar : bars) largest = std::max(largest, bar.value);
  const auto height = kTop + kRow * static_cast<int>(bars.size());
  std::string svg = "<svg viewBox=\"0 0 " + std::to_string(kAll) + " " + std::to_string(height) +
                    "\" role=\"img\" aria-label=\"" + escape(title) +
                    "\"><text class=\"title\" x=\"0\" y=\"14\">" + escape(title) + "</text>\n";
  int y = kTop;
  for (const Bar& bar : bars) {
    const double width = largest > 0 ? std::max(0.0, bar.value / largest) * kWidth : 0;
    svg += "<text x=\"" + std::to_string(kLabels - 8) + "\" y=\"" + std::to_string(y + 12) +
           "\" text-anchor=\"end\">" + escape(bar.label) + "</text><rect x=\"" + std::to_string(kLabels) +
           "\" y=\"" + std::to_string(y) + "\" width=\"" + number(width, "%.1f") +
           "\" height=\"16\" fill=\"var(--bar)\"/><text x=\"" + number(kLabels + width + 6, "%.1f") +
           "\" y=\"" + std::to_string(y + 12) + "\">" + escape(bar.shown) + "</text>\n";
    y += kRow;
  }
  return svg + "</svg>\n";
}

std::string to_html(const Json& report) {
  const Json& configurations = report["configurations"];
  std::string html = kHead;
  html += "<h1>Configurations compared</h1>\n<p>" + std::to_string(configurations.size()) +
          " configurations, " + cell(report["samples"], "%.0f") + " samples of <code>" +
          text_of(report["inputs"]) + "</code>, on <code>" + text_of(at(report, {"machine", "target"})) +
          "</code>, by " + text_of(report["program"]) + ", " + text_of(report["made_at"]) + ".</p>\n";
  html += overview(configurations) + charts(configurations);
  size_t index = 0;
  for (const Json& row : configurations) html += details(row, index++);
  return html + "</body></html>\n";
}

}  // namespace tensormill::report
