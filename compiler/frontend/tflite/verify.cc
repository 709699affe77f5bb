#include "compiler/frontend/tflite/verify.h"

#include <functional>
#include <string>

#include "runtime/base/error.h"

namespace tensormill::frontend::tflite {

namespace {

using flatbuffers::Offset;
using flatbuffers::Table;
using flatbuffers::Vector;
using FileModel = tflite_file::Model;
using FileSubGraph = tflite_file::SubGraph;

constexpr flatbuffers::uoffset_t kMaxDepth = 64, kMaxTables = 1'000'000;
/// What offsets of 32 bits reach; weights of larger files lie behind it, outside of any table.
constexpr size_t kMaxReach = FLATBUFFERS_MAX_BUFFER_SIZE - 1;

class Walk {
public:
  explicit Walk(std::string_view bytes)
      : bytes_(bytes),
        verifier_(reinterpret_cast<const uint8_t*>(bytes.data()), std::min(bytes.size(), kMaxReach),
                  kMaxDepth, kMaxTables) {}

  const FileModel& model() {
    const auto root = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(bytes_.data());
    if (root == 0 || root >= std::min(bytes_.size(), kMaxReach)) fail("the root", nullptr);
    const auto* model = reinterpret_cast<const FileModel*>(bytes_.data() + root);
    const auto& table = begin(model, "the model");
    const auto each = [&](flatbuffers::voffset_t field, const auto* type, const char* what) {
      for_each(table, field, type, what,
               [&](const auto* element, const std::string& name) { whole(element, name); });
    };
    each(FileModel::VT_OPERATOR_CODES, list<tflite_file::OperatorCode>(), "operator code");
    each(FileModel::VT_BUFFERS, list<tflite_file::Buffer>(), "buffer");
    for_each(table, FileModel::VT_SUBGRAPHS, list<FileSubGraph>(), "subgraph",
             [&](const FileSubGraph* element, const std::string& name) { subgraph(element, name); });
    each(FileModel::VT_METADATA, list<tflite_file::Metadata>(), "metadata entry");
    each(FileModel::VT_SIGNATURE_DEFS, list<tflite_file::SignatureDef>(), "signature");
    each(FileModel::VT_EXTERNAL_BUFFER_GROUPS, list<tflite_file::ExternalBufferGroup>(),
         "external buffer group");
    each(FileModel::VT_EXTERNAL_BUFFERS, list<tflite_file::ExternalBuffer>(), "external buffer");
    // Versions stand beside the lists: as much of a table as is not checked above.
    if (!table.VerifyField<uint32_t>(verifier_, FileModel::VT_VERSION, 4)) fail("the model's version", model);
    text(table, FileModel::VT_DESCRIPTION, "the model's description");
    numbers<int32_t>(table, FileModel::VT_METADATA_BUFFER, "the model's list of metadata buffers");
    verifier_.EndTable();
    return *model;
  }

private:
  template <typename T>
  static const Vector<Offset<T>>* list() {
    return nullptr;
  }

  [[noreturn]] void fail(const std::string& what, const void* at) const {
    throw Error(ErrorCode::kInvalidModel, what + place_of(bytes_, at) +
                                              " is broken: it or what it names lies outside of the file, is "
                                              "not aligned, or there are more than " +
                                              std::to_string(kMaxTables) + " tables");
  }

  template <typename T>
  const Table& begin(const T* element, const std::string& name) {
    const auto* table = reinterpret_cast<const Table*>(element);
    if (!table->VerifyTableStart(verifier_)) fail(name, element);
    return *table;
  }

  template <typename T>
  void whole(const T* element, const std::string& name) {
    if (!element->Verify(verifier_)) fail(name, element);
  }

  void text(const Table& table, flatbuffers::voffset_t field, const char* what) {
    if (!table.VerifyOffset(verifier_, field) ||
        !verifier_.VerifyString(table.GetPointer<const flatbuffers::String*>(field)))
      fail(what, &table);
  }

  template <typename T>
  void numbers(const Table& table, flatbuffers::voffset_t field, const std::string& what) {
    if (!table.VerifyOffset(verifier_, field) ||
        !verifier_.VerifyVector(table.GetPointer<const Vector<T>*>(field)))
      fail(what, &table);
  }

  template <typename T, typename Check>
  void for_each(const Table& table, flatbuffers::voffset_t field, const Vector<Offset<T>>*,
                const std::string& what, const Check& check) {
    if (!table.VerifyOffset(verifier_, field)) fail("the list of each " + what, &table);
    const auto* elements = table.GetPointer<const Vector<Offset<T>>*>(field);
    if (!verifier_.VerifyVector(elements)) fail("the list of each " + what, elements);
    if (elements == nullptr) return;
    for (flatbuffers::uoffset_t i = 0; i < elements->size(); ++i)
      check(elements->Get(i), what + " " + std::to_string(i));
  }

  void subgraph(const FileSubGraph* graph, const std::string& name) {
    const Table& table = begin(graph, name);
    const auto check = [&](const auto* element, const std::string& what) { whole(element, what); };
    for_each(table, FileSubGraph::VT_TENSORS, list<tflite_file::Tensor>(), name + ", tensor", check);
    for_each(table, FileSubGraph::VT_OPERATORS, list<tflite_file::Operator>(), name + ", operator", check);
    numbers<int32_t>(table, FileSubGraph::VT_INPUTS, name + ", inputs");
    numbers<int32_t>(table, FileSubGraph::VT_OUTPUTS, name + ", outputs");
    text(table, FileSubGraph::VT_NAME, "a subgraph's name");
    verifier_.EndTable();
  }

  std::string_view bytes_;
  flatbuffers::Verifier verifier_;
};

}  // namespace

std::string place_of(std::string_view bytes, const void* at) {
  const auto* place = static_cast<const char*>(at);
  const std::less<const char*> before;
  if (at == nullptr || before(place, bytes.data()) || !before(place, bytes.data() + bytes.size())) return "";
  return " at byte " + std::to_string(place - bytes.data());
}

const tflite_file::Model& verified_root(std::string_view bytes) {
  TM_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % 16 == 0, "the bytes of a model are not aligned");
  if (bytes.size() < 8 || bytes.substr(4, 4) != "TFL3")
    throw Error(ErrorCode::kInvalidModel, "no TFLite file: \"TFL3\" does not stand at byte 4");
  return Walk(bytes).model();
}

}  // namespace tensormill::frontend::tflite
