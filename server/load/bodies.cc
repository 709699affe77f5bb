#include "server/load/bodies.h"

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/narrow.h"

namespace tensormill::load {

std::string npz_request(const Url& url, const std::string& deployment,
                        const std::vector<npz::NamedTensor>& tensors, const std::string& headers) {
  const std::string body = npz::write_npz(tensors);
  return request_head(url, "POST", "/v1/deployments/" + deployment + "/infer",
                      headers + "Content-Type: application/x-npz\r\nAccept: application/x-npz\r\n",
                      body.size()) +
         body;
}

std::string v2_request(const Url& url, const std::string& deployment,
                       const std::vector<npz::NamedTensor>& tensors, const std::string& headers) {
  Json inputs = Json::array();
  std::string data;
  for (const npz::NamedTensor& one : tensors) {
    if (one.tensor.dtype() == kString) {
      throw Error(ErrorCode::kNotSupported,
                  "input \"" + one.name + "\" is of strings, which are sent as NPZ alone: --protocol npz");
    }
    inputs.push_back({{"name", one.name},
                      {"datatype", dtype_v2_name(one.tensor.dtype())},
                      {"shape", one.tensor.shape()},
                      {"parameters", {{"binary_data_size", one.tensor.num_bytes()}}}});
    data.append(static_cast<const char*>(one.tensor.data()), one.tensor.num_bytes());
  }
  const std::string json = Json{{"inputs", inputs}, {"parameters", {{"binary_data_output", true}}}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
  return request_head(url, "POST", "/v2/models/" + deployment + "/infer",
                      headers +
                          "Content-Type: application/octet-stream\r\nInference-Header-Content-Length: " +
                          std::to_string(json.size()) + "\r\n",
                      json.size() + data.size()) +
         json + data;
}

}  // namespace tensormill::load
