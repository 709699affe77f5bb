// POST /v1/uploads; GET, PATCH, PUT, DELETE /v1/uploads/{upload}: chunks in the manner of the OCI
// distribution specification (section "Pushing a blob in chunks"). GET /v1/blobs/{blob}; POST /v1/gc; GET
// /v1/storage
#include <charconv>

#include "api/endpoints/context.h"
#include "api/http/conditional.h"
#include "api/http/time.h"
#include "api/schema/print.h"

namespace tensormill::endpoints {
namespace {

uint64_t number_of(std::string_view text, std::string_view field) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && end == text.data() + text.size() && !text.empty()) return value;
  throw Error(ErrorCode::kInvalidRequest,
              "Content-Range \"" + std::string(field) + "\" is neither FIRST-LAST nor bytes FIRST-LAST/SIZE");
}

/// "0-99" as in the OCI specification, or "bytes 0-99/200" and "bytes 0-99/*" as in RFC 9110, section 14.4.
services::UploadChunk chunk_of(const http::Request& request) {
  services::UploadChunk chunk;
  const auto field = request.headers.get("Content-Range");
  if (!field) return chunk;
  std::string_view range = http::trim(*field);
  if (range.starts_with("bytes ")) range = range.substr(6, range.find('/') - 6);
  const size_t dash = range.find('-');
  const uint64_t first = number_of(range.substr(0, dash), *field);
  const uint64_t last = number_of(dash == std::string_view::npos ? "" : range.substr(dash + 1), *field);
  if (last < first) throw Error(ErrorCode::kInvalidRequest, "Content-Range ends before it begins");
  chunk.offset = first;
  chunk.length = last - first + 1;
  return chunk;
}

void set_upload_headers(http::Response& response, const services::UploadInfo& upload) {
  response.headers.set("Location", "/v1/uploads/" + upload.id);
  response.headers.set("Upload-Offset", std::to_string(upload.size));
  if (upload.size > 0) response.headers.set("Range", "0-" + std::to_string(upload.size - 1));
}

Json upload_json(const services::UploadInfo& upload) {
  return {{"id", upload.id},
          {"size", upload.size},
          {"blob", upload.blob ? Json(upload.blob->text()) : Json()},
          {"created_at", http::format_timestamp(upload.created_at.ms)}};
}

/// Whether a chunk comes with a request that need not have one.
bool has_chunk(const http::Request& request) {
  return request.headers.has("Transfer-Encoding") || request.body->length().value_or(1) > 0;
}

}  // namespace

http::Response begin_upload(const Context& context, http::Request& request) {
  const services::UploadInfo upload = context.services.store->begin_upload(call_context(request));
  http::Response response = http::json_response(schema::print(upload_json(upload)), 201);
  set_upload_headers(response, upload);
  return response;
}

http::Response append_upload(const Context& context, http::Request& request) {
  const services::UploadInfo upload = context.services.store->append_upload(
      request.path_parameter("upload"), chunk_of(request), *request.body, call_context(request));
  http::Response response = http::json_response(schema::print(upload_json(upload)), 202);
  set_upload_headers(response, upload);
  return response;
}

http::Response get_upload(const Context& context, http::Request& request) {
  http::Response response = http::empty_response();
  set_upload_headers(response, context.services.store->get_upload(request.path_parameter("upload")));
  return response;
}

http::Response finish_upload(const Context& context, http::Request& request) {
  const std::string& id = request.path_parameter("upload");
  const auto text = request.query_value("digest");
  if (!text) throw Error(ErrorCode::kInvalidRequest, "query parameter digest is missing");
  const auto digest = Digest::parse(std::string(*text));
  if (!digest) {
    throw Error(ErrorCode::kInvalidRequest,
                "query parameter digest is \"" + std::string(*text) + "\", expected sha256:<64 hex>");
  }
  services::StoreService& store = *context.services.store;
  if (has_chunk(request)) store.append_upload(id, chunk_of(request), *request.body, call_context(request));
  const services::UploadInfo upload = store.finish_upload(id, *digest);
  http::Response response = http::json_response(schema::print(upload_json(upload)), 201);
  response.headers.set("Location", "/v1/blobs/" + digest->text());
  response.headers.set("Docker-Content-Digest", digest->text());
  return response;
}

http::Response delete_upload(const Context& context, http::Request& request) {
  context.services.store->remove_upload(request.path_parameter("upload"));
  return http::empty_response();
}

http::Response get_blob(const Context& context, http::Request& request) {
  const std::string& id = request.path_parameter("blob");
  http::Response response =
      http::serve_content(request, context.services.store->blob(id), id, "application/octet-stream");
  response.headers.set("Docker-Content-Digest", id);
  return response;
}

http::Response collect_garbage(const Context& context, http::Request& request) {
  const services::GcReport report = context.services.store->collect(request.query_flag("dry_run"));
  return http::json_response(schema::print({{"dry_run", report.dry_run},
                                            {"removed",
                                             {{"blobs", report.blobs},
                                              {"bytes", report.bytes},
                                              {"packages", report.packages},
                                              {"uploads", report.uploads}}},
                                            {"held", report.held}}));
}

http::Response get_storage(const Context& context, http::Request&) {
  const services::StorageInfo info = context.services.store->storage();
  Json callers = Json::array();
  for (const services::CallerUse& use : info.callers)
    callers.push_back({{"caller", use.caller}, {"live_jobs", use.live_jobs}, {"bytes", use.bytes}});
  return http::json_response(schema::print(
      {{"blobs", {{"count", info.blobs}, {"bytes", info.blob_bytes}, {"referenced", info.referenced_blobs}}},
       {"uploads", {{"count", info.uploads}, {"bytes", info.upload_bytes}}},
       {"quota_bytes", info.quota_bytes},
       {"free_bytes", info.free_bytes},
       {"rows", info.rows},
       {"callers", std::move(callers)}}));
}

}  // namespace tensormill::endpoints
