/// Packages made by hand for the runtime's tests.
#pragma once

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/package/elf_admission.h"
#include "runtime/package/package_reader.h"
#include "runtime/package/plan_set.h"

namespace tensormill::package {

inline std::string tar_member(const std::string& name, const std::string& data, char type = '0') {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  const auto octal = [](size_t value, int digits) {
    std::string text(static_cast<size_t>(digits), '0');
    for (size_t i = text.size(); i-- > 0; value /= 8) text[i] = static_cast<char>('0' + value % 8);
    return text;
  };
  put(0, name);
  put(100, octal(0644, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(data.size(), 11));
  put(136, octal(0, 11));
  put(148, "        ");
  put(156, std::string(1, type));
  put(257, std::string("ustar\0"
                       "00",
                       8));
  size_t sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  std::string result = header + data;
  result.resize((result.size() + 511) / 512 * 512, '\0');
  return result;
}

struct Archive {
  ExecPlan plan;
  Metadata metadata;
  std::string params;
  std::string code = read_file(TM_TEST_KERNELS);
  /// Of plans for several shapes, of which `plan` is one; none: `plan` alone.
  std::optional<PlanSet> plans = std::nullopt;

  std::string bytes() {
    plan.params_bytes = static_cast<int64_t>(params.size());
    const std::string json = plans ? plan_set_to_json(*plans) : plan_to_json(plan);
    metadata.triple = host_machine() + "-unknown-linux-gnu";
    const auto info = [](const std::string& text) {
      return MemberInfo{Digest::of(text), static_cast<int64_t>(text.size())};
    };
    metadata.members = {{"mod.so", info(code)}, {"mod.json", info(json)}, {"mod.params", info(params)}};
    return tar_member("metadata.json", metadata_to_json(metadata)) + tar_member("mod.json", json) +
           tar_member("mod.so", code) + tar_member("mod.params", params) + std::string(1024, '\0');
  }
};

inline std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

inline std::shared_ptr<const LoadedPackage> load_archive(const std::string& archive) {
  return LoadedPackage::load(Package::from_archive_bytes(as_bytes(archive)));
}

/// x [rows,8] -> relu -> + w -> y, all through temporaries with in-place hints.
inline Archive relu_add_archive(int64_t rows = 4) {
  Archive archive;
  const int64_t bytes = rows * 8 * 4;
  const Shape shape{rows, 8};
  archive.plan.buffers = {{"x", BufferKind::kInput, DType::kFloat32, shape, bytes, -1, 0, 0},
                          {"w", BufferKind::kConstant, DType::kFloat32, {8}, 32, -1, 0, 64},
                          {"t", BufferKind::kTemp, DType::kFloat32, shape, bytes, -1, 0, 0},
                          {"y", BufferKind::kOutput, DType::kFloat32, shape, bytes, -1, 0, 0}};
  archive.plan.inputs = {{"x", DType::kFloat32, {Dim(rows), Dim(int64_t{8})}, 0}};
  archive.plan.outputs = {{"y", DType::kFloat32, {Dim(rows), Dim(int64_t{8})}, 3}};
  archive.plan.steps = {
      {"relu_0", StepKind::kKernel, "k_relu", {0, 2}, {1}, {rows * 8}, {}, 0, 0, {"relu"}, "", 0, 0},
      {"add_1", StepKind::kKernel, "k_add", {2, 1, 3}, {2}, {rows, 8}, {{2, 0}}, 256, 0, {"add"}, "", 0, 0}};
  archive.params.assign(64 + 32 + 64, '\0');
  for (int i = 0; i < 8; ++i) {
    const float value = static_cast<float>(10 * i);
    std::memcpy(archive.params.data() + 64 + i * 4, &value, 4);
  }
  return archive;
}

/// indices [count] of i64, a constant table [5,8] of 100*row + column -> out [count,8], in parallel.
inline Archive gather_archive(int64_t count) {
  Archive archive;
  archive.plan.buffers = {{"indices", BufferKind::kInput, DType::kInt64, {count}, count * 8, -1, 0, 0},
                          {"table", BufferKind::kConstant, DType::kFloat32, {5, 8}, 160, -1, 0, 0},
                          {"out", BufferKind::kOutput, DType::kFloat32, {count, 8}, count * 32, -1, 0, 0}};
  archive.plan.inputs = {{"indices", DType::kInt64, {Dim(count)}, 0}};
  archive.plan.outputs = {{"out", DType::kFloat32, {Dim(count), Dim(int64_t{8})}, 2}};
  archive.plan.steps = {{"gather_0",
                         StepKind::kKernel,
                         "k_gather",
                         {0, 1, 2},
                         {2},
                         {count, 5, 8},
                         {},
                         0,
                         32,
                         {"emb/Gather"},
                         "",
                         0,
                         0}};
  archive.params.assign(160 + 64, '\0');
  for (int i = 0; i < 40; ++i) {
    const float value = static_cast<float>(100 * (i / 8) + i % 8);
    std::memcpy(archive.params.data() + i * 4, &value, 4);
  }
  return archive;
}

}  // namespace tensormill::package
