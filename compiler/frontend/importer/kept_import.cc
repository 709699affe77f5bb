#include "compiler/frontend/importer/kept_import.h"

#include "compiler/frontend/onnx/free_dims/kept_model.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"

namespace tensormill::frontend {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::kInvalidPackage, "mod.json: /model: " + what);
}

/// Of options that parse_kept_options has taken; "" where they choose nothing.
std::string choice(const std::string& options, const char* key) {
  const Json json = parse_json(options);
  const auto found = json.find(key);
  if (found == json.end()) return "";
  if (!found->is_string()) fail("its " + std::string(key) + " is no word");
  return found->get<std::string>();
}

}  // namespace

KeptImport::KeptImport(const KeptFiles& kept, const ir::OpRegistry& ops) : outputs_(kept.outputs), ops_(ops) {
  if (kept.files.empty()) fail("it has no files");
  onnx::KeptOptions parsed = onnx::parse_kept_options(kept.options);
  ModelSource source;
  source.model = kept.files.front().second;
  source.external.insert(kept.files.begin() + 1, kept.files.end());
  source.digest = parsed.digest;
  options_ = std::move(parsed.options);
  stacks_elements_ = parsed.stacks_elements;
  importer_ = make_importer(std::move(source), choice(kept.options, "signature"));
  set_quantized(*importer_, choice(kept.options, "quantized"), options_);
  signature_.emplace(importer_->facts(), options_, ShapeBuckets());
  if (signature_->free_dims != kept.free_dims) fail("its free dims are not the package's");
}

ir::Graph KeptImport::at(const std::vector<int64_t>& dims,
                         const std::map<std::string, Tensor>& values) const {
  ImportOptions options = onnx::bound(options_, *signature_, dims);
  options.run_values = values;
  options.form.ports.insert(outputs_.begin(), outputs_.end());
  options.form.stacks_elements = stacks_elements_;
  return importer_->import(options, ops_);
}

}  // namespace tensormill::frontend
