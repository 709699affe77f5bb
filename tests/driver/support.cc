#include "tests/driver/support.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "compiler/ops/ops.h"
#include "compiler/package/writer.h"
#include "runtime/exec/graph_executor.h"

namespace tensormill::driver_test {

driver::CompileOptions host_options(int opt_level) {
  driver::CompileOptions options;
  options.target = target::host_target();
  options.opt_level = opt_level;
  options.verify = driver::VerifyMode::kFull;
  options.model_digest = Digest::of(std::string_view("a test")).text();
  return options;
}

std::shared_ptr<const package::LoadedPackage> load(const driver::CompileResult& result) {
  const std::string path = testing::TempDir() + "package-" + std::to_string(::getpid()) + ".tar";
  package::write_archive(
      path, {result.metadata_json, result.plan_json, result.code, &result.params, result.params_bytes});
  const auto loaded = package::LoadedPackage::load(package::Package::open(path));
  std::filesystem::remove(path);
  return loaded;
}

std::vector<Tensor> run(const std::shared_ptr<const package::LoadedPackage>& package,
                        const std::vector<Tensor>& inputs, int threads) {
  exec::GraphExecutor executor(package, {.max_threads = threads});
  for (size_t i = 0; i < inputs.size(); ++i) {
    executor.set_input(i, TensorView{inputs[i].dtype(), inputs[i].shape(), inputs[i].data()});
  }
  parallel::ThreadPool pool(threads);
  executor.run(pool, {.threads = threads});
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < executor.outputs().size(); ++i) outputs.push_back(executor.copy_output(i));
  return outputs;
}

std::string package_text(const driver::CompileResult& result) {
  std::string text = result.metadata_json + result.plan_json + result.code;
  for (const plan::ParamSegment& segment : result.params) {
    text += std::to_string(segment.offset) + ":";
    text.append(static_cast<const char*>(segment.tensor.data()), segment.tensor.num_bytes());
  }
  return text;
}

ir::Graph parse(std::string_view text) { return ir::parse_graph(text, ops::standard_ops()); }

}  // namespace tensormill::driver_test
