/// The files of a model of several, however it was given. Thread-safety: what is returned belongs to one
/// thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/frontend/onnx/import.h"
#include "compiler/frontend/wire/archive_files.h"
#include "runtime/base/digest.h"

namespace tensormill::frontend {

struct SourceFiles {
  wire::ModelFiles files;
  std::shared_ptr<const void> owner;  ///< of their contents
};

/// `main`: the model's main file, which is the source's own bytes where these are no archive; others are the
/// files beside it. Throws as wire::ArchiveFiles.
SourceFiles files_of(const onnx::ModelSource& source, const std::string& main);
/// Of a model of several files: of its own bytes, and of the names and bytes of those beside it; `kind`: what
/// distinguishes it from a model of another format with the same files.
Digest digest_of(const onnx::ModelSource& source, std::string_view kind);

}  // namespace tensormill::frontend
