// Deployments and what removes the things that they need, at the same time: whoever comes first wins, and no
// row names what is not there.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/base/error.h"
#include "server/services/store/blob_collector.h"
#include "tests/server/store.h"

namespace tensormill::server::races {
namespace {

constexpr int kRounds = 40;

services::DeploymentSpec spec_of(const std::string& package) {
  services::DeploymentSpec spec;
  spec.package = package;
  spec.version = "1";
  return spec;
}

/// Whether it did what it should; an Error of `refusal` says that the other one came first.
bool wins(ErrorCode refusal, const std::function<void()>& act) {
  try {
    act();
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), refusal) << error.what();
    return false;
  }
}

TEST(DeploymentRaces, APackageGoesOrIsDeployed) {
  Store store;
  OpenStore open(store);
  FakeHost host;
  DeploymentServiceImpl deployments(open.blobs, open.catalog, host);
  const storage::PackageRow row = *open.catalog.find_package(*Digest::parse(digits_package()));
  for (int round = 0; round < kRounds; ++round) {
    open.catalog.put_package(row);
    bool removed = false;
    std::thread remover([&] {
      removed = wins(ErrorCode::kInUse, [&] { EXPECT_TRUE(open.catalog.remove_package(row.id)); });
    });
    const bool deployed =
        wins(ErrorCode::kInvalidArgument, [&] { deployments.put("d", spec_of(row.id.text()), {}); });
    remover.join();
    EXPECT_NE(removed, deployed) << "one of the two, in round " << round;
    EXPECT_EQ(open.catalog.find_deployment("d").has_value(), deployed);
    EXPECT_EQ(open.catalog.find_package(row.id).has_value(), deployed);
    if (deployed) deployments.remove("d", std::nullopt, {});
  }
}

TEST(DeploymentRaces, LabelsOfAnUploadGoOrAreDeployed) {
  Store store;
  OpenStore open(store);
  FakeHost host;
  BlobCollector collector(open.blobs, open.catalog, open.uploads);
  DeploymentServiceImpl deployments(open.blobs, open.catalog, host);
  for (int round = 0; round < kRounds; ++round) {
    // Nothing names them from here on; a collection runs while the deployment is made.
    services::DeploymentSpec spec = spec_of(digits_package());
    spec.labels_blob = open.blobs.put("labels of round " + std::to_string(round)).text();
    std::thread collecting([&] { collector.collect(); });
    const bool deployed = wins(ErrorCode::kInvalidArgument, [&] { deployments.put("d", spec, {}); });
    collecting.join();
    if (!deployed) continue;
    collector.collect();
    EXPECT_TRUE(open.blobs.exists(*Digest::parse(*spec.labels_blob))) << "a row names it";
    deployments.remove("d", std::nullopt, {});
  }
}

}  // namespace
}  // namespace tensormill::server::races
