#include <array>
#include <span>

#include "runtime/base/json.h"
#include "runtime/image/image.h"
#include "runtime/npz/npz.h"
#include "runtime/package/elf_admission.h"
#include "runtime/package/exec_plan.h"
#include "runtime/package/metadata.h"
#include "runtime/package/package_reader.h"
#include "runtime/package/plan_memory.h"
#include "tests/fuzz/targets.h"

namespace tensormill::fuzz {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 24;

std::span<const std::byte> as_bytes(std::string_view bytes) {
  return std::as_bytes(std::span(bytes.data(), bytes.size()));
}

}  // namespace

void fuzz_json(std::string_view bytes) {
  const std::string text = canonical_json(parse_json(bytes));
  TM_CHECK(canonical_json(parse_json(text)) == text, "canonical JSON changed: " + text);
}

void fuzz_npz(std::string_view bytes) {
  npz::Limits limits;
  limits.max_members = 64;
  limits.max_tensor_bytes = kMaxBytes;
  limits.max_total_bytes = kMaxBytes;
  const npz::Reader reader(as_bytes(bytes), limits);
  for (size_t i = 0; i < reader.entries().size(); ++i) {
    attempt([&] { reader.read(i); });
    attempt([&] { reader.view(i); });
  }
}

void fuzz_picture(std::string_view bytes) {
  const image::Image picture = image::decode(as_bytes(bytes), 1 << 18);
  const auto samples = static_cast<size_t>(picture.width * picture.height * picture.channels);
  TM_CHECK(picture.pixels.size() == samples, "a picture has other samples than its size says");
  attempt([&] { image::to_tensor(picture, {}, DType::kFloat32, {1, 3, 8, 8}); });
}

void fuzz_preprocess(std::string_view bytes) {
  const image::Preprocess options = image::preprocess_from_json(bytes);
  const image::Image picture{4, 3, 3, std::vector<uint8_t>(36, 128)};
  if (options.resize > 64 || options.crop_width > 64 || options.crop_height > 64) return;
  attempt([&] { image::to_tensor(picture, options, DType::kFloat32, {1, 3, 8, 8}); });
  attempt([&] { image::to_tensor(picture, options, DType::kUInt8, {1, 8, 8, 3}); });
}

void fuzz_package(std::string_view bytes) { package::Package::from_archive_bytes(as_bytes(bytes)); }

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

void fuzz_elf(std::string_view bytes) { package::admit_elf(as_bytes(bytes)); }

}  // namespace tensormill::fuzz
