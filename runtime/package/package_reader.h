/// Opens a package and loads it. Everything in it is untrusted until it is checked: the archive's form, the
/// members' digests, the plan, the ABI number, the CPU features, and the code before it is mapped.
/// Thread-safety: a Package and a LoadedPackage are immutable and may be shared.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/package/code_image.h"
#include "runtime/package/exec_plan.h"
#include "runtime/package/metadata.h"
#include "runtime/package/plan_memory.h"

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
  /// Members that lie apart, as the store keeps them, by member name.
  static std::shared_ptr<const Package> open_members(
      std::map<std::string, std::shared_ptr<const MappedFile>> members);

  const Metadata& metadata() const { return metadata_; }
  const std::string& metadata_text() const { return metadata_text_; }
  const Digest& id() const { return id_; }
  const ExecPlan& plan() const { return plan_; }
  /// Bytes of a member; mod.params starts at a 64-byte aligned address.
  std::span<const std::byte> member(std::string_view name) const;

private:
  Package() = default;
  void check();

  std::vector<std::shared_ptr<const void>> owners_;
  std::map<std::string, std::span<const std::byte>, std::less<>> members_;
  std::string metadata_text_;
  Digest id_;
  Metadata metadata_;
  ExecPlan plan_;
};

/// A package that can run here: code mapped, kernels found, memory planned. Executors share it.
class LoadedPackage {
public:
  /// Throws Error(kCpuFeatureMissing) naming the features, Error(kNotSupported) for another machine's code,
  /// Error(kInvalidPackage) when the code is not admitted or lacks a kernel.
  static std::shared_ptr<const LoadedPackage> load(std::shared_ptr<const Package> package);

  const Package& package() const { return *package_; }
  const ExecPlan& plan() const { return package_->plan(); }
  const Metadata& metadata() const { return package_->metadata(); }
  const MemoryPlan& memory() const { return memory_; }
  std::span<const std::byte> params() const { return package_->member(kParamsMember); }
  /// Of step `index`; null when the step is not a kernel.
  tm_kernel kernel(size_t index) const { return kernels_[index]; }

private:
  LoadedPackage(std::shared_ptr<const Package> package, std::span<const std::byte> code);

  std::shared_ptr<const Package> package_;
  CodeImage code_;
  MemoryPlan memory_;
  std::vector<tm_kernel> kernels_;
};

}  // namespace tensormill::package
