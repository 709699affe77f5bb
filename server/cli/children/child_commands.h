/// The children of the server: this program under another command name, started by server/jobs' ChildProcess
/// and never by people. Each gets its work as one JSON argument and inherited descriptors (listed at each),
/// and confines itself before it looks at them. Thread-safety: called once, from main.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/package/package_reader.h"
#include "server/jobs/child_main.h"

namespace tensormill::cli {

/// {"mode":"facts"|"bundle"|"graph","format","max_bytes","input_shapes","outputs","stage","target",
/// "opt_level","disabled_pass","desired_layout","desired_layout_ops","kernels"} -> the model's facts,
/// {"digest","kernels":[…] if requested}, or the graph as JSON. Descriptors: the model; for "bundle" also the
/// text and the constants to write.
std::string child_import(jobs::ChildChannel& channel, std::span<const std::string> arguments);
/// {"target","opt_level","disabled_pass","desired_layout","desired_layout_ops","verify","host_runs_target",
/// "model_digest","model_format","recorded_options","dumps","threads"} -> {"times_ms":{…},"layout":{…} where
/// one is desired}. Descriptors: the bundle's text and constants; to write: metadata.json, mod.json, mod.so,
/// mod.params, the dumps as one JSON object; to read: the tuned schedules, {KERNEL:[steps,record,reason]}.
std::string child_compile(jobs::ChildChannel& channel, std::span<const std::string> arguments);
/// {"fill_mode","seed","repeat","number","profile","threads","memory_budget","dims"} -> the timing.
/// Descriptors: metadata.json, mod.json, mod.so, mod.params, the inputs as NPZ; to write: the outputs as NPZ.
std::string child_run(jobs::ChildChannel& channel, std::span<const std::string> arguments);
/// Nothing -> {"evaluation","quality"} for a report's row (server/report/rows.h). Descriptors: the members as
/// for a run, the set of inputs as NPZ, the labels, and the request:
/// {"classes","has_labels","scores","samples","warmup",
/// "repeat","number","threads","memory_budget","timeout_ms"}.
std::string child_evaluate(jobs::ChildChannel& channel, std::span<const std::string> arguments);
/// {"variants","outputs"} -> {}: the model, evaluated node by node. Descriptors: the bundle's text and
/// constants, the inputs as NPZ; to write: the outputs as NPZ, under the names that the request has for them.
std::string child_reference(jobs::ChildChannel& channel, std::span<const std::string> arguments);
/// {"form":"so"|"static","name","libraries"} -> {}. Descriptors: the members as for a run, the runtime's
/// object; to write: a tar with the library and its headers; to read: the C library's parts, as many as are
/// named.
std::string child_bundle(jobs::ChildChannel& channel, std::span<const std::string> arguments);
/// {"instances","max_queue","warmup","max_batch","max_delay_us","threads","memory","run_timeout_ms"} -> {}
/// once the pipe of requests ends. Descriptors: the members as for a run, the pipe of requests, the pipe of
/// answers (server/services/deployments/executor_wire.h). Event "ready" {"inputs","outputs","memory_bytes"}.
std::string child_execute(jobs::ChildChannel& channel, std::span<const std::string> arguments);
/// The package whose members are the first inherited descriptors.
std::shared_ptr<const package::Package> open_package_members();

/// What a child does before it gives up opening files: one that makes code loads the code generator, one that
/// tunes XGBoost as well; the one that imports maps the library that its model may need, by the marks at the
/// ends of the file alone. Throws Error(kNotSupported) where the module that one needs is not installed.
void prepare_child(std::string_view command);
/// The child that `command` names; null when it is no child's name.
jobs::ChildBody find_child(std::string_view command);

}  // namespace tensormill::cli
