// ai.onnx.ml: labels and categories, integers, numbers or strings.
#include <algorithm>
#include <cmath>

#include "compiler/build/compose.h"
#include "compiler/build/text/lookup.h"
#include "compiler/frontend/onnx/converters/control/map_parts.h"
#include "compiler/frontend/onnx/converters/ml/ml.h"
#include "compiler/frontend/onnx/converters/ml/text.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::onnx {

namespace {

using V = ir::ValueId;

/// A list of keys or values of one type.
struct Labels {
  DType dtype = DType::kInt64;
  std::vector<std::string> texts;
  std::vector<double> numbers;
  std::vector<int64_t> integers;

  int64_t count() const {
    return static_cast<int64_t>(std::max({texts.size(), numbers.size(), integers.size()}));
  }
};

Labels tensor_labels(const NodeContext& context, const std::string& name) {
  const Tensor tensor = context.any_tensor_attr(name.c_str());
  Labels labels;
  labels.dtype = tensor.dtype();
  if (tensor.dtype() == kString) {
    const Texts texts({tensor.dtype(), tensor.shape(), tensor.data()});
    for (int64_t i = 0; i < texts.count(); ++i) labels.texts.emplace_back(texts[i]);
    return labels;
  }
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (is_float(tensor.dtype())) {
      labels.numbers.push_back(tensor.element_as_double(i));
    } else {
      labels.integers.push_back(tensor.element_as_int(i));
    }
  }
  return labels;
}

/// Attribute PREFIX_strings, PREFIX_int64s, PREFIX_floats or PREFIX_tensor.
Labels list_of(const NodeContext& context, const std::string& prefix) {
  const auto has = [&](const char* suffix) { return context.has_attr((prefix + suffix).c_str()); };
  Labels labels;
  if (has("_strings")) {
    labels.dtype = kString;
    labels.texts = text_values(context, (prefix + "_strings").c_str());
  } else if (has("_int64s")) {
    labels.integers = context.ints_attr((prefix + "_int64s").c_str(), {});
  } else if (has("_floats")) {
    labels.dtype = DType::kFloat32;
    labels.numbers = float_values(context, (prefix + "_floats").c_str());
  } else if (has("_tensor")) {
    return tensor_labels(context, prefix + "_tensor");
  } else {
    context.invalid("attribute " + prefix + "_strings, _int64s, _floats or _tensor is missing");
  }
  return labels;
}

/// Adds what stands for a key that is not there.
void add_default(const NodeContext& context, Labels& values) {
  if (context.has_attr("default_tensor")) {
    const Labels own = tensor_labels(context, "default_tensor");
    if (own.dtype != values.dtype || own.count() != 1) context.invalid("default_tensor is no value");
    values.texts.insert(values.texts.end(), own.texts.begin(), own.texts.end());
    values.numbers.insert(values.numbers.end(), own.numbers.begin(), own.numbers.end());
    values.integers.insert(values.integers.end(), own.integers.begin(), own.integers.end());
  } else if (values.dtype == kString) {
    values.texts.push_back(context.string_attr("default_string", "_Unused"));
  } else if (is_float(values.dtype)) {
    values.numbers.push_back(context.float_attr("default_float", -0.0));
  } else {
    values.integers.push_back(context.int_attr("default_int64", -1));
  }
}

V constant_of(NodeContext& context, const Labels& labels) {
  Compose c(context);
  if (labels.dtype == kString) return text_constant(context, labels.texts);
  if (is_float(labels.dtype)) return c.doubles(labels.dtype, labels.numbers, {labels.count()});
  return c.cast(c.ints(labels.integers, {labels.count()}), labels.dtype);
}

/// The position of each element of x among the keys, the first of equals; their number where it is none.
V positions_of(NodeContext& context, V x, const Labels& keys) {
  Compose c(context);
  const int64_t count = keys.count();
  if (is_text(context, x) != (keys.dtype == kString))
    context.invalid("the keys are of another type than the input");
  if (keys.dtype == kString) return build::found_string(context, x, keys.texts);
  if (!is_float(keys.dtype)) return build::found_integer(context, x, keys.integers);
  const int64_t axis = context.rank(x);
  const V seen = c.unsqueeze(c.cast(x, keys.dtype), axis);
  const V all = constant_of(context, keys);
  V same = c.binary("equal", seen, all);
  // What is no number is a key, too.
  if (std::any_of(keys.numbers.begin(), keys.numbers.end(), [](double key) { return std::isnan(key); }))
    same = c.binary("or", same, c.binary("and", c.unary("is_nan", seen), c.unary("is_nan", all)));
  const V equal = c.cast(same, DType::kInt32);
  const V known = c.cast(c.reduce("reduce_max", equal, {axis}, false), DType::kBool);
  return c.where(known, c.arg_max(equal, axis, false), c.dims({count}, {}));
}

/// Each element's value; `values` has one more than there are keys.
V mapped(NodeContext& context, V x, const Labels& keys, const Labels& values) {
  if (keys.count() == 0 || keys.count() + 1 != values.count())
    context.invalid("there are " + std::to_string(keys.count()) + " keys, and another number of values");
  return Compose(context).gather(constant_of(context, values), positions_of(context, x, keys), 0);
}

Labels count_to(int64_t count) {
  Labels labels;
  for (int64_t i = 0; i < count; ++i) labels.integers.push_back(i);
  return labels;
}

}  // namespace

ClassLabels class_labels(NodeContext& context, const char* integers, const char* strings) {
  const ir::CheckedList<std::string> texts = text_values(context, strings);
  if (!texts.empty()) return {static_cast<int64_t>(texts.size()), text_constant(context, texts)};
  const ir::Ints labels = context.ints_attr(integers, {});
  if (labels.empty()) context.invalid(std::string("attribute ") + integers + " is missing");
  const int64_t count = static_cast<int64_t>(labels.size());
  return {count, Compose(context).ints(labels, {count})};
}

void convert_ml_one_hot(NodeContext& context) {
  Compose c(context);
  V x = context.input(0);
  ir::Ints categories = context.ints_attr("cats_int64s", {});
  if (is_text(context, x)) {
    const SortedTexts sorted = sorted_texts(text_values(context, "cats_strings"));
    categories = sorted.place;
    x = found_text(context, x, sorted);
  }
  if (categories.empty()) context.invalid("has no categories of the input's type");
  x = c.cast(x, DType::kInt64);
  const V table = c.ints(categories, {static_cast<int64_t>(categories.size())});
  const V hot = c.binary("equal", c.unsqueeze(x, context.rank(x)), table);
  context.set_output(0, c.cast(hot, DType::kFloat32));
}

// Labels to labels by a table; what is not in it becomes the default. The first version has a list of
// strings, and maps from them to their positions, or back.
void convert_label_encoder(NodeContext& context) {
  const V x = context.input(0);
  Labels keys, values;
  if (context.has_attr("classes_strings")) {
    Labels classes;
    classes.dtype = kString;
    classes.texts = text_values(context, "classes_strings");
    keys = is_text(context, x) ? classes : count_to(classes.count());
    values = is_text(context, x) ? count_to(classes.count()) : classes;
  } else {
    keys = list_of(context, "keys");
    values = list_of(context, "values");
  }
  add_default(context, values);
  context.set_output(0, mapped(context, x, keys, values));
}

// A map, as its keys and values [n], becomes one row: the value of each key of the vocabulary, or 0.
void convert_dict_vectorizer(NodeContext& context) {
  Compose c(context);
  const auto [given, values] = map_parts(context);
  if (is_text(context, values)) context.unsupported("X", "maps to strings are not implemented");
  Labels keys;
  if (context.has_attr("string_vocabulary")) {
    keys.dtype = kString;
    keys.texts = text_values(context, "string_vocabulary");
  } else {
    keys.integers = context.required_ints("int64_vocabulary");
  }
  const int64_t count = keys.count();
  if (count == 0) context.invalid("the vocabulary is empty");
  // What is not in the vocabulary goes behind the row.
  const V nothing = c.filled(c.dtype(values), {count + 1}, 0);
  const V row = context.add("scatter", {nothing, positions_of(context, given, keys), values},
                            {{"axis", int64_t{0}}, {"reduction", std::string("none")}});
  context.set_output(0, c.reshape(c.slice(row, 0, 0, count), {1, count}));
}

// Strings to integers or integers to strings.
void convert_category_mapper(NodeContext& context) {
  const V x = context.input(0);
  Labels integers, strings;
  integers.integers = context.required_ints("cats_int64s");
  strings.dtype = kString;
  strings.texts = text_values(context, "cats_strings");
  Labels& values = is_text(context, x) ? integers : strings;
  add_default(context, values);
  context.set_output(0, mapped(context, x, is_text(context, x) ? strings : integers, values));
}

}  // namespace tensormill::frontend::onnx
