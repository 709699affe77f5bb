/// Windows over maps, as attributes say them. Errors: Error(kInvalidModel) for numbers that are none,
/// UnsupportedForm for windows over the batch or the channels. Thread-safety: as the context.
#pragma once

#include "compiler/build/maps/windows.h"
#include "compiler/frontend/tensorflow/node_context.h"

namespace tensormill::frontend::tensorflow {

void check_rank(const NodeContext& node, V value, int64_t rank, const char* what);
/// Of a list with a number for each axis of the map, those of the spatial ones.
std::vector<int64_t> spatial(NodeContext& node, const char* name, size_t rank, bool has_default,
                             bool is_channels_first);
/// The same where the attribute data_format says where the channels are.
std::vector<int64_t> spatial(NodeContext& node, const char* name, size_t rank, bool has_default);
/// The windows over map [N,C,spatial...] with what the attribute padding says.
build::Windows windows_of(NodeContext& node, V map, const std::vector<int64_t>& kernel,
                          std::vector<int64_t> strides, std::vector<int64_t> dilations, bool has_explicit);

}  // namespace tensormill::frontend::tensorflow
