/// What a classifier says beside the labels.
/// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/json_fwd.h"

namespace tensormill::report {

/// Truth and answer of each sample, as class numbers; answers may be fewer, then the first samples count.
/// A class number is 0 to 2^20 - 1: Error(kInvalidArgument) names the sample. JSON:
///   accuracy, samples, right; macro_precision, macro_recall, macro_f1 over the classes that the truth has;
///   classes: [{class, name, samples, predicted, right, precision, recall, f1}] of those that occur;
///   precision is null for a class that was never predicted, recall for one that never is; confusion: rows of
///   truth, columns of answers, by the order of `classes`; null past 200 classes; most_confused: [{truth,
///   predicted, samples}], up to 20, most first, by name.
/// `names`: of the classes by number; one without is called by its number.
Json compare_classes(const std::vector<int64_t>& truth, const std::vector<int64_t>& predicted,
                     const std::vector<std::string>& names);

/// Truths from a file: an .npy array of whole numbers, an .npz with one array, or a text with one class a
/// line, as a number or a name of `names`. Throws Error(kInvalidArgument) naming file and line.
std::vector<int64_t> read_truth(const std::string& path, const std::vector<std::string>& names);
/// The same of what is open already; `name` is what errors call it.
std::vector<int64_t> read_truth(const MappedFile& file, const std::string& name,
                                const std::vector<std::string>& names);

}  // namespace tensormill::report
