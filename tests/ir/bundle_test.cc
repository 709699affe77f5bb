/// Graphs in two files: what is written is read back, constants stay mapped, and broken files are refused.
#include "compiler/ir/bundle.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <random>

#include "compiler/ir/variants.h"
#include "runtime/base/error.h"
#include "tests/ir/support.h"

namespace tensormill::ir {
namespace {

struct Files {
  FileDescriptor text{::memfd_create("text", MFD_CLOEXEC)};
  FileDescriptor constants{::memfd_create("constants", MFD_CLOEXEC)};
};

std::shared_ptr<const MappedFile> mapped(const std::string& bytes) {
  const FileDescriptor fd(::memfd_create("bytes", MFD_CLOEXEC));
  write_all(fd.get(), bytes, "bytes");
  return MappedFile::map(fd.get(), "bytes");
}

Tensor filled(int64_t count, double first) {
  Tensor tensor(DType::kFloat32, {count});
  for (int64_t i = 0; i < count; ++i) tensor.set_element(i, first + static_cast<double>(i));
  return tensor;
}

/// Two large constants, one of them twice, a small one and an empty one.
Graph sample() {
  Graph graph(ops::standard_ops());
  graph.set_name("sample");
  const ValueId x = graph.add_input("x", {DType::kFloat32, {100}});
  const ValueId a = graph.add_constant("a", filled(100, 0));
  const ValueId again = graph.add_constant("again", filled(100, 0));
  const ValueId b = graph.add_constant("b", filled(33, 5));
  const ValueId small = graph.add_constant("small", filled(1, 2));
  const ValueId empty = graph.add_constant("empty", Tensor::zeros(DType::kFloat32, {0}));
  const ValueId sum = graph.add_node("add", {x, a})[0];
  const ValueId product = graph.add_node("mul", {graph.add_node("mul", {sum, again})[0], small})[0];
  graph.set_outputs({product, b, empty});
  return graph;
}

std::pair<std::string, std::string> written(const Graph& graph) {
  const Files files;
  write_bundle({&graph}, files.text.get(), files.constants.get());
  return {std::string(MappedFile::map(files.text.get(), "text")->text()),
          std::string(MappedFile::map(files.constants.get(), "constants")->text())};
}

Graph read(const std::string& text, const std::string& constants) {
  return std::move(read_bundle(*mapped(text), mapped(constants), ops::standard_ops()).at(0));
}

TEST(Bundle, ReadsBackWhatItWrote) {
  const Graph graph = sample();
  const auto [text, constants] = written(graph);
  const Graph again = read(text, constants);
  EXPECT_EQ(print(again), print(graph));
  EXPECT_EQ(hash(again), hash(graph));
  const Tensor& b = *again.value(again.outputs()[1]).constant;
  for (int64_t i = 0; i < 33; ++i) EXPECT_EQ(b.element_as_double(i), 5.0 + static_cast<double>(i));
  EXPECT_NO_THROW(verify(again));
}

TEST(Bundle, ReadsBackTheModelWithSymbolsAndItsGuards) {
  Graph graph(ops::standard_ops());
  const auto table = std::make_shared<SymbolTable>();
  graph.set_symbols(table);
  const SymInt n = table->add("N", 3), h = table->add("H", 224);
  graph.set_outputs({graph.add_input("x", {DType::kFloat32, {n, (h + 1) / 2}})});
  EXPECT_TRUE(demand(Relation::kEqual, h % 4, 0));
  {
    const SymbolTable::Origin origin(table.get(), "a \"node\"");
    EXPECT_FALSE(n == h);
    EXPECT_TRUE(n < 100);
    EXPECT_TRUE(h >= 7);
  }
  Variants variants;
  variants.free_dims = {"batch size", "H"};
  variants.symbolic = SymbolicModel{std::move(graph), {"N", "H"}};
  const Files files;
  const std::string text = write_variants(variants, files.text.get(), files.constants.get());
  const Variants again =
      read_variants(text, *MappedFile::map(files.text.get(), "text"),
                    MappedFile::map(files.constants.get(), "constants"), ops::standard_ops());
  ASSERT_TRUE(again.symbolic);
  EXPECT_EQ(again.symbolic->symbols, variants.symbolic->symbols);
  EXPECT_EQ(print(again.symbolic->graph), print(variants.symbolic->graph));
  EXPECT_EQ(again.symbolic->graph.symbols()->guards(), table->guards());
  EXPECT_EQ(again.symbolic->graph.symbols()->hints(), table->hints());
}

TEST(Bundle, ReadsBackAllShapesOfAModel) {
  const auto row = [](int64_t count) {
    Graph graph(ops::standard_ops());
    graph.set_outputs({graph.add_input("x" + std::to_string(count), {DType::kFloat32, {count}})});
    return ShapedGraph{{count, 1}, std::move(graph)};
  };
  Variants variants;
  variants.free_dims = {"N", "M"};
  variants.input_shapes = {{std::string("N")}, {std::string("M"), int64_t{4}}};
  variants.graphs.push_back(row(2));
  variants.graphs.push_back(row(3));
  variants.leaves_out = true;
  variants.not_symbolic = "why";
  const std::vector<uint8_t> bytes(40, 7);
  variants.model = KeptModel{
      {{"", Tensor::from<uint8_t>({40}, bytes)}, {"w.bin", Tensor::zeros(DType::kUInt8, {0})}}, "how"};
  const Files files, again_files;
  const std::string text = write_variants(variants, files.text.get(), files.constants.get());
  const Variants again =
      read_variants(text, *MappedFile::map(files.text.get(), "text"),
                    MappedFile::map(files.constants.get(), "constants"), ops::standard_ops());
  EXPECT_EQ(write_variants(again, again_files.text.get(), again_files.constants.get()), text);
  ASSERT_EQ(again.graphs.size(), 2u);
  EXPECT_EQ(again.graphs[0].graph.value(0).name + again.graphs[1].graph.value(0).name, "x2x3");
  EXPECT_TRUE(again.leaves_out);
  EXPECT_EQ(again.not_symbolic, "why");
  ASSERT_TRUE(again.model && again.model->files.size() == 2);
  EXPECT_EQ(again.model->files[0].second.values<uint8_t>()[39], 7);
  EXPECT_EQ(again.model->files[1].first + again.model->options, "w.binhow");
}

TEST(Bundle, EqualConstantsAreWrittenOnceAndAligned) {
  const auto [text, constants] = written(sample());
  // 400 and 132 bytes, each up to the next 64 with 64 bytes of zeros at least.
  EXPECT_LT(constants.size(), 400 + 132 + 4 * 64 + 4 * 64);
  const Graph again = read(text, constants);
  for (const Value& value : again.values()) {
    if (!value.constant || value.constant->num_elements() <= 16) continue;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(value.constant->data()) % 64, 0u) << value.name;
  }
}

TEST(Bundle, CutOffAndChangedFilesAreRefusedOrValid) {
  const auto [text, constants] = written(sample());
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    EXPECT_THROW(read(text.substr(0, random() % text.size()), constants), Error);
    std::string changed = text;
    changed[random() % changed.size()] ^= static_cast<char>(1u << (random() % 7));
    try {
      verify(read(changed, constants));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidModel) << error.message();
    }
  }
  EXPECT_THROW(read(text, constants.substr(0, 300)), Error) << "bytes that are not there";
  EXPECT_THROW(read(text, ""), Error);
  EXPECT_THROW(read("", constants), Error);
}

}  // namespace
}  // namespace tensormill::ir
