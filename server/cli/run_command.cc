#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <numeric>

#include "compiler/interpret/interpreter.h"
#include "compiler/target/target.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/narrow.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/npz/npz.h"
#include "runtime/package/package_reader.h"
#include "runtime/parallel/thread_pool.h"
#include "server/cli/cli.h"
#include "server/cli/model_input.h"
#include "server/cli/open_package.h"
#include "server/cli/run_on.h"
#include "server/cli/terminal.h"
#include "server/report/times.h"
#include "server/services/jobs/run_package.h"

namespace tensormill::cli {

namespace {

struct RunArguments {
  std::string package;
  std::string input;
  std::string output;
  std::string input_shapes;
  std::string fill_mode = "random";
  uint64_t seed = 0;
  bool print_time = false;
  int repeat = 1;
  int number = 1;
  int warmup = 1;
  int print_top = 0;
  bool profile = false;
  std::string profile_file;
  std::string outputs;
  int threads = 0;
  bool end_to_end = false;
  bool float_io = false;
  RunOnArguments elsewhere;
};

struct Inputs {
  std::shared_ptr<const MappedFile> file;  ///< must outlive the tensors' use
  std::vector<Tensor> tensors;             ///< one per input of the package
};

/// The scale of an input's integers, where the caller speaks of real numbers.
std::optional<Quantization> scale_of(const RunArguments& arguments, const exec::GraphExecutor& executor,
                                     size_t input) {
  return arguments.float_io ? executor.package().metadata().inputs.at(input).quantization : std::nullopt;
}

Tensor integers_of(const npz::NamedTensor& entry, const Quantization& scale, DType dtype) {
  if (entry.tensor.dtype() != DType::kFloat32)
    throw Error(ErrorCode::kInvalidTensor, "input \"" + entry.name + "\" is " +
                                               std::string(dtype_long_name(entry.tensor.dtype())) +
                                               "; with --float-io it is float32");
  return quantize(entry.tensor, scale, dtype);
}

/// An output as the caller gets it.
RealOutput output_of(const RunArguments& arguments, const exec::GraphExecutor& executor, size_t output) {
  return arguments.float_io ? real_output(executor, output) : RealOutput(executor.output(output));
}

Tensor filled(const RunArguments& arguments, const exec::GraphExecutor& executor, size_t input) {
  const package::Port& port = executor.inputs()[input];
  const services::FillMode mode = server::parse_fill_mode(arguments.fill_mode);
  const std::optional<Quantization> scale = scale_of(arguments, executor, input);
  const DType dtype = scale ? DType::kFloat32 : port.dtype;
  const Tensor tensor =
      server::filled_tensor(dtype, concrete_shape(port.shape), mode, arguments.seed + input);
  return scale ? quantize(tensor, *scale, port.dtype) : tensor;
}

/// Binds the free dims to those of the inputs that are given or whose shape is.
void bind_shapes(const std::vector<std::optional<Tensor>>& given, const RunArguments& arguments,
                 exec::GraphExecutor& executor) {
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i]) executor.set_input(i, {given[i]->dtype(), given[i]->shape(), given[i]->data()});
  }
  for (const auto& [name, shape] : parse_input_shapes(arguments.input_shapes)) {
    const size_t index = executor.input_index(name);
    const DType dtype = executor.inputs()[index].dtype;
    Shape extents = concrete_shape(shape);
    if (dtype == kString) extents.push_back(1);
    const Tensor zeros = Tensor::zeros(dtype, std::move(extents));
    executor.set_input(index, {zeros.dtype(), zeros.shape(), zeros.data()});
  }
  executor.settle_shapes();
}

Inputs read_inputs(const RunArguments& arguments, exec::GraphExecutor& executor) {
  Inputs inputs;
  std::vector<std::optional<Tensor>> given(executor.inputs().size());
  if (!arguments.input.empty()) {
    inputs.file = MappedFile::open(arguments.input);
    std::vector<npz::NamedTensor> entries =
        in_context(arguments.input, [&] { return npz::read_npz(inputs.file->bytes()); });
    for (npz::NamedTensor& entry : entries) {
      const size_t index = executor.input_index(entry.name);
      std::optional<Tensor>& slot = given[index];
      if (slot) throw Error(ErrorCode::kInvalidTensor, "input \"" + entry.name + "\" is given twice");
      const std::optional<Quantization> scale = scale_of(arguments, executor, index);
      slot = scale ? integers_of(entry, *scale, executor.inputs()[index].dtype) : std::move(entry.tensor);
    }
  }
  bind_shapes(given, arguments, executor);
  for (size_t i = 0; i < given.size(); ++i) {
    const package::Port& port = executor.inputs()[i];
    if (!given[i] && !arguments.input.empty()) {
      throw Error(ErrorCode::kInvalidTensor, "input \"" + port.name + "\" is not in " + arguments.input);
    }
    inputs.tensors.push_back(given[i] ? *given[i] : filled(arguments, executor, i));
  }
  return inputs;
}

void set_inputs(exec::GraphExecutor& executor, const Inputs& inputs) {
  for (size_t i = 0; i < inputs.tensors.size(); ++i) {
    const Tensor& tensor = inputs.tensors[i];
    executor.set_input(i, {tensor.dtype(), tensor.shape(), tensor.data()});
  }
}

std::vector<size_t> wanted_outputs(const RunArguments& arguments, const exec::GraphExecutor& executor) {
  std::vector<size_t> wanted;
  for (const std::string& name : split_list(arguments.outputs)) wanted.push_back(executor.output_index(name));
  if (wanted.empty()) {
    wanted.resize(executor.outputs().size());
    std::iota(wanted.begin(), wanted.end(), 0);
  }
  return wanted;
}

/// Milliseconds per run, one value for each repeat.
std::vector<double> measure(const RunArguments& arguments, exec::GraphExecutor& executor,
                            parallel::ThreadPool& pool, const exec::RunOptions& options, const Inputs& inputs,
                            const std::vector<size_t>& outputs) {
  return report::measure_times({0, arguments.repeat, arguments.number}, [&] {
    if (arguments.end_to_end) set_inputs(executor, inputs);
    executor.run(pool, options);
    for (size_t output : outputs) {
      if (arguments.end_to_end) executor.copy_output(output);
    }
  });
}

void print_top(const RunArguments& arguments, const exec::GraphExecutor& executor,
               const std::vector<size_t>& outputs) {
  const int count = arguments.print_top;
  for (size_t index : outputs) {
    const RealOutput output = output_of(arguments, executor, index);
    const Tensor tensor(output.view().dtype, output.view().shape, nullptr,
                        const_cast<void*>(output.view().data));
    std::vector<int64_t> order(static_cast<size_t>(tensor.num_elements()));
    std::iota(order.begin(), order.end(), 0);
    const auto larger = [&](int64_t a, int64_t b) {
      return tensor.element_as_double(a) > tensor.element_as_double(b);
    };
    std::stable_sort(order.begin(), order.end(), larger);
    std::cout << executor.outputs()[index].name << "\n";
    for (size_t i = 0; i < order.size() && i < static_cast<size_t>(count); ++i) {
      std::cout << std::setw(8) << order[i] << "  " << tensor.element_as_double(order[i]) << "\n";
    }
  }
}

void print_profile(const exec::GraphExecutor& executor, const std::vector<exec::StepTime>& profile,
                   const std::string& file) {
  int64_t total = 0;
  for (const exec::StepTime& time : profile) total += time.duration_ns;
  std::cout << std::setw(10) << "us" << std::setw(7) << "%" << std::setw(10) << "GFLOP/s"
            << "  step\n"
            << std::fixed;
  Json events = Json::array();
  for (const exec::StepTime& time : profile) {
    const package::Step& step = executor.plan().steps[time.step];
    const double us = static_cast<double>(time.duration_ns) / 1e3;
    std::cout << std::setw(10) << std::setprecision(1) << us << std::setw(7)
              << 100.0 * static_cast<double>(time.duration_ns) /
                     static_cast<double>(std::max<int64_t>(total, 1))
              << std::setw(10)
              << static_cast<double>(step.flops) / static_cast<double>(std::max<int64_t>(time.duration_ns, 1))
              << "  " << step.name << "\n";
    events.push_back({{"name", step.name},
                      {"ph", "X"},
                      {"pid", 1},
                      {"tid", 1},
                      {"ts", static_cast<double>(time.start_ns) / 1e3},
                      {"dur", us},
                      {"args", {{"nodes", step.origins}}}});
  }
  if (!file.empty()) write_file(file, Json{{"traceEvents", events}}.dump());
}

void write_outputs(const RunArguments& arguments, const exec::GraphExecutor& executor,
                   const std::vector<size_t>& outputs) {
  std::vector<RealOutput> values;
  std::vector<npz::NamedView> views;
  for (size_t index : outputs) values.push_back(output_of(arguments, executor, index));
  for (size_t i = 0; i < outputs.size(); ++i)
    views.push_back({executor.outputs()[outputs[i]].name, values[i].view()});
  write_file(arguments.output, npz::write_npz(views));
}

void print_times(const std::vector<double>& times, bool json) {
  if (json) {
    print_json(report::times_json(times));
    return;
  }
  const report::TimeSummary summary = report::summarize(times);
  std::cout << "Execution time summary:\n" << std::fixed << std::setprecision(4);
  for (const char* title : {"mean (ms)", "median (ms)", "max (ms)", "min (ms)", "std (ms)"})
    std::cout << std::setw(14) << title;
  std::cout << "\n";
  for (double value : {summary.mean, summary.median, summary.max, summary.min, summary.std})
    std::cout << std::setw(14) << value;
  std::cout << std::endl;
}

/// What a worker elsewhere does; it has no options of this machine.
int run_elsewhere(const RunArguments& arguments, const GlobalOptions& globals) {
  if (arguments.profile || arguments.print_top > 0 || !arguments.outputs.empty() ||
      !arguments.input_shapes.empty() || arguments.threads > 0 || arguments.end_to_end ||
      arguments.float_io || arguments.repeat > 1 || arguments.number > 1)
    throw Error(
        ErrorCode::kUsage,
        "--on goes with -i, -o, --fill-mode, --seed and --print-time alone; a benchmark job measures");
  const std::vector<double> times =
      run_on(arguments.elsewhere,
             {arguments.package, arguments.input, arguments.output, arguments.fill_mode, arguments.seed});
  if ((arguments.print_time || globals.json) && !times.empty()) print_times(times, globals.json);
  return 0;
}

int run_package(const RunArguments& arguments, const GlobalOptions& globals) {
  if (!arguments.output.empty()) check_output("-o", arguments.output);
  if (!arguments.elsewhere.on.empty()) return run_elsewhere(arguments, globals);
  if (!arguments.profile_file.empty()) check_output("--profile", arguments.profile_file);
  const auto loaded = in_context(arguments.package, [&] {
    return package::LoadedPackage::load(package::Package::open(arguments.package),
                                        interpret::make_interpreter);
  });
  const int cores = std::max(1, target::host_target().facts.num_cores);
  const int threads = arguments.threads > 0 ? arguments.threads : cores;
  parallel::ThreadPool pool(threads);
  exec::ExecutorOptions executor_options;
  executor_options.max_threads = threads;
  exec::GraphExecutor executor(loaded, executor_options);
  const std::vector<size_t> outputs = wanted_outputs(arguments, executor);
  const Inputs inputs = read_inputs(arguments, executor);
  set_inputs(executor, inputs);
  exec::RunOptions options;
  options.threads = threads;
  for (int i = 0; i < arguments.warmup; ++i) executor.run(pool, options);
  const std::vector<double> times = measure(arguments, executor, pool, options, inputs, outputs);
  if (arguments.profile) {
    std::vector<exec::StepTime> profile;
    options.profile = &profile;
    executor.run(pool, options);
    print_profile(executor, profile, arguments.profile_file);
  }
  if (!arguments.output.empty()) write_outputs(arguments, executor, outputs);
  if (arguments.print_top > 0) print_top(arguments, executor, outputs);
  if (arguments.print_time || globals.json) print_times(times, globals.json);
  return 0;
}

}  // namespace

Action run_command(CLI::App& app) {
  const auto arguments = std::make_shared<RunArguments>();
  app.add_option("PACKAGE.tar", arguments->package, "package file; with --on also the id of one")->required();
  app.add_option("-i,--inputs", arguments->input, "NPZ with the inputs; without it they are filled");
  app.add_option("-o,--output", arguments->output, "NPZ to write the outputs to");
  app.add_option("--input-shapes", arguments->input_shapes,
                 "of inputs that are filled, where the package has free dims: \"x:[4,3,224,224]\"");
  app.add_option("--fill-mode", arguments->fill_mode, "zeros, ones or random")
      ->check(CLI::IsMember({"zeros", "ones", "random"}));
  app.add_option("--seed", arguments->seed, "of the random fill")->check(seed_number());
  app.add_flag("--print-time", arguments->print_time, "print mean, median, max, min and std in ms");
  app.add_option("--repeat", arguments->repeat, "measurements")->check(CLI::Range(1, 1000000));
  app.add_option("--number", arguments->number, "runs in each measurement")->check(CLI::Range(1, 1000000));
  app.add_option("--warmup", arguments->warmup, "runs before the first measurement")
      ->check(CLI::Range(0, 1000000));
  app.add_option("--print-top", arguments->print_top, "print the N largest elements of each output")
      ->check(CLI::Range(0, 1000000));
  CLI::Option* profile = app.add_option("--profile", arguments->profile_file,
                                        "print the time of each step; write a Chrome trace to the file");
  profile->expected(0, 1);
  app.add_option("--outputs", arguments->outputs, "only these outputs: A,B");
  app.add_option("--threads", arguments->threads, "default: all cores")->check(CLI::Range(0, 1024));
  app.add_flag("--float-io", arguments->float_io,
               "inputs and outputs whose integers stand for real numbers are these numbers, as float32");
  app.add_flag("--end-to-end", arguments->end_to_end, "measure with copies of inputs and outputs");
  add_run_on_options(app, arguments->elsewhere,
                     "run it on a worker with these labels, of --server, which has the package");
  return [arguments, profile](const GlobalOptions& globals) {
    arguments->profile = profile->count() != 0;
    return run_package(*arguments, globals);
  };
}

}  // namespace tensormill::cli
