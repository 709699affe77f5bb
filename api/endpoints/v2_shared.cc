// KServe v2's system shared memory: GET /v2/systemsharedmemory[/region/{region}]/status; POST
// …/region/{region}/register, …[/region/{region}]/unregister; the same of CUDA's below /v2/cudasharedmemory
#include "api/endpoints/context.h"
#include "api/endpoints/shared_regions.h"
#include "api/schema/print.h"
#include "api/schema/reader.h"
#include "runtime/base/base64.h"

namespace tensormill::endpoints {
namespace {

/// A kind that is off has no regions. Clients forget all of both kinds before they begin, so that they are
/// answered all the same.
SharedRegions& regions_of(const Context& context, const http::Request& request) {
  if (context.options.shares_memory() && !request.peer_is_loopback)
    throw Error(ErrorCode::kForbidden, "shared memory is for clients on this machine");
  return context.regions;
}

/// Where regions of that kind may be registered: where the server was told to.
SharedRegions& open_regions_of(const Context& context, const http::Request& request, RegionKind kind) {
  if (kind == RegionKind::kSystem && !context.options.shared_memory)
    throw Error(ErrorCode::kNotSupported, "shared memory is off: v2.system_shared_memory");
  if (kind == RegionKind::kCuda && !context.options.cuda_shared_memory)
    throw Error(ErrorCode::kNotSupported, "shared memory of GPUs is off: v2.cuda_shared_memory");
  return regions_of(context, request);
}

std::optional<std::string> region_name(const http::Request& request) {
  const auto found = request.path_parameters.find("region");
  return found == request.path_parameters.end() ? std::nullopt : std::optional(found->second);
}

http::Response done() { return http::json_response(schema::print(Json::object())); }

http::Response forget(const Context& context, const http::Request& request, RegionKind kind) {
  regions_of(context, request).remove(kind, region_name(request));
  return done();
}

void read_number(schema::ObjectReader& body, const char* name, uint64_t& out) {
  constexpr int64_t kMost = int64_t{1} << 46;
  const Json* value = body.find(name);
  if (value == nullptr) return;
  out = static_cast<uint64_t>(
      schema::read_int(*value, body.pointer(name), 0, kMost, body.problems()).value_or(0));
}

/// {"b64": TEXT}
void read_handle(schema::ObjectReader& body, std::string& out) {
  static const Json none = Json::object();
  const Json* value = body.find("raw_handle");
  schema::ObjectReader handle(value == nullptr ? none : *value, body.pointer("raw_handle"), body.problems());
  std::string text;
  handle.required("b64", text);
  handle.finish();
  try {
    out = from_base64(text, ErrorCode::kInvalidArgument);
  } catch (const Error& error) {
    body.problems().add(handle.pointer("b64"), error.message());
  }
}

}  // namespace

http::Response get_v2_regions(const Context& context, http::Request& request) {
  Json list = Json::array();
  for (const SharedRegion& region :
       regions_of(context, request).list(RegionKind::kSystem, region_name(request))) {
    list.push_back({{"name", region.name},
                    {"key", region.key},
                    {"offset", region.offset},
                    {"byte_size", region.byte_size}});
  }
  return http::json_response(schema::print(list));
}

http::Response get_v2_region(const Context& context, http::Request& request) {
  return get_v2_regions(context, request);
}

http::Response register_v2_region(const Context& context, http::Request& request) {
  SharedRegions& regions = open_regions_of(context, request, RegionKind::kSystem);
  const Json json = parse_json(json_body(request));
  SharedRegion region;
  region.name = request.path_parameter("region");
  schema::Problems problems;
  schema::ObjectReader body(json, "", problems);
  body.required("key", region.key);
  read_number(body, "offset", region.offset);
  read_number(body, "byte_size", region.byte_size);
  body.finish();
  problems.throw_if_any();
  regions.add(std::move(region));
  return done();
}

http::Response unregister_v2_regions(const Context& context, http::Request& request) {
  return forget(context, request, RegionKind::kSystem);
}

http::Response unregister_v2_region(const Context& context, http::Request& request) {
  return forget(context, request, RegionKind::kSystem);
}

http::Response get_v2_cuda_regions(const Context& context, http::Request& request) {
  Json list = Json::array();
  for (const SharedRegion& region :
       regions_of(context, request).list(RegionKind::kCuda, region_name(request))) {
    list.push_back({{"name", region.name}, {"device_id", region.device_id}, {"byte_size", region.byte_size}});
  }
  return http::json_response(schema::print(list));
}

http::Response get_v2_cuda_region(const Context& context, http::Request& request) {
  return get_v2_cuda_regions(context, request);
}

http::Response register_v2_cuda_region(const Context& context, http::Request& request) {
  SharedRegions& regions = open_regions_of(context, request, RegionKind::kCuda);
  const Json json = parse_json(json_body(request));
  SharedRegion region;
  region.kind = RegionKind::kCuda;
  region.name = request.path_parameter("region");
  schema::Problems problems;
  schema::ObjectReader body(json, "", problems);
  read_handle(body, region.key);
  uint64_t device = 0;
  read_number(body, "device_id", device);
  region.device_id = static_cast<int64_t>(device);
  read_number(body, "byte_size", region.byte_size);
  body.finish();
  problems.throw_if_any();
  regions.add(std::move(region));
  return done();
}

http::Response unregister_v2_cuda_regions(const Context& context, http::Request& request) {
  return forget(context, request, RegionKind::kCuda);
}

http::Response unregister_v2_cuda_region(const Context& context, http::Request& request) {
  return forget(context, request, RegionKind::kCuda);
}

}  // namespace tensormill::endpoints
