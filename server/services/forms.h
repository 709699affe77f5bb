/// The JSON forms in which this folder keeps signatures and specs in the catalog and passes them to children.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/services/deployment_service.h"
#include "runtime/base/json_fwd.h"
#include "runtime/package/metadata.h"

namespace tensormill::server {

/// What import writes as "version" into the facts of a model. Facts without one are of versions of this
/// program that named no kinds.
inline constexpr int64_t kFactsVersion = 2;
/// Whether inputs in the facts that are no tensors have a "kind".
bool has_kinds(const Json& facts);

/// [{"name","dtype","shape"}], and "kind" where it is no tensor
Json specs_to_json(const std::vector<services::TensorSpec>& specs);
std::vector<services::TensorSpec> specs_from_json(const Json& json);
std::vector<services::TensorSpec> specs_of(const std::vector<package::TensorInfo>& infos);

/// {"1": 9, "2": 1}
Json weights_to_json(const services::VersionWeights& weights);
services::VersionWeights weights_from_json(const Json& json);

Json spec_to_json(const services::DeploymentSpec& spec);
services::DeploymentSpec spec_from_json(const Json& json);

/// The text of the catalog's cursor; "" at the end.
std::string cursor_text(int64_t next);
/// Throws Error(kInvalidRequest) for a cursor that no list gave.
int64_t cursor_from_text(const std::string& text);

}  // namespace tensormill::server
