#include "server/services/answers.h"

#include "runtime/base/json.h"

namespace tensormill::server {

namespace {

constexpr int64_t kKeepMs = 86'400'000;

}  // namespace

std::optional<services::KeptAnswer> Answers::find(const std::string& caller, const std::string& key) {
  const auto row = catalog_.find_answer(caller, key, kKeepMs);
  if (!row) return std::nullopt;
  const Json json = parse_json(row->answer);
  services::KeptAnswer answer;
  answer.request_hash = row->request_hash;
  json.at("status").get_to(answer.status);
  json.at("fields").get_to(answer.fields);
  json.at("body").get_to(answer.body);
  return answer;
}

void Answers::put(const std::string& caller, const std::string& key, const services::KeptAnswer& answer) {
  const Json json = {{"status", answer.status}, {"fields", answer.fields}, {"body", answer.body}};
  catalog_.put_answer({caller, key, answer.request_hash, json.dump()}, kKeepMs);
}

}  // namespace tensormill::server
