/// Runs a package through the C interface, for machines that have the runtime and nothing else.
///
///   run_package PACKAGE.tar OUTFOLDER THREADS [NAME=DTYPE:EXTENTS:FILE ...]
///
/// DTYPE is a number of tm_dtype, EXTENTS is like 1x3x8x8 ("-" for a scalar), FILE holds the elements in
/// row-major order. Output i is written to OUTFOLDER/i.bin; a line "DTYPE EXTENTS NAME" is printed for each.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/capi/tensormill.h"

namespace {

void check(int32_t code, const std::string& what) {
  if (code != 0) throw std::runtime_error(what + ": " + tm_last_error());
}

std::vector<char> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<int64_t> parse_extents(const std::string& text) {
  std::vector<int64_t> extents;
  if (text == "-") return extents;
  for (size_t at = 0; at != std::string::npos;) {
    const size_t end = text.find('x', at);
    extents.push_back(std::stoll(text.substr(at, end - at)));
    at = end == std::string::npos ? end : end + 1;
  }
  return extents;
}

std::string extents_text(const tm_tensor& tensor) {
  std::string text;
  for (int32_t d = 0; d < tensor.rank; ++d) text += (d == 0 ? "" : "x") + std::to_string(tensor.shape[d]);
  return text.empty() ? "-" : text;
}

void set_input(tm_executor* executor, const std::string& argument) {
  const size_t equals = argument.find('=');
  const size_t colon = argument.find(':', equals);
  const size_t second = argument.find(':', colon + 1);
  if (equals == std::string::npos || second == std::string::npos)
    throw std::runtime_error("not NAME=DTYPE:EXTENTS:FILE: " + argument);
  const int dtype = std::stoi(argument.substr(equals + 1, colon - equals - 1));
  const std::vector<int64_t> extents = parse_extents(argument.substr(colon + 1, second - colon - 1));
  const std::vector<char> bytes = read_bytes(argument.substr(second + 1));
  const tm_tensor tensor{static_cast<tm_dtype>(dtype), static_cast<int32_t>(extents.size()), extents.data(),
                         bytes.data(), bytes.size()};
  check(tm_executor_set_input(executor, argument.substr(0, equals).c_str(), &tensor), argument);
}

void write_output(const tm_executor* executor, int32_t index, const std::string& folder) {
  const char* name = tm_executor_output_name(executor, index);
  tm_tensor tensor{};
  check(tm_executor_get_output(const_cast<tm_executor*>(executor), name, &tensor), name);
  std::ofstream file(folder + "/" + std::to_string(index) + ".bin", std::ios::binary);
  file.write(static_cast<const char*>(tensor.data), static_cast<std::streamsize>(tensor.bytes));
  file.close();
  if (!file) throw std::runtime_error("cannot write output " + std::to_string(index));
  std::cout << tensor.dtype << " " << extents_text(tensor) << " " << name << "\n";
}

void run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3) throw std::runtime_error("run_package PACKAGE.tar OUTFOLDER THREADS [INPUT ...]");
  tm_runtime* runtime = nullptr;
  tm_package* package = nullptr;
  tm_executor* executor = nullptr;
  check(tm_runtime_create(std::stoi(arguments[2]), &runtime), "threads");
  check(tm_package_load(arguments[0].c_str(), &package), arguments[0]);
  check(tm_executor_create(runtime, package, 0, &executor), arguments[0]);
  for (size_t i = 3; i < arguments.size(); ++i) set_input(executor, arguments[i]);
  check(tm_executor_run(executor, 0, 0), "run");
  for (int32_t i = 0; i < tm_executor_output_count(executor); ++i) write_output(executor, i, arguments[1]);
  tm_executor_destroy(executor);
  tm_package_destroy(package);
  tm_runtime_destroy(runtime);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 3;
  }
}
