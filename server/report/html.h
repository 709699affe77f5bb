/// The JSON document of a report as one HTML file: style inside, charts as SVG, no scripts, nothing loaded.
/// Whatever the document's texts hold is shown as text. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json_fwd.h"

namespace tensormill::report {

/// The text with no letter that HTML or SVG would take for markup, in an element or a quoted attribute;
/// controls and marks that change the direction of what follows become U+FFFD.
std::string escape(std::string_view text);

/// A bar with its label and value.
struct Bar {
  std::string label;
  double value = 0;
  std::string shown;  ///< the value in words
};
/// Horizontal bars from 0 to the largest, with a title.
std::string bar_chart(const std::string& title, const std::vector<Bar>& bars);

/// `report`: as `tensormill report --json` prints it.
std::string to_html(const Json& report);

}  // namespace tensormill::report
