/// Boxes out of the outputs of a detector.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/tensor.h"

namespace tensormill::detect {

/// In pixels, the upper left corner first.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  double score = 0;
  int64_t kind = 0;  ///< the class's number
};

/// Which outputs a detector has. Auto distinguishes them by shapes and values.
enum class Form {
  kAuto,
  kYolo,        ///< [1,4+C,A]: centre and size of A candidates above the scores of C classes
  kObjectness,  ///< [1,A,5+C]: a candidate a row: centre, size, whether it is anything, scores of C classes
  kRows,        ///< [N,6] or [1,N,6]: left, top, right, bottom, score, class
  kClassFirst,  ///< the same rows as class, score, left, top, right, bottom
  kBatchFirst,  ///< [N,7]: picture, left, top, right, bottom, class, score
  kTensors,     ///< boxes [N,4], scores [N] and classes [N], each with or without a 1 in front
  kCounted,  ///< boxes [1,N,4] as kYxyx, classes [1,N], scores [1,N] and how many there are [1], all floats
};
/// "auto", "yolo", "objectness", "rows", "class-first", "batch-first", "tensors", "counted"; throws
/// Error(kUsage).
Form parse_form(const std::string& name);
std::vector<std::string> form_names();

/// What the four numbers of a box are, where `form` leaves it open.
enum class Corners {
  kXyxy,   ///< left, top, right, bottom
  kYxyx,   ///< top, left, bottom, right, as TensorFlow's detectors have them
  kXywh,   ///< left, top, width, height
  kCxcywh  ///< centre and size
};

struct BoxOptions {
  Form form = Form::kAuto;
  Corners corners = Corners::kXyxy;  ///< of rows and tensors
  double threshold = 0.25;           ///< least score
  double overlap = 0.45;          ///< of two boxes of a class: intersection by union; past it the lesser goes
  int64_t most = 300;             ///< boxes
  int64_t width = 0, height = 0;  ///< of the model's input
};

struct NamedOutput {
  std::string name;
  TensorView tensor;
};

/// Best first, in pixels of the model's input; numbers between 0 and 1 throughout are parts of its sides. Of
/// kYolo and kObjectness, whose candidates overlap, the best of each place remain. Throws
/// Error(kInvalidTensor) where no output has the form.
std::vector<Box> find_boxes(const std::vector<NamedOutput>& outputs, const BoxOptions& options);

/// The best of boxes that overlap, by class; `boxes` best first.
std::vector<Box> suppress(const std::vector<Box>& boxes, double overlap, int64_t most);

}  // namespace tensormill::detect
