#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "server/cli/cli.h"
#include "server/cli/open_package.h"
#include "server/cli/terminal.h"

namespace tensormill::cli {

namespace {

struct ClassifyArguments {
  std::string package;
  std::vector<std::string> pictures;
  std::string labels;
  std::string output;
  bool probabilities = false;
  int top = 5;
  PictureArguments picture;
};

struct Classified {
  std::vector<image::Score> top;
  double decode_ms = 0;
  double run_ms = 0;
};

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Classified classify(const std::string& path, const ClassifyArguments& arguments, const PictureInput& input,
                    size_t output, OpenPackage& package) {
  exec::GraphExecutor& executor = package.executor();
  Classified result;
  const auto start = std::chrono::steady_clock::now();
  const Tensor tensor =
      image::to_tensor(read_picture(path), input.preprocess, input.dtype, input.shape, input.quantization);
  executor.set_input(input.index, {tensor.dtype(), tensor.shape(), tensor.data()});
  result.decode_ms = ms_since(start);
  const auto run_start = std::chrono::steady_clock::now();
  package.run();
  result.run_ms = ms_since(run_start);
  result.top = image::top_k(real_output(executor, output).view(), arguments.top, !arguments.probabilities);
  return result;
}

std::string label_of(const std::vector<std::string>& labels, int64_t index) {
  const auto at = static_cast<size_t>(index);
  return at < labels.size() ? labels[at] : "";
}

Json result_json(const std::string& path, const Classified& result, const std::vector<std::string>& labels) {
  Json top = Json::array();
  for (const image::Score& score : result.top) {
    top.push_back({{"label", label_of(labels, score.index)},
                   {"index", score.index},
                   {"probability", score.probability}});
  }
  return {{"picture", path}, {"top", top}, {"decode_ms", result.decode_ms}, {"run_ms", result.run_ms}};
}

void print_result(const std::string& path, const Classified& result, const std::vector<std::string>& labels) {
  std::cout << coloured(printable(path), Colour::kBold, Stream::kOut) << "\n" << std::fixed;
  bool is_first = true;
  for (const image::Score& score : result.top) {
    const std::string label = label_of(labels, score.index);
    std::ostringstream line;
    line << std::fixed << std::setw(9) << std::setprecision(2) << 100 * score.probability << " %  "
         << (label.empty() ? "class " + std::to_string(score.index) : printable(label));
    std::cout << coloured(line.str(), is_first ? Colour::kGreen : Colour::kNone, Stream::kOut) << "\n";
    is_first = false;
  }
}

/// The exit code, as answer_pictures has it.
int classify_all(const ClassifyArguments& arguments, const GlobalOptions& globals) {
  OpenPackage package(arguments.package, arguments.picture.threads);
  const size_t output = arguments.output.empty() ? 0 : package.executor().output_index(arguments.output);
  const std::vector<std::string> labels = labels_of(arguments.labels, package.executor(), output);
  const PictureInput input = picture_input(package.executor(), arguments.picture);
  return answer_pictures(arguments.pictures, globals.json, [&](const std::string& path) {
    const Classified result = classify(path, arguments, input, output, package);
    if (!globals.json) print_result(path, result, labels);
    return result_json(path, result, labels);
  });
}

}  // namespace

Action classify_command(CLI::App& app) {
  const auto arguments = std::make_shared<ClassifyArguments>();
  app.add_option("PACKAGE.tar", arguments->package, "package file")->required();
  app.add_option("PICTURE", arguments->pictures, "JPEG, PNG, WebP, JPEG 2000, BMP, Netpbm or TIFF")
      ->required()
      ->expected(1, 1 << 20);
  app.add_option("--labels", arguments->labels,
                 "text file with the names of the classes, one a line; default: the model's own");
  app.add_option("--top", arguments->top, "how many classes to tell")->check(CLI::Range(1, 1000000));
  app.add_option("--scores", arguments->output, "output with the scores; default: the first");
  app.add_flag("--probabilities", arguments->probabilities, "the scores are probabilities, not logits");
  add_picture_options(app, arguments->picture);
  return [arguments](const GlobalOptions& globals) { return classify_all(*arguments, globals); };
}

}  // namespace tensormill::cli
