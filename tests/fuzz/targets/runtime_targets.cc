#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/json_reader.h"
#include "runtime/base/number_text.h"
#include "runtime/image/image.h"
#include "runtime/npz/npz.h"
#include "runtime/package/choose_plan.h"
#include "runtime/package/code_image.h"
#include "runtime/package/elf_admission.h"
#include "runtime/package/exec_plan.h"
#include "runtime/package/metadata.h"
#include "runtime/package/package_reader.h"
#include "runtime/package/plan_memory.h"
#include "runtime/package/tar_reader.h"
#include "tests/fuzz/tar_checksums.h"
#include "tests/fuzz/targets.h"

namespace tensormill::fuzz {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 24;
/// Of free dims.
constexpr int64_t kExtents[] = {0, 1, 3, 17, int64_t{1} << 40, INT64_MAX};

std::span<const std::byte> as_bytes(std::string_view bytes) {
  return std::as_bytes(std::span(bytes.data(), bytes.size()));
}

int depth_of(const Json& value) {
  if (!value.is_structured()) return 0;
  int deepest = 0;
  for (const Json& item : value) deepest = std::max(deepest, depth_of(item));
  return deepest + 1;
}

uint64_t count_of(const Json& value) {
  uint64_t count = 1;
  if (value.is_structured()) {
    for (const Json& item : value) count += count_of(item);
  }
  return count;
}

class PiecesOf : public JsonText {
public:
  PiecesOf(std::string_view text, size_t size) : text_(text), size_(size) {}
  std::string_view next() override {
    piece_ = std::string(text_.substr(0, size_));
    text_.remove_prefix(piece_.size());
    return piece_;
  }

private:
  std::string_view text_;
  size_t size_;
  std::string piece_;
};

Json in_pieces(std::string_view text, size_t size) {
  PiecesOf pieces(text, size);
  JsonBuilder builder;
  JsonReader(pieces, builder).read();
  return builder.take();
}

/// A text that is read must be the same to the library of the document, which knows no limits, takes members
/// twice and ends at a zero byte; a text that it does not take must be refused.
void check_against_dom(std::string_view bytes) {
  const Json other = Json::parse(bytes.begin(), bytes.end(), nullptr, false);
  try {
    const Json read = parse_json(bytes);
    TM_CHECK(!other.is_discarded() && bytes.find('\0') == std::string_view::npos, "what is no JSON was read");
    TM_CHECK(read == other && canonical_json(read) == other.dump(), "another value was read");
  } catch (const Error&) {
    return;
  }
}

/// Reads every byte, so that a view of what is not there is noticed.
void touch(const TensorView& view) {
  const auto* bytes = static_cast<const volatile char*>(view.data);
  for (int64_t i = 0; i < num_bytes(view.shape, view.dtype); ++i) static_cast<void>(bytes[i]);
}

std::string bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), tensor.num_bytes()};
}

/// What was read is written and read again.
void check_written(const std::vector<npz::NamedTensor>& tensors) {
  const std::string archive = npz::write_npz(tensors);
  const std::vector<npz::NamedTensor> again = npz::read_npz(as_bytes(archive));
  TM_CHECK(again.size() == tensors.size(), "tensors were lost");
  for (size_t i = 0; i < again.size(); ++i) {
    TM_CHECK(again[i].name == tensors[i].name && again[i].tensor.shape() == tensors[i].tensor.shape() &&
                 bytes_of(again[i].tensor) == bytes_of(tensors[i].tensor),
             "tensor " + tensors[i].name + " changed");
  }
}

std::shared_ptr<const MappedFile> file_of(std::string_view bytes) {
  const FileDescriptor fd(::memfd_create("member", MFD_CLOEXEC));
  write_all(fd.get(), bytes, "member");
  return MappedFile::map(fd.get(), "member");
}

/// The members of an archive, metadata.json with the digests that they have: no search finds those.
std::map<std::string, std::shared_ptr<const MappedFile>> with_digests(std::string_view archive) {
  std::map<std::string, std::string> texts;
  for (const package::TarMember& member : package::read_tar(as_bytes(archive))) {
    texts[member.name] = archive.substr(member.offset, member.size);
  }
  Json metadata = parse_json(texts[std::string(package::kMetadataMember)]);
  if (metadata.is_object() && metadata.contains("members") && metadata["members"].is_object()) {
    for (auto& [name, info] : metadata["members"].items()) {
      if (!info.is_object() || !texts.contains(name)) continue;
      info["digest"] = Digest::of(texts[name]).text();
      info["size"] = texts[name].size();
    }
    texts[std::string(package::kMetadataMember)] = canonical_json(metadata);
  }
  std::map<std::string, std::shared_ptr<const MappedFile>> members;
  for (const auto& [name, text] : texts) members[name] = file_of(text);
  return members;
}

}  // namespace

void fuzz_json(std::string_view bytes) {
  check_against_dom(bytes);
  const Json value = parse_json(bytes);
  TM_CHECK(depth_of(value) <= 64, "JSON of depth " + std::to_string(depth_of(value)));
  const std::string text = canonical_json(value);
  TM_CHECK(canonical_json(parse_json(text)) == text, "canonical JSON changed: " + text);
  attempt([&] { parse_json(bytes, 2); });
  attempt([&] {
    const Quantization read = quantization_from_json(value);
    TM_CHECK(quantization_from_json(quantization_to_json(read)).scale == read.scale, "a scale changed");
  });
  const auto is_dim = [](const Json& dim) { return dim.is_string() || dim.is_number_integer(); };
  if (value.is_array() && std::all_of(value.begin(), value.end(), is_dim)) {
    const DimShape shape = dims_from_json(value);
    TM_CHECK(dims_from_json(dims_to_json(shape)) == shape, "a shape changed");
  }
  for (const size_t size : {1, 3, 64})
    TM_CHECK(in_pieces(bytes, size) == value, "JSON changed in pieces of " + std::to_string(size));
  JsonLimits limits;
  limits.values = count_of(value);
  parse_json(bytes, limits);
  --limits.values;
  bool refused = false;
  try {
    parse_json(bytes, limits);
  } catch (const Error& error) {
    refused = error.code() == ErrorCode::kTooLarge;
  }
  TM_CHECK(refused, "a limit of values is not kept");
}

/// The type by the first byte, the number behind it. What is stored is what the text says.
void fuzz_number(std::string_view bytes) {
  if (bytes.empty()) return;
  const DTypeInfo& info = all_dtypes()[static_cast<unsigned char>(bytes.front()) % all_dtypes().size()];
  bytes.remove_prefix(1);
  Tensor tensor = Tensor::zeros(info.dtype, {2});
  const NumberFit fit = store_number(info.dtype, bytes, tensor.data());
  const auto* element = static_cast<const char*>(tensor.data()) + dtype_bytes(info.dtype);
  TM_CHECK(std::all_of(element, element + dtype_bytes(info.dtype), [](char byte) { return byte == 0; }),
           "the element behind changed");
  if (fit != NumberFit::kFits) {
    TM_CHECK(bytes_of(tensor) == bytes_of(Tensor::zeros(info.dtype, {2})), "what does not fit was stored");
    return;
  }
  const double exact = std::strtod(std::string(bytes).c_str(), nullptr);
  const double stored = tensor.element_as_double(0);
  TM_CHECK(std::isfinite(stored), "a number became infinite: " + std::string(bytes));
  if (is_float(info.dtype) || info.dtype == DType::kBool) return;
  const bool unsigned_64 = info.dtype == DType::kUInt64;
  TM_CHECK(stored == exact || (unsigned_64 && exact >= 0), "an integer changed: " + std::string(bytes));
  TM_CHECK(!first_misfit(info.dtype, tensor.data(), 1), "a value that the type does not have");
}

void fuzz_npz(std::string_view bytes) {
  npz::Limits limits;
  limits.max_members = 64;
  limits.max_tensor_bytes = kMaxBytes;
  limits.max_total_bytes = kMaxBytes;
  attempt([&] { npz::read_npy(as_bytes(bytes), limits); });
  const npz::Reader reader(as_bytes(bytes), limits);
  std::vector<npz::NamedTensor> tensors;
  for (size_t i = 0; i < reader.entries().size(); ++i) {
    const std::string& name = reader.entries()[i].name;
    TM_CHECK(reader.find(name) == i, "tensor " + name + " is not found");
    attempt([&] { tensors.push_back({name, reader.read(i)}); });
    attempt([&] {
      if (const auto view = reader.view(i)) touch(*view);
    });
  }
  const bool named =
      std::all_of(tensors.begin(), tensors.end(), [](const auto& one) { return !one.name.empty(); });
  if (named) check_written(tensors);
}

void fuzz_picture(std::string_view bytes) {
  constexpr int64_t kMaxPixels = 1 << 18;
  const image::Image picture = image::decode_any(as_bytes(bytes), kMaxPixels);
  TM_CHECK(picture.width * picture.height <= kMaxPixels, "more pixels than are allowed");
  const auto samples = static_cast<size_t>(picture.width * picture.height * picture.channels);
  TM_CHECK(picture.pixels.size() == samples, "a picture has other samples than its size says");
  attempt([&] { image::to_tensor(picture, {}, DType::kFloat32, {1, 3, 8, 8}); });
}

void fuzz_package(std::string_view bytes) {
  attempt([&] { package::Package::from_archive_bytes(as_bytes(bytes)); });
  attempt([&] { package::Package::open_archive(file_of(bytes)); });
  attempt([&] {
    const auto copy = allocate_aligned(bytes.size());
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    package::Package::over_archive_bytes({static_cast<const std::byte*>(copy.get()), bytes.size()});
  });
  const std::string repaired = with_tar_checksums(bytes);
  const auto whole = package::Package::open_members(with_digests(repaired));
  const auto loaded = package::LoadedPackage::load(whole);
  const size_t count = loaded->first_dims().size();
  for (const int64_t extent : kExtents) attempt([&] { loaded->bind(std::vector<int64_t>(count, extent)); });
}

void fuzz_metadata(std::string_view bytes) {
  const std::string text = package::metadata_to_json(package::metadata_from_json(bytes));
  TM_CHECK(package::metadata_to_json(package::metadata_from_json(text)) == text, "metadata changed: " + text);
}

void fuzz_plan(std::string_view bytes) {
  const package::ExecPlan plan = package::plan_from_json(bytes);
  const std::string text = package::plan_to_json(plan);
  TM_CHECK(package::plan_to_json(package::plan_from_json(text)) == text, "the plan changed: " + text);
  attempt([&] { package::plan_memory(plan); });
}

void fuzz_plan_set(std::string_view bytes) {
  const package::PlanSet set = package::plan_set_from_json(bytes);
  const std::string text = package::plan_set_to_json(set);
  TM_CHECK(package::plan_set_to_json(package::plan_set_from_json(text)) == text,
           "the plans changed: " + text);
  attempt([&] {
    std::vector<package::TensorInfo> inputs, outputs;
    package::describe_ports(set, inputs, outputs);
  });
  if (!set.generic) return;
  for (const int64_t extent : kExtents)
    attempt([&] {
      const std::vector<int64_t> dims(set.free_dims.size(), extent);
      package::plan_memory(package::instantiate(*set.generic, dims));
      for (const package::GenericPlan* generic : package::plans_taking(set, dims))
        package::plan_memory(package::instantiate(*generic, dims));
      package::settled_dims(set, dims, std::vector<std::optional<int64_t>>(dims.size()));
    });
}

void fuzz_elf(std::string_view bytes) {
  const package::AdmittedElf admitted = package::admit_elf(as_bytes(bytes));
  const package::CodeImage image(as_bytes(bytes));
  for (const auto& [name, address] : admitted.symbols) {
    TM_CHECK(*reinterpret_cast<const volatile char*>(image.kernel(name)) + 1 != 1000, name);
  }
}

}  // namespace tensormill::fuzz
