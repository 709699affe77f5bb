/// What host steps share to read their operands. A plan may be a stranger's: what no compiler writes is
/// Error(kInvalidPackage). Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/host_ops/registry.h"

namespace tensormill::host_ops {

struct ReadAttributes {
  Json json;  ///< an object
};

/// The call's attributes, each of which must be there and of the kind that is requested.
class Attributes {
public:
  explicit Attributes(const HostCall& call);
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  bool has(const std::string& name) const { return json_.contains(name); }
  int64_t integer(const std::string& name) const;
  std::vector<int64_t> integers(const std::string& name) const;
  bool flag(const std::string& name) const { return integer(name) != 0; }
  double real(const std::string& name) const;
  std::string text(const std::string& name) const;

private:
  const Json& at(const std::string& name, bool (Json::*is_kind)() const noexcept) const;

  const Json own_;  ///< where nobody has read them before
  const Json& json_;
};

/// Throws unless the call has these numbers of operands.
void expect(const HostCall& call, size_t inputs, size_t outputs);
/// Output `index`, which has `count` elements of `bytes` each.
void* storage(const HostCall& call, size_t index, size_t count, size_t bytes);
int64_t* integers(const HostCall& call, size_t index, int64_t count);
/// The operand's elements, aligned.
Tensor copied(const TensorView& view);
/// Attribute axis, inside of `rank`.
size_t axis_of(const HostCall& call, size_t rank);
/// Attribute axes, or the one axis, inside of `rank`.
std::vector<size_t> axes_of(const HostCall& call, size_t rank);

}  // namespace tensormill::host_ops
