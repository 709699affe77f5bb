#include "runtime/package/package_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "runtime/abi/kernel_abi.h"
#include "runtime/base/cpu_features.h"
#include "runtime/base/error.h"
#include "runtime/base/stoppable_digest.h"
#include "runtime/base/tensor.h"
#include "runtime/package/choose_plan.h"
#include "runtime/package/elf_admission.h"
#include "runtime/package/tar_reader.h"

namespace tensormill::package {

namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The same bytes at an aligned address: themselves when they are.
std::span<const std::byte> aligned(std::span<const std::byte> bytes,
                                   std::vector<std::shared_ptr<const void>>& owners) {
  if (bytes.empty() || reinterpret_cast<uintptr_t>(bytes.data()) % kTensorAlignment == 0) return bytes;
  const std::shared_ptr<void> copy = allocate_aligned(bytes.size());
  std::memcpy(copy.get(), bytes.data(), bytes.size());
  owners.push_back(copy);
  return {static_cast<const std::byte*>(copy.get()), bytes.size()};
}

std::map<std::string, std::span<const std::byte>, std::less<>> archive_members(
    std::span<const std::byte> archive) {
  std::map<std::string, std::span<const std::byte>, std::less<>> members;
  for (const TarMember& member : read_tar(archive)) {
    members[member.name] = archive.subspan(member.offset, member.size);
  }
  return members;
}

void check_kernels(const ExecPlan& plan, const CodeImage& code) {
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kKernel) code.kernel(step.function);
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::shared_ptr<const Package> Package::open(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    std::map<std::string, std::shared_ptr<const MappedFile>> members;
    for (std::string_view name : kMembers) {
      members[std::string(name)] = MappedFile::open(path + "/" + std::string(name));
    }
    return open_members(members);
  }
  return open_archive(MappedFile::open(path));
}

std::shared_ptr<const Package> Package::open_archive(std::shared_ptr<const MappedFile> archive) {
  std::shared_ptr<Package> package(new Package);
  package->members_ = archive_members(archive->bytes());
  package->owners_.push_back(std::move(archive));
  package->check();
  return package;
}

std::shared_ptr<const Package> Package::from_archive_bytes(std::span<const std::byte> archive) {
  std::shared_ptr<Package> package(new Package);
  const std::shared_ptr<void> copy = allocate_aligned(archive.size());
  if (!archive.empty()) std::memcpy(copy.get(), archive.data(), archive.size());
  package->owners_.push_back(copy);
  package->members_ = archive_members({static_cast<const std::byte*>(copy.get()), archive.size()});
  package->check();
  return package;
}

std::shared_ptr<const Package> Package::over_archive_bytes(std::span<const std::byte> archive) {
  if (reinterpret_cast<uintptr_t>(archive.data()) % kTensorAlignment != 0)
    throw Error(ErrorCode::kInvalidArgument, "an archive that is not copied is to begin at a multiple of " +
                                                 std::to_string(kTensorAlignment));
  std::shared_ptr<Package> package(new Package);
  package->members_ = archive_members(archive);
  package->check();
  return package;
}

std::shared_ptr<const Package> Package::open_members(
    const std::map<std::string, std::shared_ptr<const MappedFile>>& members, const std::stop_token& stop) {
  std::shared_ptr<Package> package(new Package);
  package->add_members(members);
  package->check(stop);
  return package;
}

std::shared_ptr<const Package> Package::open_made(
    const std::map<std::string, std::shared_ptr<const MappedFile>>& members,
    std::function<const void*(int64_t offset)> constants) {
  std::shared_ptr<Package> package(new Package);
  package->add_members(members);
  package->constants_ = std::move(constants);
  package->read_metadata();
  package->read_plans();
  return package;
}

void Package::add_members(const std::map<std::string, std::shared_ptr<const MappedFile>>& members) {
  for (const auto& [name, file] : members) {
    members_[name] = file->bytes();
    owners_.push_back(file);
  }
}

void Package::check(const std::stop_token& stop) {
  for (std::string_view name : kMembers) {
    if (!members_.contains(name)) {
      throw Error(ErrorCode::kInvalidPackage, "package has no member " + std::string(name));
    }
  }
  if (members_.size() != std::size(kMembers)) {
    throw Error(ErrorCode::kInvalidPackage, "package has " + std::to_string(members_.size()) +
                                                " members, expected " + std::to_string(std::size(kMembers)));
  }
  read_metadata();
  for (const auto& [name, info] : metadata_.members) {
    const std::span<const std::byte> bytes = members_.find(name)->second;
    if (bytes.size() != static_cast<size_t>(info.size) || digest_unless_stopped(bytes, stop) != info.digest) {
      throw Error(ErrorCode::kInvalidPackage,
                  "member " + name + " does not have the digest that metadata.json names");
    }
  }
  read_plans();
  std::span<const std::byte>& params = members_.find(kParamsMember)->second;
  if (params.size() != static_cast<size_t>(plan().params_bytes)) {
    throw Error(ErrorCode::kInvalidPackage, "mod.params has " + std::to_string(params.size()) +
                                                " bytes, mod.json says " +
                                                std::to_string(plan().params_bytes));
  }
  params = aligned(params, owners_);
}

void Package::read_metadata() {
  metadata_text_ = as_text(members_.find(kMetadataMember)->second);
  id_ = package_id(metadata_text_);
  metadata_ = metadata_from_json(metadata_text_);
  if (metadata_.abi_version != TM_ABI_VERSION) {
    throw Error(ErrorCode::kInvalidPackage, "package has kernel ABI " +
                                                std::to_string(metadata_.abi_version) +
                                                ", this program has " + std::to_string(TM_ABI_VERSION));
  }
}

void Package::read_plans() { plans_ = plan_set_from_json(as_text(members_.find(kPlanMember)->second)); }

std::span<const std::byte> Package::member(std::string_view name) const {
  const auto found = members_.find(name);
  TM_CHECK(found != members_.end(), std::string(name));
  return found->second;
}

const std::byte* Package::constant(int64_t offset) const {
  if (!constants_) return member(kParamsMember).data() + offset;
  return static_cast<const std::byte*>(constants_(offset));
}

LoadedPackage::LoadedPackage(std::shared_ptr<const Package> package, std::span<const std::byte> code)
    : package_(std::move(package)), code_(code) {
  const PlanSet& plans = package_->plans();
  for (const PlanVariant& variant : plans.variants) check_kernels(variant.plan, code_);
  if (plans.generic) check_kernels(plans.generic->plan, code_);
  for (const GenericPlan& special : plans.special) check_kernels(special.plan, code_);
  first_dims_ = plans.variants.empty() ? plans.generic->dims : plans.variants.front().dims;
  bind(first_dims());
}

namespace {

/// Binds the first generic plan that takes the dims; what the first of those that refuse says where none
/// does.
void instantiate_any(const PlanSet& plans, const std::vector<int64_t>& dims, BoundPlan& bound) {
  std::optional<Error> refused;
  for (const GenericPlan* generic : plans_taking(plans, dims)) {
    try {
      bound.plan = instantiate(*generic, dims, plans.free_dims);
      bound.generic = generic;
      return;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kMemoryBudget) throw;
      if (!refused) refused = error;
    }
  }
  if (refused) throw Error(*refused);
  bound.plan = instantiate(*plans.generic, dims, plans.free_dims);
  bound.generic = &*plans.generic;
}

}  // namespace

std::shared_ptr<const BoundPlan> LoadedPackage::make_plan(const std::vector<int64_t>& dims) const {
  const PlanSet& plans = package_->plans();
  const auto variant = std::find_if(plans.variants.begin(), plans.variants.end(),
                                    [&](const PlanVariant& candidate) { return candidate.dims == dims; });
  auto bound = std::make_shared<BoundPlan>();
  bound->dims = dims;
  if (variant != plans.variants.end()) {
    bound->plan = variant->plan;
  } else if (plans.generic) {
    bound->is_generic = true;
    instantiate_any(plans, dims, *bound);
  } else {
    throw Error(ErrorCode::kInvalidTensor, "the package has no plan for these shapes; it was compiled for " +
                                               std::to_string(plans.variants.size()) + " shapes alone");
  }
  if (bound->generic != nullptr && !bound->generic->run_dims.empty())
    bound->segments = std::make_shared<const Segments>(*bound->generic, "");
  bound->memory = bound->segments
                      ? plan_memory(bound->plan, {0, bound->segments->end(0), bound->segments->loops()})
                      : plan_memory(bound->plan);
  for (const Step& step : bound->plan.steps)
    bound->kernels.push_back(step.kind == StepKind::kKernel ? code_.kernel(step.function) : nullptr);
  return bound;
}

std::shared_ptr<const BoundPlan> LoadedPackage::bind(const std::vector<int64_t>& dims) const {
  return kept_plan([&](const BoundPlan& plan) { return plan.dims == dims; }, [&] { return make_plan(dims); });
}

std::shared_ptr<const BoundPlan> LoadedPackage::interpret(const std::vector<int64_t>& dims) const {
  TM_CHECK(interpreter_ != nullptr, "there is no interpreter");
  return kept_plan([&](const BoundPlan& plan) { return plan.dims == dims && plan.is_interpreted; },
                   [&] { return interpreter_->bind(dims, {}); });
}

std::shared_ptr<const BoundPlan> LoadedPackage::interpret_run(const std::vector<int64_t>& dims,
                                                              const RunValues& values) const {
  TM_CHECK(interpreter_ != nullptr, "there is no interpreter");
  return interpreter_->bind(dims, values);
}

std::shared_ptr<const BoundPlan> LoadedPackage::kept_plan(
    const std::function<bool(const BoundPlan&)>& serves,
    const std::function<std::shared_ptr<const BoundPlan>()>& make) const {
  constexpr size_t kMostPlans = 32;
  const auto place_of = [&](const std::function<bool(const BoundPlan&)>& is_wanted) {
    return std::find_if(bound_.begin(), bound_.end(), [&](const auto& plan) { return is_wanted(*plan); });
  };
  std::unique_lock lock(mutex_);
  std::shared_ptr<const BoundPlan> result;
  if (place_of(serves) == bound_.end()) {
    // Nobody who needs another plan waits for this one to be made.
    lock.unlock();
    result = make();
    lock.lock();
  }
  if (const auto found = place_of(serves); found != bound_.end()) {
    result = *found;
    bound_.erase(found);
  }
  // An interpreted plan takes the place of the one with kernels: that was none for the dims.
  const auto of_dims = [&](const BoundPlan& plan) { return plan.dims == result->dims; };
  if (const auto other = place_of(of_dims); other != bound_.end()) bound_.erase(other);
  if (bound_.size() == kMostPlans) bound_.erase(bound_.begin());
  bound_.push_back(result);
  return result;
}

std::shared_ptr<const LoadedPackage> LoadedPackage::load(std::shared_ptr<const Package> package,
                                                         const MakeInterpreter& make_interpreter) {
  // A private copy is what gets hashed, admitted and mapped: a file may change under its mapping.
  const std::span<const std::byte> mapped = package->member(kCodeMember);
  const std::vector<std::byte> code(mapped.begin(), mapped.end());
  if (Digest::of(std::span<const std::byte>(code)) !=
      package->metadata().members.at(std::string(kCodeMember)).digest) {
    throw Error(ErrorCode::kInvalidPackage, "mod.so changed while the package was open");
  }
  const std::string& triple = package->metadata().triple;
  if (!triple.starts_with(host_machine() + "-")) {
    throw Error(ErrorCode::kNotSupported, "package is for " + triple + ", this machine is " + host_machine());
  }
  const std::vector<std::string> missing = missing_cpu_features(package->metadata().cpu_features);
  if (!missing.empty()) {
    throw Error(ErrorCode::kCpuFeatureMissing,
                "package needs CPU features that this machine lacks: " + joined(missing));
  }
  std::unique_ptr<const Interpreter> interpreter;
  if (make_interpreter && package->plans().model) interpreter = make_interpreter(package);
  std::shared_ptr<LoadedPackage> loaded(new LoadedPackage(std::move(package), code));
  loaded->interpreter_ = std::move(interpreter);
  return loaded;
}

}  // namespace tensormill::package
