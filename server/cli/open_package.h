/// A package of the command line, ready to run on this machine, and pictures for it.
/// Thread-safety: an OpenPackage belongs to one thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/json_fwd.h"
#include "runtime/exec/graph_executor.h"
#include "runtime/image/image.h"
#include "runtime/parallel/thread_pool.h"

namespace tensormill::cli {

class OpenPackage {
public:
  /// `threads` 0: all cores. Throws as package::Package::open and LoadedPackage::load, naming the file.
  OpenPackage(const std::string& path, int threads);
  exec::GraphExecutor& executor() { return *executor_; }
  parallel::ThreadPool& pool() { return pool_; }
  const exec::RunOptions& options() const { return options_; }
  void run() { executor_->run(pool_, options_); }

private:
  parallel::ThreadPool pool_;
  exec::RunOptions options_;
  std::unique_ptr<exec::GraphExecutor> executor_;
};

/// Options that say how a picture becomes the input of a model: those of a deployment's "preprocess".
struct PictureArguments {
  int resize = 0;
  int crop = 0;
  std::vector<double> mean;
  std::vector<double> std;
  std::optional<double> scale;
  std::string layout;  ///< "NCHW", "NHWC", or "" for what the input's shape says
  std::string color = "rgb";
  std::string input_shapes;
  int threads = 0;
};
void add_picture_options(CLI::App& app, PictureArguments& arguments);
/// All of them but --resize and --crop.
void add_input_options(CLI::App& app, PictureArguments& arguments);

/// What a picture is for the one input of `executor` that is no more than a picture: extents without a number
/// are 1 in front, else those of --input-shapes.
struct PictureInput {
  size_t index = 0;
  DType dtype = DType::kFloat32;
  Shape shape;
  image::Preprocess preprocess;
  std::optional<Quantization> quantization;
  int64_t height() const { return preprocess.nhwc ? shape[1] : shape[2]; }
  int64_t width() const { return preprocess.nhwc ? shape[2] : shape[3]; }
};
/// Throws Error(kInvalidTensor) for a package that takes more than a picture, Error(kShapeRequired) where the
/// size of pictures is free and not given.
PictureInput picture_input(const exec::GraphExecutor& executor, const PictureArguments& arguments);

/// An output of a run; the real numbers where its integers stand for some.
class RealOutput {
public:
  explicit RealOutput(TensorView view) : view_(std::move(view)) {}
  explicit RealOutput(Tensor real) : real_(std::move(real)) {}
  TensorView view() const {
    return real_ ? TensorView{real_->dtype(), real_->shape(), real_->data()} : view_;
  }

private:
  std::optional<Tensor> real_;
  TensorView view_;
};
RealOutput real_output(const exec::GraphExecutor& executor, size_t index);

/// The file's lines, or, where `path` is "", what the model says of that output.
std::vector<std::string> labels_of(const std::string& path, const exec::GraphExecutor& executor,
                                   size_t output);

/// The rows that answer(path) gives of each picture, under "pictures"; printed as JSON where `json` says so.
/// One that cannot be read has its error in its row, and the others have their answers; the only one throws.
/// Returns the exit code of the first that failed, or 0.
int answer_pictures(const std::vector<std::string>& paths, bool json,
                    const std::function<Json(const std::string& path)>& answer);

/// JPEG, PNG, WebP, JPEG 2000, BMP, Netpbm, TIFF. Errors name the file.
image::Image read_picture(const std::string& path);
/// The lines of a text file, a label each; "" : none. Throws Error(kInvalidArgument) for what is no text.
std::vector<std::string> read_labels(const std::string& path);

}  // namespace tensormill::cli
