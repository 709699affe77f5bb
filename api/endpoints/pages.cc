// GET /, /console.js, /console.css, /docs
#include "api/console/console.h"
#include "api/endpoints/context.h"
#include "runtime/base/error.h"

namespace tensormill::endpoints {
namespace {

http::Response page(std::string text, std::string_view type) {
  http::Response response = http::text_response(std::move(text), type);
  response.headers.set("Content-Security-Policy",
                       "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
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
    rows += "<tr id=\"" + std::string(row.name) + "\"><td><code>" + std::string(row.name) + "</code><td>" +
            std::to_string(row.http_status) + "<td>" + std::to_string(row.exit_code) + "<td>" +
            escape(row.when) + "\n";
  }
  return rows;
}

}  // namespace

http::Response get_console(const Context&, http::Request&) {
  return page(std::string(console::index_html()), "text/html; charset=utf-8");
}

http::Response get_console_script(const Context&, http::Request&) {
  return page(std::string(console::console_js()), "text/javascript; charset=utf-8");
}

http::Response get_console_style(const Context&, http::Request&) {
  return page(std::string(console::console_css()), "text/css; charset=utf-8");
}

http::Response get_docs(const Context& context, http::Request&) {
  return page(
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>TensorMill: interface</title>\n"
      "<link rel=\"stylesheet\" href=\"/console.css\"><main>\n<h1>TensorMill " +
          escape(context.options.version) +
          "</h1>\n<p><a href=\"/\">console</a> · <a href=\"/openapi.json\">OpenAPI 3.1</a></p>\n"
          "<h2>Endpoints</h2>\n<table><tr><th>method<th>path<th>scope<th>what\n" +
          endpoint_rows() +
          "</table>\n<h2>Error codes</h2>\n<p>Errors are <code>application/problem+json</code>; "
          "<code>code</code> is one of these. The command line exits with the number beside it.</p>\n"
          "<table><tr><th>code<th>status<th>exit<th>when\n" +
          error_rows() + "</table></main></html>\n",
      "text/html; charset=utf-8");
}

}  // namespace tensormill::endpoints
