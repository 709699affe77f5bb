#include "compiler/frontend/importer/source_files.h"

#include <optional>

namespace tensormill::frontend {

SourceFiles files_of(const onnx::ModelSource& source, const std::string& main) {
  if (wire::is_archive(source.model->text())) {
    struct Archive {
      std::shared_ptr<const MappedFile> file;
      wire::ArchiveFiles files;
    };
    const auto archive =
        std::make_shared<Archive>(Archive{source.model, wire::ArchiveFiles(source.model->text(), main)});
    return {[archive](const std::string& name) { return archive->files.find(name); }, archive};
  }
  const auto owner = std::make_shared<const onnx::ModelSource>(source);
  return {[owner, main](const std::string& name) -> std::optional<std::string_view> {
            if (name == main) return owner->model->text();
            const auto found = owner->external.find(name);
            return found == owner->external.end() ? std::nullopt : std::optional(found->second->text());
          },
          owner};
}

Digest digest_of(const onnx::ModelSource& source, std::string_view kind) {
  Hasher hasher;
  hasher.update_field(kind);
  hasher.update_field(Digest::of(source.model->bytes()).text());
  for (const auto& [name, file] : source.external) {
    hasher.update_field(name);
    hasher.update_field(Digest::of(file->bytes()).text());
  }
  return hasher.finish();
}

}  // namespace tensormill::frontend
