#include "server/cli/open_package.h"

#include <algorithm>
#include <iostream>

#include "compiler/interpret/interpreter.h"
#include "compiler/target/target.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/package/package_reader.h"
#include "server/cli/cli.h"
#include "server/cli/model_input.h"
#include "server/cli/terminal.h"

namespace tensormill::cli {

namespace {

int threads_or_all(int threads) {
  return threads > 0 ? threads : std::max(1, target::host_target().facts.num_cores);
}

/// The input's shape with numbers for all extents: one picture's.
Shape bound_shape(const exec::GraphExecutor& executor, const PictureArguments& arguments) {
  const std::map<std::string, DimShape> given = parse_input_shapes(arguments.input_shapes);
  if (!given.empty()) {
    executor.input_index(given.begin()->first);
    return concrete_shape(given.begin()->second);
  }
  DimShape shape = executor.package().package().plans().input_shapes.empty()
                       ? executor.inputs().front().shape
                       : executor.package().package().plans().input_shapes.front();
  if (!shape.empty() && std::holds_alternative<std::string>(shape.front())) shape.front() = Dim(int64_t{1});
  return concrete_shape(shape);
}

void add_size_options(CLI::App& app, PictureArguments& arguments) {
  app.add_option("--resize", arguments.resize, "pixels of the shorter side, before the crop")
      ->check(CLI::Range(0, 65536));
  app.add_option("--crop", arguments.crop, "side of the square that is cut out of the middle")
      ->check(CLI::Range(0, 65536));
}

}  // namespace

OpenPackage::OpenPackage(const std::string& path, int threads) : pool_(threads_or_all(threads)) {
  const auto loaded = in_context(path, [&] {
    return package::LoadedPackage::load(package::Package::open(path), interpret::make_interpreter);
  });
  options_.threads = threads_or_all(threads);
  exec::ExecutorOptions executor_options;
  executor_options.max_threads = options_.threads;
  executor_ = std::make_unique<exec::GraphExecutor>(loaded, executor_options);
}

void add_picture_options(CLI::App& app, PictureArguments& arguments) {
  add_size_options(app, arguments);
  add_input_options(app, arguments);
}

void add_input_options(CLI::App& app, PictureArguments& arguments) {
  app.add_option("--mean", arguments.mean,
                 "of a channel, 1 or 3 numbers: A,B,C; default 0, or what the model says")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--std", arguments.std,
                 "of a channel, 1 or 3 numbers: A,B,C; default 1, or what the model says")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--scale", arguments.scale,
                 "what bytes are multiplied by, before mean and std; default 1/255, or what the model says");
  app.add_option("--layout", arguments.layout, "of the model's input; default: what its shape says")
      ->check(CLI::IsMember({"NCHW", "NHWC"}));
  app.add_option("--color", arguments.color, "order of the channels")->check(CLI::IsMember({"rgb", "bgr"}));
  app.add_option("--input-shapes", arguments.input_shapes,
                 "where the package has free dims: \"image:[1,3,224,224]\"");
  app.add_option("--threads", arguments.threads, "default: all cores")->check(CLI::Range(0, 1024));
}

PictureInput picture_input(const exec::GraphExecutor& executor, const PictureArguments& arguments) {
  for (const auto* values : {&arguments.mean, &arguments.std}) {
    if (values->size() > 1 && values->size() != 3)
      throw Error(ErrorCode::kUsage, std::string(values == &arguments.mean ? "--mean" : "--std") + " has " +
                                         std::to_string(values->size()) + " numbers, expected 1 or 3");
  }
  if (std::find(arguments.std.begin(), arguments.std.end(), 0.0) != arguments.std.end())
    throw Error(ErrorCode::kUsage, "--std has a 0, and is divided by");
  if (executor.inputs().size() != 1) {
    throw Error(ErrorCode::kInvalidTensor, "the package has " + std::to_string(executor.inputs().size()) +
                                               " inputs; a picture can be the input of one alone");
  }
  const package::Port& port = executor.inputs().front();
  PictureInput input;
  input.dtype = port.dtype;
  input.quantization = executor.package().metadata().inputs.front().quantization;
  input.shape = bound_shape(executor, arguments);
  input.preprocess.resize = arguments.resize;
  input.preprocess.crop_width = input.preprocess.crop_height = arguments.crop;
  input.preprocess.mean = arguments.mean;
  input.preprocess.std = arguments.std;
  if (arguments.scale) input.preprocess.scale = *arguments.scale;
  image::set_noted(input.preprocess, arguments.scale.has_value(),
                   executor.package().metadata().inputs.front().notes);
  input.preprocess.bgr = arguments.color == "bgr";
  const Shape& shape = input.shape;
  if (shape.size() != 4)
    throw Error(ErrorCode::kInvalidTensor,
                "input \"" + port.name + "\" is " + to_string(shape) + ", no picture");
  input.preprocess.nhwc = arguments.layout.empty() ? image::looks_nhwc(shape) : arguments.layout == "NHWC";
  return input;
}

RealOutput real_output(const exec::GraphExecutor& executor, size_t index) {
  const TensorView view = executor.output(index);
  const auto& quantization = executor.package().metadata().outputs.at(index).quantization;
  return quantization ? RealOutput(dequantize(view, *quantization)) : RealOutput(view);
}

std::vector<std::string> labels_of(const std::string& path, const exec::GraphExecutor& executor,
                                   size_t output) {
  return path.empty() ? executor.package().metadata().outputs.at(output).notes.labels : read_labels(path);
}

int answer_pictures(const std::vector<std::string>& paths, bool json,
                    const std::function<Json(const std::string& path)>& answer) {
  Json list = Json::array();
  int exit_code = 0;
  for (const std::string& path : paths) {
    try {
      list.push_back(answer(path));
    } catch (const Error& error) {
      if (paths.size() == 1) throw;
      const ErrorCodeInfo& row = error_code_info(error.code());
      list.push_back({{"picture", path}, {"error", {{"code", row.name}, {"detail", error.message()}}}});
      std::cerr << "error: " << printable(error.message()) << std::endl;
      if (exit_code == 0) exit_code = row.exit_code;
    }
  }
  if (json) print_json(Json{{"pictures", list}});
  return exit_code;
}

image::Image read_picture(const std::string& path) {
  return in_context(path, [&] { return image::decode_any(MappedFile::open(path)->bytes()); });
}

std::vector<std::string> read_labels(const std::string& path) {
  std::vector<std::string> labels;
  if (path.empty()) return labels;
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::string_view text = file->text();
  if (!is_utf8(text) || text.find('\0') != std::string_view::npos)
    throw Error(ErrorCode::kInvalidArgument, path + ": labels are a text file of UTF-8, one a line");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    labels.emplace_back(line);
    at = end + 1;
  }
  return labels;
}

}  // namespace tensormill::cli
