/// The compiler's phases in one place: passes, kernels (tensor expressions, schedule, lowering, code
/// generation, verification), link, plan, metadata. A pure function of graph, options and target: same
/// inputs, same bytes, for every number of threads. Thread-safety: compile() may run in several threads, but
/// it links at most once per process at a time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "compiler/driver/layers.h"
#include "compiler/driver/version.h"
#include "compiler/ir/variants.h"
#include "compiler/passes/layouts/desired_layout.h"
#include "compiler/plan/plan_builder.h"
#include "compiler/target/target.h"
#include "runtime/package/metadata.h"

namespace tensormill::driver {

/// What is known from tuning records of one kernel.
struct TunedSchedule {
  std::string steps;   ///< schedule::print
  std::string record;  ///< the record's id
  std::string reason;  ///< why no record of the kernel can be used; then there are no steps
};

/// Of each distinct kernel; kSample leaves out ("not_run") those whose tensors have more than 512 MiB
/// together or that do more than 2^36 operations.
enum class VerifyMode : uint8_t { kNone, kSample, kFull };
/// "none", "sample", "full"; throws Error(kInvalidArgument) otherwise.
VerifyMode parse_verify_mode(const std::string& text);

struct CompileOptions {
  target::Target target;
  int opt_level = 3;
  std::set<std::string> disabled_passes;
  /// Of maps; nothing: the compiler chooses.
  std::optional<passes::DesiredLayout> layout = {};
  VerifyMode verify = VerifyMode::kSample;
  /// The caller knows that this machine runs the target's code; else verification is "not_run".
  bool host_runs_target = true;
  std::string model_digest;  ///< "sha256:…"
  std::string model_format = "onnx";
  /// What else shaped the request (input shapes, outputs), as canonical texts for metadata.json.
  std::map<std::string, std::string> recorded_options;
  /// Tuned schedules by the kernel's key (hex), and why the others have none.
  std::map<std::string, TunedSchedule> schedules;
  std::string schedules_reason = "no records given";
  LayerAlgorithms algorithms;   ///< what records say of layers that have several
  std::set<std::string> dumps;  ///< of relay, te, tir, ll, asm
  int threads = 1;              ///< never changes the result
};

struct Progress {
  std::string stage;  ///< "passes", "kernels", "link", "plan"
  int64_t done = 0;
  int64_t total = 0;
};

class GenericPlanner;

struct CompileHooks {
  std::function<void(const Progress&)> progress;  ///< called from any of the threads, one at a time
  std::stop_token stop;                           ///< checked between kernels: Error(kCancelled)
  GenericPlanner* planner = nullptr;              ///< that the import of the variants has used
};

struct PhaseTime {
  std::string phase;
  double ms = 0;
};

/// A record whose steps made no kernel, which the default schedule has then.
struct RefusedRecord {
  std::string what;         ///< for people: which, of which kernel, and why
  bool is_damaged = false;  ///< its steps apply, but no later phase could make code of them that is right
};

struct CompileResult {
  std::string metadata_json;
  std::string plan_json;
  std::string code;
  std::vector<plan::ParamSegment> params;
  int64_t params_bytes = 0;
  std::map<std::string, std::string> dumps;    ///< by stage
  std::string generic_refused;                 ///< why a package with free dims has no generic plan; or ""
  std::vector<RefusedRecord> refused_records;  ///< by kernel
  passes::LayoutLog layout;                    ///< what the desired layout was applied to
  std::string shape_warning;                   ///< for people: which shapes have no kernels; or ""
  std::vector<PhaseTime> times;                ///< for people; not part of the package
  std::vector<PhaseTime> pass_times;           ///< of the phase "passes", each pass with its verification
};

/// Compiles an imported graph without free dims. Throws Error for what the user can cause (kWrongAnswer when
/// a kernel fails its verification) and InternalError for bugs.
CompileResult compile(const ir::Graph& graph, const CompileOptions& options, const CompileHooks& hooks = {});
/// Compiles all shapes of a model into one package: equal kernels and equal weights stand there once.
CompileResult compile(const ir::Variants& variants, const CompileOptions& options,
                      const CompileHooks& hooks = {});

}  // namespace tensormill::driver
