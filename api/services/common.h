/// What all services share: call context, pages, timestamps, tensor signatures.
///
/// The services are the seam between the REST contract (api/) and the process (server/): api/ parses, checks
/// and prints, server/ does. A service throws `Error` with the code that the client shall see; the dispatcher
/// turns it into problem+json. Texts named *_json are JSON that passes through unread (facts of the compiler,
/// stored as they came); everything else is typed here. Thread-safety: every method of every service may be
/// called from many threads at once. Methods that may block for longer than a database query take a
/// CallContext and return early when it is cancelled.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/memory_budget.h"
#include "runtime/base/quantization.h"
#include "runtime/base/shape.h"
#include "runtime/base/tensor.h"

namespace tensormill::services {

/// The submitter while API keys are off.
inline constexpr const char* kLocalCaller = "local";

/// Who asks, and until when anyone wants the answer.
struct CallContext {
  std::string request_id;  ///< goes on every log line
  std::string submitter;   ///< the key's name, or kLocalCaller; identifies one of several submitters of a job
  std::stop_token cancelled;  ///< stops when the client has gone
  /// Where set, the calling thread must not be kept by a run: the run is given to this function, which calls
  /// it soon, behind what that thread has to do first.
  std::function<void(std::function<void()>)> later;
  bool is_admin = true;  ///< may do to others' jobs what their submitters may
  /// Those of the key, as api/http/scopes.h has them; "admin" while keys are off.
  std::vector<std::string> scopes = {"admin"};
  /// What the call's request has of the memory of all that are in flight; null where nobody counts.
  std::shared_ptr<MemoryShare> memory = {};
  /// Under which the caller may send the same request again; "" for none.
  std::string idempotency_key;
  /// Of the trace that the call's request is recorded in, 32 hexadecimal digits; "" for none.
  std::string trace_id = {};
};

/// What became of a call that ended on another thread: a value, or what it threw.
template <typename T>
class Outcome {
public:
  explicit Outcome(T value) : held_(std::move(value)) {}
  explicit Outcome(std::exception_ptr error) : held_(std::move(error)) {}
  /// Of what `make` returns or throws.
  template <typename Make>
  static Outcome of(const Make& make) {
    try {
      return Outcome(make());
    } catch (const std::exception&) {
      return Outcome(std::current_exception());
    }
  }
  /// The value, once; throws what the call threw.
  T take() {
    if (const auto* error = std::get_if<std::exception_ptr>(&held_)) std::rethrow_exception(*error);
    return std::move(std::get<T>(held_));
  }

private:
  std::variant<T, std::exception_ptr> held_;
};

/// Told once how a call ended, on any thread, before the call returns already; must not throw.
template <typename T>
using Done = std::function<void(Outcome<T>)>;

/// Milliseconds since 1970-01-01 UTC.
struct Timestamp {
  int64_t ms = 0;
  auto operator<=>(const Timestamp&) const = default;
};

/// Keyset pages: `cursor` is "" for the first page, else the `next_cursor` of the page before, opaque to
/// clients.
struct PageQuery {
  int limit = 50;  ///< 1..500, checked by api/
  std::string cursor;
};

template <typename T>
struct Page {
  std::vector<T> items;
  std::string next_cursor;  ///< "" at the end
};

/// One input or output of a model, a package, a deployment.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  DimShape shape;  ///< free dims by name, "" shown as -1
  std::string kind =
      {};  ///< of a model's values that are no tensor: "sequence", "optional" ...; of elements then
  std::optional<Quantization> quantization = {};  ///< of integers that stand for real numbers
};

/// Tensors by name, in order.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Wall times of one call, all in milliseconds.
struct Timing {
  double queue_ms = 0;
  double decode_ms = 0;   ///< of a picture
  double compute_ms = 0;  ///< of the last run
  std::vector<double>
      runs_ms;  ///< each of `repeat` measurements: mean over `number` runs; empty unless asked for
  std::string profile_json;  ///< per step, when asked for; else ""
};

}  // namespace tensormill::services
