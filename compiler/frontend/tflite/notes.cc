#include "compiler/frontend/tflite/notes.h"

#include <cstring>

#include <tflite_metadata_generated.h>

#include "compiler/frontend/tflite/views.h"
#include "compiler/frontend/wire/zip.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::tflite {

namespace {

constexpr uint64_t kMaxAppended = uint64_t{64} << 20;
constexpr flatbuffers::uoffset_t kNotesDepth = 64, kNotesTables = 100'000;

template <typename Enum>
Enum enum_of(int number, int count) {
  return number >= 0 && number < count ? static_cast<Enum>(number) : static_cast<Enum>(0);
}

void read_image(const tflite_notes::Content* content, TensorNotes& to) {
  const auto* image = content == nullptr ? nullptr : content->content_properties_as_ImageProperties();
  if (image == nullptr) return;
  to.is_image = true;
  to.color = enum_of<ColorSpace>(image->color_space(), 3);
  if (image->default_size() == nullptr) return;
  to.width = image->default_size()->width();
  to.height = image->default_size()->height();
}

TensorNotes read_tensor(const tflite_notes::TensorMetadata& from) {
  TensorNotes to;
  to.name = text_of(from.name());
  to.description = text_of(from.description());
  read_image(from.content(), to);
  for (size_t i = 0; from.process_units() != nullptr && i < from.process_units()->size(); ++i) {
    const auto* unit = from.process_units()->Get(static_cast<flatbuffers::uoffset_t>(i));
    const auto* normalization = unit->options_as_NormalizationOptions();
    if (normalization == nullptr) continue;
    to.mean = span_of<float>(normalization->mean());
    to.std = span_of<float>(normalization->std());
  }
  for (size_t i = 0; from.associated_files() != nullptr && i < from.associated_files()->size(); ++i) {
    const auto* file = from.associated_files()->Get(static_cast<flatbuffers::uoffset_t>(i));
    to.files.push_back({text_of(file->name()), enum_of<FileKind>(file->type(), 7), text_of(file->locale())});
  }
  return to;
}

std::vector<TensorNotes> read_tensors(
    const flatbuffers::Vector<flatbuffers::Offset<tflite_notes::TensorMetadata>>* list) {
  std::vector<TensorNotes> tensors;
  for (size_t i = 0; list != nullptr && i < list->size(); ++i)
    tensors.push_back(read_tensor(*list->Get(static_cast<flatbuffers::uoffset_t>(i))));
  return tensors;
}

}  // namespace

std::optional<ModelNotes> read_notes(const Model& model) {
  const auto found = model.metadata.find("TFLITE_METADATA");
  if (found == model.metadata.end() || found->second.empty()) return std::nullopt;
  const auto* data = reinterpret_cast<const uint8_t*>(found->second.data());
  const size_t size = found->second.size();
  // Writers pack descriptions as bytes, at any place.
  std::shared_ptr<const std::vector<uint8_t>> moved;
  if (reinterpret_cast<uintptr_t>(data) % 8 != 0) {
    moved = std::make_shared<const std::vector<uint8_t>>(data, data + size);
    data = moved->data();
  }
  flatbuffers::Verifier verifier(data, size, kNotesDepth, kNotesTables);
  if (size < 8 || size >= FLATBUFFERS_MAX_BUFFER_SIZE || !tflite_notes::VerifyModelMetadataBuffer(verifier))
    throw Error(ErrorCode::kInvalidModel, "metadata entry TFLITE_METADATA is broken");
  const auto& from = *tflite_notes::GetModelMetadata(data);
  ModelNotes to;
  to.moved = moved;
  to.name = text_of(from.name());
  to.description = text_of(from.description());
  to.version = text_of(from.version());
  to.author = text_of(from.author());
  to.license = text_of(from.license());
  if (from.subgraph_metadata() != nullptr && from.subgraph_metadata()->size() > 0) {
    const auto* graph = from.subgraph_metadata()->Get(0);
    to.inputs = read_tensors(graph->input_tensor_metadata());
    to.outputs = read_tensors(graph->output_tensor_metadata());
  }
  return to;
}

namespace {

uint32_t number_at(std::string_view bytes, size_t at) {
  uint32_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

/// The archive behind a model. Its places are those in the whole file, as Python appends to one, or those in
/// the archive, where it was made alone: what lies before it tells.
std::string_view archive_of(std::string_view bytes) {
  constexpr size_t kEndBytes = 22, kSizeAt = 12, kOffsetAt = 16;
  constexpr uint64_t kElsewhere = 0xffffffff;
  const size_t end = bytes.rfind("PK\5\6");
  if (end == std::string_view::npos || bytes.size() - end < kEndBytes) return bytes;
  const uint64_t size = number_at(bytes, end + kSizeAt), offset = number_at(bytes, end + kOffsetAt);
  if (size == kElsewhere || offset == kElsewhere || size + offset > end) return bytes;
  return bytes.substr(end - size - offset);
}

}  // namespace

AppendedFiles associated_files(std::string_view bytes) {
  AppendedFiles files;
  if (!wire::ends_as_zip(bytes)) return files;
  wire::ZipFile zip(archive_of(bytes), {.members = 1000, .inflated_bytes = kMaxAppended});
  uint64_t total = 0;
  for (const npz::ZipMember& member : zip.members()) {
    total += member.size;
    if (total > kMaxAppended)
      throw Error(ErrorCode::kInvalidModel, "the files appended to the model have more than 64 MiB");
    files.emplace_back(member.name, std::string(zip.read(member.name)));
  }
  return files;
}

std::vector<std::string> label_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace tensormill::frontend::tflite
