#include "compiler/frontend/caffe2/converters/windows.h"

namespace tensormill::frontend::caffe2 {

LegacyPad legacy_pad_of(NodeContext& node) {
  const int64_t legacy = node.integer("legacy_pad", 0);
  if (legacy < 0 || legacy > 3) node.invalid("argument legacy_pad is " + std::to_string(legacy));
  return static_cast<LegacyPad>(legacy);
}

ir::Ints window_numbers(NodeContext& node, const char* plural, const char* single, size_t rank) {
  const std::string high = std::string(single) + "_h", wide = std::string(single) + "_w";
  ir::Ints numbers = node.ints(plural);
  if (numbers.empty() && node.has(single)) numbers.assign(rank, node.integer(single));
  if (numbers.empty() && rank == 2 && (node.has(high.c_str()) || node.has(wide.c_str())))
    numbers = {node.integer(high.c_str()), node.integer(wide.c_str())};
  if (numbers.empty()) numbers.assign(rank, 1);
  if (numbers.size() != rank)
    node.invalid("argument " + std::string(plural) + " has " + std::to_string(numbers.size()) +
                 " numbers for " + std::to_string(rank) + " axes");
  for (const int64_t number : numbers)
    if (number < 1 || number > build::kMaxWindowNumber)
      node.invalid("argument " + std::string(single) + " is " + std::to_string(number));
  return numbers;
}

ir::Ints pads_of(NodeContext& node, size_t rank) {
  ir::Ints pads = node.ints("pads");
  if (pads.empty() && node.has("pad")) pads.assign(2 * rank, node.integer("pad"));
  const bool is_by_sides = node.has("pad_t") || node.has("pad_l") || node.has("pad_b") || node.has("pad_r");
  if (pads.empty() && rank == 2 && is_by_sides)
    pads = {node.integer("pad_t"), node.integer("pad_l"), node.integer("pad_b"), node.integer("pad_r")};
  if (pads.empty()) pads.assign(2 * rank, 0);
  if (pads.size() != 2 * rank)
    node.invalid("argument pads has " + std::to_string(pads.size()) + " numbers for " + std::to_string(rank) +
                 " axes");
  for (const int64_t pad : pads)
    if (pad < 0 || pad > build::kMaxWindowNumber) node.invalid("a pad of " + std::to_string(pad));
  return pads;
}

build::Windows windows_over(NodeContext& node, V map, const std::vector<int64_t>& kernel, LegacyPad legacy) {
  const size_t rank = kernel.size();
  build::Windows windows{kernel, window_numbers(node, "strides", "stride", rank),
                         window_numbers(node, "dilations", "dilation", rank), pads_of(node, rank)};
  if (legacy == LegacyPad::kNone || legacy == LegacyPad::kCaffe) return windows;
  windows.pads.assign(2 * rank, 0);
  if (legacy == LegacyPad::kValid) return windows;
  for (size_t d = 0; d < rank; ++d)
    if (windows.dilations[d] != 1 || kernel[d] + 1 < windows.strides[d])
      node.unsupported("legacy_pad", "windows with gaps between their elements or between each other");
  build::pad_same(windows, node.shape(map), true);
  return windows;
}

}  // namespace tensormill::frontend::caffe2
