/// Services in memory: they answer with fixed things and keep what they were asked.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/endpoints/api.h"
#include "api/services/services.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::testing_api {

inline Error not_found(const std::string& what) { return Error(ErrorCode::kNotFound, what + " is not here"); }

class FakeSystem : public services::InfoService,
                   public services::TargetService,
                   public services::HealthService {
public:
  services::ServerInfo info() override;
  std::vector<services::TargetPreset> list() override;
  services::ParsedTarget parse(const std::string& target) override;
  bool live() override { return is_live; }
  services::Readiness ready() override { return readiness; }

  bool is_live = true;
  services::Readiness readiness;
};

class FakeModels : public services::ModelService {
public:
  services::ImportResult import_model(const services::ImportOptions& options, http::BodySource& bytes,
                                      const services::CallContext& context) override;
  services::Page<services::ModelInfo> list(const services::PageQuery& page) override;
  services::ModelInfo get(const std::string& reference) override;
  void remove(const std::string& reference) override;
  std::string graph_json(const std::string& reference, services::GraphStage stage,
                         const services::CallContext& context) override;

  std::vector<services::ModelInfo> models;
  services::ImportOptions options;
  std::string bytes;
  std::string request_id;
  std::shared_ptr<const Error> failure;  ///< thrown by import_model when set
};

class FakeJobs : public services::JobService {
public:
  services::Submission submit_compile(const services::CompileRequest& request,
                                      const services::SubmitOptions& options,
                                      const services::CallContext& context) override;
  services::Submission submit_tune(const services::TuneRequest& asked, const services::SubmitOptions& how,
                                   const services::CallContext& context) override;
  services::Submission submit_benchmark(const services::BenchmarkRequest& asked,
                                        const services::SubmitOptions& how,
                                        const services::CallContext& context) override;
  services::Submission submit_verify(const services::VerifyRequest& asked, const services::SubmitOptions& how,
                                     const services::CallContext&) override {
    verified = asked;
    options = how;
    return {job, cached};
  }
  services::Submission submit_report(const services::ReportRequest& asked, const services::SubmitOptions& how,
                                     const services::CallContext&) override {
    reported = asked;
    options = how;
    return {job, cached};
  }
  std::string report(const std::string& id, services::ReportForm form) override {
    get(id);
    if (form == services::ReportForm::kHtml) return "<!doctype html>";
    return R"({"made_at":"2024-02-29T23:59:59.007Z","program":"p","machine":null,"inputs":"i","samples":null,)"
           R"("configurations":[],"state":"running","job":")" +
           job.id + "\"}";
  }
  services::Page<services::Job> list(const services::JobQuery& query) override;
  services::Job get(const std::string& id) override;
  services::Job wait(const std::string& id, std::chrono::milliseconds timeout,
                     const services::CallContext& context) override;
  services::CancelResult cancel(const std::string& id, const services::CallContext& context) override;
  services::Job retry(const std::string& id, const services::CallContext& context) override;
  services::JobEvents events(const std::string& id, int64_t after, std::chrono::milliseconds timeout,
                             const services::CallContext& context) override;
  std::vector<services::PlacedEvent> all_events(int64_t after, std::chrono::milliseconds timeout,
                                                const services::CallContext& context) override;
  int64_t last_event() override { return 7; }
  std::shared_ptr<http::Content> log(const std::string& id) override;

  services::Job job;  ///< the only one
  bool cached = false;
  services::CompileRequest request;
  services::TuneRequest tune;
  services::BenchmarkRequest benchmark;
  services::VerifyRequest verified;
  services::ReportRequest reported;
  services::SubmitOptions options;
  services::JobQuery query;
  std::chrono::milliseconds waited{0};
  std::stop_source events_over;  ///< of the request that asks for all events: stopped after the tenth
};

class FakePackages : public services::PackageService {
public:
  services::Page<services::PackageInfo> list(const services::PackageQuery& query) override;
  services::PackageInfo get(const std::string& id) override;
  services::Archive archive(const std::string& id, bool is_signed) override;
  services::ImportedPackage import_package(http::BodySource& bytes,
                                           const services::CallContext& context) override;
  std::shared_ptr<http::Content> code(const std::string& id, services::CodeStage stage) override;
  std::shared_ptr<http::Content> bundle(const std::string& id, const services::BundleOptions& asked,
                                        const services::CallContext&) override {
    get(id);
    bundled = asked;
    return std::make_shared<http::BytesContent>("bundle bytes");
  }
  void remove(const std::string& id) override;
  void require_room(const std::string& id) override;
  services::RunResult run(const std::string& id, services::NamedTensors inputs,
                          const services::RunOptions& options, const services::CallContext& context) override;

  bool full = false;
  services::PackageInfo package;  ///< the only one
  services::NamedTensors inputs;
  services::RunOptions options;
  services::CodeStage stage = services::CodeStage::kRelay;
  services::BundleOptions bundled;
  std::string imported;
};

class FakeDeployments : public services::DeploymentService {
public:
  /// One deployment "m", whose version "7" is ready and takes and gives x: f32[1, 3].
  void hold_three_numbers() {
    deployment.name = "m";
    deployment.default_version = "7";
    services::DeploymentVersion version;
    version.version = "7";
    version.state = services::DeploymentState::kReady;
    version.inputs = {{"x", DType::kFloat32, {Dim(int64_t{1}), Dim(int64_t{3})}}};
    version.outputs = version.inputs;
    deployment.versions = {version};
    deployment.inputs = version.inputs;
  }
  services::PutResult put(const std::string& name, const services::DeploymentSpec& spec,
                          const services::CallContext& context) override;
  services::PutResult set_weights(const std::string& name, const services::VersionWeights& weights,
                                  const services::CallContext&) override {
    deployment.name = name;
    deployment.weights = weights;
    return {deployment, false, ready};
  }
  services::PutResult rollback(const std::string& name, const services::CallContext& context) override {
    return set_weights(name, {}, context);
  }
  services::Page<services::Deployment> list(const services::PageQuery& page) override;
  services::Deployment get(const std::string& name) override;
  services::DeploymentSpec spec(const std::string& name, const std::string& version) override;
  services::Traffic traffic(const std::string& name) override;
  void remove(const std::string& name, const std::optional<std::string>& version,
              const services::CallContext& context) override;
  void infer(const std::string& name, const std::string& version, services::NamedTensors inputs,
             const services::RunOptions& options, const services::CallContext& context,
             services::Done<services::RunResult> done) override;
  void infer_pictures(const std::string& name, const std::string& version, services::PictureFiles pictures,
                      const services::RunOptions& run_options, const services::CallContext& context,
                      services::Done<services::RunResult> done) override {
    files.assign(pictures.files.begin(), pictures.files.end());
    infer(name, version, {}, run_options, context, std::move(done));
  }
  bool takes_pictures(const std::string& name, const std::string&) override {
    return has(name) && deployment.versions.at(0).takes_pictures;
  }
  void classify(const std::string& name, std::string_view image, int top,
                const services::CallContext& context, services::Done<services::ClassifyResult> done) override;

  std::shared_ptr<void> admit(const std::string& name, const std::string& version) override;
  bool has(const std::string& name) override { return name == deployment.name; }
  bool is_quick(const std::string& name) override { return quick && has(name); }
  std::vector<services::InferStatistics> statistics(const std::string& name,
                                                    const std::string& version) override;
  void unload(const std::string& name) override;
  void load(const std::string& name) override;

  int room = 1'000'000;                                     ///< requests that are still admitted
  std::shared_ptr<void> places = std::make_shared<int>(0);  ///< each that is kept is one more of its owners
  long places_of_inference = 0;                             ///< kept when the last inference came
  services::Deployment deployment;                          ///< the only one, but for what lists tell
  std::vector<std::string> listed;                          ///< names, sorted, in place of it
  uint64_t largest_inputs(const std::string& name) override { return has(name) ? largest : 0; }
  bool quick = false;
  uint64_t largest = 0;  ///< bytes
  services::InferStatistics counted;
  std::vector<std::string> labels;
  services::RunOptions options;
  services::DeploymentSpec put_spec;
  services::Traffic hour;
  bool created = true;
  bool ready = true;
  std::optional<std::string> removed_version;
  services::NamedTensors inputs;
  std::string image;
  std::vector<std::string> files;  ///< of pictures
  int top = 0;
};

class FakeStore : public services::StoreService {
public:
  services::UploadInfo begin_upload(const services::CallContext&) override { return upload; }
  services::UploadInfo get_upload(const std::string& id) override;
  services::UploadInfo append_upload(const std::string& id, const services::UploadChunk& chunk,
                                     http::BodySource& bytes, const services::CallContext& context) override;
  services::UploadInfo finish_upload(const std::string& id, const Digest& digest) override;
  void remove_upload(const std::string& id) override { get_upload(id); }
  std::shared_ptr<http::Content> blob(const std::string& id) override;
  services::StorageInfo storage() override;
  services::GcReport collect(bool dry_run) override;

  services::UploadInfo upload;  ///< the only one
  services::UploadChunk chunk;
  std::string bytes;
};

class FakeTuning : public services::TuningService {
public:
  services::TuningImport import_records(std::string_view text, bool with_foreign) override;
  std::shared_ptr<http::ResponseStream> list(const services::TuningQuery& asked) override;
  std::shared_ptr<http::ResponseStream> get(const std::string& id) override;
  void remove(const std::string& id) override;

  std::string imported;
  bool foreign = false;
  bool created = true;
  services::TuningQuery query;
};

/// Tokens are "reader", "boss", "late" (expired), "clerk" (infer:digits,read:digits) and what was created.
class FakeKeys : public services::KeyService {
public:
  Key find(std::string_view token) override;
  services::Page<services::KeyInfo> list(const services::PageQuery& page) override;
  services::KeyInfo get(const std::string& name) override;
  services::CreatedKey create(const services::NewKey& key) override;
  void revoke(const std::string& name) override;

  std::map<std::string, services::KeyInfo> kept;
};

class FakeAudit : public services::AuditService {
public:
  services::Page<services::AuditEntry> list(const services::AuditQuery& asked) override;

  services::AuditQuery query;
};

class FakeAnswers : public services::AnswerService {
public:
  std::optional<services::KeptAnswer> find(const std::string& caller, const std::string& key) override;
  void put(const std::string& caller, const std::string& key, const services::KeptAnswer& answer) override;

  std::function<void()> on_find;
  std::map<std::string, services::KeptAnswer> kept;
};

/// An answer, read whole.
struct Answer {
  int status = 0;
  http::Headers headers;
  std::string body;

  Json json() const { return parse_json(body); }
  std::string header(std::string_view name) const { return std::string(headers.get(name).value_or("")); }
};

class OpenApiChecker;

/// The API over fakes. Every answer is held against /openapi.json.
class ApiTest : public testing::Test {
protected:
  ApiTest();
  ~ApiTest() override;
  /// Sends a request; `fields` are "Name: value" lines.
  Answer send(const std::string& method, const std::string& target,
              const std::vector<std::string>& fields = {}, const std::string& body = "");
  Answer get(const std::string& target, const std::vector<std::string>& fields = {}) {
    return send("GET", target, fields);
  }
  Answer post_json(const std::string& target, const std::string& body,
                   const std::vector<std::string>& fields = {});
  /// Checks that `answer` is problem+json of that status and code, as the tables say.
  static void expect_problem(const Answer& answer, int status, const std::string& code);
  void rebuild() { api_ = endpoints::make_api(services_, options_); }

  FakeSystem system_;
  FakeModels models_;
  FakeJobs jobs_;
  FakePackages packages_;
  FakeDeployments deployments_;
  FakeStore store_;
  FakeTuning tuning_;
  FakeKeys keys_;
  FakeAnswers answers_;
  FakeAudit audit_;
  services::Services services_;
  endpoints::ApiOptions options_;
  std::function<void()> take_stream_;  ///< of the transport; may be empty
  std::unique_ptr<http::Handler> api_;

private:
  const OpenApiChecker& checker();
  std::unique_ptr<OpenApiChecker> checker_;
};

}  // namespace tensormill::testing_api
