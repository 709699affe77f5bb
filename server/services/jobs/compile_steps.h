/// The steps of a compilation, for the kinds of job that compile: import, compile, store.
/// Thread-safety: a step belongs to its job's thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/target/target.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "server/jobs/job_runner.h"
#include "server/services/store/package_signature.h"
#include "server/services/workers/work_desk.h"
#include "storage/blob/blob_store.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

struct CompileRunnerOptions {
  std::chrono::milliseconds import_timeout{120'000};
  uint64_t import_memory = uint64_t{4} << 30;
  std::chrono::milliseconds timeout{1'800'000};
  uint64_t memory = uint64_t{8} << 30;
  uint64_t max_model_bytes = uint64_t{16} << 30;
  int threads = 1;
  std::shared_ptr<const jobs::ChildPolicy> policy = {};  ///< of children that a step starts itself
  /// The machine that runs the children, where that is not the one that resolved the job: it may be unable to
  /// run what it compiles, or able.
  std::optional<target::Target> host = std::nullopt;
};

/// What the steps work with.
struct CompileWork {
  storage::BlobStore& blobs;  ///< gets what is made
  WorkDesk& desk;
  const PackageSigner& signer;  ///< of what is made, where it has a key
  CompileRunnerOptions options;
};

/// The same beside the store.
struct CompileTools : CompileWork {
  storage::Catalog& catalog;
  TuningRecords& records;
};

/// A graph bundle, which the import child writes, and what it says of the graphs (ir::write_variants).
struct GraphFiles {
  explicit GraphFiles(const std::string& folder);
  FileDescriptor text, constants;
  Json variants;
};

/// Members "desired_layout" and "desired_layout_ops" of a resolved compilation, as far as it has them.
Json layout_options(const Json& resolved);
/// What the compile child says of nodes that are not computed in that layout, a line each.
std::vector<std::string> layout_lines(const Json& said);

/// The members of a package, which the compile child writes.
struct PackageFiles {
  explicit PackageFiles(const std::string& folder);
  FileDescriptor metadata, plan, code, params, dumps;
};

/// The import child makes a bundle of the model that `resolved` names. Returns the keys of its kernels
/// when `kernels` asks for them, its layers' other algorithms among them. Throws Error(kNotFound) when the
/// model was removed.
std::vector<std::string> import_graph(const CompileWork& work, jobs::JobContext& context,
                                      const Json& resolved, GraphFiles& files, bool kernels = false);
/// The compile child makes a package of the bundle; returns its times as JSON.
std::string compile_graph(const CompileWork& work, jobs::JobContext& context, const Json& resolved,
                          const GraphFiles& graph, const Tuned& tuned, const PackageFiles& files);
/// All blobs of the package, durable; the row that names them.
storage::PackageRow store_package(const CompileWork& work, jobs::JobContext& context,
                                  const PackageFiles& files);

}  // namespace tensormill::server
