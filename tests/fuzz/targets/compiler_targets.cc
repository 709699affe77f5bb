#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "compiler/frontend/onnx/import.h"
#include "compiler/frontend/onnx/model/check_model.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/op_def.h"
#include "compiler/ops/ops.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"
#include "compiler/te/text.h"
#include "compiler/te/verify.h"
#include "compiler/tune/records/record.h"
#include "tests/fuzz/tar_checksums.h"
#include "tests/fuzz/targets.h"

namespace tensormill::fuzz {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 20;

FileDescriptor file_of(std::string_view bytes) {
  FileDescriptor fd(::memfd_create("input", MFD_CLOEXEC));
  write_all(fd.get(), bytes, "input");
  return fd;
}

void read_model(const frontend::onnx::ModelSource& source) {
  frontend::onnx::facts_json(frontend::onnx::read_facts(source));
  if (!frontend::onnx::unsupported_nodes(source).empty()) return;
  const ir::Graph graph = frontend::onnx::import_model(source, {}, ops::standard_ops());
  ir::verify(graph);
}

/// An empty folder that goes with its content.
class Folder {
public:
  Folder() : path_((std::filesystem::temp_directory_path() / "fuzz-XXXXXX").string()) {
    TM_CHECK(::mkdtemp(path_.data()) != nullptr, "no temporary folder");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

/// relu(a b), small, with extents that no block divides.
te::Program matmul_relu() {
  const te::Tensor a = te::placeholder("a", DType::kFloat32, Shape{6, 10});
  const te::Tensor b = te::placeholder("b", DType::kFloat32, Shape{10, 7});
  const te::Tensor sum = te::reduce("sum", te::ReduceOp::kSum, Shape{6, 7}, {10},
                                    [&](const std::vector<te::Expr>& i, const std::vector<te::Expr>& r) {
                                      return te::read(a, {i[0], r[0]}) * te::read(b, {r[0], i[1]});
                                    });
  const te::Tensor relu = te::compute("relu", Shape{6, 7}, [&](const std::vector<te::Expr>& i) {
    return te::max(te::read(sum, i), te::float_imm(DType::kFloat32, 0));
  });
  return {{a, b}, {relu}};
}

}  // namespace

void fuzz_onnx(std::string_view bytes) {
  frontend::onnx::ModelSource source;
  source.model = MappedFile::map(file_of(bytes).get(), "model");
  source.digest = Digest::of(bytes);
  static const std::shared_ptr<const MappedFile> beside =
      MappedFile::map(file_of(std::string(64, '\1')).get(), "beside.bin");
  source.external["beside.bin"] = beside;
  read_model(source);
}

void fuzz_archive(std::string_view bytes) {
  // A zip has no headers of a tar: this leaves it nearly as it is.
  const bool is_zip = bytes.starts_with("PK");
  const FileDescriptor fd = file_of(is_zip ? std::string(bytes) : with_tar_checksums(bytes));
  // The names in it must stay below this one.
  const Folder around;
  const std::string folder = around.path() + "/inside";
  std::filesystem::create_directory(folder);
  attempt([&] { read_model(frontend::onnx::open_archive(fd.get(), folder, kMaxBytes)); });
  attempt([&] {
    frontend::onnx::open_archive("/proc/self/fd/" + std::to_string(fd.get()), around.path() + "/inside/again",
                                 kMaxBytes);
  });
  const std::filesystem::directory_iterator entries(around.path());
  TM_CHECK(std::distance(begin(entries), end(entries)) == 1, "a member was written outside of its folder");
  uint64_t bytes_unpacked = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    TM_CHECK(!entry.is_symlink(), "a link: " + entry.path().string());
    if (entry.is_regular_file()) bytes_unpacked += entry.file_size();
  }
  TM_CHECK(bytes_unpacked <= uint64_t{kMaxBytes}, "more was unpacked than allowed");
}

void fuzz_graph_text(std::string_view bytes) {
  const ir::Graph graph = ir::parse_graph(bytes, ops::standard_ops());
  ir::verify(graph);
  const std::string text = ir::print(graph);
  TM_CHECK(ir::print(ir::parse_graph(text, ops::standard_ops())) == text,
           "the graph's text changed:\n" + text);
}

void fuzz_loop_text(std::string_view bytes) {
  const std::string text = te::print(te::parse_function(bytes));
  TM_CHECK(te::print(te::parse_function(text)) == text, "the function's text changed:\n" + text);
}

void fuzz_tensor_text(std::string_view bytes) {
  const std::string text = te::print(te::parse_program(bytes));
  TM_CHECK(te::print(te::parse_program(text)) == text, "the program's text changed:\n" + text);
}

void fuzz_schedule(std::string_view bytes) {
  const schedule::Schedule steps = schedule::parse_schedule(bytes);
  TM_CHECK(schedule::parse_schedule(schedule::print(steps)) == steps, "the schedule changed");
  // Some steps double the loop nest.
  if (steps.steps.size() > 16) return;
  static const te::Program program = matmul_relu();
  schedule::apply(program, steps, "kernel");
}

void fuzz_records(std::string_view bytes) {
  attempt([&] {
    size_t left_out = 0;
    const auto skipped = [&](const std::string& why) {
      TM_CHECK(why.starts_with("line "), "a line without its number: " + why);
      ++left_out;
    };
    const std::vector<tune::Record> readable = tune::readable_records(bytes, skipped);
    TM_CHECK(!readable.empty() || left_out == 0, "all lines were left out, and nobody was told");
  });
  for (const tune::Record& record : tune::parse_records(bytes)) {
    const std::string line = tune::to_line(record);
    const tune::Record again = tune::record_from_line(line);
    TM_CHECK(tune::to_line(again) == line, "the record changed:\n" + line);
    TM_CHECK(again.id() == record.id() && again.median_seconds() == record.median_seconds(),
             "another record:\n" + line);
    TM_CHECK(!tune::to_text(record.error).empty(), "an error without words");
  }
}

void fuzz_target(std::string_view bytes) {
  static const target::Target host = target::parse_target("llvm -mcpu=haswell", {});
  const target::Target parsed = target::parse_target(bytes, host);
  const std::string text = parsed.canonical();
  TM_CHECK(target::parse_target(text, host).canonical() == text, "the target changed: " + text);
}

}  // namespace tensormill::fuzz
