// Tuning records in a store: import, and which record a compile takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/driver/compile.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/jobs/compile_action.h"
#include "server/services/jobs/tuning_records.h"
#include "storage/blob/folder_blob_store.h"
#include "storage/catalog/sqlite_catalog.h"
#include "storage/env/memory_env.h"
#include "storage/upload/folder_upload_store.h"
#include "tests/storage/support.h"

namespace tensormill::server {
namespace {

using testing::HasSubstr;

const std::string kKernel(64, 'a');

class TuningRecordsTest : public testing::Test {
protected:
  tune::Record record(double seconds, const std::string& steps, const std::string& kernel = kKernel) {
    tune::Record record;
    record.target = target_.canonical();
    record.task_key = kernel;
    record.schedule = steps;
    record.seconds = {seconds};
    record.codegen = driver::code_generator();
    record.cpu = records_.cpu();
    record.threads = records_.default_threads(target_);
    return record;
  }
  void measure(const tune::Record& record) {
    catalog_.put_tuning_records({row_of(record, tune::to_line(record), "job")});
  }
  std::string text(const std::shared_ptr<http::ResponseStream>& lines) {
    std::string all;
    while (lines->next(all)) continue;
    return all;
  }
  std::string refusal(const std::string& text, bool foreign = false) {
    try {
      records_.import_records(text, foreign);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidRecords);
      return error.message();
    }
    ADD_FAILURE() << "accepted: " << text;
    return "";
  }
  Json resolved() const { return {{"model", "m"}, {"target", target_.canonical()}}; }

  storage::MemoryEnv env_;
  storage::SqliteCatalog catalog_{env_, "/c.db"};
  target::Target target_ = target::host_target();
  TuningRecords records_{catalog_, target_};
};

TEST_F(TuningRecordsTest, WhatIsImportedIsBoundedByTheStoresQuota) {
  storage::FolderBlobStore blobs(env_, "/s");
  storage::FolderUploadStore uploads(env_, "/s", blobs, {}, [] { return int64_t{0}; });
  StoreQuota quota(blobs, uploads, catalog_.database_bytes() + (uint64_t{100} << 10));
  TuningRecords bounded(catalog_, target_, &quota);
  // Each is less than there is room; together they are not.
  int taken = 0;
  const auto fill = [&] {
    for (; taken < 1000; ++taken) {
      std::string lines;
      for (int i = 0; i < 50; ++i)
        lines += tune::to_line(record(1 + taken + i * 1e-3, "split s0 i0 2\n")) + "\n";
      bounded.import_records(lines, false);
    }
  };
  EXPECT_ERROR(fill(), ErrorCode::kDiskFull);
  EXPECT_GT(taken, 0);
  EXPECT_LE(catalog_.database_bytes(), quota.bytes() + (uint64_t{100} << 10))
      << "but for indexes of the last";
}

TEST_F(TuningRecordsTest, AnImportIsASetThatComesBackAsItWas) {
  const std::string lines =
      tune::to_line(record(2, "split s0 i0 2\n")) + "\n\n" + tune::to_line(record(3, "split s0 i0 4\n"));
  const services::TuningImport first = records_.import_records(lines, false);
  EXPECT_TRUE(first.created);
  EXPECT_EQ(first.records, 2);
  EXPECT_EQ(first.added, 2);
  EXPECT_EQ(first.tasks, 1);
  const std::string back = text(records_.get(first.id.text()));
  EXPECT_EQ(back, text(records_.list({"", target_.canonical()})));
  const services::TuningImport again = records_.import_records(back, false);
  EXPECT_EQ(again.id, first.id);
  EXPECT_FALSE(again.created);
  EXPECT_EQ(again.added, 0);
  records_.remove(first.id.text());
  EXPECT_EQ(text(records_.list({})), "");
  EXPECT_THROW(records_.get(first.id.text()), Error);
  EXPECT_THROW(records_.remove("nothing"), Error);
}

TEST_F(TuningRecordsTest, StrangersRecordsAreRefusedWithTheirLine) {
  tune::Record foreign = record(2, "");
  foreign.cpu = "another cpu";
  const std::string lines = tune::to_line(record(2, "")) + "\n" + tune::to_line(foreign);
  EXPECT_THAT(refusal(lines), HasSubstr("line 2: it was measured on another kind of CPU"));
  EXPECT_EQ(records_.import_records(lines, true).records, 2);
  EXPECT_THAT(refusal("\n{}"), HasSubstr("line 2"));
  EXPECT_THAT(refusal(" \n"), HasSubstr("no records"));
}

TEST_F(TuningRecordsTest, AutoTakesWhatWasMeasuredHere) {
  measure(record(3, "split s0 i0 2\n"));
  const tune::Record best = record(2, "split s0 i0 4\n");
  measure(best);
  tune::Record other = record(1, "split s0 i0 8\n");
  other.codegen = "another compiler";
  measure(other);
  const Digest imported = records_.import_records(tune::to_line(record(1, "split s0 i0 16\n")), false).id;
  const auto chosen = records_.choose("auto", target_, {}).schedules;
  ASSERT_EQ(chosen.size(), 1U);
  EXPECT_EQ(chosen.at(kKernel).steps, "split s0 i0 4\n");
  EXPECT_EQ(chosen.at(kKernel).record, best.id());
  EXPECT_EQ(records_.choose(imported.text(), target_, {}).schedules.at(kKernel).steps, "split s0 i0 16\n");
  EXPECT_TRUE(records_.choose("auto", target_, {std::string(64, 'b')}).schedules.empty());
  EXPECT_EQ(records_.find(kKernel, best.id(), target_).steps, "split s0 i0 4\n");
  EXPECT_THAT(records_.find(kKernel, "nothing", target_).reason, HasSubstr("removed"));
}

TEST_F(TuningRecordsTest, ASetTellsWhyItsRecordsCannotBeUsed) {
  tune::Record other = record(1, "");
  other.codegen = "another compiler";
  const Digest set = records_.import_records(tune::to_line(other), false).id;
  EXPECT_EQ(records_.choose(set.text(), target_, {}).schedules.at(kKernel).reason,
            "its records are of another compiler");
}

TEST_F(TuningRecordsTest, TheActionCoversTheChosenRecordsAlone) {
  const auto resolve = [&] {
    Json form = resolved();
    resolve_records(records_, catalog_, "auto", form);
    return form;
  };
  EXPECT_EQ(resolve().at("tuning_records"), Json::array());
  measure(record(2, "split s0 i0 4\n"));
  Json form = resolve();
  ASSERT_TRUE(has_pending_records(form)) << "nobody knows the model's kernels";
  settle_records(records_, form, {kKernel});
  EXPECT_FALSE(has_pending_records(form));
  remember_kernels(catalog_, form, {kKernel});
  EXPECT_EQ(action_key(resolve()), action_key(form));
  measure(record(1, "split s0 i0 4\n", std::string(64, 'b')));
  EXPECT_EQ(action_key(resolve()), action_key(form)) << "another kernel's record changes nothing";
  measure(record(1, "split s0 i0 8\n"));
  EXPECT_NE(action_key(resolve()), action_key(form));
  EXPECT_EQ(tuned_of(records_, form).schedules.at(kKernel).steps, "split s0 i0 4\n");
}

TEST_F(TuningRecordsTest, ARecordThatIsGoneLeavesItsReasonInTheForm) {
  Json form = resolved();
  form["tuning_records"] = {{"kernels", {{kKernel, {{"record", "gone"}}}}}};
  EXPECT_EQ(tuned_of(records_, form).schedules.at(kKernel).reason, "its record was removed");
  EXPECT_EQ(form.at("tuning_records").at("kernels").at(kKernel).at("reason"), "its record was removed");
}

}  // namespace
}  // namespace tensormill::server
