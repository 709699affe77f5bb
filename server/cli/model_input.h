/// Models, targets and shapes as the command line writes them.
/// Thread-safety: pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/services/common.h"
#include "compiler/frontend/importer/importer.h"
#include "compiler/target/target.h"
#include "compiler/tune/records/record.h"
#include "runtime/base/error.h"

namespace CLI {  // CLI11's NOLINT(readability-identifier-naming)
class App;
}

namespace tensormill::cli {

/// "data:[1,3,224,224] x:[N,3,H,W]" -> shapes by input name. Throws Error(kUsage) with the place.
std::map<std::string, DimShape> parse_input_shapes(const std::string& text);
/// A model's inputs or outputs, with their kinds.
std::vector<services::TensorSpec> specs_of(const std::vector<frontend::SignatureValue>& values);
/// {"sr":16000,"axes":[0,1]}, as server::bind_input_values; "": nothing. Throws Error(kUsage) naming the
/// input.
void bind_input_values(const std::string& text, const frontend::Importer& model,
                       frontend::ImportOptions& options);
/// "A,B" -> {"A","B"}; "" -> {}.
std::vector<std::string> split_list(const std::string& text);
/// A target string, JSON text, or the path of a JSON file; `overrides` are further options as in a target
/// string. Throws Error(kUsage) naming the wrong part, Error(kNotSupported) for a kind that is not built
/// here.
target::Target resolve_target(const std::string& text, const std::vector<std::string>& overrides,
                              const target::Target& host);
/// --model-format and --signature, which open_model_file takes.
void add_model_options(CLI::App& app, std::string& format, std::string& signature);
/// The model at `path`. `format`: of which it must be, a name of formats.def; "": any that can be imported.
/// Throws Error(kNotSupported) for another one. `signature`: as frontend::make_importer; Error(kUsage) for
/// one that the model does not have.
std::unique_ptr<frontend::Importer> open_model_file(const std::string& path, const std::string& format,
                                                    const std::string& signature);

/// Throws Error(kUsage) when no file can be written at `path`: found before the work, not after it.
void check_output(const std::string& option, const std::string& path);

/// The records of a file; lines that are none are left out, with a warning for the first few. Throws
/// Error(kInvalidRecords) where none is left.
std::vector<tune::Record> read_record_file(const std::string& path);

/// action(); an Error of it that does not name `what` yet does so.
template <typename ActionType>
auto in_context(const std::string& what, const ActionType& action) {
  try {
    return action();
  } catch (Error& error) {
    if (error.message().find(what) == std::string::npos) error.add_context(what);
    throw;
  }
}

}  // namespace tensormill::cli
