#include "server/detect/boxes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/narrow.h"

namespace tensormill::detect {

namespace {

constexpr std::array<std::pair<const char*, Form>, 8> kForms = {{{"auto", Form::kAuto},
                                                                 {"yolo", Form::kYolo},
                                                                 {"objectness", Form::kObjectness},
                                                                 {"rows", Form::kRows},
                                                                 {"class-first", Form::kClassFirst},
                                                                 {"batch-first", Form::kBatchFirst},
                                                                 {"tensors", Form::kTensors},
                                                                 {"counted", Form::kCounted}}};
/// Candidates that are looked at for overlaps: the rest is worse than all of them.
constexpr size_t kMaxCandidates = 30'000;

/// An output as a matrix: leading extents of 1 left out.
struct Matrix {
  Tensor values;
  int64_t rows = 0;
  int64_t columns = 1;
  double at(int64_t row, int64_t column) const { return values.element_as_double(row * columns + column); }
};

/// The extents without the ones in front, as far as `rank` of them stay.
std::optional<Matrix> matrix_of(const TensorView& view, size_t rank) {
  Shape shape = view.shape;
  while (shape.size() > rank && shape.front() == 1) shape.erase(shape.begin());
  if (shape.size() != rank || view.dtype == kString) return std::nullopt;
  Matrix matrix{Tensor(view.dtype, view.shape, nullptr, const_cast<void*>(view.data)), shape.front(), 1};
  if (rank == 2) matrix.columns = shape[1];
  return matrix;
}

bool is_class(double value) { return value >= 0 && value < 1e6 && value == std::floor(value); }
bool is_score(double value) { return value >= 0 && value <= 1; }

/// Whether each row has a score and a class in those columns; rows without a score are padding.
bool has_columns(const Matrix& matrix, int64_t score, int64_t kind) {
  for (int64_t row = 0; row < matrix.rows; ++row) {
    if (!is_score(matrix.at(row, score))) return false;
    if (matrix.at(row, score) > 0 && !is_class(matrix.at(row, kind)) && matrix.at(row, kind) != -1)
      return false;
  }
  return true;
}

Box box_from(const std::array<double, 4>& n, Corners corners) {
  switch (corners) {
    case Corners::kXyxy:
      return {n[0], n[1], n[2], n[3]};
    case Corners::kYxyx:
      return {n[1], n[0], n[3], n[2]};
    case Corners::kXywh:
      return {n[0], n[1], n[0] + n[2], n[1] + n[3]};
    case Corners::kCxcywh:
      return {n[0] - n[2] / 2, n[1] - n[3] / 2, n[0] + n[2] / 2, n[1] + n[3] / 2};
  }
  return {};
}

/// Adds a box that is one and is good enough.
void add(Box box, double score, double kind, const BoxOptions& options, std::vector<Box>& boxes) {
  const bool is_whole = std::isfinite(box.left) && std::isfinite(box.top) && std::isfinite(box.right) &&
                        std::isfinite(box.bottom) && box.right > box.left && box.bottom > box.top;
  if (!is_whole || !is_class(kind) || !(score >= options.threshold)) return;
  box.score = score;
  box.kind = static_cast<int64_t>(kind);
  boxes.push_back(box);
}

std::array<double, 4> numbers(const Matrix& matrix, int64_t row, int64_t first) {
  return {matrix.at(row, first), matrix.at(row, first + 1), matrix.at(row, first + 2),
          matrix.at(row, first + 3)};
}

std::vector<Box> from_rows(const Matrix& matrix, int64_t corner, int64_t score, int64_t kind,
                           const BoxOptions& options) {
  std::vector<Box> boxes;
  for (int64_t row = 0; row < matrix.rows; ++row) {
    add(box_from(numbers(matrix, row, corner), options.corners), matrix.at(row, score), matrix.at(row, kind),
        options, boxes);
  }
  return boxes;
}

/// A column is a candidate.
std::vector<Box> from_yolo(const Matrix& matrix, const BoxOptions& options) {
  std::vector<Box> boxes;
  for (int64_t a = 0; a < matrix.columns; ++a) {
    int64_t best = 4;
    for (int64_t c = 5; c < matrix.rows; ++c) {
      if (matrix.at(c, a) > matrix.at(best, a)) best = c;
    }
    const std::array<double, 4> box = {matrix.at(0, a), matrix.at(1, a), matrix.at(2, a), matrix.at(3, a)};
    add(box_from(box, Corners::kCxcywh), matrix.at(best, a), static_cast<double>(best - 4), options, boxes);
  }
  return boxes;
}

std::vector<Box> from_objectness(const Matrix& matrix, const BoxOptions& options) {
  std::vector<Box> boxes;
  for (int64_t row = 0; row < matrix.rows; ++row) {
    if (!(matrix.at(row, 4) >= options.threshold)) continue;
    int64_t best = 5;
    for (int64_t c = 6; c < matrix.columns; ++c) {
      if (matrix.at(row, c) > matrix.at(row, best)) best = c;
    }
    add(box_from(numbers(matrix, row, 0), Corners::kCxcywh), matrix.at(row, 4) * matrix.at(row, best),
        static_cast<double>(best - 5), options, boxes);
  }
  return boxes;
}

struct Parts {
  std::optional<Matrix> boxes, scores, kinds;
};

/// Boxes, scores and classes of three outputs: by their shapes, types and names.
Parts parts_of(const std::vector<NamedOutput>& outputs) {
  Parts parts;
  for (const NamedOutput& output : outputs) {
    const std::optional<Matrix> matrix = matrix_of(output.tensor, 2);
    if (matrix && matrix->columns == 4 && !parts.boxes) parts.boxes = matrix;
  }
  if (!parts.boxes) return parts;
  std::vector<std::pair<std::string, Matrix>> rest;
  for (const NamedOutput& output : outputs) {
    const std::optional<Matrix> matrix = matrix_of(output.tensor, 1);
    if (matrix && matrix->rows == parts.boxes->rows) rest.emplace_back(output.name, *matrix);
  }
  for (const auto& [name, matrix] : rest) {
    const bool is_named = name.find("class") != std::string::npos || name.find("label") != std::string::npos;
    if (!parts.kinds && (is_named || is_integer(matrix.values.dtype()))) {
      parts.kinds = matrix;
    } else if (!parts.scores) {
      parts.scores = matrix;
    }
  }
  return parts;
}

std::optional<std::vector<Box>> from_tensors(const std::vector<NamedOutput>& outputs,
                                             const BoxOptions& options) {
  const Parts parts = parts_of(outputs);
  if (!parts.boxes || !parts.scores) return std::nullopt;
  std::vector<Box> boxes;
  for (int64_t row = 0; row < parts.boxes->rows; ++row) {
    add(box_from(numbers(*parts.boxes, row, 0), options.corners), parts.scores->at(row, 0),
        parts.kinds ? parts.kinds->at(row, 0) : 0, options, boxes);
  }
  return boxes;
}

bool is_whole_throughout(const Matrix& matrix) {
  for (int64_t row = 0; row < matrix.rows; ++row)
    if (!is_class(matrix.at(row, 0))) return false;
  return true;
}

/// What TensorFlow's detectors end with: of two rows of numbers the classes are named so, or are whole, or
/// come first.
std::optional<std::vector<Box>> from_counted(const std::vector<NamedOutput>& outputs,
                                             const BoxOptions& options) {
  std::optional<Matrix> places, count;
  std::vector<std::pair<std::string, Matrix>> rows;
  for (const NamedOutput& output : outputs) {
    if (output.tensor.dtype != DType::kFloat32 || output.tensor.shape.size() > 3) return std::nullopt;
    const std::optional<Matrix> each = matrix_of(output.tensor, output.tensor.shape.size() == 3 ? 2 : 1);
    if (!each) return std::nullopt;
    if (output.tensor.shape.size() == 3 && each->columns == 4) {
      places = each;
    } else if (output.tensor.shape.size() == 2) {
      rows.emplace_back(output.name, *each);
    } else if (output.tensor.shape == Shape{1}) {
      count = each;
    }
  }
  const bool fits = outputs.size() == 4 && places && count && rows.size() == 2 &&
                    rows[0].second.rows == places->rows && rows[1].second.rows == places->rows &&
                    is_class(count->at(0, 0));
  if (!fits) return std::nullopt;
  const auto is_named = [](const std::string& name, const char* what) {
    return name.find(what) != std::string::npos;
  };
  const bool is_second = is_named(rows[1].first, "class") || is_named(rows[0].first, "score") ||
                         (!is_whole_throughout(rows[0].second) && is_whole_throughout(rows[1].second));
  const Matrix &kinds = rows[is_second ? 1 : 0].second, &scores = rows[is_second ? 0 : 1].second;
  std::vector<Box> boxes;
  for (int64_t row = 0; row < places->rows && static_cast<double>(row) < count->at(0, 0); ++row)
    add(box_from(numbers(*places, row, 0), Corners::kYxyx), scores.at(row, 0), kinds.at(row, 0), options,
        boxes);
  return boxes;
}

/// What an output's shape and values say.
Form form_of(const Matrix& matrix) {
  if (matrix.columns == 7 && has_columns(matrix, 6, 5)) return Form::kBatchFirst;
  if (matrix.columns == 6 && has_columns(matrix, 4, 5)) return Form::kRows;
  if (matrix.columns == 6 && has_columns(matrix, 1, 0)) return Form::kClassFirst;
  if (matrix.rows > 4 && matrix.rows < matrix.columns) return Form::kYolo;
  if (matrix.columns > 5 && matrix.columns <= matrix.rows) return Form::kObjectness;
  return Form::kAuto;
}

bool fits(const Matrix& matrix, Form form) {
  switch (form) {
    case Form::kYolo:
      return matrix.rows > 4;
    case Form::kObjectness:
      return matrix.columns > 5;
    case Form::kRows:
    case Form::kClassFirst:
      return matrix.columns == 6;
    case Form::kBatchFirst:
      return matrix.columns == 7;
    case Form::kAuto:
    case Form::kTensors:
    case Form::kCounted:
      return false;
  }
  return false;
}

/// The boxes of one output of the form, with overlaps where the form has them.
std::vector<Box> boxes_of(const Matrix& matrix, Form form, const BoxOptions& options) {
  if (form == Form::kYolo) return from_yolo(matrix, options);
  if (form == Form::kObjectness) return from_objectness(matrix, options);
  if (form == Form::kClassFirst) return from_rows(matrix, 2, 1, 0, options);
  if (form == Form::kBatchFirst) return from_rows(matrix, 1, 6, 5, options);
  return from_rows(matrix, 0, 4, 5, options);
}

[[noreturn]] void no_form(const std::vector<NamedOutput>& outputs) {
  std::string shapes;
  for (const NamedOutput& output : outputs)
    shapes += (shapes.empty() ? "" : ", ") + output.name + " " + to_string(output.tensor.shape);
  throw Error(ErrorCode::kInvalidTensor,
              "the outputs (" + shapes + ") have no form of boxes that is known here; --form names one");
}

/// Parts of the input's sides become pixels.
void to_pixels(const BoxOptions& options, std::vector<Box>& boxes) {
  constexpr double kMost = 1.5;  // a part may lie a little outside
  for (const Box& box : boxes) {
    if (std::max(std::abs(box.right), std::abs(box.bottom)) > kMost) return;
  }
  for (Box& box : boxes) {
    box.left *= static_cast<double>(options.width);
    box.right *= static_cast<double>(options.width);
    box.top *= static_cast<double>(options.height);
    box.bottom *= static_cast<double>(options.height);
  }
}

double overlap_of(const Box& a, const Box& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  const double both = width * height;
  const double all = (a.right - a.left) * (a.bottom - a.top) + (b.right - b.left) * (b.bottom - b.top) - both;
  return both / all;
}

}  // namespace

Form parse_form(const std::string& name) {
  for (const auto& [known, form] : kForms)
    if (name == known) return form;
  throw Error(ErrorCode::kUsage, "\"" + name + "\" is no form of boxes");
}

std::vector<std::string> form_names() {
  std::vector<std::string> names;
  for (const auto& row : kForms) names.emplace_back(row.first);
  return names;
}

std::vector<Box> suppress(const std::vector<Box>& boxes, double overlap, int64_t most) {
  std::vector<Box> kept;
  for (const Box& box : boxes) {
    if (static_cast<int64_t>(kept.size()) >= most) break;
    const bool is_covered = std::any_of(kept.begin(), kept.end(), [&](const Box& better) {
      return better.kind == box.kind && overlap_of(better, box) > overlap;
    });
    if (!is_covered) kept.push_back(box);
  }
  return kept;
}

std::vector<Box> find_boxes(const std::vector<NamedOutput>& outputs, const BoxOptions& options) {
  std::optional<std::vector<Box>> boxes;
  bool may_overlap = false;
  const bool is_auto = options.form == Form::kAuto;
  if (is_auto || options.form == Form::kCounted) boxes = from_counted(outputs, options);
  if (!boxes && (is_auto || options.form == Form::kTensors)) boxes = from_tensors(outputs, options);
  if (!boxes && options.form != Form::kTensors && options.form != Form::kCounted) {
    for (const NamedOutput& output : outputs) {
      const std::optional<Matrix> matrix = matrix_of(output.tensor, 2);
      if (!matrix) continue;
      const Form form = options.form == Form::kAuto ? form_of(*matrix) : options.form;
      if (!fits(*matrix, form)) continue;
      boxes = boxes_of(*matrix, form, options);
      may_overlap = form == Form::kYolo || form == Form::kObjectness;
      break;
    }
  }
  if (!boxes) no_form(outputs);
  to_pixels(options, *boxes);
  std::stable_sort(boxes->begin(), boxes->end(),
                   [](const Box& a, const Box& b) { return a.score > b.score; });
  if (boxes->size() > kMaxCandidates) boxes->resize(kMaxCandidates);
  return suppress(*boxes, may_overlap ? options.overlap : 1, options.most);
}

}  // namespace tensormill::detect
