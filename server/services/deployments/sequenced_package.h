/// A package whose deployment has sequences: its requests say which one they belong to, it tells the model
/// where in the sequence they stand, and hands it what the request before left. What it keeps is this
/// process's, and goes with it. Thread-safety: as HostedPackage.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/services/deployments/executor_host.h"

namespace tensormill::server {

class SequencedPackage final : public HostedPackage {
public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  /// `max_batch`: rows that a request may have. Throws Error(kInvalidArgument) with the pointer of what the
  /// package does not have, or has in another form: a control is of numbers, bools or (the id) strings, a
  /// state's output is as its input, and their free dims are those of inputs that clients send;
  /// Error(kMemoryBudget) where states of all sequences have more than 1 GiB.
  SequencedPackage(std::shared_ptr<HostedPackage> package, services::SequenceSpec spec, int max_batch,
                   Now now = Clock::now);

  /// Without controls and states.
  const std::vector<services::TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<services::TensorSpec>& outputs() const override { return outputs_; }
  /// A request that fails leaves its sequence as it was. A sequence is of the caller who began it.
  void run(services::NamedTensors inputs, const services::RunOptions& options,
           const services::CallContext& context, services::Done<services::RunResult> done) override;
  std::shared_ptr<void> admit() override { return package_->admit(); }
  services::InferStatistics statistics() const override { return package_->statistics(); }
  bool is_quick() const override { return package_->is_quick(); }

private:
  /// What a request leaves for the next one.
  struct Sequence {
    services::NamedTensors states;  ///< by input; none before the first request is answered
    Clock::time_point last;
    bool is_running = false;  ///< a request of it
  };
  using SequencePtr = std::shared_ptr<Sequence>;
  class Turn;

  /// The next request's. Throws Error(kInvalidArgument), Error(kConflict), Error(kUnavailable).
  SequencePtr begin(const services::SequencePart& part, const std::string& key);
  void forget_idle(Clock::time_point now);
  /// Adds what clients do not send.
  void complete(services::NamedTensors& inputs, const services::SequencePart& part, const Sequence& sequence);
  const services::TensorSpec& find(const std::vector<services::TensorSpec>& all, const std::string& name,
                                   const std::string& pointer) const;
  void check_control(const std::string& name, const std::string& pointer, bool may_be_text);
  void check_states(int max_batch);
  void check_dims();

  const std::shared_ptr<HostedPackage> package_;
  const services::SequenceSpec spec_;
  const Now now_;
  std::vector<services::TensorSpec> inputs_, outputs_;
  std::vector<services::TensorSpec> controls_;  ///< inputs of the package that are not in inputs_
  std::mutex mutex_;
  std::map<std::string, SequencePtr> sequences_;
};

}  // namespace tensormill::server
