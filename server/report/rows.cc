#include "server/report/rows.h"

#include <utility>

#include "runtime/package/archive_layout.h"
#include "server/report/confusion.h"
#include "server/report/remarks.h"

namespace tensormill::report {

namespace {

/// Of the archive that has these members.
int64_t archive_bytes(const package::Metadata& metadata, size_t metadata_bytes) {
  const auto size_of = [&](std::string_view name) { return metadata.members.at(std::string(name)).size; };
  int64_t bytes = 0;
  for (const package::ArchivePiece& piece :
       package::archive_layout({static_cast<int64_t>(metadata_bytes), size_of(package::kPlanMember),
                                size_of(package::kCodeMember), size_of(package::kParamsMember)})) {
    bytes += piece.size;
  }
  return bytes;
}

}  // namespace

std::string configuration_name(std::string_view model, std::string_view target, int opt_level,
                               std::string_view layout) {
  constexpr size_t kLongest = 24;
  const size_t cpu = target.find("-mcpu=");
  const std::string_view from = cpu == std::string_view::npos ? target : target.substr(cpu + 6);
  std::string text = std::string(model) + " ";
  text += from.substr(0, cpu == std::string_view::npos ? kLongest : from.find(' '));
  text += " O" + std::to_string(opt_level);
  if (!layout.empty()) text.append(" ").append(layout);
  return text;
}

Json empty_row(const std::string& name, const std::string& model, const std::string& target, int opt_level,
               const std::string& layout) {
  return {{"name", name},
          {"model", model},
          {"target", target},
          {"opt_level", opt_level},
          {"layout", layout.empty() ? Json() : Json(layout)},
          {"state", "failed"},
          {"quality", Json()},
          {"remarks", Json::array()}};
}

Json package_json(const package::Metadata& metadata, const Digest& id, size_t metadata_bytes) {
  Json parts = {{std::string(package::kMetadataMember), metadata_bytes}};
  for (const auto& [name, member] : metadata.members) parts[name] = member.size;
  return {{"id", id.text()},
          {"archive_bytes", archive_bytes(metadata, metadata_bytes)},
          {"parts", parts},
          {"arena_bytes", metadata.arena_bytes},
          {"worker_workspace_bytes", metadata.worker_workspace_bytes},
          {"kernels", metadata.kernels.size()},
          {"host_steps", metadata.host_steps},
          {"flops", metadata.flops}};
}

Json run_json(const Json& evaluation, int64_t max_resident_bytes) {
  Json json = evaluation;
  json.erase("best");
  json["max_resident_bytes"] = max_resident_bytes;
  json["energy_j_per_sample"] =
      evaluation["energy_j"].is_null()
          ? Json()
          : Json(evaluation["energy_j"].get<double>() / evaluation["samples"].get<double>());
  return json;
}

Json quality_json(const Json& evaluation, const Truth& truth) {
  if (truth.classes.empty() || evaluation["best"].is_null()) return {};
  return compare_classes(truth.classes, evaluation["best"], truth.names);
}

std::vector<std::string> row_remarks(const RemarkSources& sources, const Json& evaluation,
                                     const Json& quality) {
  std::vector<std::string> lines =
      remarks(sources.metadata, sources.compile_log, sources.target, sources.host, evaluation);
  if (!evaluation.is_null() && sources.has_truth && quality.is_null())
    lines.emplace_back("no accuracy: the scores are not a row of classes for each sample");
  return lines;
}

Json machine_json(const target::Target& host) {
  return {{"target", host.canonical()}, {"cores", host.facts.num_cores}};
}

Json report_json(const ReportHead& head, Json rows) {
  Json samples;
  for (const Json& row : rows) {
    if (row["state"] != "ok") continue;
    samples = row["run"]["samples"];
    break;
  }
  return {{"made_at", head.made_at}, {"program", head.program}, {"machine", head.machine},
          {"inputs", head.inputs},   {"samples", samples},      {"configurations", std::move(rows)}};
}

}  // namespace tensormill::report
