#include "server/services/store/model_service.h"

#include <array>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/services/forms.h"
#include "server/services/store/store_service.h"

namespace tensormill::server {

namespace {

/// The level at which the optimized graph is shown: the default of a compile.
constexpr int kGraphLevel = 3;

bool is_archive(std::string_view bytes) {
  const bool zip = bytes.substr(0, 4) == "PK\x03\x04";
  const bool tar = bytes.size() >= 512 && bytes.substr(257, 5) == "ustar";
  return zip || tar;
}

/// By marks at the start alone; "": what an archive holds is told by the child that opens it.
std::string detect_format(std::string_view bytes) {
  if (is_archive(bytes)) return "";
  if (bytes.starts_with("\x89HDF\r\n\x1a\n")) return "keras-h5";
  if (bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3") return "tflite";
  // GraphDef begins with a node; ONNX models, saved_model.pb and Core ML models with a version. What they are
  // is told by the child.
  if (bytes.starts_with("\x0a") || bytes.starts_with("\x08")) return "";
  const bool is_graph = bytes.starts_with("tensormill graph file ") || bytes.starts_with("graph \"");
  return is_graph ? "tmg" : "onnx";
}

}  // namespace

std::optional<storage::ModelRow> find_model(storage::Catalog& catalog, const std::string& reference) {
  std::optional<Digest> id = Digest::parse(reference);
  if (!id) id = catalog.find_name(kModelNames, reference);
  return id ? catalog.find_model(*id) : std::nullopt;
}

services::ImportResult ModelServiceImpl::import_model(const services::ImportOptions& options,
                                                      http::BodySource& bytes,
                                                      const services::CallContext& context) {
  quota_.check(bytes.length().value_or(1));
  CollectOnFailure collect(collector_);
  const storage::BlobHold hold(blobs_);
  std::optional<BlobBody> uploaded;
  if (options.upload) {
    const storage::Upload upload = uploads_.find(*options.upload);
    if (!upload.blob) throw Error(ErrorCode::kConflict, "upload " + upload.id + " is not finished");
    uploaded.emplace(blobs_.open(*upload.blob));
  }
  std::optional<ChargedBody> charged;  // an upload's bytes count already
  if (!uploaded) charged.emplace(bytes, callers_, context.submitter);
  http::BodySource& source = uploaded ? static_cast<http::BodySource&>(*uploaded) : *charged;
  services::ImportResult result = import_held(options, source, context);
  collect.succeeded();
  return result;
}

services::ImportResult ModelServiceImpl::import_held(const services::ImportOptions& options,
                                                     http::BodySource& bytes,
                                                     const services::CallContext& context) {
  const auto writer =
      blobs_.writer({.form = storage::BlobForm::kCompressed, .max_bytes = options_.max_model_bytes});
  std::array<std::byte, 1 << 16> buffer;
  while (const size_t count = bytes.read(buffer)) {
    writer->write(std::string_view(reinterpret_cast<const char*>(buffer.data()), count));
  }
  const uint64_t size = writer->size();
  if (size == 0) throw Error(ErrorCode::kInvalidModel, "the body is empty");
  const std::shared_ptr<const storage::Blob> blob = blobs_.open(writer->commit());
  const std::string format = options.format.empty() ? detect_format(blob->text()) : options.format;
  storage::ModelRow row;
  if (!is_archive(blob->text()) && format != "onnx-archive") {
    // The id is that of the file: known before the import, and so is whether there is anything to do.
    check_name(options, blob->digest());
    if (const auto known = catalog_.find_model(blob->digest())) row = *known;
  }
  if (row.blobs.empty()) {
    const Json request = {{"mode", "facts"}, {"format", format}, {"max_bytes", options_.max_model_bytes}};
    Json facts = parse_json(run_import(*blob, request, context.cancelled), 128);
    row.id = Digest::parse(facts.at("digest").get<std::string>()).value();
    row.blobs = {blob->digest()};
    facts["size"] = size;
    facts["version"] = kFactsVersion;
    row.facts = canonical_json(facts);
    row.owner = context.submitter;
    row.bytes = size;
  }
  return publish(options, row);
}

std::string ModelServiceImpl::run_import(const storage::Blob& model, const Json& request,
                                         const std::stop_token& cancelled) {
  jobs::ChildSpec spec;
  spec.command = "child-import";
  spec.limits.kind = jobs::ChildKind::kImport;
  spec.arguments = {request.dump()};
  spec.descriptors = {model.fd()};
  spec.limits.data_bytes = options_.import_memory;
  spec.limits.file_bytes = options_.max_model_bytes;
  spec.limits.cpu_seconds = static_cast<uint64_t>(options_.import_timeout.count() / 1000) * 4 + 1;
  spec.limits.nice = jobs::kImportNice;
  spec.time_limit = options_.import_timeout;
  return children_.run(std::move(spec), cancelled);
}

void ModelServiceImpl::check_name(const services::ImportOptions& options, const Digest& id) {
  if (options.replace || options.name.empty()) return;
  const auto holder = catalog_.find_name(kModelNames, options.name);
  if (!holder || *holder == id) return;
  throw Error(ErrorCode::kNameTaken, "model \"" + options.name + "\" is " + holder->text() + ", not " +
                                         id.text() + "; add ?replace=1 to move the name");
}

services::ImportResult ModelServiceImpl::publish(const services::ImportOptions& options,
                                                 const storage::ModelRow& row) {
  check_name(options, row.id);
  const auto before = catalog_.find_name(kModelNames, options.name);
  const storage::NameChange name{kModelNames, options.name, options.replace};
  const bool is_new = catalog_.put_model(row, name);
  services::ImportResult result;
  result.model = info_of(catalog_.find_model(row.id).value(), options.name);
  result.created = is_new || before != row.id;
  return result;
}

services::ModelInfo ModelServiceImpl::info_of(const storage::ModelRow& row, const std::string& name) {
  const Json facts = parse_json(row.facts, 128);
  services::ModelInfo info;
  info.id = row.id;
  info.names = catalog_.names_of(kModelNames, row.id);
  info.name = name;
  if (name.empty() && !info.names.empty()) info.name = info.names.front();
  info.format = facts.at("format").get<std::string>();
  info.size = facts.at("size").get<uint64_t>();
  info.inputs = specs_from_json(facts.at("inputs"));
  info.outputs = specs_from_json(facts.at("outputs"));
  for (const auto& [op, count] : facts.at("ops").items()) info.ops.emplace_back(op, count.get<int64_t>());
  info.parameters = facts.at("parameters").get<int64_t>();
  info.created_at = {row.created_ms};
  return info;
}

services::Page<services::ModelInfo> ModelServiceImpl::list(const services::PageQuery& page) {
  const auto rows = catalog_.list_models({cursor_from_text(page.cursor), page.limit});
  services::Page<services::ModelInfo> result;
  for (const storage::ModelRow& row : rows.items) result.items.push_back(info_of(row, ""));
  result.next_cursor = cursor_text(rows.next);
  return result;
}

storage::ModelRow ModelServiceImpl::require(const std::string& reference) {
  auto row = find_model(catalog_, reference);
  if (!row) throw Error(ErrorCode::kNotFound, "there is no model \"" + reference + "\"");
  return *std::move(row);
}

services::ModelInfo ModelServiceImpl::get(const std::string& reference) {
  return info_of(require(reference), Digest::parse(reference) ? "" : reference);
}

void ModelServiceImpl::remove(const std::string& reference) {
  const storage::ModelRow row = require(reference);
  if (!Digest::parse(reference)) {
    if (!catalog_.remove_name(kModelNames, reference)) require(reference);
    return;
  }
  if (!catalog_.remove_model(row.id)) require(reference);
  collector_.collect_released(row.blobs);
}

std::string ModelServiceImpl::graph_json(const std::string& reference, services::GraphStage stage,
                                         const services::CallContext& context) {
  const storage::ModelRow row = require(reference);
  const bool is_imported = stage == services::GraphStage::kImported;
  // What it is made of: the model, the stage, and, of this process, all else.
  const std::string key = row.id.text() + (is_imported ? " imported" : " optimized");
  if (const auto known = graphs_.find(key)) return *known;
  const Json facts = parse_json(row.facts, 128);
  const Json request = {{"mode", "graph"},
                        {"format", facts.at("format")},
                        {"stage", is_imported ? "imported" : "optimized"},
                        {"target", options_.target.canonical()},
                        {"opt_level", kGraphLevel},
                        {"max_bytes", options_.max_model_bytes}};
  std::string graph = run_import(*blobs_.open(row.blobs.at(0)), request, context.cancelled);
  graphs_.put(key, graph);
  return graph;
}

}  // namespace tensormill::server
