/// The rows of a report's document, one a configuration, whoever compiles and tries it: the command line in
/// processes of its own, or a job in confined children. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/target/target.h"
#include "runtime/base/digest.h"
#include "runtime/base/json.h"
#include "runtime/package/metadata.h"

namespace tensormill::report {

/// Short, for charts: "digits native O3". `layout`: "" where the compiler chooses.
std::string configuration_name(std::string_view model, std::string_view target, int opt_level,
                               std::string_view layout);

/// A row of what was not tried yet: its state is "failed" until complete_row() says otherwise.
Json empty_row(const std::string& name, const std::string& model, const std::string& target, int opt_level,
               const std::string& layout);

/// `metadata_bytes`: of metadata.json itself, which names the sizes of all other members.
Json package_json(const package::Metadata& metadata, const Digest& id, size_t metadata_bytes);

/// What evaluate() said and what the process took, for the row's "run".
Json run_json(const Json& evaluation, int64_t max_resident_bytes);

/// What all configurations share.
struct Truth {
  std::vector<int64_t> classes;  ///< of the samples; none where there are no labels
  std::vector<std::string> names;
};

/// Of evaluate()'s classes beside the truth; null where there is no truth, or no classes to compare.
Json quality_json(const Json& evaluation, const Truth& truth);

/// What a row's remarks are made of.
struct RemarkSources {
  const package::Metadata& metadata;
  std::string compile_log;  ///< what the compile printed beside its report, a remark a line
  const target::Target& target;
  const target::Target& host;
  bool has_truth = false;
};
/// `evaluation`, `quality`: null where there is none.
std::vector<std::string> row_remarks(const RemarkSources& sources, const Json& evaluation,
                                     const Json& quality);

/// What stands around the rows.
struct ReportHead {
  std::string made_at;  ///< RFC 3339
  std::string program;
  Json machine;        ///< of machine_json(); null while there is no row
  std::string inputs;  ///< what the set is called
};
Json machine_json(const target::Target& host);
/// The document; its "samples" are those of the first row that is ok.
Json report_json(const ReportHead& head, Json rows);

}  // namespace tensormill::report
