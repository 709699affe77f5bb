/// Opens a package and loads it. Everything in it is untrusted until it is checked: the archive's form, the
/// members' digests, the plan, the ABI number, the CPU features, and the code before it is mapped.
/// Thread-safety: a Package and a LoadedPackage are immutable and may be shared.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/tensor.h"
#include "runtime/package/code_image.h"
#include "runtime/package/exec_plan.h"
#include "runtime/package/metadata.h"
#include "runtime/package/model_step.h"
#include "runtime/package/plan_memory.h"
#include "runtime/package/plan_set.h"
#include "runtime/package/segments.h"

namespace tensormill::package {

/// A package whose digests, metadata and plan are right; its code has not been looked at. Any architecture.
class Package {
public:
  /// A tar archive, or a folder that holds the four members as files. Throws Error(kNotFound),
  /// Error(kInvalidPackage).
  static std::shared_ptr<const Package> open(const std::string& path);
  /// A tar archive behind a descriptor, which may be closed afterwards.
  static std::shared_ptr<const Package> open_archive(std::shared_ptr<const MappedFile> archive);
  /// A tar archive in memory; the bytes are copied.
  static std::shared_ptr<const Package> from_archive_bytes(std::span<const std::byte> archive);
  /// A tar archive in memory that stays as it is while anything holds the package; 64-byte aligned. Nothing
  /// is copied.
  static std::shared_ptr<const Package> over_archive_bytes(std::span<const std::byte> archive);
  /// Members that lie apart, as the store keeps them, by member name. Throws Error(kCancelled) when `stop`
  /// stops while they are hashed.
  static std::shared_ptr<const Package> open_members(
      const std::map<std::string, std::shared_ptr<const MappedFile>>& members,
      const std::stop_token& stop = {});
  /// What this process has just made, without mod.params: `constants` gives them by offset, at 64-byte
  /// aligned addresses, with kTensorPadding readable bytes behind them, from any thread. Digests are not
  /// compared.
  static std::shared_ptr<const Package> open_made(
      const std::map<std::string, std::shared_ptr<const MappedFile>>& members,
      std::function<const void*(int64_t offset)> constants);

  const Metadata& metadata() const { return metadata_; }
  const std::string& metadata_text() const { return metadata_text_; }
  const Digest& id() const { return id_; }
  /// The plan of a fixed package; of one with free dims what an executor starts with.
  const ExecPlan& plan() const { return plans_.first(); }
  const PlanSet& plans() const { return plans_; }
  /// Bytes of a member; mod.params starts at a 64-byte aligned address.
  std::span<const std::byte> member(std::string_view name) const;
  /// The constant at that offset of mod.params.
  const std::byte* constant(int64_t offset) const;

private:
  Package() = default;
  void add_members(const std::map<std::string, std::shared_ptr<const MappedFile>>& members);
  void check(const std::stop_token& stop = {});
  void read_metadata();
  void read_plans();

  std::vector<std::shared_ptr<const void>> owners_;
  std::map<std::string, std::span<const std::byte>, std::less<>> members_;
  std::function<const void*(int64_t offset)> constants_;  ///< where they lie apart
  std::string metadata_text_;
  Digest id_;
  Metadata metadata_;
  PlanSet plans_;
};

/// What an interpreted step does in place of a kernel; its errors are the model's, about a run's data,
/// and name the node.
using InterpretedStep = std::function<void(std::span<void* const> buffers)>;

/// A plan for one value of each free dim, ready for executors.
struct BoundPlan {
  std::vector<int64_t> dims;  ///< of the free dims; empty for a fixed package
  bool is_generic = false;
  const GenericPlan* generic = nullptr;  ///< of the package, which `plan` is bound of, if any
  ExecPlan plan;
  MemoryPlan memory;  ///< of the first segment
  /// Where a run binds extents: those of `plan` behind the first segment are 0 until then.
  std::shared_ptr<const Segments> segments = nullptr;
  std::vector<tm_kernel> kernels;  ///< by step; null when the step is not a kernel
  /// Of an Interpreter's plan, which has no kernels: by step, and the constants by their buffers.
  bool is_interpreted = false;
  std::vector<InterpretedStep> interpreted = {};
  std::map<int32_t, Tensor> constants = {};
  /// Of an Interpreter's plan: it is that of one run alone, or, where it is a step that stands for the model,
  /// each run at these dims has its own.
  bool is_single_use = false;
};

/// Tensors of a run by the names of inputs.
using RunValues = std::map<std::string, Tensor>;

/// Makes plans of the model that a package holds (PlanSet::model): whatever shape the model takes, slowly.
/// Thread-safety: all methods from many threads.
class Interpreter {
public:
  Interpreter() = default;
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  virtual ~Interpreter() = default;
  /// `values`: of all inputs of the run that the plan is for, where they decide about it, too; else none:
  /// then the plan is the step of model_step.h where the dims do not suffice. Throws Error(kInvalidTensor)
  /// saying why the model does not take them, Error(kMemoryBudget), Error(kInvalidPackage) where the model is
  /// no such one.
  virtual std::shared_ptr<const BoundPlan> bind(const std::vector<int64_t>& dims,
                                                const RunValues& values) const = 0;
};
/// Null where the package holds no model.
using MakeInterpreter =
    std::function<std::unique_ptr<const Interpreter>(const std::shared_ptr<const Package>&)>;

/// A package that can run here: code mapped, kernels found, memory planned. Executors share it.
class LoadedPackage {
public:
  /// Throws Error(kCpuFeatureMissing) naming the features, Error(kNotSupported) for another machine's code,
  /// Error(kInvalidPackage) when the code is not admitted or lacks a kernel. Without an interpreter the
  /// shapes that no plan takes are refused.
  static std::shared_ptr<const LoadedPackage> load(std::shared_ptr<const Package> package,
                                                   const MakeInterpreter& make_interpreter = {});

  const Package& package() const { return *package_; }
  const std::shared_ptr<const Package>& shared_package() const { return package_; }
  const ExecPlan& plan() const { return package_->plan(); }
  const Metadata& metadata() const { return package_->metadata(); }
  /// Extents at which executors start.
  const std::vector<int64_t>& first_dims() const { return first_dims_; }
  /// The variant compiled for `dims`, or the generic plan bound to them. Bound plans are kept: the last 32
  /// shapes are planned once. Throws Error(kInvalidTensor) when the package has no plan for the shape.
  std::shared_ptr<const BoundPlan> bind(const std::vector<int64_t>& dims) const;
  /// Whether there is an interpreter for the shapes that bind() refuses.
  bool interprets() const { return interpreter_ != nullptr; }
  /// Its plan, kept as those of bind(), and in the place of the one with kernels for the dims, if any. Throws
  /// what Interpreter::bind throws.
  std::shared_ptr<const BoundPlan> interpret(const std::vector<int64_t>& dims) const;
  /// Whether plans of the package stand for the model alone (model_step.h), so that each run is interpreted.
  bool interprets_runs() const { return interpreter_ != nullptr && is_model_step(plan()); }
  /// The interpreter's plan for a run of these inputs' values.
  std::shared_ptr<const BoundPlan> interpret_run(const std::vector<int64_t>& dims,
                                                 const RunValues& values) const;

private:
  LoadedPackage(std::shared_ptr<const Package> package, std::span<const std::byte> code);

  std::shared_ptr<const BoundPlan> make_plan(const std::vector<int64_t>& dims) const;
  /// The plan that is known and serves, else the one that is made.
  std::shared_ptr<const BoundPlan> kept_plan(
      const std::function<bool(const BoundPlan&)>& serves,
      const std::function<std::shared_ptr<const BoundPlan>()>& make) const;

  std::shared_ptr<const Package> package_;
  CodeImage code_;
  std::unique_ptr<const Interpreter> interpreter_;
  std::vector<int64_t> first_dims_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const BoundPlan>> bound_;  ///< most recently used last
};

}  // namespace tensormill::package
