// model.mlmodel: the description of a model, and the functions of its program.
#include <algorithm>

#include "compiler/build/rows.h"
#include "compiler/frontend/coreml/loaded_model.h"
#include "compiler/frontend/coreml/program_proto.h"
#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "runtime/base/text.h"

namespace tensormill::frontend::coreml {

using wire::WireReader;

namespace {

struct TypeRow {
  DataType type;
  std::string_view name;
  int bits;
  std::optional<DType> dtype;  ///< of tensors
};
constexpr TypeRow kTypes[] = {
#define COREML_TYPE(enumerator, number, blob, name, bits, dtype) {DataType::enumerator, name, bits, dtype},
#include "compiler/frontend/coreml/data_types.def"
#undef COREML_TYPE
};

struct KindRow {
  int field;
  std::string_view title;
};
constexpr KindRow kKinds[] = {
#define COREML_KIND(field, title) {field, title},
#include "compiler/frontend/coreml/model_kinds.def"
#undef COREML_KIND
};

constexpr int kMlProgram = 502;

using Range = std::pair<int64_t, int64_t>;

/// SizeRange: an upper bound below 0 is none.
Range size_range(WireReader reader) {
  Range to{0, -1};
  while (const int field = reader.next()) {
    if (field == 1) to.first = reader.int64("lowerBound");
    if (field == 2) to.second = std::max<int64_t>(reader.int64("upperBound"), -1);
  }
  return to;
}

/// The numbers of fields 1 and 2.
std::pair<int64_t, int64_t> two_numbers(WireReader reader) {
  std::pair<int64_t, int64_t> to;
  while (const int field = reader.next()) {
    if (field == 1 || field == 2) (field == 1 ? to.first : to.second) = reader.int64("a size");
  }
  return to;
}

/// Each range reaches to what is enumerated.
void widen(std::vector<Range>& ranges, const std::vector<int64_t>& shape) {
  if (ranges.empty()) ranges.resize(shape.size(), {INT64_MAX, 0});
  for (size_t i = 0; i < std::min(ranges.size(), shape.size()); ++i)
    ranges[i] = {std::min(ranges[i].first, shape[i]), std::max(ranges[i].second, shape[i])};
}

class DescriptionReader {
public:
  void description(WireReader reader, Model& to) {
    Interface own;
    while (const int field = reader.next()) {
      if (field == 1) own.inputs.push_back(feature(reader.message("an input")));
      if (field == 10) own.outputs.push_back(feature(reader.message("an output")));
      if (field == 20) to.interfaces.push_back(interface_of(reader.message("a function's description")));
      if (field == 21) to.default_function = reader.bytes("defaultFunctionName");
      if (field == 100) metadata(reader.message("metadata"), to);
    }
    if (!own.inputs.empty() || !own.outputs.empty()) to.interfaces.push_back(std::move(own));
  }

private:
  Interface interface_of(WireReader reader) {
    features_.spend(1);
    Interface to;
    while (const int field = reader.next()) {
      if (field == 1) to.name = reader.bytes("a function's name");
      if (field == 2) to.inputs.push_back(feature(reader.message("an input")));
      if (field == 3) to.outputs.push_back(feature(reader.message("an output")));
    }
    return to;
  }

  Feature feature(WireReader reader) {
    features_.spend(1);
    Feature to;
    while (const int field = reader.next()) {
      if (field == 1) to.name = reader.bytes("a feature's name");
      if (field == 3) feature_type(reader.message("a feature's type"), to);
    }
    return to;
  }

  void feature_type(WireReader reader, Feature& to) {
    while (const int field = reader.next()) {
      if (field == 4) {
        to.is_image = true;
        image(reader.message("an image's type"), to);
      }
      if (field == 5) array(reader.message("an array's type"), to);
      if (field == 1000) to.is_optional = reader.varint("isOptional") != 0;
    }
  }

  void array(WireReader reader, Feature& to) {
    while (const int field = reader.next()) {
      if (field == 21) {
        WireReader all = reader.message("enumerated shapes");
        while (const int all_field = all.next()) {
          if (all_field == 1) widen(to.ranges, shape(all.message("a shape")));
        }
      }
      if (field == 31) {
        WireReader all = reader.message("a range of shapes");
        while (const int all_field = all.next()) {
          features_.spend(1);
          if (all_field == 1) to.ranges.push_back(size_range(all.message("a range")));
        }
      }
      if (field == 41) to.otherwise = reader.int32("intDefaultValue");
      if (field == 51) to.otherwise = static_cast<double>(reader.fixed_float("floatDefaultValue"));
      if (field == 61) to.otherwise = reader.fixed_double("doubleDefaultValue");
    }
  }

  std::vector<int64_t> shape(WireReader reader) {
    std::vector<int64_t> to;
    while (const int field = reader.next()) {
      if (field == 1) reader.append_varints(to, "a shape");
    }
    features_.spend(to.size());
    return to;
  }

  /// Ranges are those of [1,C,H,W], the tensor that the program has.
  void image(WireReader reader, Feature& to) {
    std::optional<Range> width, height;
    while (const int field = reader.next()) {
      if (field == 3) to.note = "image " + color(reader.int64("colorSpace"));
      if (field == 21) {
        WireReader all = reader.message("enumerated sizes");
        while (const int all_field = all.next()) {
          features_.spend(1);
          if (all_field != 1) continue;
          const auto [w, h] = two_numbers(all.message("a size"));
          width = width ? Range{std::min(width->first, w), std::max(width->second, w)} : Range{w, w};
          height = height ? Range{std::min(height->first, h), std::max(height->second, h)} : Range{h, h};
        }
      }
      if (field == 31) {
        WireReader all = reader.message("a range of sizes");
        while (const int all_field = all.next()) {
          if (all_field == 1 || all_field == 2)
            (all_field == 1 ? width : height) = size_range(all.message("a range"));
        }
      }
    }
    if (width || height)
      to.ranges = {{0, -1}, {0, -1}, height.value_or(Range{0, -1}), width.value_or(Range{0, -1})};
  }

  static std::string color(int64_t space) {
    if (space == 10 || space == 40) return "GRAY";
    return space == 30 ? "BGR" : "RGB";
  }

  static void metadata(WireReader reader, Model& to) {
    while (const int field = reader.next()) {
      if (field == 1) to.description = reader.bytes("shortDescription");
      if (field == 2) to.version = reader.bytes("versionString");
      if (field == 3) to.author = reader.bytes("author");
    }
  }

  wire::WorkBudget features_{"features and their extents", 1'000'000};
};

[[noreturn]] void refuse(std::string_view title) {
  const std::string article =
      std::string_view("aeiou").find(title.front()) == std::string_view::npos ? "a " : "an ";
  throw Error(ErrorCode::kNotSupported,
              "this is " + article + std::string(title) +
                  ", and ML Programs alone are imported: convert what it was made from with coremltools "
                  "(ct.convert(..., convert_to=\"mlprogram\")), or export that to ONNX");
}

}  // namespace

std::string_view type_name(DataType type) {
  const TypeRow* row = build::find_in(kTypes, &TypeRow::type, type);
  return row == nullptr ? std::string_view() : row->name;
}

DataType type_named(std::string_view name) {
  const TypeRow* row = build::find_in(kTypes, &TypeRow::name, name);
  return row == nullptr ? DataType::kUnused : row->type;
}

int type_bits(DataType type) {
  const TypeRow* row = build::find_in(kTypes, &TypeRow::type, type);
  return row == nullptr ? 0 : row->bits;
}

std::optional<DType> dtype_of(DataType type) {
  const TypeRow* row = build::find_in(kTypes, &TypeRow::type, type);
  return row == nullptr ? std::nullopt : row->dtype;
}

int opset_number(std::string_view opset) {
  const bool is_known =
      opset.size() == 7 && opset.starts_with("CoreML") && opset.back() >= '5' && opset.back() <= '9';
  return is_known ? opset.back() - '0' : 0;
}

const Function* Model::find(std::string_view name) const {
  for (const Function& each : functions)
    if (each.name == name) return &each;
  return nullptr;
}

const Feature* Model::input(std::string_view function, std::string_view name) const {
  for (const Interface& each : interfaces) {
    if (each.name.empty() ? function != "main" : each.name != function) continue;
    for (const Feature& feature : each.inputs)
      if (feature.name == name) return &feature;
  }
  return nullptr;
}

Model read_model(std::string_view bytes) {
  WireReader reader(bytes, bytes.data(), 0);
  Model model;
  DescriptionReader descriptions;
  std::string_view other;
  while (const int field = reader.next()) {
    const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                    [&](const KindRow& row) { return row.field == field; });
    if (kind != std::end(kKinds)) other = kind->title;
    if (field == 1) model.specification = reader.int64("specificationVersion");
    if (field == 2) descriptions.description(reader.message("the description"), model);
    if (field == kMlProgram) model.functions = ProgramReader().functions(reader.message("the program"));
  }
  if (!model.functions.empty()) return model;
  if (!other.empty()) refuse(other);
  throw Error(ErrorCode::kInvalidModel, "the model has no program");
}

}  // namespace tensormill::frontend::coreml
