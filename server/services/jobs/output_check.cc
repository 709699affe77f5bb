#include "server/services/jobs/output_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tensormill::server {

namespace {

/// Of texts.
constexpr size_t kMostWrongOutputs = 8;
constexpr size_t kMostShown = 64;

struct Differences {
  double largest_error = 0;
  double largest = 0;  ///< of the reference
  int64_t wrong = 0;
  int64_t worst = 0;  ///< where the error is the largest of those that are wrong
};

double largest_magnitude(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = std::abs(tensor.element_as_double(i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

/// Of whole numbers that doubles cannot tell apart at least 1.
double error_of(const Tensor& expected, const Tensor& got, int64_t i) {
  const double want = expected.element_as_double(i), have = got.element_as_double(i);
  if (!is_float(expected.dtype())) {
    if (expected.element_as_int(i) == got.element_as_int(i)) return 0;
    return std::max(1.0, std::abs(want - have));
  }
  if (want == have || (std::isnan(want) && std::isnan(have))) return 0;
  const double error = std::abs(want - have);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

Differences compare(const Tensor& expected, const Tensor& got, const Tolerance& tolerance) {
  Differences found;
  found.largest = largest_magnitude(expected);
  double bound = tolerance.absolute;
  if (is_float(expected.dtype())) bound += tolerance.relative * found.largest;
  double worst = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double error = error_of(expected, got, i);
    found.largest_error = std::max(found.largest_error, error);
    if (error <= bound) continue;
    ++found.wrong;
    if (error <= worst) continue;
    worst = error;
    found.worst = i;
  }
  return found;
}

TensorView view_of(const Tensor& tensor) { return {tensor.dtype(), tensor.shape(), tensor.data()}; }

Differences compare_texts(const Texts& want, const Texts& have) {
  Differences found;
  for (int64_t i = 0; i < want.count(); ++i) {
    if (want[i] == have[i]) continue;
    if (found.wrong++ == 0) found.worst = i;
    found.largest_error = 1;
  }
  return found;
}

std::string element_text(const Tensor& tensor, int64_t index) {
  if (tensor.dtype() == kString)
    return "\"" + std::string(Texts(view_of(tensor))[index].substr(0, kMostShown)) + "\"";
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << tensor.element_as_double(index);
  return text.str();
}

/// Strings may be wider here than there.
Shape shown(const Tensor& tensor) { return shown_shape(tensor.dtype(), tensor.shape()); }

/// "" where it is right.
std::string form_mistake(const npz::NamedTensor& want, const Tensor* have) {
  const auto form = [](const Tensor& tensor) {
    return std::string(dtype_name(tensor.dtype())) + to_string(shown(tensor));
  };
  if (have == nullptr) return "output " + want.name + " is missing";
  if (have->dtype() == want.tensor.dtype() && shown(*have) == shown(want.tensor)) return "";
  return "output " + want.name + " is " + form(*have) + ", the reference gives " + form(want.tensor);
}

}  // namespace

Json check_outputs(const std::vector<npz::NamedTensor>& expected, const std::vector<npz::NamedTensor>& got,
                   const Tolerance& tolerance) {
  Json outputs = Json::array();
  std::vector<std::string> mistakes;
  for (const npz::NamedTensor& want : expected) {
    const auto found =
        std::find_if(got.begin(), got.end(), [&](const auto& one) { return one.name == want.name; });
    const Tensor* have = found == got.end() ? nullptr : &found->tensor;
    if (std::string mistake = form_mistake(want, have); !mistake.empty()) {
      mistakes.push_back(std::move(mistake));
      continue;
    }
    const Differences differences = want.tensor.dtype() == kString
                                        ? compare_texts(Texts(view_of(want.tensor)), Texts(view_of(*have)))
                                        : compare(want.tensor, *have, tolerance);
    // What is infinite has no number in JSON.
    const double error = std::min(differences.largest_error, std::numeric_limits<double>::max());
    const int64_t elements = num_elements(shown(want.tensor));
    outputs.push_back({{"name", want.name},
                       {"elements", elements},
                       {"max_abs_error", error},
                       {"largest", differences.largest}});
    if (differences.wrong == 0) continue;
    mistakes.push_back("output " + want.name + ": " + std::to_string(differences.wrong) + " of " +
                       std::to_string(elements) + " elements are wrong, most of all element " +
                       std::to_string(differences.worst) + ": " + element_text(*have, differences.worst) +
                       ", the reference gives " + element_text(want.tensor, differences.worst));
  }
  if (mistakes.empty()) return outputs;
  std::string text;
  for (size_t i = 0; i < std::min(mistakes.size(), kMostWrongOutputs); ++i)
    text += (i == 0 ? "" : "; ") + mistakes[i];
  throw Error(ErrorCode::kWrongAnswer, text);
}

}  // namespace tensormill::server
