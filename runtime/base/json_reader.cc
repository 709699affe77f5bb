#include "runtime/base/json_reader.h"

#include <array>
#include <charconv>
#include <optional>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/base/text.h"

// Lengths of strings and counts of elements have 64 bits.
#define RAPIDJSON_NO_SIZETYPEDEFINE
namespace rapidjson {
using SizeType = std::size_t;
}
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

namespace tensormill {
namespace {

consteval std::array<bool, 256> number_chars() {
  std::array<bool, 256> table{};
  for (const char c : {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '.', '-', '+', 'e', 'E'})
    table[static_cast<unsigned char>(c)] = true;
  return table;
}

bool is_number_char(char c) {
  static constexpr std::array<bool, 256> kTable = number_chars();
  return kTable[static_cast<unsigned char>(c)];
}

/// The pieces of a text as RapidJSON reads them: character by character, a zero at the end.
class Pieces {
public:
  using Ch = char;

  Pieces(JsonText& text, const JsonLimits& limits) : text_(text), limits_(limits) {}

  // Names of RapidJSON's concept. NOLINTBEGIN(readability-identifier-naming)
  char Peek() { return at_ != end_ || refill() ? *at_ : '\0'; }
  char Take() { return at_ != end_ || refill() ? *at_++ : '\0'; }
  size_t Tell() const { return static_cast<size_t>(before_) + static_cast<size_t>(at_ - begin_); }
  // The parts of the concept that write: reading does not use them.
  char* PutBegin() { return nullptr; }
  void Put(char) {}
  void Flush() {}
  size_t PutEnd(char*) { return 0; }
  // NOLINTEND(readability-identifier-naming)

  /// Whether no character is left. A zero byte in the text looks like the end to RapidJSON.
  bool at_end() { return at_ == end_ && !refill(); }
  /// The number that ends here: what stands before a number is never one of its characters.
  std::string_view number() {
    const char* start = at_;
    while (start != begin_ && is_number_char(start[-1])) --start;
    std::string_view text(start, static_cast<size_t>(at_ - start));
    if (start == begin_ && !tail_.empty()) text = tail_.append(text);
    if (text.size() <= kMaxNumberBytes) return text;
    throw Error(ErrorCode::kInvalidJson, "JSON has a number of more than " + std::to_string(kMaxNumberBytes) +
                                             " characters, which ends at byte " + std::to_string(Tell()));
  }
  /// A token ends here.
  void token_ends() { token_ = Tell(); }
  /// A skip over the mark of UTF-8 texts of some editors. False where only part of it is there.
  bool skip_mark() {
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    size_t there = 0;
    for (; there < kMark.size() && Peek() == kMark[there]; ++there) Take();
    return there == 0 || there == kMark.size();
  }

private:
  [[gnu::noinline, gnu::cold]] bool refill() {
    if (ended_) return false;
    keep_tail();
    before_ += static_cast<uint64_t>(end_ - begin_);
    const std::string_view piece = text_.next();
    begin_ = at_ = piece.data();
    end_ = begin_ + piece.size();
    ended_ = piece.empty();
    if (ended_) return false;
    if (before_ + piece.size() > limits_.bytes) {
      throw Error(ErrorCode::kTooLarge, "JSON has more than " + std::to_string(limits_.bytes) + " bytes");
    }
    if (before_ - token_ > limits_.token_bytes) {
      throw Error(ErrorCode::kTooLarge, "JSON has a string or blanks of more than " +
                                            std::to_string(limits_.token_bytes) + " bytes at byte " +
                                            std::to_string(token_));
    }
    return true;
  }
  /// What may be the beginning of a number that goes on in the next piece. Of one that is too long already,
  /// so much that this is noticed.
  void keep_tail() {
    const char* start = end_;
    while (start != begin_ && is_number_char(start[-1])) --start;
    if (start != begin_) tail_.clear();
    const size_t room = tail_.size() > kMaxNumberBytes ? 0 : kMaxNumberBytes + 1 - tail_.size();
    tail_.append(start, std::min(room, static_cast<size_t>(end_ - start)));
  }

  JsonText& text_;
  const JsonLimits& limits_;
  const char *begin_ = nullptr, *at_ = nullptr, *end_ = nullptr;
  uint64_t before_ = 0;  ///< bytes of the pieces before this one
  uint64_t token_ = 0;   ///< where the last token ended
  bool ended_ = false;
  std::string tail_;
};

/// An array or object that is open.
struct Frame {
  bool is_object = false;
  uint64_t count = 0;  ///< elements begun
  std::string key;     ///< the last one
  std::set<std::string, std::less<>> keys;
};

std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : name) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

}  // namespace

/// RapidJSON's handler: checks what RapidJSON does not, and hands on.
class JsonReader::Impl {
public:
  Impl(JsonText& text, JsonEvents& events, const JsonLimits& limits)
      : limits_(limits), pieces_(text, limits_), events_(events) {}

  void read() {
    if (!pieces_.skip_mark()) broken("part of a byte order mark", 0);
    rapidjson::Reader reader;
    const rapidjson::ParseResult result = reader.Parse<rapidjson::kParseIterativeFlag>(pieces_, *this);
    if (!result) fail(result);
    if (!pieces_.at_end()) broken("a zero byte", pieces_.Tell());
  }
  uint64_t offset() const { return pieces_.Tell(); }

  // Names of RapidJSON's concept. NOLINTBEGIN(readability-identifier-naming)
  bool Null() { return value(), events_.null(), true; }
  bool Bool(bool truth) { return value(), events_.boolean(truth), true; }
  bool Int(int) { return number(); }
  bool Uint(unsigned) { return number(); }
  bool Int64(int64_t) { return number(); }
  bool Uint64(uint64_t) { return number(); }
  bool Double(double) { return number(); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return number(); }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    value();
    events_.string(checked({text, size}));
    return true;
  }
  bool StartObject() {
    value();
    events_.begin_object();
    open(true);
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    Frame& frame = frames_[open_ - 1];
    pieces_.token_ends();
    const std::string_view name = checked({text, size});
    frame.key = name;
    if (!frame.keys.insert(frame.key).second) {
      throw Error(ErrorCode::kInvalidJson,
                  "JSON object has the member \"" + frame.key + "\" twice" + place());
    }
    events_.key(name);
    return true;
  }
  bool EndObject(rapidjson::SizeType) { return close(), events_.end_object(), true; }
  bool StartArray() {
    value();
    events_.begin_array();
    open(false);
    return true;
  }
  bool EndArray(rapidjson::SizeType) { return close(), events_.end_array(), true; }
  // NOLINTEND(readability-identifier-naming)

private:
  bool number() {
    value();
    events_.number(pieces_.number());
    return true;
  }
  /// A value begins, or has been read.
  void value() {
    pieces_.token_ends();
    if (open_ > 0) ++frames_[open_ - 1].count;
    if (++values_ > limits_.values) {
      throw Error(ErrorCode::kTooLarge,
                  "JSON has more than " + std::to_string(limits_.values) + " values" + place());
    }
  }
  void open(bool is_object) {
    if (open_ >= static_cast<size_t>(limits_.depth)) {
      throw Error(ErrorCode::kInvalidJson,
                  "JSON is nested deeper than " + std::to_string(limits_.depth) + place());
    }
    if (open_ == frames_.size()) frames_.emplace_back();
    Frame& frame = frames_[open_++];
    frame.is_object = is_object;
    frame.count = 0;
    frame.key.clear();
    frame.keys.clear();
  }
  void close() {
    pieces_.token_ends();
    --open_;
  }
  /// RapidJSON takes bytes for UTF-8 as they come, and escapes for single halves of surrogates.
  std::string_view checked(std::string_view text) const {
    if (is_utf8(text)) return text;
    broken("a string that is not UTF-8 and ends", pieces_.Tell());
  }
  /// " at byte 17 (/inputs/0)". `before`: at an element of the innermost array that has not begun.
  std::string place(std::optional<uint64_t> offset = std::nullopt, bool before = false) const {
    std::string pointer;
    for (size_t i = 0; i < open_; ++i) {
      const Frame& frame = frames_[i];
      const uint64_t begun = frame.count + (before && i + 1 == open_ ? 1 : 0);
      if (frame.is_object ? frame.keys.empty() : begun == 0) break;
      pointer += "/" + (frame.is_object ? escaped(frame.key) : std::to_string(begun - 1));
      // The name of a member may be as long as the text.
      constexpr size_t kShown = 200;
      if (pointer.size() > kShown) break;
    }
    return " at byte " + std::to_string(offset.value_or(pieces_.Tell())) +
           (pointer.empty() ? "" : " (" + pointer + ")");
  }
  [[noreturn]] void broken(const std::string& what, uint64_t offset) const {
    throw Error(ErrorCode::kInvalidJson, "JSON has " + what + place(offset));
  }
  [[noreturn]] void fail(const rapidjson::ParseResult& result) const {
    const bool ended = result.Code() == rapidjson::kParseErrorArrayMissCommaOrSquareBracket;
    const std::string where = place(result.Offset(), !ended);
    if (result.Code() == rapidjson::kParseErrorNumberTooBig)
      throw Error(ErrorCode::kInvalidJson, "JSON has a number outside the range of doubles" + where);
    std::string why = rapidjson::GetParseError_En(result.Code());
    if (why.ends_with('.')) why.pop_back();
    throw Error(ErrorCode::kInvalidJson, "JSON cannot be parsed" + where + ": " + why);
  }

  const JsonLimits limits_;
  Pieces pieces_;
  JsonEvents& events_;
  std::vector<Frame> frames_;  ///< the first `open_` of them are open; the others' memory is used again
  size_t open_ = 0;
  uint64_t values_ = 0;
};

JsonReader::JsonReader(JsonText& text, JsonEvents& events, const JsonLimits& limits)
    : impl_(std::make_unique<Impl>(text, events, limits)) {}
JsonReader::~JsonReader() = default;
void JsonReader::read() { impl_->read(); }
uint64_t JsonReader::offset() const { return impl_->offset(); }

void JsonBuilder::number(std::string_view text) {
  const char* end = text.data() + text.size();
  if (text.find_first_of(".eE") == std::string_view::npos) {
    if (int64_t value = 0;
        text.front() == '-' && std::from_chars(text.data(), end, value).ec == std::errc()) {
      place() = value;
      return;
    }
    if (uint64_t value = 0;
        text.front() != '-' && std::from_chars(text.data(), end, value).ec == std::errc()) {
      place() = value;
      return;
    }
  }
  const std::optional<double> value = nearest_double(text);
  if (!value) throw Error(ErrorCode::kInvalidJson, "JSON has a number outside the range of doubles");
  place() = *value;
}

Json JsonBuilder::take() {
  Json built = std::move(root_);
  *this = JsonBuilder();
  return built;
}

Json& JsonBuilder::place() {
  begun_ = true;
  if (open_.empty()) return root_;
  Json& parent = *open_.back();
  if (parent.is_object()) return parent[name_];
  parent.push_back(nullptr);
  return parent.back();
}

void JsonBuilder::open(Json container) {
  Json& here = place();
  here = std::move(container);
  open_.push_back(&here);
}

Json parse_json(std::string_view text, const JsonLimits& limits) {
  WholeJson whole(text);
  JsonBuilder builder;
  JsonReader(whole, builder, limits).read();
  return builder.take();
}

}  // namespace tensormill
