#include "api/endpoints/tensor_data.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/base/text.h"

namespace tensormill::endpoints {
namespace {

/// So many elements are taken before anyone asks how many the model has.
constexpr uint64_t kSmall = uint64_t{1} << 16;
constexpr size_t kBlock = size_t{1} << 20;
constexpr char kQuote = '"';
constexpr char kEnd = '\n';

}  // namespace

void ValueLog::add(char kind, std::string_view text) {
  const size_t size = text.size() + 1 + sizeof(uint32_t);
  if (blocks_.empty() || blocks_.back().size() + size > blocks_.back().capacity()) {
    blocks_.emplace_back();
    // The first block of a small tensor is small.
    blocks_.back().reserve(std::max(size, blocks_.size() == 1 ? kBlock / 64 : kBlock));
  }
  std::string& block = blocks_.back();
  if (kind == kQuote) {
    const auto length = static_cast<uint32_t>(text.size());
    block += kind;
    block.append(reinterpret_cast<const char*>(&length), sizeof length);
    block += text;
  } else {
    block += text;
    block += kEnd;
  }
}

void ValueLog::replay(bool texts_stay, const std::function<void(char, std::string_view)>& each) {
  for (std::string& block : blocks_) {
    std::string_view rest = block;
    while (!rest.empty()) {
      const char kind = rest.front();
      size_t begin = 0, size = 0, whole = 0;
      if (kind == kQuote) {
        uint32_t length = 0;
        std::memcpy(&length, rest.data() + 1, sizeof length);
        begin = 1 + sizeof length;
        size = length;
        whole = begin + size;
      } else {
        size = rest.find(kEnd);
        whole = size + 1;
      }
      each(kind, rest.substr(begin, size));
      rest.remove_prefix(whole);
    }
    if (!texts_stay) std::string().swap(block);
  }
}

TensorData::TensorData(std::string where, Limits limits)
    : where_(std::move(where)),
      limits_(std::move(limits)),
      checked_(kSmall - std::min(kSmall, limits_.before)) {}

void TensorData::refuse(const std::string& what) const {
  throw Error(ErrorCode::kInvalidTensor, where_ + ": " + what);
}

void TensorData::refuse_object() const {
  refuse("element " + std::to_string(count_) + " is an object, not a value");
}

void TensorData::declare(std::string where, DType dtype, Shape shape) {
  where_ = std::move(where);
  expected_ = static_cast<uint64_t>(tensormill::num_elements(shape));
  dtype_ = dtype;
  size_ = dtype_bytes(dtype);
  shape_ = std::move(shape);
  declared_ = true;
  const uint64_t before = std::exchange(count_, 0);
  if (before > expected_) {
    refuse("data has " + std::to_string(before) + " elements, the shape " + std::to_string(expected_));
  }
  if (dtype == kString) {
    // They stay where they are, and are read at the end.
    kept_.replay(true, [&](char kind, std::string_view text) {
      if (kind != kQuote) store(kind, text);
      ++count_;
    });
    return;
  }
  kept_.replay(false, [&](char kind, std::string_view text) { store(kind, text), ++count_; });
}

void TensorData::begin_array() {
  // Each element opens fewer arrays than a shape has axes, and rows without elements are few.
  constexpr uint64_t kAxes = 64;
  if (++arrays_ > kSmall + kAxes * count_) refuse("data is made of arrays without elements");
}

void TensorData::value(char kind, std::string_view text) {
  if (declared_ && count_ == expected_) {
    refuse("data has more elements than the shape, which has " + std::to_string(expected_));
  }
  if (count_ == checked_) check_room();
  if (!declared_ || (kind == kQuote && dtype_ == kString)) {
    kept_.add(kind, text);
  } else {
    store(kind, text);
  }
  ++count_;
}

/// How far the elements may go on: as far as the model has any, and as their memory lasts.
void TensorData::check_room() {
  const uint64_t all = limits_.elements ? limits_.elements() : std::numeric_limits<uint64_t>::max();
  const uint64_t wanted = all - std::min(all, limits_.before);
  if (count_ >= wanted) {
    refuse("data has more elements than the inputs of the model may have in JSON, which is " +
           std::to_string(all));
  }
  // What a string or a value whose type is not known yet takes beside its bytes.
  constexpr uint64_t kEach = sizeof(std::string_view);
  const bool typed = declared_ && dtype_ != kString;
  const uint64_t most = limits_.bytes / (typed ? size_ : declared_ ? kEach : 1);
  if (count_ >= most) {
    throw Error(ErrorCode::kTooLarge, where_ + ": data has more elements than limits.tensor_bytes (" +
                                          std::to_string(limits_.bytes) + ") has room for, " +
                                          std::to_string(most));
  }
  checked_ = std::min(wanted, most);
}

void TensorData::make_room() {
  // Memory that is not written takes none: what a shape announces costs nothing until its data comes.
  room_ = std::min(expected_, limits_.bytes / size_);
  if (count_ >= room_) {
    throw Error(ErrorCode::kTooLarge, where_ + ": the tensor takes more than limits.tensor_bytes (" +
                                          std::to_string(limits_.bytes) + ")");
  }
  owner_ = allocate_aligned(room_ * size_);
}

void TensorData::store(char kind, std::string_view text) {
  const bool wants_text = dtype_ == kString;
  if (kind == kQuote || wants_text) {
    const std::string shown(text.substr(0, 40));
    refuse("element " + std::to_string(count_) + " is " + (kind == kQuote ? "\"" + shown + "\"" : shown) +
           (wants_text ? ", not a string" : ", not a value of " + std::string(dtype_v2_name(dtype_))));
  }
  if (count_ == room_) make_room();
  const NumberFit fit = store_number(dtype_, text, static_cast<std::byte*>(owner_.get()) + count_ * size_);
  if (fit != NumberFit::kFits) {
    refuse("element " + std::to_string(count_) + " " + describe_misfit(dtype_, text, fit));
  }
}

Tensor TensorData::finish(uint64_t body) {
  if (count_ != expected_) {
    refuse("data has " + std::to_string(count_) + " elements, the shape " + std::to_string(expected_));
  }
  if (dtype_ == kString) {
    std::vector<std::string_view> texts;
    texts.reserve(count_);
    kept_.replay(true, [&](char, std::string_view text) { texts.push_back(text); });
    return strings_tensor(shape_, texts, body, limits_.bytes, where_);
  }
  if (count_ == 0) return Tensor(dtype_, shape_);
  return Tensor(dtype_, shape_, owner_, owner_.get());
}

Tensor strings_tensor(const Shape& shape, const std::vector<std::string_view>& texts, uint64_t body,
                      uint64_t most, const std::string& where) {
  constexpr uint64_t kGrowth = 256;
  uint64_t longest = 1;
  for (const std::string_view text : texts) longest = std::max<uint64_t>(longest, text.size());
  const uint64_t bytes = longest * texts.size();
  const std::string taken = where + ": strings of up to " + std::to_string(longest) + " bytes take " +
                            std::to_string(bytes) + " in a tensor, more than ";
  if (bytes > kGrowth * body)
    throw Error(ErrorCode::kTooLarge, taken + std::to_string(kGrowth) + " times the body");
  if (bytes > most) throw Error(ErrorCode::kTooLarge, taken + "limits.tensor_bytes, " + std::to_string(most));
  try {
    return text_tensor(shape, texts);
  } catch (Error& error) {
    error.add_context(where);
    throw;
  }
}

}  // namespace tensormill::endpoints
