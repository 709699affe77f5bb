#include "runtime/base/error_json.h"

#include "runtime/base/json.h"

namespace tensormill {

std::string error_to_json(const Error& error) {
  Json json = {{"code", std::string(error_code_info(error.code()).name)}, {"message", error.message()}};
  for (const ErrorDetail& detail : error.details()) {
    json["details"].push_back({{"pointer", detail.pointer}, {"detail", detail.detail}});
  }
  if (!error.extra_json().empty()) json["extra"] = error.extra_json();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Error error_from_json(const Json& json) {
  std::vector<ErrorDetail> details;
  if (json.contains("details")) {
    for (const Json& detail : json.at("details")) {
      details.push_back({detail.at("pointer").get<std::string>(), detail.at("detail").get<std::string>()});
    }
  }
  Error error(error_code_from_name(json.at("code").get<std::string>()), json.at("message").get<std::string>(),
              std::move(details));
  if (json.contains("extra")) error.set_extra_json(json.at("extra").get<std::string>());
  return error;
}

}  // namespace tensormill
