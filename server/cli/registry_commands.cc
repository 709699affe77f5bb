// tensormill push, tensormill pull
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/package/package_reader.h"
#include "server/cli/cli.h"
#include "server/cli/model_input.h"
#include "server/cli/terminal.h"
#include "server/registry/artifact.h"
#include "server/registry/client.h"
#include "server/services/store/package_signature.h"

namespace tensormill::cli {

namespace {

struct PushArguments {
  std::string path;
  std::string reference;
  bool is_model = false;
};

struct PullArguments {
  std::string reference;
  std::string output;
  std::vector<std::string> trusted_keys;
  bool is_unsigned = false;
};

/// Of Docker's configuration; nothing where there is none.
registry::Login login_for(const registry::Reference& reference) {
  const char* folder = ::getenv("DOCKER_CONFIG");
  const char* home = ::getenv("HOME");
  std::string path;
  if (folder != nullptr && *folder != '\0') {
    path = std::string(folder) + "/config.json";
  } else if (home != nullptr) {
    path = std::string(home) + "/.docker/config.json";
  }
  if (path.empty() || ::access(path.c_str(), R_OK) != 0) return {};
  return registry::login_of(read_file(path), reference.host);
}

/// A package with or without a signature behind it.
std::shared_ptr<const package::Package> open_pushed(const std::shared_ptr<const MappedFile>& file) {
  const std::span<const std::byte> bytes = file->bytes();
  try {
    return package::Package::open_archive(file);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidPackage || bytes.size() <= server::kSignatureBytes) throw;
  }
  return package::Package::open_archive(
      MappedFile::part_of(file, bytes.first(bytes.size() - server::kSignatureBytes), file->name()));
}

/// What is known of a file without running anything of it.
registry::Artifact describe(const PushArguments& arguments, const std::shared_ptr<const MappedFile>& file,
                            std::string& config) {
  registry::Artifact artifact;
  artifact.file = std::filesystem::path(arguments.path).filename().string();
  artifact.content = Digest::of(file->bytes());
  artifact.content_bytes = file->bytes().size();
  artifact.type = arguments.is_model ? registry::kModelType : registry::kPackageType;
  Json facts = Json::object();
  if (!arguments.is_model) {
    const auto package = in_context(arguments.path, [&] { return open_pushed(file); });
    facts = parse_json(package->metadata_text());
    artifact.annotations["dev.tensormill.package"] = package->id().text();
  }
  config = facts.dump();
  artifact.config = Digest::of(config);
  artifact.config_bytes = config.size();
  return artifact;
}

int push(const PushArguments& arguments, bool json) {
  const registry::Reference reference = registry::parse_reference(arguments.reference);
  if (reference.is_digest())
    throw Error(ErrorCode::kUsage, "a push is given a tag, not a digest: that follows from the bytes");
  const std::shared_ptr<const MappedFile> file = MappedFile::open(arguments.path);
  std::string config;
  const registry::Artifact artifact = describe(arguments, file, config);
  registry::Client client(reference, login_for(reference));
  client.put_blob(artifact.content, file->text());
  client.put_blob(artifact.config, config);
  const std::string manifest = registry::manifest_text(artifact);
  client.put_manifest(reference.version, manifest);
  const std::string digest = Digest::of(manifest).text();
  if (json) {
    print_json(Json{{"reference", reference.text()}, {"digest", digest}, {"bytes", artifact.content_bytes}});
  } else {
    std::cout << reference.text() << ": " << artifact.content_bytes << " bytes, " << digest << std::endl;
  }
  return 0;
}

/// Throws Error(kForeignCode) unless one of the keys has signed the archive.
void check_signature(const std::string& path, const std::vector<std::string>& keys) {
  const server::TrustedKeys trusted(keys);
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  const std::string_view bytes = file->text();
  if (bytes.size() < server::kSignatureBytes)
    throw Error(ErrorCode::kForeignCode, "the package is not signed");
  const size_t archive = bytes.size() - server::kSignatureBytes;
  trusted.check(bytes.substr(archive), Digest::of(bytes.substr(0, archive)));
}

int pull(const PullArguments& arguments, bool json) {
  const registry::Reference reference = registry::parse_reference(arguments.reference);
  if (!arguments.output.empty()) check_output("-o", arguments.output);
  registry::Client client(reference, login_for(reference));
  const std::string manifest = client.get_manifest(reference.version);
  const registry::Artifact artifact = registry::parse_manifest(manifest);
  const bool is_package = artifact.type == registry::kPackageType;
  if (is_package && arguments.trusted_keys.empty() && !arguments.is_unsigned)
    throw Error(ErrorCode::kUsage,
                "a package is machine code: name who may have made it with --trusted-key, or take it from "
                "anybody with --unsigned");
  const std::string output = !arguments.output.empty() ? arguments.output : artifact.file;
  if (output.empty()) throw Error(ErrorCode::kUsage, "the artifact has no file name; name one with -o");
  if (::access(output.c_str(), F_OK) == 0)
    throw Error(ErrorCode::kConflict, output + " is there already; it is not replaced");
  const std::string part = output + ".part-" + std::to_string(::getpid());
  client.get_blob(artifact.content, artifact.content_bytes, part);
  try {
    if (is_package && !arguments.trusted_keys.empty()) check_signature(part, arguments.trusted_keys);
    std::filesystem::rename(part, output);
  } catch (const std::exception&) {
    ::unlink(part.c_str());
    throw;
  }
  const std::string digest = Digest::of(manifest).text();
  if (json) {
    print_json(Json{{"reference", reference.text()},
                    {"digest", digest},
                    {"file", output},
                    {"bytes", artifact.content_bytes},
                    {"type", artifact.type}});
  } else {
    std::cout << output << ": " << artifact.content_bytes << " bytes, " << digest << std::endl;
  }
  return 0;
}

}  // namespace

Action push_command(CLI::App& app) {
  const auto arguments = std::make_shared<PushArguments>();
  app.add_option("FILE", arguments->path, "a package (NAME.tar), or with --model a model file")->required();
  app.add_option("REFERENCE", arguments->reference, "HOST[:PORT]/REPOSITORY[:TAG]")->required();
  app.add_flag("--model", arguments->is_model, "the file is a model");
  return [arguments](const GlobalOptions& globals) { return push(*arguments, globals.json); };
}

Action pull_command(CLI::App& app) {
  const auto arguments = std::make_shared<PullArguments>();
  app.add_option("REFERENCE", arguments->reference, "HOST[:PORT]/REPOSITORY[:TAG|@sha256:DIGEST]")
      ->required();
  app.add_option("-o,--output", arguments->output, "file; default: the name that it was pushed with");
  app.add_option("--trusted-key", arguments->trusted_keys,
                 "PEM file of an Ed25519 public key: a package must have the signature of one of them");
  app.add_flag("--unsigned", arguments->is_unsigned, "take a package of anybody's");
  return [arguments](const GlobalOptions& globals) { return pull(*arguments, globals.json); };
}

}  // namespace tensormill::cli
