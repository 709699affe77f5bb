/// Graphs on disk: what the process that imports a model hands to the one that compiles it, so that the
/// second never sees the untrusted file. Two files: text (a line per constant, then each graph's text form
/// after a line with its size) and the constants' bytes, each 64-byte aligned, so that they are mapped and
/// never copied. Thread-safety: pure functions.
#pragma once

#include <memory>

#include "compiler/ir/graph.h"
#include "runtime/base/file.h"

namespace tensormill::ir {

/// Writes both files: constants that several graphs have stand there once. Throws Error(kIo) or
/// Error(kDiskFull).
void write_bundle(const std::vector<const Graph*>& graphs, int text_fd, int constants_fd);
/// Throws Error(kInvalidModel) when the text does not parse or refers to bytes that are not there.
std::vector<Graph> read_bundle(const MappedFile& text, const std::shared_ptr<const MappedFile>& constants,
                               const OpRegistry& ops);

}  // namespace tensormill::ir
