// GET /, /console/{file}, /docs
#include "api/console/console.h"
#include "api/endpoints/context.h"
#include "runtime/base/error.h"
#include "runtime/base/error_help.h"

namespace tensormill::endpoints {
namespace {

http::Response page(std::string text, std::string_view type) {
  const std::string_view charset = type.starts_with("text/") ? "; charset=utf-8" : "";
  http::Response response = http::text_response(std::move(text), std::string(type).append(charset));
  // Own files alone, and nothing that a stranger's text could become: no inline script or style, no evaluated
  // text, no plugin, no frame, and no string that is parsed as markup.
  response.headers.set(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self'; "
      "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
      "require-trusted-types-for 'script'; trusted-types tensormill");
  response.headers.set("Referrer-Policy", "no-referrer");
  response.headers.set("Cache-Control", "no-cache");
  return response;
}

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '<') {
      escaped += "&lt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string endpoint_rows() {
  std::string rows;
  for (const RouteRow& row : all_routes()) {
    std::string query;
    for (const std::string_view name : row.query)
      query += (query.empty() ? "?" : "&") + std::string(name) + "=";
    rows += "<tr><td>" + std::string(row.method) + "<td><code>" + escape(row.path) + "</code><br><small>" +
            escape(query) + "</small><td>" + std::string(scope_name(row.scope)) + "<td>" +
            escape(row.summary) + "\n";
  }
  return rows;
}

std::string error_rows() {
  std::string rows;
  for (const ErrorCodeInfo& row : all_error_codes()) {
    const ErrorHelp help = error_help(row.code);
    rows += "<tr id=\"" + std::string(row.name) + "\"><td><code>" + std::string(row.name) + "</code><td>" +
            std::to_string(row.http_status) + "<td>" + std::to_string(row.exit_code) + "<td>" +
            escape(row.when) + "<br><small>" + escape(help.why) + "</small><td>" + escape(help.what_to_do) +
            "\n";
  }
  return rows;
}

}  // namespace

http::Response get_console(const Context&, http::Request&) {
  const console::File* file = console::find_file("index.html");
  TM_CHECK(file != nullptr, "the console has no page");
  return page(std::string(file->bytes), file->type);
}

http::Response get_console_file(const Context&, http::Request& request) {
  const std::string& name = request.path_parameter("file");
  const console::File* file = console::find_file(name);
  if (file == nullptr) throw Error(ErrorCode::kNotFound, "the console has no file \"" + name + "\"");
  return page(std::string(file->bytes), file->type);
}

http::Response get_docs(const Context& context, http::Request&) {
  return page(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>TensorMill: interface</title>\n"
      "<link rel=\"stylesheet\" href=\"/console/console.css\"><main>\n<h1>TensorMill " +
          escape(context.options.version) +
          "</h1>\n<p><a href=\"/\">console</a> · <a href=\"/openapi.json\">OpenAPI 3.1</a></p>\n"
          "<h2>Endpoints</h2>\n<table><tr><th>method<th>path<th>scope<th>what\n" +
          endpoint_rows() +
          "</table>\n<h2>Error codes</h2>\n<p>Errors are <code>application/problem+json</code>; "
          "<code>code</code> is one of these. The command line exits with the number beside it.</p>\n"
          "<table><tr><th>code<th>status<th>exit<th>when<th>what to do\n" +
          error_rows() + "</table></main></html>\n",
      "text/html");
}

}  // namespace tensormill::endpoints
