#include "server/cli/tune_network.h"

#include <algorithm>

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
      pool_(threads) {}

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

int64_t ModelNetwork::extent_of(const std::string& free_dim) const {
  const auto found = std::find(variants_.free_dims.begin(), variants_.free_dims.end(), free_dim);
  TM_CHECK(found != variants_.free_dims.end(), "an input has a dim that is none of the free ones");
  return options_.dims.at(static_cast<size_t>(found - variants_.free_dims.begin()));
}

/// Those with free dims, at the extents that are named.
services::NamedTensors ModelNetwork::inputs(const exec::GraphExecutor& executor) const {
  services::NamedTensors given;
  for (size_t i = 0; i < executor.inputs().size() && !options_.dims.empty(); ++i) {
    const package::Port& port = executor.inputs()[i];
    Shape shape;
    bool is_free = false;
    for (const Dim& extent : variants_.input_shapes.at(i)) {
      const std::string* name = std::get_if<std::string>(&extent);
      is_free = is_free || name != nullptr;
      shape.push_back(name == nullptr ? std::get<int64_t>(extent) : extent_of(*name));
    }
    if (is_free) given.emplace_back(port.name, server::filled_tensor(port.dtype, shape, fill_mode_, i));
  }
  return given;
}

// Loaded anew each time: where its pages lie changes a small kernel's time by some percent.
tune::NetworkRun ModelNetwork::round(const std::shared_ptr<const package::Package>& package, int number,
                                     bool profile) {
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
      server::run_executor(executor, inputs(executor), options, pool_, run_options).timing;
  const Json steps = profile ? parse_json(timing.profile_json) : Json::array();
  return server::network_run(timing.runs_ms, steps, package->metadata());
}

double ModelNetwork::first_run_ms() {
  try {
    return round(untuned_, 1, false).seconds.back() * 1e3;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTensorData) throw;
  }
  // An input holds places in a table that is smaller than random ones.
  fill_mode_ = services::FillMode::kZeros;
  return round(untuned_, 1, false).seconds.back() * 1e3;
}

tune::NetworkRounds ModelNetwork::run(int rounds) {
  const int number = server::runs_of_a_sample(first_run_ms());
  tune::NetworkRounds done;
  for (int i = 0; i < rounds; ++i) {
    done.untuned.push_back(round(untuned_, number, true));
    done.tuned.push_back(round(tuned_, number, true));
  }
  return done;
}

}  // namespace tensormill::cli
