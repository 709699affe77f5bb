#include "tests/server/store.h"

#include <filesystem>

#include "api/services/services.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tensormill::server {

namespace {

class FakePackage final : public HostedPackage {
public:
  FakePackage(std::vector<services::TensorSpec> inputs, std::vector<services::TensorSpec> outputs,
              const std::function<void()>& on_admit)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), on_admit_(on_admit) {}
  std::shared_ptr<void> admit() override {
    on_admit_();
    return nullptr;
  }
  const std::vector<services::TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<services::TensorSpec>& outputs() const override { return outputs_; }
  void run(services::NamedTensors inputs, const services::RunOptions&, const services::CallContext&,
           services::Done<services::RunResult> done) override {
    services::RunResult result;
    result.outputs = std::move(inputs);
    done(services::Outcome<services::RunResult>(std::move(result)));
  }
  services::InferStatistics statistics() const override { return {}; }
  bool is_quick() const override { return false; }

private:
  std::vector<services::TensorSpec> inputs_;
  std::vector<services::TensorSpec> outputs_;
  const std::function<void()>& on_admit_;
};

struct DigitsStore {
  storage::TemporaryFolder folder;
  std::string package;
  DigitsStore() {
    Server server(settings_for(folder.path()));
    package = compile_digits(server);
  }
};

const DigitsStore& digits() {
  static const DigitsStore store;
  return store;
}

}  // namespace

config::Settings settings_for(const std::string& folder) {
  config::SettingSources sources;
  sources.flags = {{"data", folder}};
  return config::load_settings(sources);
}

std::string digits_model() { return read_file(TM_SOURCE_DIR "/tests/models/digits.onnx"); }

std::string compile_digits(Server& server, int64_t batch) {
  const services::Services& services = server.services();
  http::BytesBody body(digits_model());
  services.models->import_model({"digits", "onnx", false, std::nullopt}, body, {});
  services::CompileRequest request;
  request.model = "digits";
  request.target = "llvm -mcpu=native";
  request.input_shapes["image"] = {Dim(batch), Dim(int64_t{1}), Dim(int64_t{28}), Dim(int64_t{28})};
  const std::string id = services.jobs->submit_compile(request, {}, {}).job.id;
  const services::Job job = services.jobs->wait(id, std::chrono::minutes(2), {});
  if (job.state != services::JobState::kSucceeded) {
    throw InternalError("the digits model was not compiled: " + (job.error ? job.error->message : "no end"));
  }
  return parse_json(job.result_json).at("package").get<std::string>();
}

const std::string& digits_store() {
  static const std::string path = digits().folder.path();
  return path;
}

const std::string& digits_package() { return digits().package; }

services::DeploymentSpec digits_spec(const std::string& version) {
  services::DeploymentSpec spec;
  spec.package = digits_package();
  spec.version = version;
  return spec;
}

Store::Store() : root(folder.path() + "/store") {
  std::filesystem::copy(digits_store(), root, std::filesystem::copy_options::recursive);
}

std::shared_ptr<HostedPackage> FakeHost::load(std::shared_ptr<const package::Package> package,
                                              const HostOptions&) {
  ++loads;
  on_load();
  return std::make_shared<FakePackage>(specs_of(package->metadata().inputs),
                                       specs_of(package->metadata().outputs), on_admit);
}

}  // namespace tensormill::server
