// GET, POST /v1/packages; GET, DELETE /v1/packages/{package}; GET …/archive, …/code, …/bundle; POST …/run
#include "api/endpoints/context.h"
#include "api/endpoints/tensor_codec.h"
#include "api/http/conditional.h"
#include "api/http/labels.h"
#include "api/schema/print.h"
#include "runtime/base/names.h"

namespace tensormill::endpoints {
namespace {

services::CodeStage code_stage(const http::Request& request) {
  const std::string_view stage = request.query_value("stage").value_or("ll");
  if (stage == "relay") return services::CodeStage::kRelay;
  if (stage == "te") return services::CodeStage::kTe;
  if (stage == "tir") return services::CodeStage::kTir;
  if (stage == "ll") return services::CodeStage::kLl;
  if (stage == "asm") return services::CodeStage::kAsm;
  throw Error(ErrorCode::kInvalidRequest,
              "query parameter stage is \"" + std::string(stage) + "\", expected relay, te, tir, ll or asm");
}

services::BundleOptions bundle_options(const http::Request& request) {
  constexpr size_t kLongest = 64;
  services::BundleOptions options;
  const std::string_view form = request.query_value("form").value_or("static");
  if (form != "so" && form != "static") {
    throw Error(ErrorCode::kInvalidRequest,
                "query parameter form is \"" + std::string(form) + "\", expected so or static");
  }
  options.form = form == "so" ? services::BundleForm::kShared : services::BundleForm::kStatic;
  options.name = request.query_value("name").value_or(options.name);
  if (!is_name(options.name) || options.name.size() > kLongest || options.name == "tensormill") {
    throw Error(ErrorCode::kInvalidRequest, "query parameter name is \"" + options.name +
                                                "\", expected a name of 64 letters at most that is not "
                                                "tensormill");
  }
  return options;
}

}  // namespace

http::Response list_packages(const Context& context, http::Request& request) {
  services::PackageQuery query;
  query.page = page_query(request);
  query.model = request.query_value("model").value_or("");
  query.target = request.query_value("target").value_or("");
  const auto page = context.services.packages->list(query);
  return page_response(request, schema::print(page), page.next_cursor);
}

http::Response get_package(const Context& context, http::Request& request) {
  const services::PackageInfo package = context.services.packages->get(request.path_parameter("package"));
  return http::with_etag(request, package.id.text(),
                         http::json_response(schema::print(schema::to_json(package))));
}

http::Response delete_package(const Context& context, http::Request& request) {
  const std::string& id = request.path_parameter("package");
  if (request.headers.has("If-Match")) {
    http::check_preconditions(request, context.services.packages->get(id).id.text());
  }
  context.services.packages->remove(id);
  return http::empty_response();
}

http::Response import_package(const Context& context, http::Request& request) {
  const services::ImportedPackage done =
      context.services.packages->import_package(*request.body, call_context(request));
  http::Response response =
      http::json_response(schema::print(schema::to_json(done.package)), done.created ? 201 : 200);
  response.headers.set("Location", "/v1/packages/" + done.package.id.text());
  response.headers.set("ETag", "\"" + done.package.id.text() + "\"");
  return response;
}

http::Response get_package_archive(const Context& context, http::Request& request) {
  const bool is_signed = request.query_flag("signed");
  const services::Archive archive =
      context.services.packages->archive(request.path_parameter("package"), is_signed);
  const std::string etag = archive.digest.text() + (is_signed ? "-signed" : "");
  http::Response response = http::serve_content(request, archive.content, etag, "application/x-tar");
  response.headers.set("Content-Disposition",
                       "attachment; filename=\"package-" + archive.digest.hex().substr(0, 12) + ".tar\"");
  return response;
}

http::Response get_package_code(const Context& context, http::Request& request) {
  return http::serve_content(
      request, context.services.packages->code(request.path_parameter("package"), code_stage(request)), "",
      "text/plain; charset=utf-8");
}

http::Response get_package_bundle(const Context& context, http::Request& request) {
  const services::BundleOptions options = bundle_options(request);
  http::Response response = http::serve_content(
      request,
      context.services.packages->bundle(request.path_parameter("package"), options, call_context(request)),
      "", "application/x-tar");
  response.headers.set("Content-Disposition", "attachment; filename=\"" + options.name + ".tar\"");
  return response;
}

http::Response run_package(const Context& context, http::Request& request) {
  services::RunOptions options = run_options(request);
  options.on = http::join_labels(http::parse_labels(request.query_value("on").value_or("")));
  const std::string& id = request.path_parameter("package");
  if (options.on.empty()) context.services.packages->require_room(id);
  const http::TensorBody body = http::read_tensor_body(*request.body, request.memory.get());
  services::NamedTensors inputs = decode_tensors(request, body, options, context.options.max_tensor_bytes);
  const services::RunResult result =
      context.services.packages->run(id, std::move(inputs), options, call_context(request));
  return run_response(request, result);
}

}  // namespace tensormill::endpoints
