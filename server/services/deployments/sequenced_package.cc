#include "server/services/deployments/sequenced_package.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/number_text.h"
#include "runtime/base/text.h"

namespace tensormill::server {

namespace {

constexpr uint64_t kMostStateBytes = uint64_t{1} << 30;

[[noreturn]] void refuse_spec(const std::string& pointer, const std::string& detail) {
  throw Error(ErrorCode::kInvalidArgument, pointer.substr(1) + ": " + detail, {{pointer, detail}});
}

/// Extents by the names of free dims.
using Extents = std::map<std::string, int64_t>;

/// As far as the tensors say; one of another rank is the package's to refuse.
Extents extents_of(const std::vector<services::TensorSpec>& specs, const services::NamedTensors& tensors) {
  Extents extents;
  for (const auto& [name, tensor] : tensors) {
    const Shape shape = shown_shape(tensor.dtype(), tensor.shape());
    for (const services::TensorSpec& spec : specs) {
      if (spec.name != name || spec.shape.size() != shape.size()) continue;
      for (size_t i = 0; i < spec.shape.size(); ++i) {
        if (const auto* symbol = std::get_if<std::string>(&spec.shape[i])) extents.emplace(*symbol, shape[i]);
      }
    }
  }
  return extents;
}

Shape bound_shape(const services::TensorSpec& spec, const Extents& extents) {
  Shape shape;
  for (const Dim& dim : spec.shape) {
    if (const auto* extent = std::get_if<int64_t>(&dim)) {
      shape.push_back(*extent);
      continue;
    }
    const auto found = extents.find(std::get<std::string>(dim));
    if (found == extents.end())
      throw Error(ErrorCode::kInvalidTensor,
                  "input \"" + spec.name + "\" of the sequence has the extents of inputs that are missing");
    shape.push_back(found->second);
  }
  return shape;
}

/// A control's value in all elements.
Tensor filled_tensor(const services::TensorSpec& spec, const Shape& shape, const std::string& value) {
  if (spec.dtype == kString) {
    return text_tensor(shape, std::vector<std::string>(static_cast<size_t>(num_elements(shape)), value));
  }
  Tensor tensor(spec.dtype, shape);
  auto* bytes = static_cast<std::byte*>(tensor.data());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const NumberFit fit =
        store_number(spec.dtype, value, bytes + static_cast<size_t>(i) * dtype_bytes(spec.dtype));
    if (fit != NumberFit::kFits)
      throw Error(ErrorCode::kInvalidArgument, "sequence_id " + describe_misfit(spec.dtype, value, fit) +
                                                   ", of input \"" + spec.name + "\"");
  }
  return tensor;
}

}  // namespace

/// A request's time with its sequence, at whose end the next one may come.
class SequencedPackage::Turn {
public:
  Turn(SequencedPackage& package, SequencePtr sequence, std::string key)
      : package_(package), sequence_(std::move(sequence)), key_(std::move(key)) {}
  ~Turn() { end(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  const Sequence& sequence() const { return *sequence_; }

  /// Takes the states out of an answer.
  void keep(services::RunResult& result, bool is_last) {
    services::NamedTensors states;
    for (const auto& [input, output] : package_.spec_.states) {
      const auto found = std::find_if(result.outputs.begin(), result.outputs.end(),
                                      [&output = output](const auto& one) { return one.first == output; });
      TM_CHECK(found != result.outputs.end(), "a run without the output " + output);
      states.emplace_back(input, std::move(found->second));
      result.outputs.erase(found);
    }
    const std::lock_guard lock(package_.mutex_);
    sequence_->states = std::move(states);
    if (is_last) package_.sequences_.erase(key_);
  }

  void end() {
    // Once the answer is out the package may be gone.
    if (std::exchange(is_over_, true)) return;
    const std::lock_guard lock(package_.mutex_);
    sequence_->is_running = false;
    sequence_->last = package_.now_();
  }

private:
  SequencedPackage& package_;
  const SequencePtr sequence_;
  const std::string key_;
  bool is_over_ = false;
};

SequencedPackage::SequencedPackage(std::shared_ptr<HostedPackage> package, services::SequenceSpec spec,
                                   int max_batch, Now now)
    : package_(std::move(package)),
      spec_(std::move(spec)),
      now_(std::move(now)),
      inputs_(package_->inputs()),
      outputs_(package_->outputs()) {
  check_control(spec_.start, "/sequence/start", false);
  check_control(spec_.end, "/sequence/end", false);
  check_control(spec_.ready, "/sequence/ready", false);
  check_control(spec_.id, "/sequence/id", true);
  check_states(max_batch);
  check_dims();
}

const services::TensorSpec& SequencedPackage::find(const std::vector<services::TensorSpec>& all,
                                                   const std::string& name,
                                                   const std::string& pointer) const {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  if (found == all.end())
    refuse_spec(pointer, "there is no \"" + name + "\", or something else of the sequence has it already");
  return *found;
}

void SequencedPackage::check_control(const std::string& name, const std::string& pointer, bool may_be_text) {
  if (name.empty()) return;
  const services::TensorSpec& spec = find(inputs_, name, pointer);
  if (spec.dtype == kString && !may_be_text)
    refuse_spec(pointer, "input \"" + name + "\" is of strings, and no flag");
  controls_.push_back(spec);
  std::erase_if(inputs_, [&](const auto& one) { return one.name == name; });
}

void SequencedPackage::check_states(int max_batch) {
  uint64_t bytes = 0;
  for (const auto& [input, output] : spec_.states) {
    const std::string pointer = "/sequence/states/" + input;
    const services::TensorSpec spec = find(inputs_, input, pointer);
    const services::TensorSpec& after = find(outputs_, output, pointer);
    if (spec.dtype == kString) refuse_spec(pointer, "is of strings, which are no state");
    if (spec.dtype != after.dtype || spec.shape != after.shape)
      refuse_spec(pointer, "output \"" + output + "\" has another dtype or shape than the input");
    uint64_t size = dtype_bytes(spec.dtype);
    for (size_t i = 0; i < spec.shape.size(); ++i) {
      const auto* extent = std::get_if<int64_t>(&spec.shape[i]);
      if (extent == nullptr && (i > 0 || max_batch == 1))
        refuse_spec(pointer, "has a free dim, so that nobody knows how large it gets");
      size *= static_cast<uint64_t>(extent == nullptr ? max_batch : *extent);
    }
    bytes += size * static_cast<uint64_t>(spec_.max_sequences);
    if (bytes > kMostStateBytes)
      throw Error(ErrorCode::kMemoryBudget, "sequence: the states of " + std::to_string(spec_.max_sequences) +
                                                " sequences have more than " +
                                                std::to_string(kMostStateBytes) + " bytes");
    controls_.push_back(spec);
    std::erase_if(inputs_, [&input = input](const auto& one) { return one.name == input; });
    std::erase_if(outputs_, [&output = output](const auto& one) { return one.name == output; });
  }
}

void SequencedPackage::check_dims() {
  for (const services::TensorSpec& control : controls_) {
    for (const Dim& dim : control.shape) {
      if (std::holds_alternative<int64_t>(dim)) continue;
      const bool is_known = std::any_of(inputs_.begin(), inputs_.end(), [&](const auto& input) {
        return std::find(input.shape.begin(), input.shape.end(), dim) != input.shape.end();
      });
      if (!is_known)
        refuse_spec("/sequence",
                    "input \"" + control.name + "\" has a free dim that no input of clients has");
    }
  }
}

SequencedPackage::SequencePtr SequencedPackage::begin(const services::SequencePart& part,
                                                      const std::string& key) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = now_();
  forget_idle(now);
  const auto known = sequences_.find(key);
  if (known != sequences_.end() && known->second->is_running)
    throw Error(ErrorCode::kConflict, "the request before it of sequence " + part.id +
                                          " is not answered yet: a sequence has one at a time");
  if (!part.start && known == sequences_.end())
    throw Error(
        ErrorCode::kInvalidArgument,
        "sequence " + part.id +
            " is not known here: its first request has sequence_start, and it is forgotten at its end, "
            "without requests for " +
            std::to_string(spec_.idle_s) + " s and with this process");
  if (!part.start) {
    known->second->is_running = true;
    return known->second;
  }
  if (known == sequences_.end() && sequences_.size() >= static_cast<size_t>(spec_.max_sequences))
    throw Error(ErrorCode::kUnavailable, std::to_string(spec_.max_sequences) + " sequences are going on");
  // One that begins again forgets what it was.
  const auto sequence = std::make_shared<Sequence>();
  sequence->is_running = true;
  sequence->last = now;
  sequences_[key] = sequence;
  return sequence;
}

void SequencedPackage::forget_idle(Clock::time_point now) {
  std::erase_if(sequences_, [&](const auto& one) {
    return !one.second->is_running && now - one.second->last > std::chrono::seconds(spec_.idle_s);
  });
}

void SequencedPackage::complete(services::NamedTensors& inputs, const services::SequencePart& part,
                                const Sequence& sequence) {
  const Extents extents = extents_of(inputs_, inputs);
  for (const services::TensorSpec& control : controls_) {
    const bool is_sent =
        std::any_of(inputs.begin(), inputs.end(), [&](const auto& one) { return one.first == control.name; });
    if (is_sent)
      throw Error(ErrorCode::kInvalidTensor, "input \"" + control.name + "\" is the sequence's own");
  }
  for (const services::TensorSpec& control : controls_) {
    const Shape shape = bound_shape(control, extents);
    if (spec_.states.contains(control.name)) {
      const auto kept = std::find_if(sequence.states.begin(), sequence.states.end(),
                                     [&](const auto& one) { return one.first == control.name; });
      const bool is_first = part.start || kept == sequence.states.end();
      if (!is_first && kept->second.shape() != shape)
        throw Error(ErrorCode::kInvalidTensor,
                    "the requests of a sequence have as many rows as its first one");
      inputs.emplace_back(control.name, is_first ? Tensor::zeros(control.dtype, shape) : kept->second);
    } else if (control.name == spec_.id) {
      inputs.emplace_back(control.name, filled_tensor(control, shape, part.id));
    } else {
      const bool is_set = control.name == spec_.ready || (control.name == spec_.start && part.start) ||
                          (control.name == spec_.end && part.end);
      inputs.emplace_back(control.name, filled_tensor(control, shape, is_set ? "1" : "0"));
    }
  }
}

void SequencedPackage::run(services::NamedTensors inputs, const services::RunOptions& options,
                           const services::CallContext& context, services::Done<services::RunResult> done) {
  using Outcome = services::Outcome<services::RunResult>;
  if (!options.sequence)
    throw Error(ErrorCode::kInvalidArgument,
                "sequence_id is missing: the deployment has sequences, and KServe v2 says which");
  const services::SequencePart& part = *options.sequence;
  // One of another caller has the same id, and is another sequence. A name has no blank in it.
  const std::string key = context.submitter + (part.is_number ? " n" : " t") + part.id;
  const auto turn = std::make_shared<Turn>(*this, begin(part, key), key);
  complete(inputs, part, turn->sequence());
  package_->run(std::move(inputs), options, context,
                [turn, is_last = part.end, done = std::move(done)](Outcome run) {
                  Outcome answer = Outcome::of([&] {
                    services::RunResult result = run.take();
                    turn->keep(result, is_last);
                    return result;
                  });
                  // Before the client can send the next one.
                  turn->end();
                  done(std::move(answer));
                });
}

}  // namespace tensormill::server
