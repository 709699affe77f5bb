#include "compiler/frontend/cntk/dictionary.h"

#include <algorithm>
#include <cstring>

#include "compiler/frontend/wire/protobuf.h"
#include "compiler/frontend/wire/work_budget.h"
#include "runtime/base/error.h"
#include "runtime/base/model_step.h"

namespace tensormill::frontend::cntk {

using wire::WireReader;

namespace {

constexpr int64_t kFloat = 1, kDouble = 2;
constexpr int64_t kDense = 0;
constexpr size_t kLargeFileHeader = 8;  ///< the mark, and how many bytes the message has

/// What stands for a value of a type that has none of its own: protobuf leaves out what is 0.
Value default_of(int64_t type) {
  switch (type) {
    case 1:
      return {false};
    case 2:
    case 3:
      return {int64_t{0}};
    case 4:
    case 5:
      return {0.0};
    case 6:
      return {std::string_view()};
    case 7:
      return {Dims()};
    case 8:
      return {Axis()};
    case 9:
      return {List()};
    case 10:
      return {Dictionary()};
    case 11:
      return {Array()};
    default:
      return {};
  }
}

class Reader {
public:
  /// `elements`: what stands behind the message, of a large file.
  explicit Reader(std::string_view elements) : elements_(elements) {}

  Dictionary dictionary(WireReader reader);

private:
  Value value(WireReader reader);
  Entry entry(WireReader reader);
  List list(WireReader reader);
  Dims dims(WireReader reader);
  Axis axis(WireReader reader);
  Array array(WireReader reader);
  void take_elements(const WireReader& reader, Array& to);

  std::string_view elements_;
  wire::WorkBudget values_{"values", 2'000'000};
};

Dims Reader::dims(WireReader reader) {
  std::vector<uint64_t> given;
  while (const int field = reader.next()) {
    if (field == 1) reader.append_uint64s(given, "an extent");
  }
  if (static_cast<int64_t>(given.size()) > kMaxTensorRank)
    reader.fail("a shape of " + std::to_string(given.size()) + " extents");
  Dims to;
  // Marks are the largest numbers of 64 bits.
  for (const uint64_t each : given) to.push_back(static_cast<int64_t>(each));
  return to;
}

Axis Reader::axis(WireReader reader) {
  Axis to;
  while (const int field = reader.next()) {
    if (field == 1) to.index = reader.int32("an axis");
    if (field == 2) to.name = reader.bytes("an axis' name");
  }
  return to;
}

/// The packed elements of FloatValues and DoubleValues.
std::string_view packed(WireReader reader) {
  std::string_view values;
  while (const int field = reader.next()) {
    if (field == 1) {
      if (!values.empty()) reader.fail("elements in several parts");
      values = reader.bytes("elements");
    }
  }
  return values;
}

void Reader::take_elements(const WireReader& reader, Array& to) {
  to.is_double = to.dtype == kDouble;
  const std::optional<int64_t> count = count_elements(to.dims);
  const size_t size = to.is_double ? sizeof(double) : sizeof(float);
  if ((to.dtype != kFloat && to.dtype != kDouble) || to.storage != kDense || !count ||
      static_cast<uint64_t>(*count) > elements_.size() / size)
    reader.fail("the elements behind the message are not those of its arrays");
  to.values = elements_.substr(0, static_cast<size_t>(*count) * size);
  elements_.remove_prefix(to.values.size());
}

Array Reader::array(WireReader reader) {
  Array to;
  while (const int field = reader.next()) {
    if (field == 1) to.dtype = reader.int64("data_type");
    if (field == 2) to.storage = reader.int64("storage_format");
    if (field == 3) to.dims = dims(reader.message("a shape"));
    if (field == 4) to.values = packed(reader.message("float_values"));
    if (field == 5) {
      to.values = packed(reader.message("double_values"));
      to.is_double = true;
    }
  }
  if (to.values.empty() && count_elements(to.dims) != 0 && !elements_.empty()) take_elements(reader, to);
  return to;
}

List Reader::list(WireReader reader) {
  List to;
  while (const int field = reader.next()) {
    if (field == 1) to.push_back(value(reader.message("a value of a list")));
  }
  return to;
}

Value Reader::value(WireReader reader) {
  values_.spend(1);
  Value to;
  int64_t type = 0;
  while (const int field = reader.next()) {
    if (field == 2) type = reader.int64("value_type");
    if (field == 3) to = {reader.varint("a bool") != 0};
    if (field == 4) to = {int64_t{reader.int32("an integer")}};
    if (field == 5) to = {reader.int64("a size")};
    if (field == 6) to = {static_cast<double>(reader.fixed_float("a number"))};
    if (field == 7) to = {reader.fixed_double("a number")};
    if (field == 8) to = {reader.bytes("a text")};
    if (field == 9) to = {dims(reader.message("a shape"))};
    if (field == 10) to = {axis(reader.message("an axis"))};
    if (field == 11) to = {list(reader.message("a list"))};
    if (field == 12) to = {dictionary(reader.message("a dictionary"))};
    if (field == 13) to = {array(reader.message("an array"))};
  }
  if (to.as<std::monostate>() != nullptr) return default_of(type);
  return to;
}

Entry Reader::entry(WireReader reader) {
  Entry to;
  while (const int field = reader.next()) {
    if (field == 1) to.key = reader.bytes("a key");
    if (field == 2) to.value = value(reader.message("a value"));
  }
  return to;
}

Dictionary Reader::dictionary(WireReader reader) {
  Dictionary to;
  while (const int field = reader.next()) {
    if (field == 2) to.entries.push_back(entry(reader.message("an entry")));
  }
  return to;
}

}  // namespace

// Of equal keys the last one counts.
const Value* Dictionary::find(std::string_view key) const {
  const auto found =
      std::find_if(entries.rbegin(), entries.rend(), [&](const Entry& each) { return each.key == key; });
  return found == entries.rend() ? nullptr : &found->value;
}

Dictionary read_dictionary(std::string_view bytes) {
  if (!bytes.starts_with(kLargeFileMark))
    return Reader(std::string_view()).dictionary(WireReader(bytes, bytes.data(), 0));
  uint32_t size = 0;
  if (bytes.size() >= kLargeFileHeader)
    std::memcpy(&size, bytes.data() + kLargeFileMark.size(), sizeof(size));
  if (bytes.size() < kLargeFileHeader || size > bytes.size() - kLargeFileHeader)
    throw Error(ErrorCode::kInvalidModel, "a message of " + std::to_string(size) + " bytes in a file of " +
                                              std::to_string(bytes.size()));
  return Reader(bytes.substr(kLargeFileHeader + size))
      .dictionary(WireReader(bytes.substr(kLargeFileHeader, size), bytes.data(), 0));
}

}  // namespace tensormill::frontend::cntk
