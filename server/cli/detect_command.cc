#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/image/encode.h"
#include "server/cli/cli.h"
#include "server/cli/model_input.h"
#include "server/cli/open_package.h"
#include "server/cli/terminal.h"
#include "server/detect/boxes.h"
#include "server/detect/picture.h"

namespace tensormill::cli {

namespace {

struct DetectArguments {
  std::string package;
  std::vector<std::string> pictures;
  std::string labels;
  std::string form = "auto";
  std::string corners = "xyxy";
  std::string fit = "letterbox";
  std::string output;
  detect::BoxOptions boxes;
  PictureArguments picture;
};

detect::Corners corners_of(const std::string& name) {
  if (name == "yxyx") return detect::Corners::kYxyx;
  if (name == "xywh") return detect::Corners::kXywh;
  return name == "cxcywh" ? detect::Corners::kCxcywh : detect::Corners::kXyxy;
}

std::vector<detect::Box> detect_in(const image::Image& picture, const DetectArguments& arguments,
                                   const PictureInput& input, OpenPackage& package) {
  exec::GraphExecutor& executor = package.executor();
  const detect::Fit fit = arguments.fit == "stretch" ? detect::Fit::kStretch : detect::Fit::kLetterbox;
  const detect::Fitted fitted = detect::fit_into(picture, input.width(), input.height(), fit);
  const Tensor tensor =
      image::to_tensor(fitted.image, input.preprocess, input.dtype, input.shape, input.quantization);
  executor.set_input(input.index, {tensor.dtype(), tensor.shape(), tensor.data()});
  package.run();
  std::vector<RealOutput> reals;
  std::vector<detect::NamedOutput> outputs;
  for (size_t i = 0; i < executor.outputs().size(); ++i) {
    reals.push_back(real_output(executor, i));
    outputs.push_back({executor.outputs()[i].name, reals.back().view()});
  }
  detect::BoxOptions options = arguments.boxes;
  options.form = detect::parse_form(arguments.form);
  options.corners = corners_of(arguments.corners);
  options.width = input.width();
  options.height = input.height();
  return detect::to_picture(detect::find_boxes(outputs, options), fitted, picture.width, picture.height);
}

std::string kind_name(const std::vector<std::string>& labels, const detect::Box& box) {
  const auto at = static_cast<size_t>(box.kind);
  return at < labels.size() && !labels[at].empty() ? labels[at] : "class " + std::to_string(box.kind);
}

Json boxes_json(const std::vector<detect::Box>& boxes, const std::vector<std::string>& labels) {
  Json list = Json::array();
  for (const detect::Box& box : boxes) {
    list.push_back({{"box", {box.left, box.top, box.right, box.bottom}},
                    {"score", box.score},
                    {"class", box.kind},
                    {"label", kind_name(labels, box)}});
  }
  return list;
}

void print_boxes(const std::string& path, const std::vector<detect::Box>& boxes,
                 const std::vector<std::string>& labels) {
  std::cout << coloured(printable(path), Colour::kBold, Stream::kOut) << ": " << boxes.size()
            << (boxes.size() == 1 ? " box" : " boxes") << "\n";
  for (const detect::Box& box : boxes) {
    std::cout << std::fixed << std::setw(9) << std::setprecision(2) << 100 * box.score << " %  ["
              << std::setprecision(1) << box.left << ", " << box.top << ", " << box.right << ", "
              << box.bottom << "]  " << printable(kind_name(labels, box)) << "\n";
  }
}

/// Where the drawing of a picture goes: the file itself, or a file of the folder.
std::string drawing_path(const DetectArguments& arguments, const std::string& picture) {
  if (!std::filesystem::is_directory(arguments.output)) return arguments.output;
  return arguments.output + "/" + std::filesystem::path(picture).stem().string() + ".boxes.png";
}

Json detect_one(const std::string& path, const DetectArguments& arguments,
                const std::vector<std::string>& labels, const PictureInput& input, OpenPackage& package,
                bool json) {
  image::Image picture = read_picture(path);
  const std::vector<detect::Box> boxes = detect_in(picture, arguments, input, package);
  if (!json) print_boxes(path, boxes, labels);
  Json row = {{"picture", path},
              {"width", picture.width},
              {"height", picture.height},
              {"boxes", boxes_json(boxes, labels)}};
  if (!arguments.output.empty()) {
    detect::draw(boxes, picture);
    row["drawing"] = drawing_path(arguments, path);
    write_file(row["drawing"].get<std::string>(), image::encode_png(picture));
  }
  return row;
}

/// The exit code, as answer_pictures has it.
int detect_all(const DetectArguments& arguments, const GlobalOptions& globals) {
  if (!arguments.output.empty() && !std::filesystem::is_directory(arguments.output)) {
    if (arguments.pictures.size() > 1)
      throw Error(ErrorCode::kUsage, "-o " + arguments.output + ": for several pictures it is a folder");
    check_output("-o", arguments.output);
  }
  OpenPackage package(arguments.package, arguments.picture.threads);
  std::vector<std::string> labels = read_labels(arguments.labels);
  for (size_t i = 0; labels.empty() && i < package.executor().outputs().size(); ++i)
    labels = labels_of(arguments.labels, package.executor(), i);
  const PictureInput input = picture_input(package.executor(), arguments.picture);
  return answer_pictures(arguments.pictures, globals.json, [&](const std::string& path) {
    return detect_one(path, arguments, labels, input, package, globals.json);
  });
}

}  // namespace

Action detect_command(CLI::App& app) {
  const auto arguments = std::make_shared<DetectArguments>();
  app.add_option("PACKAGE.tar", arguments->package, "package file")->required();
  app.add_option("PICTURE", arguments->pictures, "JPEG, PNG, WebP, JPEG 2000, BMP, Netpbm or TIFF")
      ->required()
      ->expected(1, 1 << 20);
  app.add_option("--labels", arguments->labels,
                 "text file with the names of the classes, one a line; default: the model's own");
  app.add_option("--threshold", arguments->boxes.threshold, "least score of a box; default 0.25")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--overlap", arguments->boxes.overlap,
                 "of two boxes of a class, past which the lesser goes; default 0.45")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--most", arguments->boxes.most, "boxes of a picture; default 300")
      ->check(CLI::Range(1, 30000));
  app.add_option("--form", arguments->form, "of the outputs")->check(CLI::IsMember(detect::form_names()));
  app.add_option("--corners", arguments->corners, "order of a box' numbers in rows and tensors")
      ->check(CLI::IsMember({"xyxy", "yxyx", "xywh", "cxcywh"}));
  app.add_option("--fit", arguments->fit, "how a picture becomes the input's size")
      ->check(CLI::IsMember({"letterbox", "stretch"}));
  app.add_option("-o,--output", arguments->output, "PNG with the boxes drawn; of several pictures: a folder");
  add_input_options(app, arguments->picture);
  return [arguments](const GlobalOptions& globals) { return detect_all(*arguments, globals); };
}

}  // namespace tensormill::cli
