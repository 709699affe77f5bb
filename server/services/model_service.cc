#include "server/services/model_service.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "server/services/forms.h"

namespace tensormill::server {

namespace {

std::string detect_format(std::string_view bytes) {
  const bool zip = bytes.substr(0, 4) == "PK\x03\x04";
  const bool tar = bytes.size() >= 512 && bytes.substr(257, 5) == "ustar";
  return zip || tar ? "onnx-archive" : "onnx";
}

}  // namespace

std::optional<storage::ModelRow> find_model(storage::Catalog& catalog, const std::string& reference) {
  std::optional<Digest> id = Digest::parse(reference);
  if (!id) id = catalog.find_name(kModelNames, reference);
  return id ? catalog.find_model(*id) : std::nullopt;
}

/// The blob of an import under way: counted, so that a failed import of the same bytes does not remove it.
class ModelServiceImpl::Upload {
public:
  Upload(ModelServiceImpl& service, http::BodySource& bytes) : service_(service) {
    const auto writer = service.blobs_.writer({.max_bytes = service.options_.max_model_bytes});
    std::array<std::byte, 1 << 16> buffer;
    while (const size_t count = bytes.read(buffer)) {
      writer->write(std::string_view(reinterpret_cast<const char*>(buffer.data()), count));
    }
    size_ = writer->size();
    const std::shared_lock lock(service.blobs_mutex_);
    blob_ = writer->commit();
    const std::lock_guard guard(service.uploads_mutex_);
    ++service.uploads_[blob_];
  }
  ~Upload() {
    {
      const std::lock_guard guard(service_.uploads_mutex_);
      const auto entry = service_.uploads_.find(blob_);
      if (--entry->second == 0) service_.uploads_.erase(entry);
    }
    if (published_) return;
    try {
      service_.remove_unreferenced({blob_});
    } catch (const Error&) {
      // The store is broken just now; what stays is removed at the next start.
    }
  }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;
  const Digest& blob() const { return blob_; }
  uint64_t size() const { return size_; }
  void set_published() { published_ = true; }

private:
  ModelServiceImpl& service_;
  Digest blob_;
  uint64_t size_ = 0;
  bool published_ = false;
};

services::ImportResult ModelServiceImpl::import_model(const services::ImportOptions& options,
                                                      http::BodySource& bytes,
                                                      const services::CallContext& context) {
  if (options.upload) throw Error(ErrorCode::kNotSupported, "resumable uploads are not implemented yet");
  Upload upload(*this, bytes);
  if (upload.size() == 0) throw Error(ErrorCode::kInvalidModel, "the body is empty");
  std::string format = options.format;
  if (format.empty()) format = detect_format(blobs_.open(upload.blob())->text());
  storage::ModelRow row;
  if (format == "onnx") {
    // The id is known before the import, and so is whether there is anything to do.
    check_name(options, upload.blob());
    if (const auto known = catalog_.find_model(upload.blob())) row = *known;
  }
  if (row.blobs.empty()) {
    const Json request = {{"mode", "facts"}, {"format", format}, {"max_bytes", options_.max_model_bytes}};
    Json facts = parse_json(run_import(upload.blob(), request, context.cancelled), 128);
    row.id = Digest::parse(facts.at("digest").get<std::string>()).value();
    row.blobs = {upload.blob()};
    facts["format"] = format;
    facts["size"] = upload.size();
    row.facts = canonical_json(facts);
  }
  services::ImportResult result = publish(options, row);
  upload.set_published();
  return result;
}

std::string ModelServiceImpl::run_import(const Digest& blob, const Json& request,
                                         const std::stop_token& cancelled) {
  const auto model = blobs_.open(blob);
  jobs::ChildSpec spec;
  spec.command = "child-import";
  spec.arguments = {request.dump()};
  spec.descriptors = {model->fd()};
  spec.limits.data_bytes = options_.import_memory;
  spec.limits.file_bytes = options_.max_model_bytes;
  spec.limits.cpu_seconds = static_cast<uint64_t>(options_.import_timeout.count() / 1000) * 4 + 1;
  spec.limits.nice = 5;
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
  remove_unreferenced(row.blobs);
}

void ModelServiceImpl::remove_unreferenced(const std::vector<Digest>& blobs) {
  const std::unique_lock lock(blobs_mutex_);
  const std::lock_guard guard(uploads_mutex_);
  const std::vector<Digest> referenced = catalog_.referenced_blobs();
  for (const Digest& blob : blobs) {
    const bool used = std::binary_search(referenced.begin(), referenced.end(), blob);
    if (!used && uploads_.count(blob) == 0) blobs_.remove(blob);
  }
}

std::string ModelServiceImpl::graph_json(const std::string& reference, services::GraphStage stage) {
  const storage::ModelRow row = require(reference);
  const Json facts = parse_json(row.facts, 128);
  const Json request = {{"mode", "graph"},
                        {"format", facts.at("format")},
                        {"stage", stage == services::GraphStage::kImported ? "imported" : "optimized"},
                        {"max_bytes", options_.max_model_bytes}};
  return run_import(row.blobs.at(0), request, {});
}

}  // namespace tensormill::server
