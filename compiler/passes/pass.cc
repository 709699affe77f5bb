#include "compiler/passes/pass.h"

#include <algorithm>

#include "compiler/ir/run_dims.h"
#include "runtime/base/error.h"

namespace tensormill::passes {

namespace {

constexpr std::string_view kLayoutPass = "convert_layout";

}  // namespace

bool is_generic(const PassContext& context, const ir::Graph& graph, const ir::Node& node) {
  return context.is_generic && !ir::has_constant_extents(graph, node);
}

const std::vector<PassInfo>& all_passes() {
  static const std::vector<PassInfo> rows = {
#define TM_PASS(function, level, doc) {#function, level, &function, doc},
#include "compiler/passes/passes.def"
#undef TM_PASS
  };
  return rows;
}

ir::Graph run_pipeline(ir::Graph graph, const PipelineOptions& options, std::vector<std::string>& ran,
                       const PassObserver& observer) {
  const std::vector<PassInfo>& rows = all_passes();
  const auto find = [&](const std::string& name) {
    return std::find_if(rows.begin(), rows.end(), [&](const PassInfo& row) { return row.name == name; });
  };
  for (const std::string& name : options.disabled) {
    if (find(name) == rows.end())
      throw Error(ErrorCode::kInvalidArgument, "no pass \"" + name + "\" to disable");
    if (name == kLayoutPass && options.context.layout)
      throw Error(ErrorCode::kInvalidArgument,
                  "pass \"" + name + "\" makes the desired layout: it cannot be disabled");
  }
  const auto first = options.first.empty() ? rows.begin() : find(options.first);
  if (first == rows.end())
    throw Error(ErrorCode::kInvalidArgument, "no pass \"" + options.first + "\" to start from");
  // A pattern that is there at some extents alone is left as it is.
  const ir::SymbolTable::ProofsOnly proofs_only(graph.symbols().get());
  for (auto at = first; at != rows.end(); ++at) {
    const PassInfo& row = *at;
    if (options.context.opt_level < row.opt_level || options.disabled.count(std::string(row.name)) != 0)
      continue;
    // It is no pass of a package whose layouts the compiler chooses.
    if (row.name == kLayoutPass && !options.context.layout) continue;
    const ir::SymbolTable::Origin origin(graph.symbols().get(), "pass " + std::string(row.name));
    graph = row.run(graph, options.context);
    ir::verify(graph);
    ran.emplace_back(row.name);
    if (observer) observer(row.name, graph);
  }
  return graph;
}

}  // namespace tensormill::passes
