/// The JSON forms in which this room keeps signatures and specs in the catalog and passes them to children.
/// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/services/deployment_service.h"
#include "runtime/base/json.h"
#include "runtime/package/metadata.h"

namespace tensormill::server {

/// [1,"N",-1]
Json shape_to_json(const DimShape& shape);
/// Throws Error(kInvalidJson).
DimShape shape_from_json(const Json& json);
/// [{"name","dtype","shape"}], and "kind" where it is no tensor
Json specs_to_json(const std::vector<services::TensorSpec>& specs);
std::vector<services::TensorSpec> specs_from_json(const Json& json);
std::vector<services::TensorSpec> specs_of(const std::vector<package::TensorInfo>& infos);

Json spec_to_json(const services::DeploymentSpec& spec);
services::DeploymentSpec spec_from_json(const Json& json);

/// The text of the catalog's cursor; "" at the end.
std::string cursor_text(int64_t next);
/// Throws Error(kInvalidRequest) for a cursor that no list gave.
int64_t cursor_from_text(const std::string& text);

}  // namespace tensormill::server
