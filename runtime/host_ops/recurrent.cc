#include "runtime/host_ops/recurrent.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/host_ops/host_call.h"
#include "runtime/host_ops/recurrent_math.h"

namespace tensormill::host_ops {

namespace {

/// Rows that go through the sequence together: they share each weight that is read.
constexpr size_t kBlockRows = 32;
constexpr size_t kMostActivations = 3;

struct Kind {
  std::string_view name;
  size_t gates, activations;
  bool has_cell;
};
constexpr std::array<Kind, 3> kKinds = {{{"rnn", 1, 1, false}, {"gru", 3, 2, false}, {"lstm", 4, 3, true}}};

const Kind* find_kind(std::string_view name) {
  const auto* found =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& k) { return k.name == name; });
  return found == kKinds.end() ? nullptr : found;
}

template <typename T>
struct Activation {
  using Function = T (*)(T x, T alpha, T beta);
  Function function;                ///< null: all elements at once
  void (*all)(T* x, size_t count);  ///< if function is null
  T alpha, beta;

  void apply(T* x, size_t count) const {
    if (function == nullptr) return all(x, count);
    for (size_t i = 0; i < count; ++i) x[i] = function(x[i], alpha, beta);
  }
};

template <typename T>
struct NamedFunction {
  std::string_view name;
  typename Activation<T>::Function function;
};

/// Beside Sigmoid and Tanh.
template <typename T>
constexpr std::array<NamedFunction<T>, 9> kFunctions = {{
    {"Relu", [](T x, T, T) { return x < 0 ? T{0} : x; }},
    {"Affine", [](T x, T alpha, T beta) { return alpha * x + beta; }},
    {"LeakyRelu", [](T x, T alpha, T) { return x < 0 ? alpha * x : x; }},
    {"ThresholdedRelu", [](T x, T alpha, T) { return x > alpha ? x : T{0}; }},
    {"ScaledTanh", [](T x, T alpha, T beta) { return alpha * std::tanh(beta * x); }},
    {"HardSigmoid", [](T x, T alpha, T beta) { return std::clamp(alpha * x + beta, T{0}, T{1}); }},
    {"Elu", [](T x, T alpha, T) { return x < 0 ? alpha * std::expm1(x) : x; }},
    {"Softsign", [](T x, T, T) { return x / (1 + std::fabs(x)); }},
    {"Softplus", [](T x, T, T) { return std::max<T>(x, 0) + std::log1p(std::exp(-std::fabs(x))); }},
}};

template <typename T>
Activation<T> activation_of(std::string_view name, double alpha, double beta) {
  const RecurrentMath<T>& math = recurrent_math<T>();
  const T a = static_cast<T>(alpha), b = static_cast<T>(beta);
  if (name == "Sigmoid") return {nullptr, math.sigmoid, a, b};
  if (name == "Tanh") return {nullptr, math.tanh, a, b};
  for (const NamedFunction<T>& row : kFunctions<T>) {
    if (row.name == name) return {row.function, nullptr, a, b};
  }
  throw Error(ErrorCode::kInvalidPackage, "a recurrent step has an activation \"" + std::string(name) + "\"");
}

/// What the attributes and shapes say, checked.
template <typename T>
struct Layer {
  Kind kind;
  size_t steps, batch, hidden;
  size_t padded;  ///< hidden, up to a whole panel: what a gate takes in a row
  bool reverse, before_reset, input_forget;
  std::optional<T> clip;
  std::array<Activation<T>, kMostActivations> activations;
  const T *sums, *weights, *h, *c = nullptr, *peepholes = nullptr, *bias = nullptr;
  const int64_t* lengths = nullptr;
  T *y, *last_h, *last_c = nullptr;
};

/// Inputs in their order, each of the shape that it must have.
class Operands {
public:
  Operands(const HostCall& call, DType dtype) : call_(call), dtype_(dtype) {}

  const void* next(DType dtype, const Shape& shape) {
    if (at_ == call_.inputs.size()) refuse("fewer operands than its attributes say");
    const TensorView& view = call_.inputs[at_++];
    if (view.dtype != dtype || view.shape != shape)
      refuse("operand " + std::to_string(at_ - 1) + " of shape " + to_string(view.shape) + ", not " +
             to_string(shape));
    return view.data;
  }
  template <typename T>
  const T* next(const Shape& shape) {
    return static_cast<const T*>(next(dtype_, shape));
  }
  [[noreturn]] static void refuse(const std::string& what) {
    throw Error(ErrorCode::kInvalidPackage, "a recurrent step has " + what);
  }

private:
  const HostCall& call_;
  DType dtype_;
  size_t at_ = 0;
};

template <typename T>
void read_activations(const Attributes& attributes, Layer<T>& layer) {
  const std::string names = attributes.text("activations");
  size_t start = 0;
  for (size_t i = 0; i < layer.kind.activations; ++i) {
    if (start > names.size()) Operands::refuse("activations \"" + names + "\"");
    const size_t end = std::min(names.find(',', start), names.size());
    const std::string number = std::to_string(i);
    layer.activations[i] =
        activation_of<T>(std::string_view(names).substr(start, end - start),
                         attributes.real("alpha" + number), attributes.real("beta" + number));
    start = end + 1;
  }
  if (start <= names.size()) Operands::refuse("activations \"" + names + "\"");
}

template <typename T>
Layer<T> read_layer(const HostCall& call, const Attributes& attributes, const Kind& kind) {
  Layer<T> layer{};
  layer.kind = kind;
  const TensorView &sums = call.inputs[0], &h = call.inputs[2];
  if (sums.shape.size() != 3 || h.shape.size() != 3 || h.shape[2] < 1)
    Operands::refuse("sums of shape " + to_string(sums.shape) + ", a state of " + to_string(h.shape));
  const int64_t hidden = h.shape[2], gates = static_cast<int64_t>(kind.gates);
  constexpr auto kColumns = static_cast<int64_t>(kPanelColumns);
  const int64_t panels = hidden / kColumns + (hidden % kColumns == 0 ? 0 : 1);
  if (sums.shape[2] % gates != 0 || sums.shape[2] / gates != hidden)
    Operands::refuse("sums of " + std::to_string(sums.shape[2]) + " columns");
  layer.steps = static_cast<size_t>(sums.shape[0]);
  layer.batch = static_cast<size_t>(sums.shape[1]);
  layer.hidden = static_cast<size_t>(hidden);
  layer.reverse = attributes.flag("reverse");
  layer.before_reset = attributes.flag("linear_before_reset");
  layer.input_forget = attributes.flag("input_forget");
  if (attributes.has("clip")) layer.clip = static_cast<T>(std::fabs(attributes.real("clip")));
  read_activations(attributes, layer);
  const Shape state = {1, sums.shape[1], hidden};
  Operands operands(call, sums.dtype);
  layer.sums = operands.next<T>(sums.shape);
  layer.weights = operands.next<T>({gates, panels, hidden, kColumns});
  layer.padded = static_cast<size_t>(panels * kColumns);
  layer.h = operands.next<T>(state);
  if (kind.has_cell) layer.c = operands.next<T>(state);
  if (kind.has_cell && attributes.flag("peepholes")) layer.peepholes = operands.next<T>({3 * hidden});
  if (layer.before_reset) layer.bias = operands.next<T>({hidden});
  if (attributes.flag("lengths"))
    layer.lengths = static_cast<const int64_t*>(operands.next(DType::kInt64, {sums.shape[1]}));
  return layer;
}

/// Some rows on their way through the sequence. Rows of scratch are padded; what is behind their columns is
/// computed, never read.
template <typename T>
class Block {
public:
  Block(const Layer<T>& layer, size_t first, size_t rows)
      : layer_(layer),
        math_(recurrent_math<T>()),
        first_(first),
        rows_(rows),
        gates_(rows * layer.kind.gates * layer.padded),
        h_(rows * layer.padded),
        c_(layer.c == nullptr ? 0 : h_.size()),
        other_(h_.size()) {
    for (size_t row = 0; row < rows; ++row) {
      copy_row(layer.h, row, h_);
      if (layer.c != nullptr) copy_row(layer.c, row, c_);
    }
  }

  void run() {
    for (size_t count = 0; count < layer_.steps; ++count) {
      const size_t t = layer_.reverse ? layer_.steps - 1 - count : count;
      load(t);
      backwards_ = count % 2 != 0;
      step(t);
    }
    for (size_t row = 0; row < rows_; ++row) {
      std::copy_n(state(h_, row), layer_.hidden, layer_.last_h + (first_ + row) * layer_.hidden);
      if (layer_.c != nullptr)
        std::copy_n(state(c_, row), layer_.hidden, layer_.last_c + (first_ + row) * layer_.hidden);
    }
  }

private:
  T* state(std::vector<T>& values, size_t row) { return values.data() + row * layer_.padded; }
  T* gate(size_t row, size_t index) {
    return gates_.data() + (row * layer_.kind.gates + index) * layer_.padded;
  }
  void copy_row(const T* source, size_t row, std::vector<T>& target) {
    std::copy_n(source + (first_ + row) * layer_.hidden, layer_.hidden, state(target, row));
  }
  bool runs(size_t row, size_t t) const {
    return layer_.lengths == nullptr || static_cast<int64_t>(t) < layer_.lengths[first_ + row];
  }

  /// What the inputs give, into the gates.
  void load(size_t t) {
    const T* source = layer_.sums + (t * layer_.batch + first_) * layer_.kind.gates * layer_.hidden;
    for (size_t i = 0; i < rows_ * layer_.kind.gates; ++i) {
      T* target = std::copy_n(source + i * layer_.hidden, layer_.hidden, gates_.data() + i * layer_.padded);
      std::fill_n(target, layer_.padded - layer_.hidden, T{0});
    }
  }

  /// What the rows of `x` give, to gates `first` and those behind, which lie in `sums` from `offset` on.
  void multiply(const std::vector<T>& x, size_t first, size_t count, std::vector<T>& sums, size_t offset) {
    const size_t gate_size = layer_.hidden * layer_.padded;
    math_.multiply_add({x.data(), layer_.padded, rows_, layer_.weights + first * gate_size, layer_.hidden,
                        count * layer_.padded / kPanelColumns, sums.data() + offset, sums.size() / rows_,
                        backwards_});
  }

  void activate(size_t index, T* x) const {
    if (layer_.clip) {
      for (size_t i = 0; i < layer_.padded; ++i) x[i] = std::clamp(x[i], -*layer_.clip, *layer_.clip);
    }
    layer_.activations[index].apply(x, layer_.padded);
  }

  void step(size_t t) {
    if (layer_.kind.gates == 3) {
      multiply(h_, 0, 2, gates_, 0);
      reset(t);
    } else {
      multiply(h_, 0, layer_.kind.gates, gates_, 0);
    }
    for (size_t row = 0; row < rows_; ++row) {
      T* y = layer_.y + (t * layer_.batch + first_ + row) * layer_.hidden;
      if (!runs(row, t)) {
        std::fill_n(y, layer_.hidden, T{0});
        continue;
      }
      if (layer_.kind.gates == 1) {
        activate(0, gate(row, 0));
        std::copy_n(gate(row, 0), layer_.padded, state(h_, row));
      } else if (layer_.kind.gates == 3) {
        finish_gru(row);
      } else {
        finish_lstm(row);
      }
      std::copy_n(state(h_, row), layer_.hidden, y);
    }
  }

  /// Gates z and r of a GRU, and what of the state goes into its third.
  void reset(size_t t) {
    for (size_t row = 0; row < rows_; ++row) {
      if (!runs(row, t)) continue;
      for (const size_t index : {0, 1}) activate(0, gate(row, index));
      const T *r = gate(row, 1), *h = state(h_, row);
      T* other = state(other_, row);
      if (layer_.before_reset) {
        std::copy_n(layer_.bias, layer_.hidden, other);
      } else {
        for (size_t i = 0; i < layer_.padded; ++i) other[i] = r[i] * h[i];
      }
    }
    if (layer_.before_reset) {
      multiply(h_, 2, 1, other_, 0);
    } else {
      multiply(other_, 2, 1, gates_, 2 * layer_.padded);
    }
  }

  void finish_gru(size_t row) {
    const T *z = gate(row, 0), *r = gate(row, 1), *past = state(other_, row);
    T *candidate = gate(row, 2), *h = state(h_, row);
    if (layer_.before_reset) {
      for (size_t i = 0; i < layer_.padded; ++i) candidate[i] += r[i] * past[i];
    }
    activate(1, candidate);
    for (size_t i = 0; i < layer_.padded; ++i) h[i] = (1 - z[i]) * candidate[i] + z[i] * h[i];
  }

  /// Peepholes look at the cell.
  void peep(size_t index, const T* c, T* x) const {
    if (layer_.peepholes == nullptr) return;
    const T* weights = layer_.peepholes + index * layer_.hidden;
    for (size_t i = 0; i < layer_.hidden; ++i) x[i] += weights[i] * c[i];
  }

  void finish_lstm(size_t row) {
    T *input = gate(row, 0), *output = gate(row, 1), *forget = gate(row, 2), *candidate = gate(row, 3);
    T *h = state(h_, row), *c = state(c_, row);
    peep(0, c, input);
    activate(0, input);
    if (layer_.input_forget) {
      for (size_t i = 0; i < layer_.padded; ++i) forget[i] = 1 - input[i];
    } else {
      peep(2, c, forget);
      activate(0, forget);
    }
    activate(1, candidate);
    for (size_t i = 0; i < layer_.padded; ++i) c[i] = forget[i] * c[i] + input[i] * candidate[i];
    peep(1, c, output);
    activate(0, output);
    std::copy_n(c, layer_.padded, h);
    layer_.activations[2].apply(h, layer_.padded);
    for (size_t i = 0; i < layer_.padded; ++i) h[i] *= output[i];
  }

  const Layer<T>& layer_;
  const RecurrentMath<T>& math_;
  size_t first_, rows_;
  bool backwards_ = false;  ///< how this step goes over the weights: each begins where the one before ended
  std::vector<T> gates_, h_, c_;
  std::vector<T> other_;  ///< a GRU's: r * h, or h's product before the reset
};

template <typename T>
void run_layer(const HostCall& call, const Attributes& attributes, const Kind& kind) {
  Layer<T> layer = read_layer<T>(call, attributes, kind);
  const size_t state = layer.batch * layer.hidden;
  layer.y = static_cast<T*>(storage(call, 0, layer.steps * state, sizeof(T)));
  layer.last_h = static_cast<T*>(storage(call, 1, state, sizeof(T)));
  if (kind.has_cell) layer.last_c = static_cast<T*>(storage(call, 2, state, sizeof(T)));
  for (size_t row = 0; row < layer.batch; row += kBlockRows)
    Block<T>(layer, row, std::min(kBlockRows, layer.batch - row)).run();
}

}  // namespace

size_t gates_of_kind(std::string_view kind) {
  const Kind* found = find_kind(kind);
  return found == nullptr ? 0 : found->gates;
}

size_t activations_of_kind(std::string_view kind) {
  const Kind* found = find_kind(kind);
  return found == nullptr ? 0 : found->activations;
}

bool is_activation(std::string_view name) {
  return name == "Sigmoid" || name == "Tanh" ||
         std::any_of(kFunctions<float>.begin(), kFunctions<float>.end(),
                     [&](const NamedFunction<float>& row) { return row.name == name; });
}

void recurrent(const HostCall& call) {
  const Attributes attributes(call);
  const Kind* kind = find_kind(attributes.text("kind"));
  if (kind == nullptr) Operands::refuse("a kind \"" + attributes.text("kind") + "\"");
  const bool is_lstm = kind->has_cell, is_gru = kind->gates == 3;
  if ((attributes.flag("peepholes") || attributes.flag("input_forget")) && !is_lstm)
    Operands::refuse("peepholes or coupled gates, and is no lstm");
  if (attributes.flag("linear_before_reset") && !is_gru) Operands::refuse("a reset, and is no gru");
  const size_t inputs = 3 + (is_lstm ? 1 : 0) + (attributes.flag("peepholes") ? 1 : 0) +
                        (attributes.flag("linear_before_reset") ? 1 : 0) +
                        (attributes.flag("lengths") ? 1 : 0);
  expect(call, inputs, is_lstm ? 3 : 2);
  if (call.inputs[0].dtype == DType::kFloat32) return run_layer<float>(call, attributes, *kind);
  if (call.inputs[0].dtype == DType::kFloat64) return run_layer<double>(call, attributes, *kind);
  Operands::refuse("operands that are neither float32 nor float64");
}

}  // namespace tensormill::host_ops
