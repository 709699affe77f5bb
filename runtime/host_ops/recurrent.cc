#include "runtime/host_ops/recurrent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/host_ops/host_call.h"

namespace tensormill::host_ops {

namespace {

/// A function of the operator, by its name in ONNX.
template <typename T>
class Activation {
public:
  Activation() = default;
  Activation(const Json& attributes, size_t index) {
    const std::string at = std::to_string(index), name = attributes.at("activation_" + at).get<std::string>();
    alpha_ = static_cast<T>(attributes.at("alpha_" + at).get<double>());
    beta_ = static_cast<T>(attributes.at("beta_" + at).get<double>());
    constexpr Row kRows[] = {{"Sigmoid", [](T x, T, T) { return 1 / (1 + std::exp(-x)); }},
                             {"Tanh", [](T x, T, T) { return std::tanh(x); }},
                             {"Relu", [](T x, T, T) { return x < 0 ? T{0} : x; }},
                             {"Softsign", [](T x, T, T) { return x / (1 + std::fabs(x)); }},
                             {"Softplus", [](T x, T, T) { return softplus(x); }},
                             {"Affine", [](T x, T a, T b) { return a * x + b; }},
                             {"LeakyRelu", [](T x, T a, T) { return x < 0 ? a * x : x; }},
                             {"Elu", [](T x, T a, T) { return x < 0 ? a * std::expm1(x) : x; }},
                             {"HardSigmoid", [](T x, T a, T b) { return hard_sigmoid(a * x + b); }},
                             {"ScaledTanh", [](T x, T a, T b) { return a * std::tanh(b * x); }},
                             {"ThresholdedRelu", [](T x, T a, T) { return x > a ? x : T{0}; }}};
    for (const Row& row : kRows) {
      if (name == row.name) function_ = row.function;
    }
    if (function_ == nullptr) throw Error(ErrorCode::kInvalidPackage, "no activation \"" + name + "\"");
  }
  T operator()(T x) const { return function_(x, alpha_, beta_); }

private:
  using Function = T (*)(T, T, T);
  struct Row {
    const char* name;
    Function function;
  };
  static T softplus(T x) { return std::max<T>(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
  static T hard_sigmoid(T x) { return x < 0 ? T{0} : x > 1 ? T{1} : x; }

  Function function_ = nullptr;
  T alpha_ = 0, beta_ = 0;
};

struct Sizes {
  size_t steps, batch, gates, hidden;
  size_t row() const { return gates * hidden; }
};

/// Throws where the operands do not fit each other.
Sizes sizes_of(const HostCall& call, const Json& attributes) {
  expect(call, 7, 3);
  const auto gates = attributes.at("gates").get<int64_t>();
  const Shape &all = call.inputs[0].shape, &state = call.inputs[3].shape;
  bool fits =
      all.size() == 3 && state.size() == 2 && state[0] == all[1] && (gates == 1 || gates == 3 || gates == 4);
  for (size_t i = 1; i < 6; ++i) fits = fits && call.inputs[i].dtype == call.inputs[0].dtype;
  const int64_t hidden = fits ? state[1] : 0;
  fits = fits && all[2] == gates * hidden && call.inputs[1].shape == Shape{hidden, gates * hidden} &&
         call.inputs[2].shape == Shape{gates * hidden} && call.inputs[4].shape == state &&
         call.inputs[5].shape == Shape{3 * hidden} && call.inputs[6].shape == Shape{all[1]} &&
         call.inputs[6].dtype == DType::kInt64;
  if (!fits) throw Error(ErrorCode::kInvalidPackage, "the operands of a recurrent layer do not fit");
  return {static_cast<size_t>(all[0]), static_cast<size_t>(all[1]), static_cast<size_t>(gates),
          static_cast<size_t>(hidden)};
}

template <typename T>
class Layer {
public:
  Layer(const HostCall& call, const Json& attributes)
      : sizes_(sizes_of(call, attributes)),
        weights_(operand(call, 1)),
        bias_(operand(call, 2)),
        peephole_(operand(call, 5)),
        reverse_(attributes.at("reverse").get<int64_t>() != 0),
        linear_before_reset_(attributes.at("linear_before_reset").get<int64_t>() != 0),
        input_forget_(attributes.at("input_forget").get<int64_t>() != 0),
        clip_(static_cast<T>(attributes.value("clip", std::numeric_limits<double>::infinity()))),
        sums_(sizes_.row()),
        reset_(sizes_.hidden) {
    const size_t functions = sizes_.gates == 1 ? 1 : sizes_.gates - 1;
    for (size_t i = 0; i < functions; ++i) functions_.emplace_back(attributes, i);
  }

  void run(const HostCall& call) {
    const size_t n = sizes_.hidden, states = sizes_.batch * n;
    const T* all = operand(call, 0);
    const auto* lengths = static_cast<const int64_t*>(call.inputs[6].data);
    T* outputs = static_cast<T*>(storage(call, 0, sizes_.steps * states, sizeof(T)));
    T* h = static_cast<T*>(storage(call, 1, states, sizeof(T)));
    T* c = static_cast<T*>(storage(call, 2, states, sizeof(T)));
    std::copy_n(operand(call, 3), states, h);
    std::copy_n(operand(call, 4), states, c);
    for (size_t count = 0; count < sizes_.steps; ++count) {
      const size_t t = reverse_ ? sizes_.steps - 1 - count : count;
      for (size_t row = 0; row < sizes_.batch; ++row) {
        T* output = outputs + t * states + row * n;
        if (static_cast<int64_t>(t) >= lengths[row]) {
          std::fill_n(output, n, T{0});
          continue;
        }
        const T* inputs = all + (t * sizes_.batch + row) * sizes_.row();
        if (sizes_.gates == 1) {
          rnn_step(inputs, h + row * n);
        } else if (sizes_.gates == 3) {
          gru_step(inputs, h + row * n);
        } else {
          lstm_step(inputs, h + row * n, c + row * n);
        }
        std::copy_n(h + row * n, n, output);
      }
    }
  }

private:
  static const T* operand(const HostCall& call, size_t index) {
    return static_cast<const T*>(call.inputs[index].data);
  }

  /// sums += bias + state × weights, for the gates from `first` on.
  void add_product(const T* state, size_t first, size_t gates) {
    const size_t n = sizes_.hidden, count = gates * n;
    T* sums = sums_.data() + first * n;
    const T* bias = bias_ + first * n;
    for (size_t i = 0; i < count; ++i) sums[i] += bias[i];
    for (size_t k = 0; k < n; ++k) {
      const T* weights = weights_ + k * sizes_.row() + first * n;
      const T factor = state[k];
      for (size_t i = 0; i < count; ++i) sums[i] += factor * weights[i];
    }
  }

  T clipped(T x) const { return x < -clip_ ? -clip_ : x > clip_ ? clip_ : x; }
  T gate(size_t function, T sum) const { return functions_[function](clipped(sum)); }

  void rnn_step(const T* inputs, T* h) {
    std::copy_n(inputs, sizes_.row(), sums_.begin());
    add_product(h, 0, 1);
    for (size_t i = 0; i < sizes_.hidden; ++i) h[i] = gate(0, sums_[i]);
  }

  void gru_step(const T* inputs, T* h) {
    const size_t n = sizes_.hidden;
    std::copy_n(inputs, 2 * n, sums_.begin());
    std::fill_n(sums_.begin() + static_cast<std::ptrdiff_t>(2 * n), n, T{0});
    add_product(h, 0, linear_before_reset_ ? 3 : 2);
    for (size_t i = 0; i < n; ++i) reset_[i] = gate(0, sums_[n + i]);
    if (!linear_before_reset_) {
      for (size_t i = 0; i < n; ++i) reset_[i] *= h[i];
      add_product(reset_.data(), 2, 1);
    }
    for (size_t i = 0; i < n; ++i) {
      const T past = linear_before_reset_ ? reset_[i] * sums_[2 * n + i] : sums_[2 * n + i];
      const T z = gate(0, sums_[i]), candidate = gate(1, inputs[2 * n + i] + past);
      h[i] = (1 - z) * candidate + z * h[i];
    }
  }

  void lstm_step(const T* inputs, T* h, T* c) {
    const size_t n = sizes_.hidden;
    std::copy_n(inputs, sizes_.row(), sums_.begin());
    add_product(h, 0, 4);
    for (size_t k = 0; k < n; ++k) {
      const T i = gate(0, sums_[k] + peephole_[k] * c[k]);
      const T f = input_forget_ ? 1 - i : gate(0, sums_[2 * n + k] + peephole_[2 * n + k] * c[k]);
      c[k] = f * c[k] + i * gate(1, sums_[3 * n + k]);
      const T o = gate(0, sums_[n + k] + peephole_[n + k] * c[k]);
      h[k] = o * functions_[2](c[k]);
    }
  }

  Sizes sizes_;
  const T* weights_;
  const T* bias_;
  const T* peephole_;
  bool reverse_, linear_before_reset_, input_forget_;
  T clip_;
  std::vector<Activation<T>> functions_;
  std::vector<T> sums_, reset_;
};

}  // namespace

void recurrent(const HostCall& call) {
  const Json attributes = parse_json(call.attributes);
  if (call.inputs.empty()) throw Error(ErrorCode::kInvalidPackage, "a recurrent layer without operands");
  if (call.inputs[0].dtype == DType::kFloat64) {
    Layer<double>(call, attributes).run(call);
  } else if (call.inputs[0].dtype == DType::kFloat32) {
    Layer<float>(call, attributes).run(call);
  } else {
    throw Error(ErrorCode::kInvalidPackage, "a recurrent layer of no float32 or float64");
  }
}

}  // namespace tensormill::host_ops
