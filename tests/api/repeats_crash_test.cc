// Requests with an Idempotency-Key while the power goes, or the disk fails, at any step: sent again, they are
// done once.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "api/endpoints/context.h"
#include "runtime/base/json.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/power_cut_env.h"
#include "storage/upload/folder_upload_store.h"
#include "tests/api/fakes.h"

namespace tensormill::testing_api::crashes {
namespace {

constexpr int64_t kDay = 86'400'000;
constexpr uint64_t kMost = 200;

/// Kept answers in a catalog, as the server keeps them.
class CatalogAnswers final : public services::AnswerService {
public:
  explicit CatalogAnswers(storage::Catalog& catalog) : catalog_(catalog) {}
  std::optional<services::KeptAnswer> find(const std::string& caller, const std::string& key) override {
    const auto row = catalog_.find_answer(caller, key, kDay);
    if (!row) return std::nullopt;
    const Json json = parse_json(row->answer);
    services::KeptAnswer answer{row->request_hash, json.at("status").get<int>(), {}, json.at("body")};
    json.at("fields").get_to(answer.fields);
    return answer;
  }
  void put(const std::string& caller, const std::string& key, const services::KeptAnswer& answer) override {
    const Json json = {{"status", answer.status}, {"fields", answer.fields}, {"body", answer.body}};
    catalog_.put_answer({caller, key, answer.request_hash, json.dump()}, kDay);
  }

private:
  storage::Catalog& catalog_;
};

class CatalogJobs final : public FakeJobs {
public:
  explicit CatalogJobs(storage::Catalog& catalog) : catalog_(catalog) {}
  services::CancelResult cancel(const std::string& id, const services::CallContext& context) override {
    return {
        shown(catalog_.cancel_job(id, storage::Submitter{.name = context.submitter}, context.idempotency_key)
                  .job),
        false};
  }
  services::Job retry(const std::string& id, const services::CallContext& context) override {
    return shown(
        catalog_.retry_job(id, storage::Submitter{.name = context.submitter}, context.idempotency_key));
  }

private:
  services::Job shown(const storage::JobRow& row) {
    job.id = row.id;
    job.kind = row.kind;
    return job;
  }
  storage::Catalog& catalog_;
};

/// Two versions, of which the one that has the requests is the text of the row.
class CatalogDeployments final : public FakeDeployments {
public:
  explicit CatalogDeployments(storage::Catalog& catalog) : catalog_(catalog) {}
  services::PutResult rollback(const std::string& name, const services::CallContext& context) override {
    const storage::RepeatKey asked{context.submitter, context.idempotency_key, "rollback " + name};
    if (!catalog_.was_done(asked)) {
      const bool is_new = catalog_.find_deployment(name).value().desired == "new";
      catalog_.put_deployment({name, is_new ? "old" : "new"}, std::nullopt, {asked});
    }
    deployment.name = name;
    return {deployment, false, true};
  }

private:
  storage::Catalog& catalog_;
};

class Uploads final : public FakeStore {
public:
  explicit Uploads(storage::UploadStore& uploads) : uploads_(uploads) {}
  services::UploadInfo begin_upload(const services::CallContext& context) override {
    const storage::Upload begun = uploads_.begin(context.submitter, context.idempotency_key);
    return {begun.id, begun.size, {begun.created_ms}, std::nullopt};
  }

private:
  storage::UploadStore& uploads_;
};

/// A process on a disk.
struct Process {
  explicit Process(storage::Env& env)
      : blobs(env, "/s"),
        catalog(env, "/s/catalog.db"),
        uploads(env, "/s", blobs, {}, [] { return int64_t{1'700'000'000'000}; }),
        answers(catalog),
        jobs(catalog),
        deployments(catalog),
        store(uploads) {
    services = {&system,      &system, &system, &models, &jobs,   &packages,
                &deployments, &store,  &tuning, nullptr, &answers};
    api = endpoints::make_api(services, {});
  }
  /// The status of a request with a key; `body` is what it was answered.
  int send(const std::string& target, std::string* body = nullptr) {
    http::Request request;
    request.method = "POST";
    request.target = target;
    request.headers.add("Host", "localhost:8080");
    request.headers.add("Idempotency-Key", "key");
    request.body = std::make_shared<http::BytesBody>("");
    const http::Response response = api->handle(request);
    if (body != nullptr) *body = std::get<std::string>(response.body);
    return response.status;
  }

  storage::FolderBlobStore blobs;
  storage::SqliteCatalog catalog;
  storage::FolderUploadStore uploads;
  CatalogAnswers answers;
  CatalogJobs jobs;
  CatalogDeployments deployments;
  Uploads store;
  FakeSystem system;
  FakeModels models;
  FakePackages packages;
  FakeTuning tuning;
  services::Services services;
  std::unique_ptr<http::Handler> api;
};

/// A request, what is there before it, and what is wrong unless it was done once; "" when nothing is.
struct Case {
  std::string name;
  std::function<std::string(Process&)> prepare;  ///< the target
  std::function<std::string(Process&)> judge;
};

storage::JobSubmission submission() {
  storage::JobSubmission job;
  job.kind = "compile";
  job.action_key = "k";
  job.submitter.name = "local";
  return job;
}

std::vector<Case> cases() {
  const auto only_job = [](Process& process) { return process.catalog.list_jobs({}, {}).items.at(0); };
  return {
      {"a cancel withdraws one of three submitters",
       [](Process& process) {
         std::string id;
         for (int i = 0; i < 3; ++i) id = process.catalog.submit_job(submission()).job.id;
         return "/v1/jobs/" + id + "/cancel";
       },
       [=](Process& process) {
         const int left = only_job(process).submitters;
         return left == 2 ? "" : std::to_string(left) + " submitters are left of three";
       }},
      {"a retry queues a job once",
       [](Process& process) {
         const std::string id = process.catalog.submit_job(submission()).job.id;
         process.catalog.cancel_job(id);
         return "/v1/jobs/" + id + "/retry";
       },
       [=](Process& process) {
         int queued = 0;
         for (const auto& event : process.catalog.job_events(only_job(process).id, 0, 100))
           queued += event.data.find("queued") != std::string::npos ? 1 : 0;
         return queued == 2 ? "" : "it was queued " + std::to_string(queued) + " times";
       }},
      {"one call goes back to the version before",
       [](Process& process) {
         process.catalog.put_deployment({"d", "new"});
         return std::string("/v1/deployments/d/rollback");
       },
       [](Process& process) {
         const std::string serves = process.catalog.find_deployment("d").value().desired;
         return serves == "old" ? "" : "version " + serves + " serves";
       }},
      {"one upload is begun", [](Process&) { return std::string("/v1/uploads"); },
       [](Process& process) {
         size_t with_key = 0;
         for (const storage::Upload& upload : process.uploads.list()) with_key += upload.key == "key" ? 1 : 0;
         return with_key == 1 ? "" : std::to_string(with_key) + " uploads";
       }},
  };
}

/// Why a request that is sent again after a crash, when its answer was not kept, does its work once: for each
/// route that takes a key.
const std::map<std::string, std::string>& why_once() {
  static const std::map<std::string, std::string> reasons = {
      {"import_model", "a model's id is that of its bytes, and its name points at it already"},
      {"begin_upload", "the upload has the key: above"},
      {"collect_garbage", "what is gone is gone; the report tells of what was left"},
      {"submit_job", "the job is made in one transaction with the key"},
      {"cancel_job", "the key is noted in the transaction: above"},
      {"retry_job", "the key is noted in the transaction: above"},
      {"import_results", "the key is noted in the transaction that ends the job: CatalogCallersTest"},
      {"drain_worker", "the worker is drained already"},
      {"resume_worker", "the worker is active already"},
      {"import_tuning_records", "a record's id, and a set's, is that of its bytes"},
      {"import_package", "a package's id is that of its bytes"},
      {"roll_back", "the key is noted in the transaction: above; in the service: DeploymentTraffic"},
      {"change_v2_trace", "the setting is what it was set to"},
      {"change_v2_model_trace", "the setting is what it was set to"},
      {"load_v2_model", "what is loaded with this configuration stays"},
      {"unload_v2_model", "what is unloaded stays so"},
  };
  return reasons;
}

TEST(RepeatsCrashTest, OfEveryRouteThatTakesAKeyItIsKnownWhyItIsDoneOnce) {
  std::set<std::string> take, known;
  for (const endpoints::RouteRow& row : endpoints::all_routes()) {
    if (endpoints::takes_idempotency_key(row)) take.insert(std::string(row.name));
  }
  for (const auto& [name, reason] : why_once()) known.insert(name);
  EXPECT_EQ(take, known);
}

TEST(RepeatsCrashTest, ARequestThatIsSentAgainAfterAPowerCutIsDoneOnce) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    bool uncut = false;
    for (uint64_t cut = 0; !uncut && cut < kMost; ++cut) {
      for (const storage::Survival survival : {storage::Survival::kAll, storage::Survival::kNothing}) {
        storage::PowerCutEnv env;
        std::string target, first;
        int status = 0;
        {
          Process process(env);
          target = one.prepare(process);
          env.cut_after(cut);
          status = process.send(target, &first);
          uncut = !env.is_off();
        }
        env.reboot(survival, cut);
        Process again(env);
        std::string second;
        EXPECT_LT(again.send(target, &second), 300) << "cut after " << cut << ": " << second;
        EXPECT_EQ(one.judge(again), "") << "cut after " << cut;
        if (status < 300) {
          EXPECT_EQ(second, first) << "what was answered is answered again; cut after " << cut;
        }
      }
    }
    EXPECT_TRUE(uncut) << "more changes than expected";
  }
}

TEST(RepeatsCrashTest, ARequestThatIsSentAgainAfterAFullDiskIsDoneOnce) {
  for (const Case& one : cases()) {
    SCOPED_TRACE(one.name);
    bool failed = true;
    for (uint64_t k = 1; failed && k < kMost; ++k) {
      storage::PowerCutEnv env;
      Process process(env);
      const std::string target = one.prepare(process);
      env.fail_operations(k, 1, ENOSPC);
      const uint64_t before = env.operations();
      process.send(target);
      failed = env.operations() - before >= k;
      env.fail_operations(1, 0, 0);
      std::string answer;
      EXPECT_LT(process.send(target, &answer), 300) << "change " << k << ": " << answer;
      EXPECT_EQ(one.judge(process), "") << "change " << k;
    }
    EXPECT_FALSE(failed) << "more changes than expected";
  }
}

}  // namespace
}  // namespace tensormill::testing_api::crashes
