/// Compiles graphs and runs the packages in this process: what a user of the compiler gets, without a model
/// file.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/compile.h"
#include "runtime/package/package_reader.h"

namespace tensormill::driver_test {

/// This machine as the target, `opt_level`, every kernel verified.
driver::CompileOptions host_options(int opt_level);

/// Writes the archive, opens it again and loads its code.
std::shared_ptr<const package::LoadedPackage> load(const driver::CompileResult& result);

/// The outputs of a new executor with `threads` workers.
std::vector<Tensor> run(const std::shared_ptr<const package::LoadedPackage>& package,
                        const std::vector<Tensor>& inputs, int threads = 2);

/// Everything that goes into a package, as one text.
std::string package_text(const driver::CompileResult& result);

/// Parses the text form of a graph; constants are small enough to stand in it.
ir::Graph parse(std::string_view text);

}  // namespace tensormill::driver_test
