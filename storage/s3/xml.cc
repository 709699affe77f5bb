#include "storage/s3/xml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "runtime/base/error.h"

namespace tensormill::storage {
namespace {

constexpr int kMaxDepth = 16;

constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
    {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};

[[noreturn]] void refuse(const char* why) {
  throw Error(ErrorCode::kUnavailable, std::string("the store's answer is no XML that it should be: ") + why);
}

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  XmlElement run() {
    skip_prolog();
    XmlElement root = element(0);
    skip_space();
    if (!text_.empty()) refuse("something follows the root element");
    return root;
  }

private:
  void skip_space() {
    const size_t first = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(std::min(first, text_.size()));
  }

  void skip_past(std::string_view mark) {
    const size_t at = text_.find(mark);
    if (at == std::string_view::npos) refuse("it is cut off");
    text_.remove_prefix(at + mark.size());
  }

  /// True when it was a comment or an instruction, which is skipped.
  bool skip_other() {
    if (text_.starts_with("<?")) {
      skip_past("?>");
      return true;
    }
    if (!text_.starts_with("<!--")) return false;
    skip_past("-->");
    return true;
  }

  void skip_prolog() {
    do {
      skip_space();
    } while (skip_other());
  }

  /// A decimal or hexadecimal number of ASCII; others come as they are, and are in no text that is read here.
  char character(std::string_view entity) {
    for (const auto& [name, c] : kEntities) {
      if (entity == name) return c;
    }
    std::string_view digits = entity.substr(1, entity.size() - 2);
    int base = 10, code = 0;
    if (!digits.starts_with('#')) refuse("an entity is unknown");
    digits.remove_prefix(1);
    if (digits.starts_with('x')) {
      base = 16;
      digits.remove_prefix(1);
    }
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || code < 1 || code > 127)
      refuse("a character reference is none of ASCII");
    return static_cast<char>(code);
  }

  void append_text(std::string& text) {
    const size_t size = std::min(text_.find('<'), text_.size());
    for (size_t i = 0; i < size;) {
      if (text_[i] != '&') {
        text += text_[i++];
        continue;
      }
      const size_t end = text_.substr(0, size).find(';', i);
      if (end == std::string_view::npos) refuse("an entity does not end");
      text += character(text_.substr(i, end + 1 - i));
      i = end + 1;
    }
    text_.remove_prefix(size);
  }

  XmlElement element(int depth) {
    if (depth >= kMaxDepth) refuse("it nests too deep");
    if (!text_.starts_with('<')) refuse("an element is missing");
    const size_t end = text_.find('>');
    if (end == std::string_view::npos) refuse("it is cut off");
    std::string_view tag = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    const bool is_empty = tag.ends_with('/');
    if (is_empty) tag.remove_suffix(1);
    XmlElement result;
    result.name = std::string(tag.substr(0, tag.find_first_of(" \t\r\n")));
    if (result.name.empty()) refuse("an element has no name");
    if (is_empty) return result;
    for (;;) {
      append_text(result.text);
      if (text_.starts_with("</")) break;
      if (text_.empty()) refuse("it is cut off");
      if (!skip_other()) result.children.push_back(element(depth + 1));
    }
    const std::string close = "</" + result.name + ">";
    if (!text_.starts_with(close)) refuse("an element is not closed");
    text_.remove_prefix(close.size());
    return result;
  }

  std::string_view text_;
};

}  // namespace

const XmlElement* XmlElement::find(std::string_view child) const {
  const auto found = std::find_if(children.begin(), children.end(),
                                  [&](const XmlElement& element) { return element.name == child; });
  return found == children.end() ? nullptr : &*found;
}

std::string XmlElement::text_of(std::string_view child) const {
  const XmlElement* found = find(child);
  return found == nullptr ? "" : found->text;
}

XmlElement parse_xml(std::string_view document) { return Parser(document).run(); }

std::string xml_escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    const auto entity =
        std::find_if(kEntities.begin(), kEntities.end(), [&](const auto& row) { return row.second == c; });
    if (entity == kEntities.end()) {
      escaped += c;
    } else {
      escaped += entity->first;
    }
  }
  return escaped;
}

}  // namespace tensormill::storage
