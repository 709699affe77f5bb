#include "compiler/build/format_import.h"

#include "compiler/ir/patch.h"

namespace tensormill::build {

namespace {

std::set<std::string> all_names(const ModelNames& names) {
  std::set<std::string> all(names.inputs.begin(), names.inputs.end());
  all.insert(names.outputs.begin(), names.outputs.end());
  return all;
}

}  // namespace

FormatImport::FormatImport(const ir::OpRegistry& ops, const GraphRequest& request, ModelNames names,
                           Missing missing, NodeLimit limit)
    : graph_(ops),
      names_(std::move(names)),
      reserved_(all_names(names_)),
      missing_(std::move(missing)),
      limit_(std::move(limit)),
      asked_(request) {
  graph_.set_name(names_.graph);
  graph_.set_symbols(request.symbols);
}

ir::Graph FormatImport::run() {
  missing_.check();
  ir::as_invalid_model([this] {
    if (!convert_all()) missing_.throw_all();
    set_outputs(graph_, asked_, names_.outputs, [this](size_t i) { return output(i); });
  });
  return ir::remove_dead(graph_);
}

ir::ValueId FormatImport::add_input(size_t index, DType dtype) {
  return build::add_input(graph_, asked_, index, names_.inputs[index], dtype);
}

void FormatImport::count_node(const std::string& label) {
  if (++converted_ > limit_.most)
    throw Error(ErrorCode::kTooLarge, limit_.noun + " \"" + label + "\": more than " +
                                          std::to_string(limit_.most) + " " + limit_.noun + "s" +
                                          limit_.repeated);
}

bool FormatImport::names_node(const Error& error) const {
  return std::any_of(limit_.named.begin(), limit_.named.end(),
                     [&](std::string_view words) { return error.message().starts_with(words); });
}

bool FormatImport::try_convert(const std::string& label, const std::function<NodePlace()>& place,
                               const std::function<void()>& convert) {
  count_node(label);
  const ir::SymbolTable::Origin origin(graph_.symbols().get(), label);
  try {
    ir::as_invalid_model(convert);
    return true;
  } catch (const UnsupportedForm& form) {
    missing_.add(place(), form.attribute + (form.reason.empty() ? "" : ": " + form.reason));
    return false;
  } catch (const CallFails&) {
    return false;
  } catch (Error& error) {
    if (!names_node(error)) error.add_context(place().named);
    // Shapes that overflow come from the model's own numbers.
    if (error.code() == ErrorCode::kInvalidTensor) throw Error(ErrorCode::kInvalidModel, error.message());
    throw;
  }
}

}  // namespace tensormill::build
