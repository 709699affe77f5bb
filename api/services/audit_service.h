/// Who changed what, newest first.
#pragma once

#include <optional>
#include <string>

#include "api/services/common.h"

namespace tensormill::services {

struct AuditEntry {
  Timestamp ts;
  std::string request_id;
  std::string caller;  ///< the key's name; "" when none was valid
  std::string peer;    ///< of the connection, with its port
  std::string client;  ///< address of who is behind trusted proxies
  std::string method;
  std::string target;
  int status = 0;
};

struct AuditQuery {
  PageQuery page;
  std::optional<std::string> caller;
  std::string method;  ///< "" = all, as 0 and nothing below
  int status = 0;
  std::optional<Timestamp> since;
  std::optional<Timestamp> until;  ///< exclusive
};

/// Thread-safety: all methods from many threads.
class AuditService {
public:
  virtual ~AuditService() = default;
  /// With everything that was answered before the call.
  virtual Page<AuditEntry> list(const AuditQuery& query) = 0;
};

}  // namespace tensormill::services
