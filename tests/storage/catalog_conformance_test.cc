// Models, names, packages and deployments, as every back end keeps them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/storage/catalog_fixture.h"

namespace tensormill::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

INSTANTIATE_TEST_SUITE_P(Backends, CatalogTest, testing::ValuesIn(catalog_backends()),
                         [](const auto& info) { return info.param.name; });

TEST_P(CatalogTest, ModelsAreKeptAcrossAReopen) {
  EXPECT_TRUE(catalog_->put_model(model("a"), NameChange{"model", "resnet", false}));
  EXPECT_FALSE(catalog_->put_model(model("a"), std::nullopt));
  reopen();
  const std::optional<ModelRow> row = catalog_->find_model(digest("a"));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->facts, R"({"format":"onnx"})");
  EXPECT_THAT(row->blobs, ElementsAre(digest("a.0"), digest("a.1")));
  EXPECT_EQ(row->created_ms, now_);
  EXPECT_EQ(catalog_->find_name("model", "resnet"), digest("a"));
  EXPECT_FALSE(catalog_->find_model(digest("b")));
}

TEST_P(CatalogTest, AListGoesFromNewToOldInPages) {
  for (const char* text : {"a", "b", "c"}) catalog_->put_model(model(text), std::nullopt);
  const Page<ModelRow> first = catalog_->list_models({0, 2});
  ASSERT_THAT(first.items, SizeIs(2));
  EXPECT_EQ(first.items[0].id, digest("c"));
  const Page<ModelRow> second = catalog_->list_models({first.next, 2});
  ASSERT_THAT(second.items, SizeIs(1));
  EXPECT_EQ(second.items[0].id, digest("a"));
  EXPECT_EQ(second.next, 0);
  for (const char* text : {"p", "q"}) catalog_->put_package(package(text));
  const Page<PackageRow> packages = catalog_->list_packages({}, {0, 1});
  EXPECT_EQ(packages.items[0].id, digest("q"));
  EXPECT_EQ(catalog_->list_packages({}, {packages.next, 1}).items[0].id, digest("p"));
  EXPECT_EQ(catalog_->list_packages({}, {0, 2}).next, 0);
}

TEST_P(CatalogTest, ANameIsAMovablePointer) {
  catalog_->put_model(model("a"), NameChange{"model", "m", false});
  EXPECT_ERROR(catalog_->put_model(model("b"), NameChange({"model", "m", false})), ErrorCode::kNameTaken);
  EXPECT_FALSE(catalog_->find_model(digest("b"))) << "the refused name must take the row with it";
  catalog_->put_model(model("b"), NameChange{"model", "m", true});
  EXPECT_EQ(catalog_->find_name("model", "m"), digest("b"));
  EXPECT_FALSE(catalog_->find_name("package", "m"));
  catalog_->set_name({"model", "alias", false}, digest("b"));
  EXPECT_THAT(catalog_->names_of("model", digest("b")), ElementsAre("alias", "m"));
  EXPECT_THAT(catalog_->list_names("model"), SizeIs(2));
  EXPECT_TRUE(catalog_->remove_name("model", "m"));
  EXPECT_FALSE(catalog_->remove_name("model", "m"));
}

TEST_P(CatalogTest, WhatIsInUseIsNotRemoved) {
  catalog_->put_model(model("a"), NameChange{"model", "m", false});
  EXPECT_ERROR(catalog_->remove_model(digest("a")), ErrorCode::kInUse);
  catalog_->remove_name("model", "m");
  JobSubmission user = submission("k");
  user.subject = digest("a").text();
  const std::string id = catalog_->submit_job(user).job.id;
  EXPECT_ERROR(catalog_->remove_model(digest("a")), ErrorCode::kInUse);
  catalog_->cancel_job(id);
  EXPECT_TRUE(catalog_->remove_model(digest("a")));
  EXPECT_FALSE(catalog_->remove_model(digest("a")));

  catalog_->put_package(package("p"));
  catalog_->put_deployment({"d", "{}", "{}", {digest("p")}});
  EXPECT_ERROR(catalog_->remove_package(digest("p")), ErrorCode::kInUse);
  catalog_->put_deployment({"d", "{}", "{}", {}});
  catalog_->pin_package(digest("p"), true);
  EXPECT_ERROR(catalog_->remove_package(digest("p")), ErrorCode::kInUse);
  catalog_->pin_package(digest("p"), false);
  EXPECT_TRUE(catalog_->remove_package(digest("p")));
  EXPECT_THAT(catalog_->referenced_blobs(), IsEmpty());
}

TEST_P(CatalogTest, PackagesKeepMembersAndLastUse) {
  EXPECT_TRUE(catalog_->put_package(package("p")));
  now_ += 5;
  EXPECT_TRUE(catalog_->touch_package(digest("p")));
  EXPECT_FALSE(catalog_->touch_package(digest("q")));
  const PackageRow row = *catalog_->find_package(digest("p"));
  ASSERT_THAT(row.members, SizeIs(2));
  EXPECT_EQ(row.members[1].name, "mod.params");
  EXPECT_EQ(row.members[1].size, 9U);
  EXPECT_EQ(row.archive, digest("p.tar"));
  EXPECT_EQ(row.archive_bytes, 99U);
  EXPECT_EQ(row.last_used_ms, row.created_ms + 5);
  now_ += 5;
  EXPECT_FALSE(catalog_->put_package(package("p")));
  EXPECT_EQ(catalog_->find_package(digest("p"))->last_used_ms, now_);
  EXPECT_THAT(catalog_->referenced_blobs(), SizeIs(3));
}

TEST_P(CatalogTest, MetadataIsKeptBesideThePackage) {
  PackageRow early = package("early"), late = package("late");
  early.metadata = R"({"a":"\u00e9"})";
  catalog_->put_package(early);
  catalog_->put_package(late);
  const std::vector<Digest> all = {early.id, late.id, digest("none")};
  EXPECT_THAT(catalog_->package_metadata(all), ElementsAre(std::pair(early.id, early.metadata)));
  catalog_->put_package_metadata({{early.id, "another"}, {late.id, "later"}, {digest("none"), "nobody's"}});
  catalog_->put_package_metadata({});
  reopen();
  std::map<Digest, std::string> found = catalog_->package_metadata(all);
  EXPECT_THAT(found, SizeIs(2)) << "one of the packages is not there";
  EXPECT_EQ(found[early.id], early.metadata) << "what is there stays";
  EXPECT_EQ(found[late.id], "later");
  EXPECT_THAT(catalog_->package_metadata({}), IsEmpty());
  // It goes with the package, and comes with it again.
  EXPECT_TRUE(catalog_->remove_package(late.id));
  late.metadata = "again";
  catalog_->put_package(late);
  EXPECT_EQ(catalog_->package_metadata({late.id})[late.id], "again");
}

TEST_P(CatalogTest, AListSaysWhoUsesThePackages) {
  for (const char* text : {"p", "q", "r"}) catalog_->put_package(package(text));
  catalog_->put_deployment({"e", "{}", "{}", {digest("p"), digest("q")}});
  catalog_->put_deployment({"d", "{}", "{}", {digest("p")}});
  ASSERT_THAT(catalog_->list_packages({}, {0, 3}).items, SizeIs(3));
  const auto users = catalog_->deployments_of({digest("p"), digest("q"), digest("r")});
  ASSERT_THAT(users, SizeIs(2)) << "nobody uses r";
  EXPECT_THAT(users.at(digest("p")), ElementsAre("d", "e"));
  EXPECT_THAT(users.at(digest("q")), ElementsAre("e"));
  EXPECT_THAT(catalog_->deployments_of({}), IsEmpty());
  EXPECT_EQ(catalog_->count_deployments(), 2);
}

TEST_P(CatalogTest, PackagesThatNobodyUsesExpire) {
  for (const char* name : {"old", "named", "pinned", "deployed", "touched"})
    catalog_->put_package(package(name));
  catalog_->set_name({"package", "p", false}, digest("named"));
  catalog_->pin_package(digest("pinned"), true);
  catalog_->put_deployment({"d", "{}", "{}", {digest("deployed")}});
  now_ += 1000;
  catalog_->touch_package(digest("touched"));
  EXPECT_EQ(catalog_->expire_packages(1001), 0);
  EXPECT_EQ(catalog_->expire_packages(999), 1);
  EXPECT_FALSE(catalog_->find_package(digest("old")));
  for (const char* name : {"named", "pinned", "deployed", "touched"}) {
    EXPECT_TRUE(catalog_->find_package(digest(name))) << name;
  }
}

TEST_P(CatalogTest, DeploymentsAreDesiredState) {
  catalog_->put_package(package("p"));
  catalog_->put_deployment({"d", R"({"version":"1"})", R"({"1":"ready"})", {digest("p"), digest("p")}});
  catalog_->put_deployment({"c"});
  catalog_->put_deployment({"e", "{}", "{}", {}, 0, {digest("labels")}});
  reopen();
  const DeploymentRow row = *catalog_->find_deployment("d");
  EXPECT_EQ(row.desired, R"({"version":"1"})");
  EXPECT_EQ(row.versions, R"({"1":"ready"})");
  EXPECT_THAT(row.packages, ElementsAre(digest("p")));
  EXPECT_EQ(catalog_->list_deployments()[0].name, "c");
  EXPECT_THAT(catalog_->find_deployment("e")->blobs, ElementsAre(digest("labels")));
  EXPECT_THAT(catalog_->referenced_blobs(), testing::Contains(digest("labels")));
  EXPECT_TRUE(catalog_->remove_deployment("d"));
  EXPECT_FALSE(catalog_->remove_deployment("d"));
  EXPECT_FALSE(catalog_->find_deployment("d"));
}

TEST_P(CatalogTest, TheDatabaseTellsItsBytes) {
  const uint64_t before = catalog_->database_bytes();
  EXPECT_GT(before, 0U);
  std::string text;
  for (int i = 0; i < 4000; ++i) text += digest(std::to_string(i)).hex();
  catalog_->put_fact("large", text);
  EXPECT_GE(catalog_->database_bytes(), before + text.size() / 2);
}

}  // namespace
}  // namespace tensormill::storage
