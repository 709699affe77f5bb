#include "server/services/jobs/report_document.h"

#include <map>

#include "api/http/time.h"
#include "compiler/driver/compile.h"
#include "server/report/rows.h"

namespace tensormill::server {

std::string report_row_event(size_t index, const Json& row, const target::Target& host) {
  return Json{{"index", index},
              {"row", row},
              {"machine", report::machine_json(host)},
              {"program", driver::compiler_build()}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json report_document(storage::Catalog& catalog, const storage::JobRow& job) {
  constexpr int kPart = 200;
  // An attempt after another begins again: of each row the last counts.
  std::map<size_t, Json> rows;
  Json machine;
  std::string program;
  int64_t after = 0;
  while (true) {
    const std::vector<storage::JobEventRow> events = catalog.job_events(job.id, after, kPart);
    for (const storage::JobEventRow& event : events) {
      after = event.sequence;
      if (event.type != kReportRow) continue;
      Json data = parse_json(event.data);
      rows[data.at("index").get<size_t>()] = std::move(data.at("row"));
      machine = std::move(data.at("machine"));
      data.at("program").get_to(program);
    }
    if (events.size() < kPart) break;
  }
  Json list = Json::array();
  for (auto& [index, row] : rows) list.push_back(std::move(row));
  const Json resolved = parse_json(job.resolved);
  const int64_t made_at = job.finished_ms != 0 ? job.finished_ms : job.created_ms;
  Json document = report::report_json(
      {http::format_timestamp(made_at), program, machine, resolved.at("inputs").get<std::string>()},
      std::move(list));
  document["job"] = job.id;
  document["state"] = storage::job_state_name(job.state);
  return document;
}

}  // namespace tensormill::server
