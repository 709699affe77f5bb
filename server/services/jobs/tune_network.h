/// A tune job's packages, with and without what was found, as tune::settle_in_network compiles and measures
/// them. Thread-safety: belongs to the job's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/tune/network.h"
#include "runtime/package/metadata.h"
#include "server/services/jobs/benchmark.h"
#include "server/services/jobs/compile_steps.h"
#include "server/services/jobs/tune_search.h"

namespace tensormill::server {

class TuneNetwork final : public tune::NetworkBench {
public:
  /// `form` is the compilation's resolved form, of which only the records are not settled. `extents`: values
  /// of the free dims at which the packages run; none: their first ones.
  TuneNetwork(const CompileTools& tools, jobs::JobContext& context, TuneBench& bench,
              const TuneSearch& search, const GraphFiles& graph, Json form, int threads,
              std::vector<std::vector<int64_t>> extents);

  std::vector<tune::Record> records() override;
  void keep(const tune::Record& record) override;
  void compile() override;
  tune::NetworkRounds run(int rounds) override;

  /// Once it was compiled.
  const PackageFiles& untuned() const { return untuned_->files; }
  const PackageFiles& tuned() const { return tuned_->files; }

private:
  struct Compiled {
    explicit Compiled(const std::string& folder) : files(folder) {}
    PackageFiles files;
    package::Metadata metadata;
  };
  std::unique_ptr<Compiled> compiled(const Tuned& tuned) const;
  double first_run_ms(const std::vector<int64_t>& dims);

  const CompileTools& tools_;
  jobs::JobContext& context_;
  TuneBench& bench_;
  const TuneSearch& search_;
  const GraphFiles& graph_;
  Json form_;
  int threads_;
  const std::vector<std::vector<int64_t>> extents_;
  services::FillMode fill_mode_ = services::FillMode::kRandom;
  std::unique_ptr<Compiled> untuned_, tuned_;
};

}  // namespace tensormill::server
