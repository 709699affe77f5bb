#include "compiler/frontend/tensorflow/converters/windows.h"

#include <algorithm>

namespace tensormill::frontend::tensorflow {

void check_rank(const NodeContext& node, V value, int64_t rank, const char* what) {
  if (node.rank(value) != rank)
    node.invalid(std::string(what) + " has rank " + std::to_string(node.rank(value)) + ", expected " +
                 std::to_string(rank));
}

std::vector<int64_t> spatial(NodeContext& node, const char* name, size_t rank, bool has_default,
                             bool is_channels_first) {
  std::vector<int64_t> otherwise(rank + 2, 1);
  const ir::Ints all = has_default ? node.ints(name, otherwise) : node.ints(name);
  if (all.size() != rank + 2)
    node.invalid(std::string(name) + " has " + std::to_string(all.size()) + " numbers");
  if (all[0] != 1 || all[is_channels_first ? 1 : rank + 1] != 1)
    node.unsupported(name, "numbers for the batch or the channels are not implemented");
  const auto begin = all.begin() + (is_channels_first ? 2 : 1);
  return {begin, begin + static_cast<std::ptrdiff_t>(rank)};
}

std::vector<int64_t> spatial(NodeContext& node, const char* name, size_t rank, bool has_default) {
  return spatial(node, name, rank, has_default, node.is_channels_first());
}

build::Windows windows_of(NodeContext& node, V map, const std::vector<int64_t>& kernel,
                          std::vector<int64_t> strides, std::vector<int64_t> dilations, bool has_explicit) {
  const size_t rank = kernel.size();
  using Numbers = std::initializer_list<const std::vector<int64_t>*>;
  for (const std::vector<int64_t>* numbers : Numbers{&kernel, &strides, &dilations}) {
    for (const int64_t number : *numbers) {
      if (number < 1 || number > build::kMaxWindowNumber)
        node.invalid("a window, stride or dilation of " + std::to_string(number));
    }
  }
  build::Windows windows{kernel, std::move(strides), std::move(dilations), {}};
  windows.pads.assign(2 * rank, 0);
  const std::string padding = node.text("padding");
  std::vector<int64_t> given;
  if (has_explicit) given = node.ints("explicit_paddings", std::vector<int64_t>());
  if (padding == "VALID") return windows;
  if (padding == "EXPLICIT") {
    if (given.size() != 2 * (rank + 2))
      node.invalid("explicit_paddings has " + std::to_string(given.size()) + " numbers");
    const size_t first = node.is_channels_first() ? 2 : 1;
    for (size_t d = 0; d < rank; ++d) {
      windows.pads[d] = given[2 * (first + d)];
      windows.pads[d + rank] = given[2 * (first + d) + 1];
      if (windows.pads[d] < 0 || windows.pads[d + rank] < 0 ||
          std::max(windows.pads[d], windows.pads[d + rank]) > build::kMaxWindowNumber)
        node.invalid("explicit_paddings are no pads");
    }
    return windows;
  }
  if (padding != "SAME") node.invalid("padding is \"" + padding + "\"");
  build::pad_same(windows, node.shape(map), true);
  return windows;
}

}  // namespace tensormill::frontend::tensorflow
