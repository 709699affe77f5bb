/// What an API key may do. A scope is
///
///   "infer" | "read" | "write" | "admin" | ("infer" | "read") ":" (NAME | PREFIX "*")
///   | "worker:compile" | "worker:measure" | "label:" NAME "=" VALUE
///
/// "admin" holds every other one. With a name the scope holds for the deployments of that name, or of names
/// with that prefix, and for nothing else: what is not a deployment's needs the scope without a name. Those
/// of a worker let a process take work: "worker:compile" what makes code that others run, "worker:measure"
/// what brings numbers alone; it may call itself by the labels of its key. Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensormill::http {

/// What is wrong with the text of a scope, as the end of a sentence that begins with it; "" when nothing is.
std::string scope_problem(std::string_view scope);
/// Whether a key with these scopes may do what needs `wanted` ("infer", "read" …), whatever it is done to.
bool grants(const std::vector<std::string>& scopes, std::string_view wanted);
/// The names and prefixes ("digits", "team-*") for which `wanted` is granted beside.
std::vector<std::string> granted_names(const std::vector<std::string>& scopes, std::string_view wanted);
/// Whether one of `patterns` is `name` or has it.
bool matches_name(const std::vector<std::string>& patterns, std::string_view name);

}  // namespace tensormill::http
