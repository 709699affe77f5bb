#include "server/services/jobs/tune_network.h"

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "server/services/jobs/compile_action.h"
#include "server/services/jobs/network_run.h"

namespace tensormill::server {

TuneNetwork::TuneNetwork(const CompileTools& tools, jobs::JobContext& context, TuneBench& bench,
                         const TuneSearch& search, const GraphFiles& graph, Json form, int threads,
                         std::vector<std::vector<int64_t>> extents)
    : tools_(tools),
      context_(context),
      bench_(bench),
      search_(search),
      graph_(graph),
      form_(std::move(form)),
      threads_(threads),
      extents_(extents.empty() ? std::vector<std::vector<int64_t>>(1) : std::move(extents)) {}

std::vector<tune::Record> TuneNetwork::records() {
  std::vector<tune::Record> records;
  for (const storage::TuningRecordRow& row : search_.measured_here())
    records.push_back(tune::record_from_line(row.line));
  return records;
}

void TuneNetwork::keep(const tune::Record& record) {
  const std::string line = tune::to_line(record);
  tools_.catalog.put_tuning_records({row_of(record, line, context_.job().id)});
}

std::unique_ptr<TuneNetwork::Compiled> TuneNetwork::compiled(const Tuned& tuned) const {
  auto package = std::make_unique<Compiled>(context_.folder());
  compile_graph(tools_, context_, form_, graph_, tuned, package->files);
  const auto metadata = MappedFile::map(package->files.metadata.get(), "package metadata");
  package->metadata = package::metadata_from_json(metadata->text());
  return package;
}

void TuneNetwork::compile() {
  context_.progress(R"({"stage":"compile","done":0,"total":2})");
  if (!untuned_) untuned_ = compiled({});
  form_["tuning_records"] = {{"pending", {{"from", "auto"}}}};
  const TuningPlace place = search_.place();
  settle_records(tools_.records, form_, search_.kernels(), &place);
  tuned_ = compiled(tuned_of(tools_.records, form_));
}

double TuneNetwork::first_run_ms(const std::vector<int64_t>& dims) {
  const auto measure = [&] {
    return bench_.benchmark(untuned_->files, {1, 2, threads_, false, fill_mode_, dims}).runs_ms.at(0);
  };
  try {
    return measure();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTensorData) throw;
  }
  // An input holds places in a table that is smaller than random ones.
  fill_mode_ = services::FillMode::kZeros;
  return measure();
}

tune::NetworkRounds TuneNetwork::run(int rounds) {
  return rounds_of(
      rounds, extents_, [this](const std::vector<int64_t>& dims) { return first_run_ms(dims); },
      [&](int round, bool is_tuned, const std::vector<int64_t>& dims, int number) {
        context_.progress(Json{{"stage", "measure"}, {"done", round}, {"total", rounds}}.dump());
        const Compiled& package = is_tuned ? *tuned_ : *untuned_;
        const PackageTiming timing =
            bench_.benchmark(package.files, {kNetworkSamples, number, threads_, true, fill_mode_, dims});
        return network_run(timing.runs_ms, timing.profile, package.metadata);
      });
}

}  // namespace tensormill::server
