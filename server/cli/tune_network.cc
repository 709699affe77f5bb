#include "server/cli/tune_network.h"

#include "compiler/driver/compile.h"
#include "compiler/package/writer.h"
#include "compiler/tune/choose.h"
#include "runtime/base/cpu_count.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/memory_file.h"
#include "runtime/exec/graph_executor.h"
#include "server/services/jobs/network_run.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::cli {

namespace {

/// A member in memory.
std::shared_ptr<const MappedFile> member(std::string_view name, std::string_view text) {
  const FileDescriptor file = memory_file(std::string(name));
  write_all(file.get(), text, name);
  return MappedFile::map(file.get(), std::string(name));
}

}  // namespace

ModelNetwork::ModelNetwork(const ir::Variants& variants, const target::Target& target, NetworkOptions options,
                           int threads, std::string records)
    : variants_(variants),
      target_(target),
      options_(std::move(options)),
      threads_(threads),
      records_(std::move(records)),
      pool_(threads) {
  if (options_.extents.empty()) options_.extents.emplace_back();
}

std::vector<tune::Record> ModelNetwork::records() {
  // What is no record has been told when the search began.
  return tune::readable_records(read_file(records_), [](const std::string&) {});
}

void ModelNetwork::keep(const tune::Record& record) { tune::RecordLog(records_).append(record); }

std::shared_ptr<const package::Package> ModelNetwork::compiled(
    const std::vector<tune::Record>& records) const {
  driver::CompileOptions options;
  options.target = target_;
  options.opt_level = options_.opt_level;
  options.layout = options_.layout;
  // Candidates were verified when they were measured.
  options.verify = driver::VerifyMode::kNone;
  options.threads = usable_cores();
  options.schedules = tune::choose_schedules(records, target_, driver::code_generator());
  options.algorithms = tune::choose_algorithms(records, target_, driver::code_generator());
  const driver::CompileResult result = driver::compile(variants_, options);
  const FileDescriptor params = memory_file(std::string(package::kParamsMember));
  package::write_params(params.get(), result.params, result.params_bytes, package::kParamsMember);
  std::map<std::string, std::shared_ptr<const MappedFile>> members;
  members[std::string(package::kMetadataMember)] = member(package::kMetadataMember, result.metadata_json);
  members[std::string(package::kPlanMember)] = member(package::kPlanMember, result.plan_json);
  members[std::string(package::kCodeMember)] = member(package::kCodeMember, result.code);
  members[std::string(package::kParamsMember)] =
      MappedFile::map(params.get(), std::string(package::kParamsMember));
  return package::Package::open_members(members);
}

void ModelNetwork::compile() {
  if (!untuned_) untuned_ = compiled({});
  tuned_ = compiled(records());
}

// Loaded anew each time: where its pages lie changes a small kernel's time by some percent.
tune::NetworkRun ModelNetwork::run_at(const std::shared_ptr<const package::Package>& package,
                                      const std::vector<int64_t>& dims, int number, bool profile) {
  exec::ExecutorOptions executor_options;
  executor_options.max_threads = threads_;
  exec::GraphExecutor executor(package::LoadedPackage::load(package), executor_options);
  services::RunOptions options;
  options.fill_mode = fill_mode_;
  options.repeat = server::kNetworkSamples;
  options.number = number;
  options.profile = profile;
  exec::RunOptions run_options;
  run_options.threads = threads_;
  const services::Timing timing =
      server::run_executor(executor, {}, options, pool_, run_options, dims).timing;
  const Json steps = profile ? parse_json(timing.profile_json) : Json::array();
  return server::network_run(timing.runs_ms, steps, package->metadata());
}

double ModelNetwork::first_run_ms(const std::vector<int64_t>& dims) {
  try {
    return run_at(untuned_, dims, 1, false).seconds.back() * 1e3;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTensorData) throw;
  }
  // An input holds places in a table that is smaller than random ones.
  fill_mode_ = services::FillMode::kZeros;
  return run_at(untuned_, dims, 1, false).seconds.back() * 1e3;
}

tune::NetworkRounds ModelNetwork::run(int rounds) {
  return server::rounds_of(
      rounds, options_.extents, [this](const std::vector<int64_t>& dims) { return first_run_ms(dims); },
      [this](int, bool is_tuned, const std::vector<int64_t>& dims, int number) {
        return run_at(is_tuned ? tuned_ : untuned_, dims, number, true);
      });
}

}  // namespace tensormill::cli
