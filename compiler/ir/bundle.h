/// A graph on disk: what the import child hands to the codegen child, so that the second never sees the
/// stranger's file. Two files: text (a line per large constant, then the graph's text form) and the
/// constants' bytes, each 64-byte aligned, so that they are mapped and never copied. Thread-safety: pure
/// functions.
#pragma once

#include <memory>

#include "compiler/ir/graph.h"
#include "runtime/base/file.h"

namespace tensormill::ir {

/// Writes both files. Throws Error(kIo) or Error(kDiskFull).
void write_bundle(const Graph& graph, int text_fd, int constants_fd);
/// Throws Error(kInvalidModel) when the text does not parse or refers to bytes that are not there.
Graph read_bundle(const MappedFile& text, const std::shared_ptr<const MappedFile>& constants,
                  const OpRegistry& ops);

}  // namespace tensormill::ir
