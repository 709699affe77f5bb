/// A graph that is one kernel, compiled for this machine: its machine code, its loops for the interpreter,
/// and the operators' reference. Thread-safety: an object belongs to one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/jit.h"
#include "compiler/driver/build_kernel.h"
#include "compiler/driver/verify_kernel.h"

namespace tensormill::driver_test {

struct OneKernel {
  plan::Kernel kernel;
  plan::KernelWorkspace workspace;
  te::Function function;  ///< as code was generated from it
  std::unique_ptr<codegen::JitLibrary> library;
  std::vector<Tensor> constants;  ///< of the model, where `given` points
  std::vector<const Tensor*> given;

  tm_kernel entry() const { return library->kernel(kernel.symbol); }
  /// Output 0, by each executor. `inputs`: of the kernel's region, in its order.
  Tensor run(std::vector<Tensor> inputs) const;
  Tensor interpret(std::vector<Tensor> inputs) const;
  Tensor reference(const std::vector<Tensor>& inputs) const;
};

/// `body`: the text form of a graph without its name. Fails the test where it is not one kernel. `target`:
/// whose code this machine runs; none: itself.
std::unique_ptr<OneKernel> one_kernel(const std::string& body, const std::string& target = "");

}  // namespace tensormill::driver_test
