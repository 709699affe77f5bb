/// A package as a library with its executor in it, for requests: linked in a confined child. Thread-safety: a
/// pure function over processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "api/http/body.h"
#include "api/services/package_service.h"
#include "server/services/jobs/child_runner.h"
#include "server/services/store/package_archive.h"

namespace tensormill::server {

struct BundleLimits {
  uint64_t memory = uint64_t{8} << 30;
  std::chrono::milliseconds timeout{120'000};
  std::string folder;  ///< on the store's disk, for what is made
};

/// A tar with NAME.so or NAME.a, NAME.h and tensormill.h. Throws Error(kNotSupported) where the form is not
/// made for the package's target, Error(kTooLarge) for a package that is not linked, and what
/// ChildRunner::run throws.
std::shared_ptr<http::Content> make_bundle_archive(ChildRunner& children, const MemberBlobs& members,
                                                   const services::BundleOptions& options,
                                                   const BundleLimits& limits,
                                                   const std::stop_token& cancelled);

}  // namespace tensormill::server
