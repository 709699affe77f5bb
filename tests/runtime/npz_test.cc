#include "runtime/npz/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <random>

#include "runtime/base/error.h"
#include "runtime/base/narrow.h"
#include "runtime/npz/npy_header.h"
#include "tests/expect_error.h"

namespace tensormill::npz {
namespace {

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

Tensor ramp(DType dtype, Shape shape) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_element_int(i, i % 2 == 0 ? i : -i);
  return tensor;
}

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(i < 8 ? value >> (8 * i) & 0xff : 0);
}

std::string npy(const std::string& dict, const std::string& data, char version = 1) {
  std::string file = std::string("\x93NUMPY") + version + '\0';
  put(file, dict.size(), version == 1 ? 2 : 4);
  return file + dict + data;
}

std::string deflate_raw(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// A zip as numpy.savez_compressed writes it, without zip64.
std::string deflated_zip(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out;
  std::string directory;
  for (const auto& [name, data] : members) {
    const std::string packed = deflate_raw(data);
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
    std::string common;
    put(common, 20, 2);
    put(common, 0, 2);
    put(common, 8, 2);
    put(common, 0, 4);
    put(common, crc, 4);
    put(common, packed.size(), 4);
    put(common, data.size(), 4);
    put(common, name.size(), 2);
    put(common, 0, 2);
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 10);
    put(directory, out.size(), 4);
    directory += name;
    put(out, 0x04034b50, 4);
    out += common + name + packed;
  }
  const size_t start = out.size();
  out += directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, members.size(), 2);
  put(out, members.size(), 2);
  put(out, directory.size(), 4);
  put(out, start, 4);
  put(out, 0, 2);
  return out;
}

TEST(Npz, RoundTripsEveryDtypeAndShape) {
  std::vector<NamedTensor> tensors;
  for (const DTypeInfo& info : all_dtypes()) {
    if (info.dtype == kString) continue;  // text_test.cc
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{7}, Shape{2, 3, 5}, Shape{4, 0, 2}}) {
      tensors.push_back({std::string(info.name) + to_string(shape), ramp(info.dtype, shape)});
    }
  }
  const std::string archive = write_npz(tensors);
  EXPECT_EQ(write_npz(tensors), archive);
  const std::vector<NamedTensor> read = read_npz(as_bytes(archive));
  ASSERT_EQ(read.size(), tensors.size());
  for (size_t i = 0; i < read.size(); ++i) {
    SCOPED_TRACE(tensors[i].name);
    EXPECT_EQ(read[i].name, tensors[i].name);
    // numpy has no names for narrow types: their bytes come back.
    EXPECT_TRUE(dtype_fits(tensors[i].tensor.dtype(), read[i].tensor.dtype()));
    EXPECT_EQ(read[i].tensor.shape(), tensors[i].tensor.shape());
    EXPECT_EQ(std::memcmp(read[i].tensor.data(), tensors[i].tensor.data(), read[i].tensor.num_bytes()), 0);
  }
}

TEST(Npz, ViewsAreZeroCopyAndAligned) {
  const std::string archive =
      write_npz({{"a", ramp(DType::kFloat32, {5})}, {"b", ramp(DType::kFloat64, {3})}});
  const Tensor copy(DType::kUInt8, {static_cast<int64_t>(archive.size())});  // 64-byte aligned base
  std::memcpy(const_cast<void*>(copy.data()), archive.data(), archive.size());
  const Reader reader({static_cast<const std::byte*>(copy.data()), archive.size()});
  for (size_t i = 0; i < 2; ++i) {
    const auto view = reader.view(i);
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % 64, 0u);
  }
  EXPECT_EQ(reader.find("b"), 1u);
  EXPECT_FALSE(reader.find("c").has_value());
}

TEST(Npz, ReadsDeflatedFortranAndBigEndian) {
  // [[1,2,3],[4,5,6]] in column order: 1 4 2 5 3 6, as big-endian i2.
  std::string data;
  for (int value : {1, 4, 2, 5, 3, 6}) data += std::string{'\0', static_cast<char>(value)};
  const std::string archive =
      deflated_zip({{"x.npy", npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", data, 2)},
                    {"b.npy", npy("{\"shape\": (3L,), \"fortran_order\": False, \"descr\": \"|b1\"}",
                                  std::string("\0\x01\x01", 3), 3)}});
  const std::vector<NamedTensor> read = read_npz(as_bytes(archive));
  ASSERT_EQ(read.size(), 2u);
  EXPECT_THAT(
      std::vector<int16_t>(read[0].tensor.values<int16_t>().begin(), read[0].tensor.values<int16_t>().end()),
      testing::ElementsAre(1, 2, 3, 4, 5, 6));
  const auto* bools = static_cast<const uint8_t*>(read[1].tensor.data());
  EXPECT_EQ(bools[0] + 2 * bools[1] + 4 * bools[2], 6);
}

TEST(Npz, BytesThatAreNoBoolsAreRefused) {
  const std::string archive =
      deflated_zip({{"b.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n",
                                  std::string("\0\x01\x02", 3), 1)}});
  expect_error(ErrorCode::kInvalidTensor, "tensor \"b\": its data: element 2 is byte 2",
               [&] { read_npz(as_bytes(archive)); });
}

TEST(Npz, HeadersThatAreRefused) {
  for (const char* dict :
       {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a','<f4')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "{'descr': '<f4', 'fortran_order': False}",
        "{", "", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x"}) {
    EXPECT_THROW(parse_npy_dict(dict), Error) << dict;
  }
}

template <typename Action>
ErrorCode code_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(Npz, ABombIsRefusedBeforeAnythingIsAllocated) {
  const std::string huge = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,)}", "x");
  EXPECT_EQ(code_of([&] { read_npz(as_bytes(deflated_zip({{"x.npy", huge}}))); }), ErrorCode::kInvalidNpz);
  EXPECT_EQ(code_of([&] { read_npy(as_bytes(huge)); }), ErrorCode::kInvalidNpz);
  const std::string wrap =
      npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "");
  EXPECT_EQ(code_of([&] { read_npy(as_bytes(wrap)); }), ErrorCode::kInvalidTensor);
  const std::string zeros =
      npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1000000,)}", std::string(1000000, '\0'));
  Limits limits;
  limits.max_tensor_bytes = 999999;
  EXPECT_EQ(code_of([&] {
              read_npz(as_bytes(deflated_zip({{"x.npy", zeros}})), limits);
            }),
            ErrorCode::kTooLarge);
  limits.max_tensor_bytes = 1000000;
  limits.max_total_bytes = 1999999;
  EXPECT_EQ(code_of([&] {
              read_npz(as_bytes(deflated_zip({{"x.npy", zeros}, {"y.npy", zeros}})), limits);
            }),
            ErrorCode::kTooLarge);
  limits.max_total_bytes = 2000000;
  limits.max_members = 1;
  EXPECT_EQ(code_of([&] {
              read_npz(as_bytes(deflated_zip({{"x.npy", zeros}, {"y.npy", zeros}})), limits);
            }),
            ErrorCode::kTooLarge);
}

TEST(Npz, NamesAndHeadersHaveABoundTogether) {
  const std::string dict =
      "{'descr': '|u1', 'fortran_order': False, 'shape': ()" + std::string(5000, ' ') + "}";
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 20; ++i) members.emplace_back("x" + std::to_string(i) + ".npy", npy(dict, "x"));
  const std::string archive = deflated_zip(members);
  Limits limits;
  EXPECT_EQ(read_npz(as_bytes(archive), limits).size(), 20u);
  limits.max_header_bytes = 19 * 5060;
  EXPECT_EQ(code_of([&] { read_npz(as_bytes(archive), limits); }), ErrorCode::kTooLarge);
  // Stored as a few bytes each, these would be 64 KiB to unfold.
  const std::string long_dict =
      "{'descr': '|u1', 'fortran_order': False, 'shape': ()" + std::string(60000, ' ') + "}";
  EXPECT_EQ(code_of([&] {
              read_npz(as_bytes(deflated_zip({{"x.npy", npy(long_dict, "x")}})));
            }),
            ErrorCode::kInvalidNpz);
  limits.max_header_bytes = 2000;
  EXPECT_EQ(code_of([&] {
              read_npz(as_bytes(deflated_zip({{std::string(3000, 'n') + ".npy", npy(dict, "x")}})), limits);
            }),
            ErrorCode::kTooLarge);
}

/// Makes the headers of an archive of stored members unreadable, and leaves the members' checksums right.
void spoil_headers(std::string& archive) {
  for (const std::string_view signature : {"PK\x01\x02", "PK\x03\x04", "PK\x05\x06"}) {
    for (size_t at = archive.find(signature); at != std::string::npos; at = archive.find(signature, at))
      archive.replace(at, signature.size(), "gone");
  }
  // A multiple of CRC-32's polynomial: it changes no checksum of what it is added to.
  constexpr std::string_view kPolynomial = "\x41\x06\x71\xdb\x01";
  constexpr std::string_view kDict = "{'descr'";
  for (size_t at = archive.find(kDict); at != std::string::npos; at = archive.find(kDict, at)) {
    for (size_t i = 0; i < kPolynomial.size(); ++i)
      archive[at + i] = static_cast<char>(archive[at + i] ^ kPolynomial[i]);
  }
}

TEST(Npz, HeadersAreReadOnce) {
  const std::vector<NamedTensor> tensors = {{"a", ramp(DType::kFloat32, {2, 3})},
                                            {"b", ramp(DType::kBool, {5})}};
  std::string archive = write_npz(tensors);
  const Reader reader(as_bytes(archive));
  spoil_headers(archive);
  expect_error(ErrorCode::kInvalidNpz, "", [&] { Reader{as_bytes(archive)}; });
  expect_error(ErrorCode::kInvalidNpz, ".npy header",
               [&] { read_npy(as_bytes(archive).subspan(archive.find("\x93NUMPY"))); });
  const auto view = reader.view(0);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->shape, (Shape{2, 3}));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor read = reader.read(i);
    EXPECT_EQ(read.shape(), tensors[i].tensor.shape());
    EXPECT_EQ(std::memcmp(read.data(), tensors[i].tensor.data(), read.num_bytes()), 0);
  }
}

TEST(Npz, DuplicateAndForeignNamesAreRefused) {
  const std::string one = npy("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "x");
  EXPECT_EQ(code_of([&] {
              read_npz(as_bytes(deflated_zip({{"x.npy", one}, {"x.npy", one}})));
            }),
            ErrorCode::kInvalidNpz);
  EXPECT_EQ(code_of([&] { read_npz(as_bytes(deflated_zip({{"x.txt", one}}))); }), ErrorCode::kInvalidNpz);
  EXPECT_EQ(code_of([&] {
              read_npz(as_bytes(deflated_zip({{"x.npy", one + "y"}})));
            }),
            ErrorCode::kInvalidNpz);
  EXPECT_EQ(code_of([&] { write_npz({{"x", Tensor()}, {"x", Tensor()}}); }), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(read_npz(as_bytes(deflated_zip({}))).empty());
}

/// Bytes that readers of zips understand in more than one way, so that one tensor is there for one of them
/// and another one for the next.
TEST(Npz, ArchivesWithTwoMeaningsAreRefused) {
  const std::string one = npy("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "x");
  const std::string plain = deflated_zip({{"x.npy", one}, {"y.npy", one}});
  const size_t directory = plain.find("PK\x01\x02");
  const size_t second = plain.find("PK\x01\x02", directory + 1);
  const size_t end = plain.find("PK\x05\x06");
  ASSERT_EQ(read_npz(as_bytes(plain)).size(), 2u);
  const auto with = [&](size_t at, const std::string& bytes) {
    return std::string(plain).replace(at, bytes.size(), bytes);
  };
  const std::pair<std::string, const char*> archives[] = {
      {"#!/bin/sh\n" + plain, "central directory entry is broken"},
      {plain + "x", "no end of central directory"},
      {plain.substr(0, plain.size() - 1), "no end of central directory"},
      {plain.substr(0, end), "no end of central directory"},
      {with(end + 4, "\x01"), "several volumes"},
      {with(end + 10, "\x01"), "central directory has another size than announced"},
      {with(end + 10, "\x03"), "central directory entry is broken"},
      {with(end + 12, "\x01"), "central directory has another size than announced"},
      {with(30, "z"), "local header of \"x.npy\" has another name"},
      {with(second + 42, std::string(4, '\0')), "local header of \"y.npy\" has another name"},
      {with(directory + 8, "\x01"), "member \"x.npy\" is encrypted"},
      {with(directory + 10, "\x0c"), "member \"x.npy\" has compression method 12"},
      {with(directory + 16, std::string(4, '\0')), "member \"x.npy\" has a wrong CRC"},
      {deflated_zip({{std::string("x.npy\0.npy", 10), one}}), "is not a .npy file"},
  };
  for (const auto& [bytes, message] : archives)
    expect_error(ErrorCode::kInvalidNpz, message, [&, &archive = bytes] { read_npz(as_bytes(archive)); });
}

/// Every mutation gives tensors or an Error of the right code, never anything else.
TEST(Npz, TwoThousandMutationsAreErrorsOrTensors) {
  const std::string stored =
      write_npz({{"a", ramp(DType::kFloat32, {3, 4})}, {"b", ramp(DType::kInt64, {2})}});
  const std::string packed = deflated_zip(
      {{"a.npy", npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n", "123456789abc")},
       {"b.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (64,), }\n", std::string(64, 'z'))}});
  Limits limits;
  limits.max_tensor_bytes = 1 << 20;
  limits.max_total_bytes = 1 << 20;
  int rejected = 0;
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = i % 2 == 0 ? stored : packed;
    switch (random() % 4) {
      case 0:
        bytes.resize(random() % bytes.size());
        break;
      case 1:
        bytes.insert(random() % bytes.size(), 1 + random() % 8, static_cast<char>(random()));
        break;
      case 2: {
        const uint64_t special[] = {0, 0xffffffffffffffff, 0x7fffffff, 0xffff, 0x8000000000000000};
        const size_t width = size_t{1} << random() % 4;
        std::memcpy(bytes.data() + random() % (bytes.size() - 8), &special[random() % 5], width);
        break;
      }
      default:
        for (unsigned n = 1 + random() % 4; n > 0; --n) {
          bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
        }
    }
    try {
      const Reader reader(as_bytes(bytes), limits);
      for (size_t k = 0; k < reader.entries().size(); ++k) {
        EXPECT_EQ(reader.read(k).shape(), reader.entries()[k].shape);
        (void)reader.view(k);
      }
    } catch (const Error& error) {
      ++rejected;
      EXPECT_THAT(error.code(),
                  testing::AnyOf(ErrorCode::kInvalidNpz, ErrorCode::kInvalidTensor, ErrorCode::kTooLarge))
          << error.message();
    }
  }
  EXPECT_GT(rejected, 1200);
}

}  // namespace
}  // namespace tensormill::npz
