#include "tests/api/fakes.h"

#include "api/http/tensor_body.h"
#include "tests/api/openapi_checker.h"

namespace tensormill::testing_api {

using services::CallContext;

services::ServerInfo FakeSystem::info() {
  services::ServerInfo info;
  info.version = "1.2.3";
  info.llvm_version = "19.1";
  info.host_cpu = "haswell";
  info.host_cores = 2;
  info.model_formats = {"onnx"};
  info.limits = {{"limits.model_bytes", 100}};
  return info;
}

std::vector<services::TargetPreset> FakeSystem::list() { return {{"haswell", "llvm -mcpu=haswell", "AVX2"}}; }

services::ParsedTarget FakeSystem::parse(const std::string& target) {
  if (target.starts_with("cuda")) throw Error(ErrorCode::kInvalidTarget, "target kind \"cuda\" is not known");
  return {target + " -num-cores=2",
          {"+avx2"},
          Digest::of(target),
          {"a warning"},
          R"({"vector_bits":256,"vector_registers":16,"fma":true,"l1d_bytes":1,"l2_bytes":2,"num_cores":2})"};
}

services::ImportResult FakeModels::import_model(const services::ImportOptions& import_options,
                                                http::BodySource& body, const CallContext& context) {
  if (failure) throw Error(*failure);
  options = import_options;
  bytes = http::read_all(body);
  request_id = context.request_id;
  services::ModelInfo model;
  model.id = Digest::of(bytes);
  model.name = import_options.name;
  model.names = {import_options.name};
  model.format = "onnx";
  model.size = bytes.size();
  model.inputs = {{"data", DType::kFloat32, {Dim("N"), Dim(int64_t{3}), Dim("")}}};
  model.ops = {{"Conv", 53}};
  model.parameters = 25;
  model.created_at.ms = 1709251199007;
  const bool created = models.empty();
  models = {model};
  return {model, created};
}

services::Page<services::ModelInfo> FakeModels::list(const services::PageQuery& page) {
  services::Page<services::ModelInfo> result;
  result.items = models;
  if (page.limit == 1) result.next_cursor = "a b";
  return result;
}

services::ModelInfo FakeModels::get(const std::string& reference) {
  for (const services::ModelInfo& model : models) {
    if (reference == model.name || reference == model.id.text()) return model;
  }
  throw not_found("model \"" + reference + "\"");
}

void FakeModels::remove(const std::string& reference) {
  get(reference);
  models.clear();
}

std::string FakeModels::graph_json(const std::string& reference, services::GraphStage stage,
                                   const services::CallContext&) {
  get(reference);
  const std::string name = stage == services::GraphStage::kImported ? "imported" : "optimized";
  return R"({"inputs":[],"name":"g","nodes":[],"outputs":[],"values":{},"stage":")" + name + "\"}";
}

services::Submission FakeJobs::submit_compile(const services::CompileRequest& compile_request,
                                              const services::SubmitOptions& submit_options,
                                              const CallContext&) {
  request = compile_request;
  options = submit_options;
  return {job, cached};
}

services::Submission FakeJobs::submit_tune(const services::TuneRequest& asked,
                                           const services::SubmitOptions& how, const services::CallContext&) {
  tune = asked;
  options = how;
  return {job, cached};
}

services::Submission FakeJobs::submit_benchmark(const services::BenchmarkRequest& asked,
                                                const services::SubmitOptions& how,
                                                const services::CallContext&) {
  benchmark = asked;
  options = how;
  return {job, cached};
}

services::Page<services::Job> FakeJobs::list(const services::JobQuery& job_query) {
  query = job_query;
  return {{job}, ""};
}

services::Job FakeJobs::get(const std::string& id) {
  if (id != job.id) throw not_found("job \"" + id + "\"");
  return job;
}

services::Job FakeJobs::wait(const std::string& id, std::chrono::milliseconds timeout, const CallContext&) {
  waited = timeout;
  job.state = services::JobState::kSucceeded;
  job.result_json = Json{{"package", Digest::of("package").text()}, {"times_ms", {{"kernels", 1.5}}}}.dump();
  return get(id);
}

services::CancelResult FakeJobs::cancel(const std::string& id, const CallContext&) {
  get(id);
  if (services::is_final(job.state)) throw Error(ErrorCode::kConflict, "the job is finished");
  return {job, false};
}

services::Job FakeJobs::retry(const std::string& id, const CallContext&) { return get(id); }

services::JobEvents FakeJobs::events(const std::string& id, int64_t after, std::chrono::milliseconds,
                                     const CallContext&) {
  get(id);
  if (after < 1) return {{{1, "state", "{\"state\":\"running\"}"}}, false};
  return {{{2, "end", "{}"}}, true};
}

std::vector<services::PlacedEvent> FakeJobs::all_events(int64_t after, std::chrono::milliseconds,
                                                        const CallContext&) {
  if (after >= 9) events_over.request_stop();
  return {{after + 1, job.id, {4, "state", "{\"state\":\"queued\"}"}}};
}

std::shared_ptr<http::Content> FakeJobs::log(const std::string& id) {
  get(id);
  return std::make_shared<http::BytesContent>("0123456789");
}

services::Page<services::PackageInfo> FakePackages::list(const services::PackageQuery&) {
  return {{package}, ""};
}

services::PackageInfo FakePackages::get(const std::string& id) {
  if (id != package.id.text()) throw not_found("package \"" + id + "\"");
  return package;
}

services::Archive FakePackages::archive(const std::string& id, bool is_signed) {
  return {std::make_shared<http::BytesContent>(is_signed ? "tar bytes, signed" : "tar bytes"),
          get(id).archive_digest};
}

services::ImportedPackage FakePackages::import_package(http::BodySource& body, const services::CallContext&) {
  const std::string before = std::exchange(imported, http::read_all(body));
  if (imported == "unsigned") throw Error(ErrorCode::kForeignCode, "the archive is not signed");
  return {package, before.empty()};
}

std::shared_ptr<http::Content> FakePackages::code(const std::string& id, services::CodeStage code_stage) {
  get(id);
  stage = code_stage;
  return std::make_shared<http::BytesContent>("define void @f()");
}

void FakePackages::remove(const std::string& id) {
  if (!get(id).deployments.empty()) throw Error(ErrorCode::kInUse, "the package is deployed as x");
}

void FakePackages::require_room(const std::string& id) {
  get(id);
  if (full) throw Error(ErrorCode::kUnavailable, "too many requests wait for a child process");
}

services::RunResult FakePackages::run(const std::string& id, services::NamedTensors run_inputs,
                                      const services::RunOptions& run_options, const CallContext&) {
  get(id);
  inputs = std::move(run_inputs);
  options = run_options;
  services::RunResult result;
  const float values[] = {1.5F, -2.0F};
  result.outputs = {{"out", Tensor::from<float>({2}, values)}};
  result.timing.queue_ms = 0.25;
  result.timing.compute_ms = 2.5;
  return result;
}

services::PutResult FakeDeployments::put(const std::string& name, const services::DeploymentSpec& new_spec,
                                         const CallContext&) {
  put_spec = new_spec;
  deployment.name = name;
  deployment.default_version = new_spec.version;
  deployment.versions.resize(1);
  deployment.versions[0].version = new_spec.version;
  deployment.versions[0].package = new_spec.package;
  deployment.versions[0].state = services::DeploymentState::kReady;
  return {deployment, created, ready};
}

services::Page<services::Deployment> FakeDeployments::list(const services::PageQuery& page) {
  services::Page<services::Deployment> found;
  for (const std::string& name : listed) {
    if (name <= page.cursor) continue;
    if (static_cast<int>(found.items.size()) == page.limit) {
      found.next_cursor = found.items.back().name;
      return found;
    }
    found.items.push_back(deployment);
    found.items.back().name = name;
  }
  if (!listed.empty()) return found;
  return {{deployment}, ""};
}

services::Deployment FakeDeployments::get(const std::string& name) {
  if (name != deployment.name) throw not_found("deployment \"" + name + "\"");
  return deployment;
}

services::DeploymentSpec FakeDeployments::spec(const std::string& name, const std::string& version) {
  get(name);
  if (version != put_spec.version || put_spec.package.empty()) throw not_found("version " + version);
  return put_spec;
}

services::Traffic FakeDeployments::traffic(const std::string& name) {
  get(name);
  return hour;
}

void FakeDeployments::remove(const std::string& name, const std::optional<std::string>& version,
                             const CallContext&) {
  get(name);
  removed_version = version;
}

std::shared_ptr<void> FakeDeployments::admit(const std::string& name, const std::string&) {
  get(name);
  if (room-- <= 0) throw Error(ErrorCode::kUnavailable, "the queue is full");
  return places;
}

void FakeDeployments::infer(const std::string& name, const std::string& version,
                            services::NamedTensors infer_inputs, const services::RunOptions& run_options,
                            const CallContext&, services::Done<services::RunResult> done) {
  get(name);
  places_of_inference = places.use_count() - 1;
  options = run_options;
  inputs = std::move(infer_inputs);
  services::RunResult result;
  result.version = version.empty() ? "7" : version;
  result.outputs = inputs;
  result.labels = std::make_shared<std::vector<std::string>>(labels);
  done(services::Outcome<services::RunResult>(std::move(result)));
}

std::vector<services::InferStatistics> FakeDeployments::statistics(const std::string& name,
                                                                   const std::string& version) {
  get(name);
  if (!version.empty() && version != deployment.default_version) throw not_found("version " + version);
  return {counted};
}

void FakeDeployments::unload(const std::string& name) {
  get(name);
  deployment.versions.at(0).state = services::DeploymentState::kUnloaded;
}

void FakeDeployments::load(const std::string& name) {
  get(name);
  deployment.versions.at(0).state = services::DeploymentState::kReady;
}

void FakeDeployments::classify(const std::string& name, std::string_view picture, int count,
                               const CallContext&, services::Done<services::ClassifyResult> done) {
  get(name);
  image = picture;
  top = count;
  services::ClassifyResult result;
  result.top = {{"seven", 7, 0.75}};
  result.timing.decode_ms = 1;
  done(services::Outcome<services::ClassifyResult>(std::move(result)));
}

services::UploadInfo FakeStore::get_upload(const std::string& id) {
  if (id != upload.id) throw not_found("upload " + id);
  return upload;
}

services::UploadInfo FakeStore::append_upload(const std::string& id, const services::UploadChunk& new_chunk,
                                              http::BodySource& body, const services::CallContext&) {
  get_upload(id);
  chunk = new_chunk;
  if (chunk.offset && *chunk.offset != bytes.size()) {
    throw Error(ErrorCode::kRangeNotSatisfiable, "the chunk begins elsewhere");
  }
  bytes += http::read_all(body);
  upload.size = bytes.size();
  return upload;
}

services::UploadInfo FakeStore::finish_upload(const std::string& id, const Digest& digest) {
  get_upload(id);
  if (digest != Digest::of(bytes)) throw Error(ErrorCode::kDigestMismatch, "other bytes");
  upload.size = 0;
  upload.blob = digest;
  return upload;
}

std::shared_ptr<http::Content> FakeStore::blob(const std::string& id) {
  if (!upload.blob || upload.blob->text() != id) throw not_found("blob " + id);
  return std::make_shared<http::BytesContent>(bytes);
}

services::StorageInfo FakeStore::storage() {
  services::StorageInfo info;
  info.blobs = 3;
  info.rows = {{"deployments", 1}};
  return info;
}

services::GcReport FakeStore::collect(bool dry_run) {
  services::GcReport report;
  report.dry_run = dry_run;
  report.blobs = 2;
  report.held = {{"referenced", 5}};
  return report;
}

services::KeyService::Key FakeKeys::find(std::string_view token) {
  if (token == "reader") return {"reader", {"read"}};
  if (token == "boss") return {"boss", {"admin"}};
  if (token == "late") return {"late", {"admin"}, true};
  if (token == "clerk") return {"clerk", {"infer:digits", "read:digits", "read:team-*"}};
  const auto made = kept.find(std::string(token));
  return made == kept.end() ? Key{} : Key{made->first, made->second.scopes};
}

services::Page<services::KeyInfo> FakeKeys::list(const services::PageQuery&) {
  services::Page<services::KeyInfo> page;
  for (const auto& [name, key] : kept) page.items.push_back(key);
  return page;
}

services::KeyInfo FakeKeys::get(const std::string& name) {
  if (!kept.contains(name)) throw not_found(name);
  return kept.at(name);
}

services::CreatedKey FakeKeys::create(const services::NewKey& key) {
  if (kept.contains(key.name)) throw Error(ErrorCode::kNameTaken, "taken");
  kept[key.name] = {key.name, key.scopes, false, "2026-01-01T00:00:00.000Z", key.expires_at};
  return {kept[key.name], "tm_secret"};
}

void FakeKeys::revoke(const std::string& name) {
  if (kept.erase(name) == 0) throw not_found(name);
}

services::Page<services::AuditEntry> FakeAudit::list(const services::AuditQuery& asked) {
  query = asked;
  return {{{services::Timestamp{1000}, "id-1", "boss", "127.0.0.1:1", "192.0.2.7", "POST", "/v1/jobs", 202}},
          "5"};
}

namespace {

class Lines final : public http::ResponseStream {
public:
  bool next(std::string& piece) override {
    if (ended_) return false;
    piece += "{}\n";
    ended_ = true;
    return true;
  }

private:
  bool ended_ = false;
};

}  // namespace

services::TuningImport FakeTuning::import_records(std::string_view text, bool with_foreign) {
  imported = text;
  foreign = with_foreign;
  return {Digest::of("set"), 2, 1, 1, created};
}

std::shared_ptr<http::ResponseStream> FakeTuning::list(const services::TuningQuery& asked) {
  query = asked;
  return std::make_shared<Lines>();
}

std::shared_ptr<http::ResponseStream> FakeTuning::get(const std::string& id) {
  if (id != Digest::of("set").text()) throw not_found(id);
  return std::make_shared<Lines>();
}

void FakeTuning::remove(const std::string& id) { get(id); }

std::optional<services::KeptAnswer> FakeAnswers::find(const std::string& caller, const std::string& key) {
  if (on_find) on_find();
  const auto found = kept.find(caller + "/" + key);
  return found == kept.end() ? std::nullopt : std::optional(found->second);
}

void FakeAnswers::put(const std::string& caller, const std::string& key, const services::KeptAnswer& answer) {
  kept[caller + "/" + key] = answer;
}

ApiTest::ApiTest() {
  services_ = {&system_,      &system_, &system_, &models_, &jobs_,    &packages_,
               &deployments_, &store_,  &tuning_, nullptr,  &answers_, &audit_};
  jobs_.job.id = "0190163d-8694-739b-aea5-966c26f8ad91";
  jobs_.job.kind = "compile";
  packages_.package.id = Digest::of("package");
  packages_.package.archive_digest = Digest::of("archive");
  packages_.package.metadata_json =
      R"({"abi_version":1,"arena_bytes":0,"compiler_build":"","compiler_version":"","cpu_features":[],"flops":0,
          "format_version":1,"host_steps":0,"inputs":[],"kernels":[],"members":{},"model_digest":"",
          "model_format":"onnx","num_steps":0,"opt_level":3,"options":{},"outputs":[],"passes":[],"target":"",
          "triple":"","verify":"sample","weight_bytes":0,"worker_workspace_bytes":0})";
  deployments_.deployment.name = "digits";
  rebuild();
}

Answer ApiTest::send(const std::string& method, const std::string& target,
                     const std::vector<std::string>& fields, const std::string& body) {
  http::Request request;
  request.method = method;
  request.target = target;
  request.headers.add("Host", "localhost:8080");
  for (const std::string& field : fields) {
    const size_t colon = field.find(':');
    request.headers.set(field.substr(0, colon), field.substr(colon + 1));
  }
  request.body = std::make_shared<http::BytesBody>(body);
  request.cancelled = jobs_.events_over.get_token();
  request.take_stream = take_stream_;
  const http::Response response = api_->handle(request);
  Answer answer{response.status, response.headers, ""};
  if (const auto* bytes = std::get_if<std::string>(&response.body)) {
    answer.body = *bytes;
  } else if (const auto* content = std::get_if<http::ContentBody>(&response.body)) {
    answer.body.resize(content->length);
    content->content->read_at(content->offset,
                              {reinterpret_cast<std::byte*>(answer.body.data()), answer.body.size()});
  } else {
    const auto& stream = std::get<std::shared_ptr<http::ResponseStream>>(response.body);
    while (stream->next(answer.body)) continue;
  }
  const auto problems = checker().problems_of(method, target, answer.status, answer.headers, answer.body);
  EXPECT_EQ(problems, std::vector<std::string>()) << method << " " << target << ": " << answer.body;
  return answer;
}

const OpenApiChecker& ApiTest::checker() {
  if (checker_ == nullptr) {
    services::Services open = services_;
    open.keys = nullptr;
    http::Request request;
    request.method = "GET";
    request.target = "/openapi.json";
    request.headers.add("Host", "localhost");
    request.body = std::make_shared<http::BytesBody>("");
    const http::Response document = endpoints::make_api(open, {})->handle(request);
    checker_ = std::make_unique<OpenApiChecker>(parse_json(std::get<std::string>(document.body)));
  }
  return *checker_;
}

ApiTest::~ApiTest() = default;

Answer ApiTest::post_json(const std::string& target, const std::string& body,
                          const std::vector<std::string>& fields) {
  std::vector<std::string> all = fields;
  all.emplace_back("Content-Type: application/json");
  return send("POST", target, all, body);
}

void ApiTest::expect_problem(const Answer& answer, int status, const std::string& code) {
  EXPECT_EQ(answer.status, status) << answer.body;
  ASSERT_EQ(answer.header("Content-Type"), "application/problem+json") << answer.body;
  const Json problem = answer.json();
  EXPECT_EQ(problem.at("status"), status);
  EXPECT_EQ(problem.at("code"), code) << answer.body;
  EXPECT_EQ(problem.at("type"), "/docs#" + code);
  EXPECT_FALSE(problem.at("title").get<std::string>().empty());
  EXPECT_FALSE(problem.at("detail").get<std::string>().empty());
  EXPECT_EQ(problem.at("request_id"), answer.header("X-Request-Id"));
}

}  // namespace tensormill::testing_api
