/// Compares the nodes of a generic plan, run by its compiled kernels, with the operators' reference.
/// Thread-safety: a verifier belongs to one thread, and compares with several of its own.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/jit.h"
#include "compiler/driver/generic.h"
#include "compiler/driver/verify_kernel.h"

namespace tensormill::driver {

/// What all of a package's kernels are compared with.
struct VerifierOptions {
  std::function<bool(const plan::Kernel&)> verifies;
  Compares compares = Compares::kAll;
  int threads = 1;
};

class GenericVerifier {
public:
  /// `compiled` outlives it.
  GenericVerifier(const CompiledGeneric& compiled, VerifierOptions options)
      : compiled_(compiled), options_(std::move(options)) {}

  /// The model at some extents. Left out is what takes more than `most` operations and values.
  struct Point {
    std::vector<int64_t> dims;
    ir::Graph graph;
    int64_t most = 0;
    std::set<size_t> tails;  ///< kernels whose tails end here, which alone are compared; none: all are
  };
  /// A record whose kernel gives something else than the reference.
  struct Wrong {
    size_t kernel = 0;
    std::string what;
  };

  /// Left out is, too, what takes more than a sixteenth of `most` where the same kernels are compared at a
  /// point before. Throws Error(kWrongAnswer) where kernels by the rule differ from the reference; those by
  /// records are returned.
  std::vector<Wrong> run(const plan::GenericModel& model, const std::vector<Point>& points);
  /// The kernel is another one now; whatever was compared is to be compared again.
  void replace(size_t kernel);

private:
  struct Candidate;
  void load();
  static void add_candidates(const plan::GenericModel& model, const Point& point, size_t place,
                             const package::ExecPlan& plan, std::vector<Candidate>& candidates);
  bool check(const plan::GenericModel& model, const package::ExecPlan& plan, const ir::Graph& graph,
             const Candidate& candidate);
  bool compare(const plan::GenericModel& model, const package::ExecPlan& plan,
               const plan::GenericGroup& group, const plan::Kernel& kernel,
               const KernelReference& reference) const;
  bool note_wrong(const plan::GenericModel& model, const plan::GenericGroup& group, const std::string& what);

  const CompiledGeneric& compiled_;
  const VerifierOptions options_;
  std::vector<std::unique_ptr<codegen::JitLibrary>> libraries_;
  std::vector<tm_kernel> entries_;
  std::set<std::string> known_;  ///< Candidate::kernels that were chosen
  std::mutex wrong_mutex_;
  std::vector<Wrong> wrong_;
};

}  // namespace tensormill::driver
