#include <algorithm>
#include <cmath>

#include "compiler/frontend/tflite/model.h"
#include "compiler/frontend/tflite/options.h"
#include "compiler/frontend/tflite/sparse.h"
#include "compiler/frontend/tflite/verify.h"
#include "compiler/frontend/tflite/views.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::tflite {

namespace {

constexpr uint32_t kSchemaVersion = 3;
constexpr int32_t kNumTypes = 23;

/// Elements of a shape without free dims; nothing past 64 bits.
std::optional<uint64_t> elements_of(Ints shape) {
  uint64_t count = 1;
  for (const int32_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count))
      return std::nullopt;
  }
  return count;
}

constexpr size_t kMaxRank = 64, kMaxPorts = 65'536, kMaxSignatures = 4'096, kMaxNameBytes = 4'096;

/// Tables may share lists, so that a small file names very many numbers: what is looked at is a few times the
/// file.
uint64_t numbers_allowed(std::string_view bytes) { return 2 * uint64_t{bytes.size()} + 1'000'000; }

class Reader {
public:
  explicit Reader(std::string_view bytes)
      : bytes_(bytes), from_(verified_root(bytes)), budget_("numbers", numbers_allowed(bytes)) {}

  Model read() {
    if (from_.version() != kSchemaVersion)
      throw Error(ErrorCode::kNotSupported, "a TFLite file of schema version " +
                                                std::to_string(from_.version()) + "; version 3 is read");
    model_.description = text_of(from_.description());
    read_buffers();
    read_external_buffers();
    read_codes();
    read_subgraphs();
    read_metadata();
    read_signatures();
    return std::move(model_);
  }

private:
  [[noreturn]] void fail(const std::string& what, const void* at) const {
    throw Error(ErrorCode::kInvalidModel, where_ + place_of(bytes_, at) + ": " + what);
  }

  template <typename T, typename Read>
  void each(const flatbuffers::Vector<flatbuffers::Offset<T>>* list, const std::string& what,
            const Read& read) {
    if (list == nullptr) return;
    const std::string around = where_;
    for (flatbuffers::uoffset_t i = 0; i < list->size(); ++i) {
      where_ = around + (around.empty() ? "" : ", ") + what + " " + std::to_string(i);
      try {
        read(*list->Get(i));
      } catch (Error& error) {
        if (!error.message().starts_with(where_)) error.add_context(where_ + place_of(bytes_, list->Get(i)));
        throw;
      }
    }
    where_ = around;
  }

  /// Offsets up to 1 stand for none.
  std::optional<std::string_view> behind_tables(uint64_t offset, uint64_t size, const void* at) const {
    if (offset <= 1) return std::nullopt;
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      fail("its " + std::to_string(size) + " bytes at " + std::to_string(offset) +
               " pass the end of the file, " + std::to_string(bytes_.size()),
           at);
    return bytes_.substr(offset, size);
  }

  void read_buffers() {
    each(from_.buffers(), "buffer", [&](const tflite_file::Buffer& buffer) {
      const auto behind = behind_tables(buffer.offset(), buffer.size(), &buffer);
      model_.buffers.push_back(behind ? *behind : bytes_of(buffer.data()));
    });
  }

  void read_external_buffers() {
    const auto* groups = from_.external_buffer_groups();
    const size_t count = groups == nullptr ? 0 : groups->size();
    each(from_.external_buffers(), "external buffer", [&](const tflite_file::ExternalBuffer& buffer) {
      if (buffer.group() >= count)
        fail("group " + std::to_string(buffer.group()) + " of " + std::to_string(count), &buffer);
      if (buffer.id() == 0) fail("id 0 stands for none", &buffer);
      const ExternalBuffer to = {text_of(groups->Get(buffer.group())->name()), buffer.offset(),
                                 buffer.length(), text_of(buffer.packing())};
      if (!model_.external_buffers.emplace(buffer.id(), to).second)
        fail("id " + std::to_string(buffer.id()) + " stands twice", &buffer);
    });
  }

  void read_codes() {
    each(from_.operator_codes(), "operator code", [&](const tflite_file::OperatorCode& code) {
      OperatorCode to;
      to.builtin = std::max<int32_t>(code.deprecated_builtin_code(), code.builtin_code());
      to.custom = text_of(code.custom_code());
      to.version = code.version();
      if (to.custom.size() > kMaxNameBytes)
        fail("a name of " + std::to_string(to.custom.size()) + " bytes", &code);
      if (to.builtin < 0) fail("code " + std::to_string(to.builtin), &code);
      model_.codes.push_back(to);
    });
  }

  void read_subgraphs() {
    num_subgraphs_ = from_.subgraphs() == nullptr ? 0 : from_.subgraphs()->size();
    if (num_subgraphs_ == 0) throw Error(ErrorCode::kInvalidModel, "the file has no subgraph");
    each(from_.subgraphs(), "subgraph", [&](const tflite_file::SubGraph& graph) {
      Subgraph to;
      to.name = text_of(graph.name());
      if (graph.tensors() != nullptr) to.tensors.reserve(graph.tensors()->size());
      if (graph.operators() != nullptr) to.operators.reserve(graph.operators()->size());
      each(graph.tensors(), "tensor",
           [&](const tflite_file::Tensor& tensor) { to.tensors.push_back(read_tensor(tensor)); });
      to.inputs = indices(graph.inputs(), "input", to.tensors.size(), 0, &graph);
      to.outputs = indices(graph.outputs(), "output", to.tensors.size(), 0, &graph);
      if (to.inputs.size() + to.outputs.size() > kMaxPorts)
        fail("more than " + std::to_string(kMaxPorts) + " inputs and outputs", &graph);
      each(graph.operators(), "operator", [&](const tflite_file::Operator& node) {
        to.operators.push_back(read_operator(node, to.tensors.size()));
      });
      check_details(to);
      mark_constants(to);
      model_.subgraphs.push_back(std::move(to));
    });
  }

  Ints indices(const flatbuffers::Vector<int32_t>* list, const char* what, size_t count, int32_t least,
               const void* at) const {
    const Ints to = span_of<int32_t>(list);
    budget_.spend(to.size());
    for (const int32_t index : to) {
      if (index < least || (index >= 0 && static_cast<size_t>(index) >= count))
        fail(std::string(what) + " is tensor " + std::to_string(index) + " of " + std::to_string(count), at);
    }
    return to;
  }

  Tensor read_tensor(const tflite_file::Tensor& tensor) {
    Tensor to;
    to.name = text_of(tensor.name());
    const auto type = static_cast<int32_t>(tensor.type());
    if (type < 0 || type >= kNumTypes) fail("element type " + std::to_string(type), &tensor);
    to.type = static_cast<TensorType>(type);
    to.shape = span_of<int32_t>(tensor.shape());
    to.signature = tensor.shape_signature() == nullptr || tensor.shape_signature()->size() == 0
                       ? to.shape
                       : span_of<int32_t>(tensor.shape_signature());
    check_shape(to, &tensor);
    to.has_rank = tensor.has_rank();
    to.is_variable = tensor.is_variable();
    to.buffer = tensor.buffer();
    if (to.buffer >= model_.buffers.size() && to.buffer != 0)
      fail("buffer " + std::to_string(to.buffer) + " of " + std::to_string(model_.buffers.size()), &tensor);
    to.external_buffer = tensor.external_buffer();
    if (to.external_buffer != 0 && !model_.external_buffers.contains(to.external_buffer))
      fail("there is no external buffer " + std::to_string(to.external_buffer), &tensor);
    if (tensor.quantization() != nullptr) to.quantization = read_quantization(*tensor.quantization(), to);
    if (tensor.sparsity() != nullptr) to.sparsity = read_sparsity(*tensor.sparsity(), to, budget_);
    return to;
  }

  void check_shape(const Tensor& to, const void* at) const {
    if (to.signature.size() != to.shape.size())
      fail("a shape of " + std::to_string(to.shape.size()) + " dims and a signature of " +
               std::to_string(to.signature.size()),
           at);
    if (to.shape.size() > kMaxRank) fail("a shape of " + std::to_string(to.shape.size()) + " dims", at);
    for (size_t i = 0; i < to.shape.size(); ++i) {
      if (to.shape[i] < -1 || to.signature[i] < -1)
        fail("extent " + std::to_string(std::min(to.shape[i], to.signature[i])), at);
    }
  }

  Quantization read_quantization(const tflite_file::QuantizationParameters& from,
                                 const Tensor& tensor) const {
    Quantization to;
    to.min = span_of<float>(from.min());
    to.max = span_of<float>(from.max());
    to.scale = span_of<float>(from.scale());
    to.zero_point = span_of<int64_t>(from.zero_point());
    to.dimension = from.quantized_dimension();
    if (const auto* custom = from.details_as_CustomQuantization()) to.details = bytes_of(custom->custom());
    if (const auto* blocks = from.details_as_BlockwiseQuantization())
      to.details = BlockwiseQuantization{blocks->scales(), blocks->zero_points(), blocks->block_size()};
    if (const auto* axes = from.details_as_MultiAxisQuantization())
      to.details = MultiAxisQuantization{axes->scales(), axes->zero_points(), axes->block_size(),
                                         span_of<int32_t>(axes->quantized_dimensions())};
    budget_.spend(to.scale.size());
    const size_t count = to.scale.size();
    const size_t zeros = to.zero_point.size();
    if (count != 0 && zeros > 1 && zeros != count)
      fail(std::to_string(count) + " scales and " + std::to_string(zeros) + " zero points", &from);
    for (const float scale : to.scale)
      if (!std::isfinite(scale) || scale < 0) fail("scale " + std::to_string(scale), &from);
    if (count <= 1) return to;
    const auto dim = static_cast<size_t>(to.dimension);
    if (to.dimension < 0 || dim >= tensor.shape.size())
      fail("quantized dimension " + std::to_string(to.dimension) + " of " +
               std::to_string(tensor.shape.size()),
           &from);
    if (tensor.shape[dim] >= 0 && static_cast<size_t>(tensor.shape[dim]) != count)
      fail(std::to_string(count) + " scales along a dimension of extent " + std::to_string(tensor.shape[dim]),
           &from);
    return to;
  }

  /// Scales and zero points of details are tensors, of which all are known by now.
  void check_details(const Subgraph& graph) const {
    const auto tensor = [&](int32_t index, int32_t least) {
      if (index < least || (index >= 0 && static_cast<size_t>(index) >= graph.tensors.size()))
        throw Error(ErrorCode::kInvalidModel, where_ + ": quantization details name tensor " +
                                                  std::to_string(index) + " of " +
                                                  std::to_string(graph.tensors.size()));
    };
    const auto check = [&](const auto& details, const Tensor& of) {
      tensor(details.scales, 0);
      tensor(details.zero_points, -1);
      if (details.block_size < 0) throw Error(ErrorCode::kInvalidModel, where_ + ": a block size below 0");
      if constexpr (requires { details.dims; }) {
        budget_.spend(details.dims.size());
        for (const int32_t dim : details.dims)
          if (dim < 0 || static_cast<size_t>(dim) >= of.shape.size())
            throw Error(ErrorCode::kInvalidModel, where_ + ": quantized dimension " + std::to_string(dim));
      }
    };
    for (const Tensor& of : graph.tensors) {
      const auto& details = of.quantization.details;
      if (const auto* blocks = std::get_if<BlockwiseQuantization>(&details)) check(*blocks, of);
      if (const auto* axes = std::get_if<MultiAxisQuantization>(&details)) check(*axes, of);
    }
  }

  Operator read_operator(const tflite_file::Operator& from, size_t tensors) const {
    Operator to;
    to.code = from.opcode_index();
    if (to.code >= model_.codes.size())
      fail("operator code " + std::to_string(to.code) + " of " + std::to_string(model_.codes.size()), &from);
    to.inputs = indices(from.inputs(), "input", tensors, -1, &from);
    to.outputs = indices(from.outputs(), "output", tensors, -1, &from);
    to.intermediates = indices(from.intermediates(), "intermediate", tensors, -1, &from);
    to.mutating_variable_inputs = span_of<uint8_t>(from.mutating_variable_inputs());
    to.options = read_options(from);
    const std::vector<int64_t> subgraphs = named_subgraphs(to.options);
    budget_.spend(subgraphs.size());
    for (const int64_t index : subgraphs) {
      if (index < 0 || static_cast<uint64_t>(index) >= num_subgraphs_)
        fail("it names subgraph " + std::to_string(index) + " of " + std::to_string(num_subgraphs_), &from);
    }
    const auto behind =
        behind_tables(from.large_custom_options_offset(), from.large_custom_options_size(), &from);
    to.custom_options = behind ? *behind : bytes_of(from.custom_options());
    return to;
  }

  /// Which tensors are constants, whose bytes must be as many as the shape and the type say.
  void mark_constants(Subgraph& graph) const {
    std::vector<bool> is_made(graph.tensors.size());
    for (const int32_t input : graph.inputs) is_made[static_cast<size_t>(input)] = true;
    for (const Operator& node : graph.operators)
      for (const int32_t output : node.outputs)
        if (output >= 0) is_made[static_cast<size_t>(output)] = true;
    for (size_t i = 0; i < graph.tensors.size(); ++i) {
      Tensor& tensor = graph.tensors[i];
      const std::string_view data =
          tensor.buffer < model_.buffers.size() ? model_.buffers[tensor.buffer] : std::string_view();
      const bool is_empty = !is_made[i] && tensor.buffer != 0 && elements_of(tensor.shape) == 0;
      tensor.is_constant = !is_made[i] && (!data.empty() || tensor.external_buffer != 0 || is_empty);
      if (!tensor.is_constant || tensor.external_buffer != 0) continue;
      tensor.data = data;
      check_bytes(tensor, i);
    }
  }

  void check_bytes(const Tensor& tensor, size_t index) const {
    const auto refuse = [&](const std::string& what) {
      throw Error(ErrorCode::kInvalidModel, where_ + ", constant " + std::to_string(index) + " \"" +
                                                std::string(tensor.name.substr(0, 200)) + "\": " + what);
    };
    const int bits = type_bits(tensor.type);
    if (bits == 0) return;
    const std::optional<uint64_t> count =
        tensor.sparsity ? stored_elements(*tensor.sparsity) : elements_of(tensor.shape);
    if (!count || *count > (uint64_t{1} << 56))
      refuse("its shape has a free dim, or more elements than there can be");
    const uint64_t bytes = (*count * static_cast<uint64_t>(bits) + 7) / 8;
    if (bytes != tensor.data.size())
      refuse("buffer " + std::to_string(tensor.buffer) + " has " + std::to_string(tensor.data.size()) +
             " bytes, its shape and type say " + std::to_string(bytes));
  }

  void read_metadata() {
    each(from_.metadata(), "metadata entry", [&](const tflite_file::Metadata& entry) {
      if (entry.buffer() >= model_.buffers.size())
        fail("buffer " + std::to_string(entry.buffer()) + " of " + std::to_string(model_.buffers.size()),
             &entry);
      model_.metadata.emplace(text_of(entry.name()), model_.buffers[entry.buffer()]);
    });
  }

  void read_signatures() {
    if (from_.signature_defs() != nullptr && from_.signature_defs()->size() > kMaxSignatures)
      throw Error(ErrorCode::kInvalidModel, "more than " + std::to_string(kMaxSignatures) + " signatures");
    each(from_.signature_defs(), "signature", [&](const tflite_file::SignatureDef& from) {
      Signature to;
      to.key = text_of(from.signature_key());
      to.subgraph = from.subgraph_index();
      if (to.subgraph >= model_.subgraphs.size()) fail("subgraph " + std::to_string(to.subgraph), &from);
      const size_t tensors = model_.subgraphs[to.subgraph].tensors.size();
      const auto names = [&](const auto* list, const char* what, std::vector<NamedTensor>& named) {
        each(list, what, [&](const tflite_file::TensorMap& entry) {
          if (entry.tensor_index() >= tensors) fail("tensor " + std::to_string(entry.tensor_index()), &entry);
          named.push_back({text_of(entry.name()), entry.tensor_index()});
        });
      };
      names(from.inputs(), "input", to.inputs);
      names(from.outputs(), "output", to.outputs);
      model_.signatures.push_back(std::move(to));
    });
  }

  std::string_view bytes_;
  const tflite_file::Model& from_;
  Model model_;
  size_t num_subgraphs_ = 0;
  mutable WorkBudget budget_;
  std::string where_;  ///< "subgraph 0, operator 3", for errors
};

}  // namespace

Model read_model(std::string_view bytes) { return Reader(bytes).read(); }

}  // namespace tensormill::frontend::tflite
