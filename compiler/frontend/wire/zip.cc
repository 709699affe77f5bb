#include "compiler/frontend/wire/zip.h"

#include <libdeflate.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace tensormill::frontend::wire {

namespace {

/// Deflate makes at most 1,032 bytes of one.
constexpr uint64_t kMostOfOneByte = 1032;

[[noreturn]] void bad_zip(const std::string& what) { throw Error(ErrorCode::kInvalidModel, "zip: " + what); }

/// action(); what the zip reader of NPZ files refuses is a broken model here.
template <typename Action>
auto as_model_error(const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    throw Error(ErrorCode::kInvalidModel, error.message());
  }
}

}  // namespace

ZipFile::ZipFile(std::string_view bytes, const ZipLimits& limits)
    : limits_(limits), left_(limits.inflated_bytes) {
  members_ = as_model_error([&] {
    return npz::read_zip_directory({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()},
                                   limits.members);
  });
  for (size_t i = 0; i < members_.size(); ++i) {
    if (!by_name_.emplace(members_[i].name, i).second)
      bad_zip("member \"" + members_[i].name + "\" stands twice");
  }
}

std::string ZipFile::inflate(const npz::ZipMember& member) {
  if (member.size > left_ || member.size / kMostOfOneByte > member.data.size())
    bad_zip("member \"" + member.name + "\" is of " + std::to_string(member.size) + " bytes, of " +
            std::to_string(member.data.size()) + " in the file; at most " +
            std::to_string(limits_.inflated_bytes) + " are inflated in all");
  left_ -= member.size;
  std::string bytes(member.size, '\0');
  as_model_error([&] {
    npz::MemberStream stream(member);
    stream.read({reinterpret_cast<std::byte*>(bytes.data()), bytes.size()});
    stream.finish();
  });
  return bytes;
}

std::string_view ZipFile::read(const std::string& name) {
  const auto known = checked_.find(name);
  if (known != checked_.end()) return known->second;
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) bad_zip("there is no member \"" + name + "\"");
  const npz::ZipMember& member = members_[found->second];
  std::string_view bytes(reinterpret_cast<const char*>(member.data.data()), member.data.size());
  if (member.deflated) {
    bytes = *(inflated_[name] = std::make_unique<const std::string>(inflate(member)));
  } else if (::libdeflate_crc32(0, bytes.data(), bytes.size()) != member.crc) {
    bad_zip("member \"" + name + "\" has a wrong CRC");
  }
  checked_[name] = bytes;
  return bytes;
}

bool begins_as_zip(std::string_view bytes) { return bytes.starts_with("PK\x03\x04"); }

bool ends_as_zip(std::string_view bytes) {
  // The end record has 22 bytes and a comment of at most 65,535.
  const std::string_view tail = bytes.substr(bytes.size() - std::min<size_t>(bytes.size(), 22 + 65535));
  return tail.rfind("PK\x05\x06") != std::string_view::npos;
}

}  // namespace tensormill::frontend::wire
