#include "tests/driver/one_kernel.h"

#include <gtest/gtest.h>

#include "compiler/passes/pass.h"
#include "compiler/te/interpret.h"
#include "tests/driver/support.h"

namespace tensormill::driver_test {

namespace {

Tensor output_of(const plan::Kernel& kernel) {
  return driver::unwritten_tensor(kernel.region->value(kernel.region->outputs()[0]).type);
}

}  // namespace

std::unique_ptr<OneKernel> one_kernel(const std::string& body, const std::string& target) {
  const target::Target host =
      target.empty() ? target::host_target() : target::parse_target(target, target::host_target());
  ir::Graph graph = parse("graph \"one\" " + body);
  passes::PipelineOptions options;
  options.context.facts = host.facts;
  options.context.opt_level = 1;
  std::vector<std::string> ran;
  graph = passes::run_pipeline(std::move(graph), options, ran);
  const plan::Kernels kernels = plan::extract_kernels(graph);
  EXPECT_EQ(kernels.kernels.size(), 1U) << body;
  auto one = std::make_unique<OneKernel>();
  one->kernel = kernels.kernels.at(0);
  const schedule::Schedule steps = schedule::default_schedule(one->kernel.program, host);
  driver::BuiltKernel built = driver::build_kernel(one->kernel, steps, host, *codegen::make_llvm_backend());
  one->workspace = built.workspace;
  one->function = built.function;
  one->library = codegen::JitLibrary::load(built.object);
  const std::vector<ir::ValueId>& inputs = kernels.calls.at(0).inputs;
  one->constants.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::optional<Tensor>& constant = graph.value(inputs[i]).constant;
    if (constant) one->constants[i] = *constant;
    one->given.push_back(constant ? &one->constants[i] : nullptr);
  }
  return one;
}

Tensor OneKernel::run(std::vector<Tensor> inputs) const {
  Tensor output = output_of(kernel);
  std::vector<void*> buffers;
  for (Tensor& input : inputs) buffers.push_back(input.data());
  buffers.push_back(output.data());
  EXPECT_EQ(driver::run_kernel(entry(), buffers, workspace), TM_OK);
  return output;
}

Tensor OneKernel::interpret(std::vector<Tensor> inputs) const {
  inputs.push_back(output_of(kernel));
  EXPECT_EQ(te::interpret(function, inputs).code, 0);
  return inputs.back();
}

Tensor OneKernel::reference(const std::vector<Tensor>& inputs) const {
  return ir::evaluate_reference(*kernel.region, inputs)[0];
}

}  // namespace tensormill::driver_test
