/// Stored answers as rows of the catalog. Thread-safety: as services::AnswerService.
#pragma once

#include "api/services/answer_service.h"
#include "storage/catalog/catalog.h"

namespace tensormill::server {

class Answers final : public services::AnswerService {
public:
  explicit Answers(storage::Catalog& catalog) : catalog_(catalog) {}
  std::optional<services::KeptAnswer> find(const std::string& caller, const std::string& key) override;
  void put(const std::string& caller, const std::string& key, const services::KeptAnswer& answer) override;

private:
  storage::Catalog& catalog_;
};

}  // namespace tensormill::server
