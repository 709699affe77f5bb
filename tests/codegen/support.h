/// Runs emitted kernels in this process: a call with its buffers, dims, workspaces and a launcher.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/backend.h"
#include "compiler/codegen/jit.h"
#include "compiler/te/stmt.h"
#include "runtime/base/tensor.h"

namespace tensormill::codegen_test {

/// Targets whose code this machine can run: the host itself and the x86-64 levels below it.
std::vector<target::Target> runnable_targets();
target::Target parse(const std::string& text);
target::Target host();

struct RunResult {
  int32_t code = 0;
  int64_t error_index = 0;
};

/// A kernel loaded into this process.
class Kernel {
public:
  Kernel(const te::Function& function, const target::Target& target);
  /// `workers` threads claim the tasks of parallel loops.
  RunResult run(std::vector<Tensor>& arguments, const std::vector<int64_t>& dims = {}, int workers = 1) const;
  RunResult run_raw(const tm_call& call) const;

private:
  std::string name_;
  int64_t shared_bytes_;
  int64_t worker_bytes_;
  std::unique_ptr<codegen::JitLibrary> library_;
};

/// A function of flat parameters; the last `outputs` ones are outputs.
te::Function make_function(std::string name, const std::vector<te::Buffer>& parameters, size_t outputs,
                           te::Stmt body);
te::Buffer flat(std::string name, DType dtype, int64_t extent, te::Scope scope = te::Scope::kParameter);

/// Bit for bit, except that any NaN equals any NaN; "" or the first difference.
std::string difference(const Tensor& actual, const Tensor& expected);

}  // namespace tensormill::codegen_test
