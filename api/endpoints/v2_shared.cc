// KServe v2's system shared memory: GET /v2/systemsharedmemory[/region/{region}]/status; POST
// …/region/{region}/register, …[/region/{region}]/unregister; the same of CUDA's, of which there is none
#include "api/endpoints/context.h"
#include "api/endpoints/shared_regions.h"
#include "api/schema/print.h"
#include "api/schema/reader.h"

namespace tensormill::endpoints {
namespace {

/// What is on one machine alone, and only where the server was told to do it.
SharedRegions& regions_of(const Context& context, const http::Request& request) {
  if (!context.options.shared_memory)
    throw Error(ErrorCode::kNotSupported, "shared memory is off: v2.system_shared_memory");
  if (!request.peer_is_loopback)
    throw Error(ErrorCode::kForbidden, "shared memory is for clients on this machine");
  return context.regions;
}

std::optional<std::string> region_name(const http::Request& request) {
  const auto found = request.path_parameters.find("region");
  return found == request.path_parameters.end() ? std::nullopt : std::optional(found->second);
}

[[noreturn]] void no_cuda_region(const http::Request& request) {
  throw Error(ErrorCode::kNotFound, "there is no region \"" + request.path_parameter("region") + "\"");
}

http::Response done() { return http::json_response(schema::print(Json::object())); }

}  // namespace

http::Response get_v2_regions(const Context& context, http::Request& request) {
  Json list = Json::array();
  for (const SharedRegion& region : regions_of(context, request).list(region_name(request))) {
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
  SharedRegions& regions = regions_of(context, request);
  const Json json = parse_json(json_body(request));
  SharedRegion region;
  region.name = request.path_parameter("region");
  schema::Problems problems;
  schema::ObjectReader body(json, "", problems);
  body.required("key", region.key);
  const auto number = [&](const char* name, uint64_t& out) {
    constexpr int64_t kMost = int64_t{1} << 46;
    const Json* value = body.find(name);
    if (value == nullptr) return;
    out = static_cast<uint64_t>(schema::read_int(*value, body.pointer(name), 0, kMost, problems).value_or(0));
  };
  number("offset", region.offset);
  number("byte_size", region.byte_size);
  body.finish();
  problems.throw_if_any();
  regions.add(std::move(region));
  return done();
}

http::Response unregister_v2_regions(const Context& context, http::Request& request) {
  regions_of(context, request).remove(region_name(request));
  return done();
}

http::Response unregister_v2_region(const Context& context, http::Request& request) {
  return unregister_v2_regions(context, request);
}

// Clients forget all regions of both kinds before they begin, so that a server without a GPU answers, too.
http::Response get_v2_cuda_regions(const Context&, http::Request&) {
  return http::json_response(schema::print(Json::array()));
}

http::Response get_v2_cuda_region(const Context&, http::Request& request) { no_cuda_region(request); }

http::Response register_v2_cuda_region(const Context&, http::Request&) {
  throw Error(ErrorCode::kNotSupported, "no memory of a GPU is shared here");
}

http::Response unregister_v2_cuda_regions(const Context&, http::Request&) { return done(); }

http::Response unregister_v2_cuda_region(const Context&, http::Request& request) { no_cuda_region(request); }

}  // namespace tensormill::endpoints
