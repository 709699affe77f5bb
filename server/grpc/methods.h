/// The methods that are answered: each by a request of the REST interface. Thread-safety: constants and pure
/// functions.
#pragma once

#include <string>
#include <string_view>

#include "server/grpc/infer_messages.h"

namespace tensormill::rpc {

enum class CallKind {
  kUnary,        ///< one message, one answer
  kInfer,        ///< the same, of an inference, whose tensors are not copied
  kInferStream,  ///< inferences, one after another
  kHealth,       ///< of the process itself: asks no service
  kHealthWatch,  ///< the same, for as long as the client listens
};

struct Method {
  std::string_view name;  ///< "/inference.GRPCInferenceService/ModelInfer"
  CallKind kind;
  /// The request of a kUnary call's message. Throws MessageError.
  Asked (*ask)(const std::string& message);
  /// The message that answers it. Throws MessageError, or what broken JSON throws.
  std::string (*print)(const Answer& answer);
  bool needs_key;
};

/// Null for one that is not answered.
const Method* find_method(std::string_view name);
/// The request with which a caller without a key is refused, and that the log shows.
Asked refused_request(const Method& method);

/// A HealthCheckResponse: grpc.health.v1. Throws MessageError for a service that is not here.
void check_health_service(const std::string& message);
std::string health_response(bool is_serving);

}  // namespace tensormill::rpc
