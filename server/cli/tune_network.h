/// A model's packages with and without records, for the command `tune`: compiled and run in this process.
/// Thread-safety: belongs to one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/services/package_service.h"
#include "compiler/ir/variants.h"
#include "compiler/passes/layouts/desired_layout.h"
#include "compiler/target/target.h"
#include "compiler/tune/network.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/package/package_reader.h"
#include "runtime/parallel/thread_pool.h"

namespace tensormill::cli {

/// How the model is compiled.
struct NetworkOptions {
  int opt_level = 3;
  std::optional<passes::DesiredLayout> layout;
  /// Values of the free dims at which it runs; none: the package's first ones.
  std::vector<std::vector<int64_t>> extents = {};
};

class ModelNetwork final : public tune::NetworkBench {
public:
  /// `records` is the file of records. The model and the target outlive this.
  ModelNetwork(const ir::Variants& variants, const target::Target& target, NetworkOptions options,
               int threads, std::string records);

  std::vector<tune::Record> records() override;
  void keep(const tune::Record& record) override;
  void compile() override;
  tune::NetworkRounds run(int rounds) override;

private:
  std::shared_ptr<const package::Package> compiled(const std::vector<tune::Record>& records) const;
  double first_run_ms(const std::vector<int64_t>& dims);
  tune::NetworkRun run_at(const std::shared_ptr<const package::Package>& package,
                          const std::vector<int64_t>& dims, int number, bool profile);

  const ir::Variants& variants_;
  const target::Target& target_;
  NetworkOptions options_;
  int threads_;
  std::string records_;
  parallel::ThreadPool pool_;
  services::FillMode fill_mode_ = services::FillMode::kRandom;
  std::shared_ptr<const package::Package> untuned_, tuned_;
};

}  // namespace tensormill::cli
