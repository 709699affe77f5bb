/// Inference of KServe v2: its messages as bodies of the REST interface and back. Thread-safety: pure
/// functions.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>

#include "server/grpc/slices.h"
#include "server/rpc/listener.h"

namespace tensormill::rpc {

/// What is requested, as a request of HTTP.
struct Asked {
  std::string method, target;
  Fields fields;
  std::shared_ptr<http::BodySource> body;
  bool wants_final = false;  ///< a stream's answers shall say that they are the last ones of their requests
};

/// The JSON of a request and its tensors behind it, of which those in raw_input_contents stay where they are.
/// Throws MessageError naming the input.
Asked infer_request(const SplitRequest& split);
/// A ModelInferResponse, whose tensors stay in the answer's memory.
Pieces infer_response(const Answer& answer);
/// A ModelStreamInferResponse with an error.
Pieces stream_error(const std::string& message);

/// The ModelStreamInferResponses to one request. Thread-safety: one thread at a time.
class StreamAnswers {
public:
  virtual ~StreamAnswers() = default;
  /// False behind the last one.
  virtual bool next(Pieces& response) = 0;
};

/// One with the outputs, or, of a decoupled deployment, one for each row of them (the first dim, which the
/// answers' outputs do not have) and, for who wants the final one marked, one without outputs behind them.
/// Tensors stay in the answer's memory. Throws MessageError where outputs of a decoupled deployment have not
/// as many rows each, or stand in shared memory.
std::unique_ptr<StreamAnswers> stream_answers(const Answer& answer, bool wants_final);

/// A name as one segment of a target.
std::string path_segment(const std::string& text);
/// "models" and "/" and the model's name, and its version where there is one, for a target. Throws
/// MessageError for an empty name.
std::string model_path(const std::string& name, const std::string& version);

}  // namespace tensormill::rpc
