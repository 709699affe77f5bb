// Operators of keras.ops that move elements, and what operators take.
#include <algorithm>

#include "compiler/build/moves/slices.h"
#include "compiler/frontend/keras/converters/operands.h"

namespace tensormill::frontend::keras {

namespace {

constexpr size_t kMostNumbers = size_t{1} << 20;

void collect_numbers(const LayerContext& context, const Json& json, std::vector<double>& values, Shape& shape,
                     size_t depth) {
  if (!json.is_array()) {
    if (!json.is_number() && !json.is_boolean())
      context.unsupported("argument", "what is no tensor or number is not implemented");
    values.push_back(json.is_boolean() ? json.get<bool>() : json.get<double>());
    if (values.size() > kMostNumbers) context.invalid("an argument has too many numbers");
    return;
  }
  if (shape.size() == depth) shape.push_back(static_cast<int64_t>(json.size()));
  if (shape[depth] != static_cast<int64_t>(json.size()))
    context.invalid("an argument is no rectangle of numbers");
  for (const Json& element : json) collect_numbers(context, element, values, shape, depth + 1);
}

bool is_real(const Json& json) {
  if (json.is_array()) return std::any_of(json.begin(), json.end(), is_real);
  return json.is_number_float();
}

bool is_tensor(const Json& json) { return json.is_object() && json.contains(kTensorMark); }

/// The wider of two types, real ones before integers.
DType wider(DType a, DType b) {
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  return dtype_bytes(a) >= dtype_bytes(b) && a != DType::kBool ? a : b;
}

}  // namespace

V operand_of(LayerContext& context, const Json& argument, V like) {
  if (is_tensor(argument)) return context.raw(argument.at(kTensorMark).get<size_t>());
  std::vector<double> values;
  Shape shape;
  collect_numbers(context, argument, values, shape, 0);
  DType dtype = is_real(argument) ? DType::kFloat32 : argument.is_boolean() ? DType::kBool : DType::kInt32;
  if (like != ir::kAbsent) dtype = context.type(like).dtype;
  return Compose(context).doubles(dtype, values, shape);
}

void fit_dtypes(LayerContext& context, std::vector<V>& operands, const std::vector<Json>& arguments,
                bool wants_float) {
  std::optional<DType> common;
  bool has_real = wants_float;
  for (size_t i = 0; i < operands.size(); ++i) {
    const DType own = context.type(operands[i]).dtype;
    if (!is_tensor(arguments[i]) && !arguments[i].is_array()) {
      has_real = has_real || is_float(own);
    } else {
      common = common ? wider(*common, own) : own;
    }
  }
  if (!common) common = context.type(operands.front()).dtype;
  if (has_real && !is_float(*common)) common = DType::kFloat32;
  for (V& operand : operands) operand = context.cast(operand, *common);
}

std::vector<V> fitted_operands(LayerContext& context, size_t count, bool wants_float) {
  std::vector<V> operands;
  std::vector<Json> arguments;
  for (size_t i = 0; i < count; ++i) {
    const Json& given = context.argument("x" + std::to_string(i + 1), i);
    if (given.is_null()) context.invalid("argument " + std::to_string(i) + " is missing");
    arguments.push_back(given);
    operands.push_back(operand_of(context, given, ir::kAbsent));
  }
  fit_dtypes(context, operands, arguments, wants_float);
  return operands;
}

void convert_transpose(LayerContext& context) {
  const V x = context.raw(0);
  std::vector<int64_t> perm;
  if (context.config().has("axes")) {
    for (const int64_t axis : context.config().list("axes"))
      perm.push_back(context.normalize_axis(axis, context.rank(x)));
  } else {
    for (int64_t axis = context.rank(x); axis-- > 0;) perm.push_back(axis);
  }
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) context.invalid("option axes is no permutation");
  }
  if (static_cast<int64_t>(perm.size()) != context.rank(x)) context.invalid("option axes is no permutation");
  context.set_output(Compose(context).transpose(x, perm));
}

void convert_swapaxes(LayerContext& context) {
  const V x = context.raw(0);
  Compose c(context);
  const int64_t rank = context.rank(x);
  ir::Ints perm = c.count_to(rank);
  const LayerConfig& config = context.config();
  if (context.class_name() == "Swapaxes") {
    std::swap(perm[static_cast<size_t>(context.normalize_axis(config.integer("axis1"), rank))],
              perm[static_cast<size_t>(context.normalize_axis(config.integer("axis2"), rank))]);
  } else {
    const ir::Ints from = config.list("source"), to = config.list("destination");
    if (from.size() != 1 || to.size() != 1)
      context.unsupported("option source", "several axes are not implemented");
    const int64_t axis = context.normalize_axis(from[0], rank);
    perm.erase(perm.begin() + axis);
    perm.insert(perm.begin() + context.normalize_axis(to[0], rank), axis);
  }
  context.set_output(c.transpose(x, perm));
}

void convert_reshape_operation(LayerContext& context) {
  const V x = context.raw(0);
  context.set_output(
      context.reshape(x, reshaped_to(context, context.shape(x), context.config().list("newshape"), 0)));
}

void convert_expand_dims(LayerContext& context) {
  const V x = context.raw(0);
  Compose c(context);
  ir::Ints axes = context.config().list("axis");
  const int64_t rank = context.rank(x) + static_cast<int64_t>(axes.size());
  for (int64_t& axis : axes) axis = context.normalize_axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  V y = x;
  for (const int64_t axis : axes) y = c.unsqueeze(y, axis);
  context.set_output(y);
}

void convert_squeeze(LayerContext& context) {
  V x = context.raw(0);
  Compose c(context);
  std::vector<int64_t> axes;
  if (context.config().has("axis")) {
    for (const int64_t axis : context.config().list("axis"))
      axes.push_back(context.normalize_axis(axis, context.rank(x)));
  } else {
    for (int64_t axis = 0; axis < context.rank(x); ++axis)
      if (same(c.shape(x)[static_cast<size_t>(axis)], 1)) axes.push_back(axis);
  }
  std::sort(axes.rbegin(), axes.rend());
  for (const int64_t axis : axes) {
    if (!demand(ir::Relation::kEqual, c.shape(x)[static_cast<size_t>(axis)], 1))
      context.invalid("axis " + std::to_string(axis) + " of " + to_string(c.shape(x)) + " is no single one");
    x = c.squeeze(x, axis);
  }
  context.set_output(x);
}

void convert_join(LayerContext& context) {
  std::vector<V> parts;
  std::vector<Json> arguments;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    parts.push_back(context.raw(i));
    arguments.push_back({{kTensorMark, i}});
  }
  if (parts.empty()) context.invalid("it has no inputs");
  fit_dtypes(context, parts, arguments, false);
  const int64_t axis = context.config().integer("axis", context.class_name() == "Stack" ? 0 : -1);
  if (context.class_name() != "Stack") return context.set_output(concatenated(context, parts, axis));
  Compose c(context);
  const int64_t at = context.normalize_axis(axis, context.rank(parts[0]) + 1);
  for (V& part : parts) part = c.unsqueeze(part, at);
  context.set_output(c.concat(parts, at));
}

void convert_split(LayerContext& context) {
  const V x = context.raw(0);
  Compose c(context);
  const int64_t axis = context.normalize_axis(context.config().integer("axis", 0), context.rank(x));
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
  const Json& parts = context.config().at("indices_or_sections");
  if (!extent.is_constant()) context.unsupported("input", "a free extent is not implemented");
  std::vector<int64_t> ends;
  if (parts.is_array()) {
    ends = context.config().list("indices_or_sections");
  } else {
    const int64_t count = context.config().integer("indices_or_sections");
    if (count < 1 || extent.hint() % count != 0)
      context.invalid(to_string(extent) + " elements in " + std::to_string(count) + " parts");
    for (int64_t i = 1; i < count; ++i) ends.push_back(extent.hint() / count * i);
  }
  ends.push_back(extent.hint());
  int64_t begin = 0;
  for (const int64_t end : ends) {
    if (end < begin || end > extent.hint()) context.invalid("a part ends at " + std::to_string(end));
    context.add_output(c.slice(x, axis, begin, end - begin));
    begin = end;
  }
}

void convert_tile(LayerContext& context) {
  V x = context.raw(0);
  Compose c(context);
  ir::Ints counts = context.config().list("repeats");
  for (const int64_t count : counts) {
    if (count < 0 || count > build::kMaxListed)
      context.invalid("it repeats " + std::to_string(count) + " times");
  }
  while (static_cast<int64_t>(counts.size()) < context.rank(x)) counts.insert(counts.begin(), 1);
  while (context.rank(x) < static_cast<int64_t>(counts.size())) x = c.unsqueeze(x, 0);
  context.set_output(context.add("tile", {x}, {{"repeats", counts}}));
}

void convert_repeat(LayerContext& context) {
  const LayerConfig& config = context.config();
  if (!config.has("axis") || config.at("repeats").is_array())
    context.unsupported("option repeats", "other than one number along an axis is not implemented");
  const V x = context.raw(0);
  Compose c(context);
  const int64_t axis = context.normalize_axis(config.integer("axis"), context.rank(x)),
                count = config.integer("repeats");
  if (count < 0 || count > build::kMaxListed)
    context.invalid("it repeats " + std::to_string(count) + " times");
  ir::SymShape shape = c.shape(x), wide = shape;
  wide.insert(wide.begin() + axis + 1, count);
  shape[static_cast<size_t>(axis)] = context.product(shape[static_cast<size_t>(axis)], count);
  context.set_output(c.reshape(c.expand(c.unsqueeze(x, axis + 1), wide), shape));
}

void convert_flip(LayerContext& context) {
  V x = context.raw(0);
  Compose c(context);
  std::vector<int64_t> axes;
  if (context.config().has("axis"))
    axes = context.config().list("axis");
  else
    axes = c.count_to(context.rank(x));
  for (const int64_t given : axes) {
    const int64_t axis = context.normalize_axis(given, context.rank(x));
    const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
    x = c.slice(x, axis, extent - 1, extent, -1);
  }
  context.set_output(x);
}

void convert_pad_operation(LayerContext& context) {
  const V x = context.raw(0);
  const size_t rank = static_cast<size_t>(context.rank(x));
  const Json& widths = context.config().at("pad_width");
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    const bool is_each =
        widths.is_array() && widths.size() == rank && !widths.empty() && widths[0].is_array();
    const ir::Ints own = integers_of(is_each ? widths[d] : widths, "option pad_width");
    if (own.size() > 2 || own.empty()) context.invalid("option pad_width is no pair an axis");
    pads[d] = own.front();
    pads[d + rank] = own.back();
  }
  if (std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad < 0 || pad > build::kMaxListed; }))
    context.invalid("option pad_width is out of range");
  const Json& value = context.argument("constant_values", 1);
  if (!value.is_null() && !value.is_number())
    context.unsupported("argument constant_values", "what is no number is not implemented");
  const std::string mode = context.config().text("mode", "constant");
  if (mode != "constant" && mode != "reflect")
    context.unsupported("option mode", "\"" + mode.substr(0, 100) + "\" is not implemented");
  context.set_output(context.add(
      "pad", {x}, {{"pads", pads}, {"mode", mode}, {"value", value.is_null() ? 0.0 : value.get<double>()}}));
}

void convert_broadcast_to(LayerContext& context) {
  ir::SymShape shape;
  for (const int64_t extent : context.config().list("shape")) shape.push_back(extent);
  context.set_output(Compose(context).expand(context.raw(0), shape));
}

void convert_one_hot(LayerContext& context) {
  const LayerConfig& config = context.config();
  config.skip("sparse");
  config.skip("dtype");
  Compose c(context);
  const V ends = c.doubles(DType::kFloat32, {0, 1}, {2});
  const int64_t count = config.integer("num_classes");
  if (count < 1 || count > build::kMaxListed)
    context.invalid("option num_classes is " + std::to_string(count));
  context.set_output(context.add("one_hot", {c.cast(context.raw(0), DType::kInt64), ends},
                                 {{"axis", config.integer("axis", -1)}, {"depth", count}}));
}

void convert_take(LayerContext& context) {
  const V x = context.raw(0);
  Compose c(context);
  if (!context.config().has("axis"))
    context.unsupported("option axis", "places of all elements are not implemented");
  const V places = operand_of(context, context.argument("indices", 1), ir::kAbsent);
  const int64_t axis = context.normalize_axis(context.config().integer("axis"), context.rank(x));
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
  const V wide = c.cast(places, DType::kInt64);
  // From the end, where they are negative.
  const V turned =
      c.where(c.binary("less", wide, c.number(wide, 0)), c.add(wide, c.extent(wide, extent)), wide);
  context.set_output(c.gather(x, turned, axis));
}

namespace {

/// One [start, stop, step] of an index; nothing is the whole axis.
V sliced(LayerContext& context, V x, int64_t axis, const Json& slice) {
  Compose c(context);
  if (!slice.contains("config") || !slice.at("config").is_object()) context.invalid("a slice has no bounds");
  const Json& bounds = slice.at("config");
  const auto bound = [&](const char* name) -> std::optional<int64_t> {
    if (!bounds.contains(name) || bounds.at(name).is_null()) return std::nullopt;
    if (!bounds.at(name).is_number_integer())
      context.unsupported("index", "bounds that are no numbers are not implemented");
    return std::clamp<int64_t>(bounds.at(name).get<int64_t>(), -build::kMostPlace, build::kMostPlace);
  };
  const int64_t step = bound("step").value_or(1);
  const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
  if (step == -1 && !bound("start") && !bound("stop")) return c.slice(x, axis, extent - 1, extent, -1);
  if (step < 1) context.unsupported("index", "a step of " + std::to_string(step) + " is not implemented");
  const auto stop = bound("stop");
  const build::AxisSlice part =
      build::slice_within(bound("start").value_or(0), stop ? ir::SymInt(*stop) : extent, step, extent);
  return c.slice(x, axis, part.start, part.extent, part.step);
}

bool is_marked(const Json& json, const char* name) {
  return json.is_object() && json.contains("class_name") && json.at("class_name") == name;
}

}  // namespace

void convert_get_item(LayerContext& context) {
  V x = context.raw(0);
  Compose c(context);
  const Json& given = context.argument("key", 1);
  const Json index = given.is_array() ? given : Json::array({given});
  int64_t named = 0;
  for (const Json& each : index) named += each.is_null() || is_marked(each, "__ellipsis__") ? 0 : 1;
  if (named > context.rank(x))
    context.invalid("an index of " + std::to_string(named) + " axes for " + to_string(c.shape(x)));
  const int64_t left_out = context.rank(x) - named;
  int64_t axis = 0;
  for (const Json& each : index) {
    if (each.is_null()) {
      x = c.unsqueeze(x, axis++);
    } else if (is_marked(each, "__ellipsis__")) {
      axis += left_out;
    } else if (is_marked(each, "__slice__")) {
      x = sliced(context, x, axis++, each);
    } else if (each.is_number_integer()) {
      const ir::SymInt extent = c.shape(x)[static_cast<size_t>(axis)];
      const auto at = each.get<int64_t>();
      const ir::SymInt place = at < 0 ? extent + at : ir::SymInt(at);
      if (!demand(ir::Relation::kLessEqual, 0, place) || !demand(ir::Relation::kLess, place, extent))
        context.invalid("index " + std::to_string(at) + " of an axis of " + to_string(extent));
      x = c.squeeze(c.slice(x, axis, place, 1), axis);
    } else {
      context.unsupported("index", "what is no number or slice is not implemented");
    }
  }
  context.set_output(x);
}

}  // namespace tensormill::frontend::keras
