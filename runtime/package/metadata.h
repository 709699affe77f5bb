/// What `metadata.json` holds: everything that can be said about a package without reading its other members.
/// Canonical JSON; the SHA-256 of its bytes is the package's id. Nothing here depends on time or place.
/// Thread-safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/dtype.h"
#include "runtime/base/quantization.h"
#include "runtime/base/shape.h"
#include "runtime/base/value_notes.h"

namespace tensormill::package {

inline constexpr int64_t kPackageFormatVersion = 1;

/// Names of the members, in the archive's order.
inline constexpr std::string_view kMetadataMember = "metadata.json";
inline constexpr std::string_view kPlanMember = "mod.json";
inline constexpr std::string_view kCodeMember = "mod.so";
inline constexpr std::string_view kParamsMember = "mod.params";
inline constexpr std::array kMembers = {kMetadataMember, kPlanMember, kCodeMember, kParamsMember};
/// mod.params starts at a multiple of this in the archive, so that it can be mapped from it.
inline constexpr int64_t kParamsAlignment = 4096;

struct TensorInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  DimShape shape;
  std::optional<Quantization> quantization = {};  ///< of integers that stand for real numbers
  ValueNotes notes = {};
};

struct KernelInfo {
  std::string symbol;
  std::string task_key;       ///< 64 hex: SHA-256 of the kernel's canonical text
  std::string template_name;  ///< the schedule's template: "conv2d", "injective"
  std::string tuning_record;  ///< id of the record whose schedule was used, or ""
  std::string tuning_reason;  ///< why there is none: "no records given", "steps no longer apply", or ""
  std::string verified;       ///< "full", "sample", "none", "not_run"
  std::vector<std::string> origins;
  /// Of a convolution that has several: "direct", "F(2,3)", "F(4,3)"; else "".
  std::string algorithm = {};
  std::string algorithm_reason = {};  ///< what chose it: "rule" (the analytic model), "records"; or ""
};

struct MemberInfo {
  Digest digest;
  int64_t size = 0;
};

struct Metadata {
  int64_t format_version = kPackageFormatVersion;
  int64_t abi_version = 1;
  std::string compiler_version;           ///< "0.1.0"
  std::string compiler_build;             ///< build id of the compiler and its LLVM version
  std::string model_digest;               ///< "sha256:<hex>"
  std::string model_format;               ///< "onnx"
  std::string target;                     ///< canonical target string
  std::string triple;                     ///< "x86_64-unknown-linux-gnu"
  std::vector<std::string> cpu_features;  ///< LLVM names, sorted; loading is refused without them
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  int64_t opt_level = 3;
  std::vector<std::string> passes;  ///< that ran, in order
  std::map<std::string, std::string>
      options;         ///< what else of the request shaped the result: canonical texts
  std::string verify;  ///< "full", "sample", "none" or "not_run" (a foreign target)
  std::vector<KernelInfo> kernels;
  int64_t num_steps = 0;
  int64_t host_steps = 0;
  int64_t weight_bytes = 0;                   ///< of mod.params
  int64_t arena_bytes = 0;                    ///< peak of inputs, outputs, temporaries and shared workspace
  int64_t worker_workspace_bytes = 0;         ///< for each thread, besides arena_bytes
  int64_t flops = 0;                          ///< of one run
  std::map<std::string, MemberInfo> members;  ///< mod.so, mod.json, mod.params
};

/// Canonical JSON text.
std::string metadata_to_json(const Metadata& metadata);
/// Throws Error(kInvalidPackage) unless `text` is what metadata_to_json writes: canonical, complete, no
/// unknown member, the three members named.
Metadata metadata_from_json(std::string_view text);
/// The package's id.
inline Digest package_id(std::string_view metadata_text) { return Digest::of(metadata_text); }

}  // namespace tensormill::package
