#include "runtime/npz/npy_header.h"

#include <bit>
#include <charconv>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/text.h"
#include "runtime/npz/npz.h"

namespace tensormill::npz {

namespace {

static_assert(std::endian::native == std::endian::little, "byte order of this machine");

class DictParser {
public:
  explicit DictParser(std::string_view text) : text_(text) {}

  NpyHeader parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      read_value(key);
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("text after the dict");
    if (!has_descr_ || !has_order_ || !has_shape_) fail("descr, fortran_order or shape is missing");
    if (header_.dtype == kString) header_.shape.push_back(text_bytes_);
    return header_;
  }

private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidNpz, ".npy header at byte " + std::to_string(at_) + ": " + what);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }

  std::string_view quoted() {
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("expected a string");
    const char quote = text_[at_++];
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("string does not end");
    const std::string_view result = text_.substr(at_, end - at_);
    at_ = end + 1;
    return result;
  }

  void read_value(std::string_view key) {
    const auto once = [&](bool& seen) {
      if (seen) fail("key is there twice");
      seen = true;
    };
    if (key == "descr") {
      once(has_descr_);
      skip_space();
      if (at_ < text_.size() && text_[at_] == '[') fail("structured dtypes are not supported");
      read_descr(quoted());
    } else if (key == "fortran_order") {
      once(has_order_);
      read_order();
    } else if (key == "shape") {
      once(has_shape_);
      read_shape();
    } else {
      fail("unknown key");
    }
  }

  void read_descr(std::string_view descr) {
    if (descr.size() < 3) fail("dtype \"" + std::string(descr) + "\" is not supported");
    const char order = descr.front();
    const std::string_view type = descr.substr(1);
    if (type.front() == 'O') fail("pickled objects are not read");
    if (type.front() == 'U' || type.front() == 'S') return read_text(order, type);
    for (const DTypeInfo& info : all_dtypes()) {
      if (info.numpy != type) continue;
      const bool known = order == '<' || order == '>' || order == '=' || order == '|';
      if (!known || (order == '|' && info.bits > 8 && info.dtype != DType::kBFloat16)) break;
      header_.dtype = info.dtype;
      header_.swap_bytes = order == '>' && info.bits > 8;
      return;
    }
    fail("dtype \"" + std::string(descr) + "\" is not supported");
  }

  /// "U12" is 12 code points of 4 bytes, "S12" 12 bytes.
  void read_text(char order, std::string_view type) {
    header_.dtype = kString;
    header_.wide_text = type.front() == 'U';
    header_.swap_bytes = header_.wide_text && order == '>';
    int64_t length = 0;
    const char* end = type.data() + type.size();
    const auto parsed = std::from_chars(type.data() + 1, end, length);
    const bool known = order == '<' || order == '>' || order == '=' || order == '|';
    if (!known || parsed.ec != std::errc() || parsed.ptr != end || length < 1 || length > (int64_t{1} << 40))
      fail("dtype \"" + std::string(1, order) + std::string(type) + "\" is not supported");
    text_bytes_ = header_.wide_text ? 4 * length : length;
  }

  void read_order() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}}) {
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        header_.fortran_order = value;
        return;
      }
    }
    fail("expected True or False");
  }

  void read_shape() {
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail("expected ',' or ')'");
      header_.shape.push_back(number());
      if (header_.shape.size() > 32) fail("rank is more than 32");
      comma = accept(',');
    }
    // "(3)" is a number in Python, not a tuple.
    if (header_.shape.size() == 1 && !comma) fail("shape is not a tuple");
  }

  int64_t number() {
    skip_space();
    const size_t start = at_;
    int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) {
        fail("extent is too large");
      }
      ++at_;
    }
    if (at_ == start) fail("expected an extent");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2's long
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
  NpyHeader header_;
  int64_t text_bytes_ = 0;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

NpyHeader parse_npy_dict(std::string_view dict) { return DictParser(dict).parse(); }

std::string npy_header(DType dtype, const Shape& all, size_t prefix) {
  const DTypeInfo& info = dtype_info(dtype);
  const Shape shape = shown_shape(dtype, all);
  const bool no_order = info.bits == 8 || dtype == DType::kBFloat16;
  std::string dict = "{'descr': '";
  if (dtype == kString) {
    dict += "<U" + std::to_string(all.back() / 4);
  } else {
    dict += (no_order ? "|" : "<") + std::string(info.numpy);
  }
  dict += "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i) {
    dict += std::to_string(shape[i]);
    if (shape.size() == 1 || i + 1 < shape.size()) dict += ",";
    if (i + 1 < shape.size()) dict += " ";
  }
  dict += "), }";
  constexpr size_t kFixed = 10;
  const size_t end = prefix + kFixed + dict.size() + 1;
  dict.append((64 - end % 64) % 64, ' ');
  dict += '\n';
  std::string result("\x93NUMPY\x01\x00", 8);
  result += static_cast<char>(dict.size() & 0xff);
  result += static_cast<char>(dict.size() >> 8);
  return result + dict;
}

}  // namespace tensormill::npz
