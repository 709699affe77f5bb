// The step of a package whose runs need an interpreter, in a program that has none.
#include "runtime/base/error.h"
#include "runtime/host_ops/data_steps.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

void run_model(const HostCall& call) {
  throw Error(
      ErrorCode::kInvalidTensor,
      "the package has no kernels, and this program interprets no model: " + Attributes(call).text("reason"));
}

}  // namespace tensormill::host_ops
