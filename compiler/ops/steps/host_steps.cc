/// find_nonzero, compress, select_boxes, distinct, take_first, trim: results whose extent depends on data, at
/// the largest extent that the inputs' shapes allow; couple_pairs, roi_align, fourier, pictures.
#include "compiler/ops/steps/host_steps.h"

#include <algorithm>
#include <array>

#include "compiler/ir/branches.h"
#include "compiler/ir/loops.h"
#include "compiler/ops/reference_util.h"
#include "compiler/ops/type_rules.h"
#include "runtime/base/json.h"

namespace tensormill::ops {

void run_host(host_ops::HostFunction function, const ir::ReferenceContext& context) {
  std::vector<TensorView> inputs;
  for (const Tensor* input : context.inputs)
    inputs.push_back({input->dtype(), input->shape(), input->data()});
  std::vector<void*> outputs;
  std::vector<size_t> bytes;
  for (Tensor* output : context.outputs) {
    outputs.push_back(output->data());
    bytes.push_back(output->num_bytes());
  }
  const std::string attributes = host_attributes(context.attrs);
  function({inputs, outputs, bytes, attributes});
}

namespace {

void run_host(std::string_view name, const ir::ReferenceContext& context) {
  ops::run_host(host_ops::find_host_op(name), context);
}

ir::ValueType count_type() { return made_type(DType::kInt64, {1}); }

std::vector<ir::ValueType> infer_nonzero(const ir::InferContext& context) {
  const ir::SymShape& shape = input_of(context, 0, kAnyType).shape;
  const int64_t rank = std::max<int64_t>(1, static_cast<int64_t>(shape.size()));
  return {made_type(DType::kInt64, {rank, num_elements(shape)}), count_type()};
}

std::vector<ir::ValueType> infer_compress(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const ir::ValueType& condition = input_of(context, 1, kBools);
  if (condition.shape.size() != 1) fail("the condition has shape " + to_string(condition.shape));
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), x.shape.size());
  ir::SymShape out = x.shape;
  out[axis] = min(out[axis], condition.shape[0]);
  return {made_type(x.dtype, out), count_type()};
}

std::vector<ir::ValueType> infer_boxes(const ir::InferContext& context) {
  const ir::SymShape& boxes = input_of(context, 0, set_of(DType::kFloat32)).shape;
  const ir::SymShape& scores = input_of(context, 1, set_of(DType::kFloat32)).shape;
  const std::string found = "boxes are " + to_string(boxes) + ", scores " + to_string(scores);
  if (boxes.size() != 3 || scores.size() != 3) fail(found + "; expected [batch,n,4] and [batch,classes,n]");
  if (boxes[2] != 4) fail(found + "; expected 4 sides of a box");
  if (boxes[0] != scores[0]) fail(found + "; expected pictures for pictures");
  if (boxes[1] != scores[2]) fail(found + "; expected a score for each box");
  if (context.inputs.size() > 2) {
    const ir::SymShape& limits = input_of(context, 2, set_of(DType::kFloat64)).shape;
    if (limits != ir::SymShape{2} && limits != ir::SymShape{3})
      fail("the limits have shape " + to_string(limits));
  }
  static_cast<void>(attr_float(context.attrs, "iou_threshold", 0));
  static_cast<void>(attr_int(context.attrs, "center_form"));
  const int64_t most = attr_int(context.attrs, "max_per_class");
  const ir::SymInt most_kept = std::max<int64_t>(most, 0);
  const ir::SymInt kept = min(most_kept, boxes[1]);
  return {made_type(DType::kInt64, {scores[0] * scores[1] * kept, 3}), count_type()};
}

std::vector<ir::ValueType> infer_suppressed(const ir::InferContext& context) {
  const ir::SymShape& boxes = input_of(context, 0, set_of(DType::kFloat32)).shape;
  const ir::SymShape& scores = input_of(context, 1, set_of(DType::kFloat32)).shape;
  const int64_t most = attr_int(context.attrs, "most");
  if (boxes.size() != 2 || scores.size() != 2 || boxes[1] != 4 || boxes[0] != scores[1])
    fail("boxes are " + to_string(boxes) + ", scores " + to_string(scores) +
         "; expected [n,4] and [classes,n]");
  if (input_of(context, 2, set_of(DType::kFloat64)).shape != ir::SymShape{4})
    fail("the limits have shape " + to_string(input(context, 2).shape));
  if (most < 0) fail("attribute most is " + std::to_string(most));
  return {made_type(DType::kInt32, {scores[0], most}), made_type(DType::kFloat32, {scores[0], most}),
          made_type(DType::kInt32, {scores[0]})};
}

std::vector<ir::ValueType> infer_kept(const ir::InferContext& context) {
  const ir::SymShape& boxes = input_of(context, 0, set_of(DType::kFloat32)).shape;
  const ir::SymShape& scores = input_of(context, 1, set_of(DType::kFloat32)).shape;
  const std::string found = "boxes are " + to_string(boxes) + ", scores " + to_string(scores);
  if (boxes.size() != 3 || scores.size() != 2 || boxes[2] != 4)
    fail(found + "; expected [rows,n,4] and [rows,n]");
  if (boxes[0] != scores[0] || boxes[1] != scores[1]) fail(found + "; expected a score for each box");
  if (input_of(context, 2, set_of(DType::kFloat64)).shape != ir::SymShape{4})
    fail("the limits have shape " + to_string(input(context, 2).shape));
  if (context.inputs.size() > 3 && input_of(context, 3, set_of(DType::kInt64)).shape != scores)
    fail("the groups have shape " + to_string(input(context, 3).shape) + ", the scores " + to_string(scores));
  return {made_type(DType::kBool, scores)};
}

std::vector<ir::ValueType> infer_distinct(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), x.shape.size());
  if (context.inputs.size() > 1 && !(input(context, 1) == count_type())) fail("input 1 is no count");
  static_cast<void>(attr_int(context.attrs, "sorted"));
  static_cast<void>(attr_int(context.attrs, "nans_apart", 0));
  const ir::ValueType each = made_type(DType::kInt64, {x.shape[axis]});
  return {made_type(x.dtype, x.shape), each, each, each, count_type()};
}

std::vector<ir::ValueType> infer_path(const ir::InferContext& context) {
  const ir::SymShape& shape = input_of(context, 0, set_of(DType::kFloat32)).shape;
  if (shape.size() != 2) fail("the costs have shape " + to_string(shape));
  return {made_type(DType::kInt32, {2, max(shape[0] + shape[1] - 1, 0)}), count_type()};
}

std::vector<ir::ValueType> infer_trim(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  const ir::Ints axes = attr_ints(context.attrs, "axes");
  if (axes.empty() || axes.size() + 1 != context.inputs.size())
    fail(std::to_string(context.inputs.size()) + " inputs for " + std::to_string(axes.size()) + " axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!(input(context, i + 1) == count_type())) fail("input " + std::to_string(i + 1) + " is no count");
    normal_axis(axes[i], x.shape.size());
  }
  return {made_type(x.dtype, x.shape)};
}

std::vector<ir::ValueType> infer_take_first(const ir::InferContext& context) {
  const ir::ValueType& x = input(context, 0);
  if (!(input(context, 1) == count_type())) fail("input 1 is no count");
  normal_axis(attr_int(context.attrs, "axis"), x.shape.size());
  return {made_type(x.dtype, x.shape), count_type()};
}

std::vector<ir::ValueType> infer_append(const ir::InferContext& context) {
  const ir::ValueType &x = input(context, 0), &part = input_like_first(context, 2);
  if (!(input(context, 1) == count_type())) fail("input 1 is no count");
  const size_t axis = normal_axis(attr_int(context.attrs, "axis"), x.shape.size());
  ir::SymShape like = part.shape;
  if (like.size() == x.shape.size()) like[axis] = x.shape[axis];
  if (like != x.shape) fail("x has shape " + to_string(x.shape) + ", the part " + to_string(part.shape));
  return {made_type(x.dtype, x.shape)};
}

std::vector<ir::ValueType> infer_couple(const ir::InferContext& context) {
  const ir::SymShape& shape = input_of(context, 0, set_of(DType::kFloat32)).shape;
  int64_t classes = 2;
  while (shape.size() == 2 && classes * (classes - 1) / 2 < shape[1]) ++classes;
  if (shape.size() != 2 || classes * (classes - 1) / 2 != shape[1])
    fail("shape " + to_string(shape) + " has no column a pair of classes");
  return {made_type(DType::kFloat32, {shape[0], classes})};
}

std::vector<ir::ValueType> infer_fourier(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, set_of(DType::kFloat32) | set_of(DType::kFloat64));
  const ir::SymShape& window = input_like_first(context, 1).shape;
  static_cast<void>(attr_int(context.attrs, "inverse"));
  const bool hermitian = attr_int(context.attrs, "hermitian") != 0;
  const bool has_parts = x.shape.size() > 1 &&
                         demand(ir::Relation::kLessEqual, hermitian ? 2 : 1, x.shape.back()) &&
                         demand(ir::Relation::kLessEqual, x.shape.back(), 2);
  if (!has_parts || window.size() != 1)
    fail("x is " + to_string(x.shape) + ", the window " + to_string(window) +
         "; expected [..., m, 1 or 2] and [n]");
  if (context.inputs.size() > 2 && !(input(context, 2) == count_type())) fail("input 2 is no count");
  if (attr_int(context.attrs, "axis") + 2 != static_cast<int64_t>(x.shape.size()))
    fail("attribute axis is not the last but one of " + to_string(x.shape));
  ir::SymShape result = x.shape;
  result[result.size() - 2] = window[0];
  result.back() = hermitian ? 1 : 2;
  return {made_type(x.dtype, result)};
}

std::vector<ir::ValueType> infer_roi_pool(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, set_of(DType::kFloat32) | set_of(DType::kFloat64));
  const ir::SymShape &boxes = input_like_first(context, 1).shape,
                     &pictures = input_of(context, 2, set_of(DType::kInt64)).shape;
  const int64_t height = attr_int(context.attrs, "height"), width = attr_int(context.attrs, "width");
  if (x.shape.size() != 4 || boxes.size() != 2 || !demand(ir::Relation::kEqual, boxes[1], 4) ||
      !demand_equal(pictures, {boxes[0]}))
    fail("x is " + to_string(x.shape) + ", boxes are " + to_string(boxes) + ", their pictures " +
         to_string(pictures) + "; expected [n,c,h,w], [m,4] and [m]");
  const auto has_elements = [&](size_t axis) { return demand(ir::Relation::kLessEqual, 1, x.shape[axis]); };
  if (!has_elements(2) || !has_elements(3) || height < 1 || width < 1)
    fail("pictures of " + to_string(x.shape) + " have no " + std::to_string(height) + " by " +
         std::to_string(width) + " bins");
  static_cast<void>(attr_float(context.attrs, "spatial_scale", 1));
  return {made_type(x.dtype, {boxes[0], x.shape[1], height, width})};
}

std::vector<ir::ValueType> infer_roi_align(const ir::InferContext& context) {
  for (const char* flag : {"is_max", "half_pixel"}) static_cast<void>(attr_int(context.attrs, flag));
  return infer_roi_pool(context);
}

/// The file of a picture.
void check_file(const ir::InferContext& context) {
  const ir::SymShape& file = input_of(context, 0, set_of(DType::kUInt8)).shape;
  if (file.size() != 1) fail("the file has shape " + to_string(file));
}

std::vector<ir::ValueType> infer_picture_extents(const ir::InferContext& context) {
  check_file(context);
  return {made_type(DType::kInt64, {2})};
}

std::vector<ir::ValueType> infer_picture(const ir::InferContext& context) {
  check_file(context);
  const ir::ValueType& canvas = input_of(context, 1, set_of(DType::kUInt8));
  if (canvas.shape.size() != 3 || (canvas.shape[2] != 1 && canvas.shape[2] != 3))
    fail("the canvas has shape " + to_string(canvas.shape));
  static_cast<void>(attr_int(context.attrs, "reversed"));
  return {canvas};
}

std::vector<ir::ValueType> infer_require(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kNumeric);
  const ir::ValueType& holds = input_of(context, 1, kBools);
  static_cast<void>(attr_string(context.attrs, "what", ""));
  static_cast<void>(attr_int(context.attrs, "of_extents", 0));
  if (num_elements(x.shape) != 1 || num_elements(holds.shape) != 1)
    fail("x is " + to_string(x.shape) + ", the condition " + to_string(holds.shape) +
         "; expected one element");
  for (size_t i = 2; i < context.inputs.size(); ++i) static_cast<void>(input_of(context, i, kNumeric));
  return {x};
}

std::vector<ir::ValueType> infer_running(const ir::InferContext& context) {
  const ir::ValueType& x = input_of(context, 0, kFloats | kWideInts);
  normal_axis(attr_int(context.attrs, "axis"), x.shape.size());
  for (const char* name : {"product", "exclusive", "reverse"})
    static_cast<void>(attr_int(context.attrs, name));
  return {x};
}

/// The axes of a value that data decides about are no more than those of the largest rank.
constexpr int kMaxTrimmed = 32;
/// Numbers that an error names.
constexpr int kMaxErrorNumbers = 4;

/// An operator that a host function runs, for the reference too.
struct HostStep {
  std::string_view name;
  int inputs = 1, optional = 0;
  std::vector<ir::ValueType> (*infer)(const ir::InferContext&) = nullptr;
  void (*reference)(const ir::ReferenceContext&) = nullptr;
  std::string_view doc;
};

/// A name as a template's argument, so that each row has a reference of its own.
template <size_t kLength>
struct StepName {
  constexpr StepName(const char (&name)[kLength]) { std::copy_n(name, kLength, text); }
  char text[kLength] = {};
};

template <StepName kName>
constexpr HostStep step(int inputs, std::vector<ir::ValueType> (*infer)(const ir::InferContext&),
                        std::string_view doc, int optional = 0) {
  return {kName.text,
          inputs,
          optional,
          infer,
          [](const ir::ReferenceContext& context) { run_host(kName.text, context); },
          doc};
}

ir::OpDef def_of(const HostStep& step) {
  ir::OpDef def;
  def.name = step.name;
  def.min_inputs = step.inputs - step.optional;
  def.max_inputs = step.inputs;
  def.infer = step.infer;
  def.reference = step.reference;
  def.doc = step.doc;
  return def;
}

}  // namespace

namespace {

/// A loop's results: those that the last iteration leaves, those of all iterations, and the count.
std::vector<std::optional<size_t>> stacked_axes(const ir::Node& node) {
  std::vector<std::optional<size_t>> axes(node.outputs.size());
  std::fill(axes.begin() + node.attrs.int_of("carried"), axes.end() - 1, 0);
  return axes;
}

}  // namespace

std::vector<std::optional<size_t>> data_axes(const ir::Node& node) {
  const auto axis = [&] { return static_cast<size_t>(node.attrs.int_of("axis")); };
  if (node.op == "find_nonzero" || node.op == "warping_path") return {1, std::nullopt};
  if (node.op == "select_boxes") return {0, std::nullopt};
  if ((node.op == "normalize_text" || node.op == "split_text") && node.attrs.has("keeps_all")) return {};
  if (node.op == "compress" || node.op == "normalize_text" || node.op == "take_first" ||
      node.op == "tokenize_text")
    return {axis(), std::nullopt};
  if (node.op == "split_text") return {axis(), std::nullopt, std::nullopt};
  if (node.op == "distinct") return {axis(), 0, std::nullopt, 0, std::nullopt};
  if (node.op == ir::kLoopEnd && node.attrs.int_of("counted") != 0) return stacked_axes(node);
  return {};
}

namespace {

/// Whether of a recurrent layer's operands only those with a row of the batch each have the axis.
bool rows_alone(const ir::Node& node, const std::vector<std::optional<size_t>>& axes) {
  const size_t states = node.attrs.string_of("kind") == "lstm" ? 2 : 1;
  const bool has_lengths = node.attrs.int_of("lengths") != 0;
  for (size_t i = 1; i < axes.size(); ++i) {
    const bool is_state = i >= 2 && i < 2 + states, is_lengths = has_lengths && i + 1 == axes.size();
    if (axes[i] && !(is_state && axes[i] == size_t{1}) && !(is_lengths && axes[i] == size_t{0})) return false;
  }
  return true;
}

}  // namespace

std::optional<size_t> element_axis(const ir::Node& node, const std::vector<std::optional<size_t>>& axes) {
  constexpr std::array<std::string_view, 13> kSteps = {
      "equal_text",        "find_text",        "join_text",        "match_text",  "numbers_from_text",
      "text_from_numbers", "change_text",      "replace_text",     "text_length", "part_of_text",
      "hash_text",         "special_function", "letters_of_points"};
  constexpr std::array<std::string_view, 4> kMatrixSteps = {"determinants", "solve_matrices",
                                                            "solve_triangles", "cholesky_factors"};
  const auto is_all = [&](size_t from, size_t axis) {
    return std::all_of(axes.begin() + static_cast<std::ptrdiff_t>(from), axes.end(),
                       [&](const std::optional<size_t>& each) { return !each || *each == axis; });
  };
  const auto is_other_axis = [&] {
    const std::optional<size_t>& own = axes[0];
    return own && is_all(1, *own) && *own != static_cast<size_t>(node.attrs.int_of("axis")) ? own
                                                                                            : std::nullopt;
  };
  if (node.op == "sort_positions") return is_other_axis();
  if (node.op == "scatter") return axes[1] && axes[2] ? is_other_axis() : std::nullopt;
  if (std::find(kMatrixSteps.begin(), kMatrixSteps.end(), node.op) != kMatrixSteps.end()) {
    const bool is_of_each =
        std::all_of(axes.begin(), axes.end(), [](const auto& each) { return each == size_t{0}; });
    return is_of_each ? axes[0] : std::nullopt;
  }
  if (node.op == "couple_pairs") return axes[0] == size_t{0} ? axes[0] : std::nullopt;
  if (node.op == "fourier") {
    // Lines stand alone; how far a line counts is not said.
    const auto along = static_cast<size_t>(node.attrs.int_of("axis"));
    return axes[0] && !axes[1] && *axes[0] < along ? axes[0] : std::nullopt;
  }
  if (node.op == "roi_align" || node.op == "roi_pool")
    return !axes[0] && is_all(1, 0) ? std::optional<size_t>(0) : std::nullopt;
  if (node.op == "recurrent") return axes[0] == size_t{1} && rows_alone(node, axes) ? axes[0] : std::nullopt;
  const bool is_step = std::find(kSteps.begin(), kSteps.end(), node.op) != kSteps.end();
  return is_step && axes[0] && is_all(1, *axes[0]) ? axes[0] : std::nullopt;
}

std::optional<size_t> operand_in_place(const ir::Node& node) {
  return node.op == "append" ? std::optional<size_t>(0) : std::nullopt;
}

bool is_read(const std::string& attribute) {
  constexpr std::array<std::string_view, 7> kNotes = {"k",      "trips",         "counted",      "spare",
                                                      "result", ir::kThenBranch, ir::kElseBranch};
  return std::find(kNotes.begin(), kNotes.end(), attribute) == kNotes.end();
}

std::string host_attributes(const ir::Attrs& attrs) {
  Json json = Json::object();
  for (const auto& [name, value] : attrs.all()) {
    if (!is_read(name)) continue;
    if (const auto* integer = std::get_if<int64_t>(&value)) json[name] = *integer;
    if (const auto* real = std::get_if<double>(&value)) json[name] = *real;
    if (const auto* text = std::get_if<std::string>(&value)) json[name] = *text;
    if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) json[name] = *integers;
  }
  return canonical_json(json);
}

namespace {

constexpr HostStep kHostSteps[] = {
    step<"find_nonzero">(
        1, &infer_nonzero,
        "positions (i64 [rank, elements]) of the elements that are not zero, and their count (i64 [1])"),
    step<"compress">(2, &infer_compress,
                     "slices of x along attribute axis (int) where the condition (bool [m]) holds, and their "
                     "count"),
    step<"select_boxes">(
        3, &infer_boxes,
        "greedy non-maximum suppression of boxes [batch,n,4] with scores [batch,classes,n]: rows of batch, "
        "class, box (i64), and their count; attributes max_per_class, center_form (ints), iou_threshold, "
        "score_threshold (floats; the latter optional), or, where a run has them, limits (input 2, f64 [2] "
        "or [3], optional): as many of each class at most, and the thresholds",
        1),
    step<"suppress_boxes">(
        3, &infer_suppressed,
        "of boxes [n,4] with scores [classes,n] those of each class that stay (i32 [classes,most]), their "
        "scores, how many they are (i32 [classes]), zeros behind them; limits (f64 [4]): their number, the "
        "overlap from which on a worse box is dropped, the score to be above, and the sigma of what a box "
        "loses of its score by an overlap below that (0: nothing); attribute most (int)"),
    step<"keep_boxes">(
        4, &infer_kept,
        "which of boxes [rows,n,4] with scores [rows,n] stay (bool [rows,n]); limits (f64 [4]) as "
        "suppress_boxes has them, with a sigma of 0; a box goes for a better one of its group (i64 "
        "[rows,n], optional) alone",
        1),
    step<"distinct">(
        2, &infer_distinct,
        "the distinct slices of x, or of its first `count` (input 1, optional), along attribute "
        "axis (int), where each stands first, which of them each slice is, how often each is "
        "there (i64 [extent]), and their count; attributes sorted (int): in rising order, nans_apart "
        "(int, optional): no NaN equals another one",
        1),
    step<"trim">(kMaxTrimmed + 1, &infer_trim,
                 "the first elements of x along each of attribute axes (ints), close together: as many as "
                 "the input behind x that belongs to the axis says",
                 kMaxTrimmed - 1),
    step<"take_first">(2, &infer_take_first,
                       "x with zeros in place of all but the first n (input 1, i64 [1]) elements along "
                       "attribute axis (int), and their count: n within [0, extent]"),
    step<"append">(3, &infer_append,
                   "x with a part (input 2) in place of its elements from n (input 1, i64 [1]) on along "
                   "attribute axis (int), as far as x reaches"),
    step<"couple_pairs">(1, &infer_couple,
                         "probabilities (f32 [n,classes]) from those of the first of each two classes (f32 "
                         "[n,pairs])"),
    step<"fourier">(3, &infer_fourier,
                    "the discrete Fourier transform of the first n elements of each line of x [..., m, 1 or "
                    "2] (f32, f64), times a window [n]: [..., n, 2]; attributes axis (int, the last but "
                    "one), inverse, hermitian (ints): 1 for the inverse, over n, and for a line whose rest "
                    "are conjugates, with a real result [..., n, 1]; a count (i64 [1], optional) is the "
                    "length in place of n, zeros behind it",
                    1),
    step<"roi_align">(
        3, &infer_roi_align,
        "x [n,c,h,w] (f32, f64) in boxes [m,4] of its type, each of a picture (i64 [m]), pooled "
        "to [m,c,height,width] by as many bilinear points a bin as it has pixels; attributes "
        "height, width, is_max, half_pixel (ints), spatial_scale (float)"),
    step<"roi_pool">(
        3, &infer_roi_pool,
        "the same operands, pooled by the largest pixel of each bin, 0 where it has none; boxes are "
        "rounded to pixels; attributes height, width (ints), spatial_scale (float)"),
    step<"require">(2 + kMaxErrorNumbers, &infer_require,
                    "x, of one element; where the condition (bool [1]) does not hold, the error of attribute "
                    "what (string), in which the numbers behind it (inputs 2 ..., optional), or else x, "
                    "stand for each \"{}\"",
                    kMaxErrorNumbers),
    step<"warping_path">(
        1, &infer_path,
        "rows and columns (i32 [2, rows + columns - 1]) of the cells of the cheapest path through costs (f32 "
        "[rows, columns]) from the first cell to the last, and their count (i64 [1])"),
    step<"picture_extents">(
        1, &infer_picture_extents,
        "the height and the width (i64 [2]) of the picture whose file is x (u8 [n]); zeros for a "
        "file that cannot be decoded"),
    step<"decode_picture">(
        2, &infer_picture,
        "a canvas (input 1, u8 [h,w,1 or 3]) with the picture whose file is x (u8 [n]) at its "
        "first rows and columns, as far as it reaches; attribute reversed (int): 1 for blue first"),
    step<"running_totals">(
        1, &infer_running,
        "cumsum, or cumprod where attribute product (int) is 1, in time that is linear in the "
        "extent; attributes axis, exclusive, reverse (ints)")};

}  // namespace

namespace host_step_ops {

std::vector<ir::OpDef> family();

std::vector<ir::OpDef> family() {
  std::vector<ir::OpDef> defs;
  for (const HostStep& step : kHostSteps) defs.push_back(def_of(step));
  return defs;
}

}  // namespace host_step_ops

}  // namespace tensormill::ops
