/// The answers of S3 and of its token service: elements and text, in small documents. Attributes are skipped;
/// there are neither entities of a document's own nor namespaces. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensormill::storage {

struct XmlElement {
  std::string name;
  std::string text;  ///< without that of children
  std::vector<XmlElement> children;

  /// The first child of this name; null when there is none.
  const XmlElement* find(std::string_view child) const;
  /// Its text; "" when there is none.
  std::string text_of(std::string_view child) const;
};

/// The root element. Throws Error(kUnavailable) for what is no such document or nests deeper than 16.
XmlElement parse_xml(std::string_view document);
/// With & < > " ' as entities.
std::string xml_escape(std::string_view text);

}  // namespace tensormill::storage
