#include "compiler/frontend/wire/hdf5/hdf5.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "compiler/frontend/wire/hdf5/libhdf5.h"
#include "compiler/frontend/wire/work_budget.h"
#include "runtime/base/error.h"

namespace tensormill::frontend::wire {

namespace {

constexpr unsigned kReadOnly = 0;  ///< H5F_ACC_RDONLY, whose macro calls the library by itself
constexpr uint64_t kMaxHdf5Ratio = 1032 * 64;

[[noreturn]] void bad_hdf5(const std::string& what) {
  throw Error(ErrorCode::kInvalidModel, "HDF5: " + what);
}

/// An identifier of libhdf5, closed by the function of its kind.
class Id {
public:
  Id(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close) {
    if (id_ < 0) bad_hdf5(what + " cannot be opened");
  }
  ~Id() { close_(id_); }
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  hid_t get() const { return id_; }

private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// The library opens a file in memory by asking for buffers: it gets the bytes themselves, read-only, and
/// copies nothing.
struct Image {
  void* bytes = nullptr;
  size_t size = 0;
};

void* image_malloc(size_t size, H5FD_file_image_op_t, void* data) {
  const auto* image = static_cast<Image*>(data);
  return size == image->size ? image->bytes : nullptr;
}
void* image_memcpy(void* to, const void* from, size_t, H5FD_file_image_op_t, void*) {
  return to == from ? to : nullptr;
}
void* image_realloc(void*, size_t, H5FD_file_image_op_t, void*) { return nullptr; }
herr_t image_free(void*, H5FD_file_image_op_t, void*) { return 0; }
void* image_copy(void* data) { return data; }
herr_t image_release(void*) { return 0; }

struct TypeOf {
  H5T_class_t kind;
  size_t bytes;
  bool is_signed;
  DType dtype;
};
constexpr std::array kHdf5Types = {
    TypeOf{H5T_FLOAT, 4, true, DType::kFloat32},   TypeOf{H5T_FLOAT, 8, true, DType::kFloat64},
    TypeOf{H5T_FLOAT, 2, true, DType::kFloat16},   TypeOf{H5T_INTEGER, 1, true, DType::kInt8},
    TypeOf{H5T_INTEGER, 2, true, DType::kInt16},   TypeOf{H5T_INTEGER, 4, true, DType::kInt32},
    TypeOf{H5T_INTEGER, 8, true, DType::kInt64},   TypeOf{H5T_INTEGER, 1, false, DType::kUInt8},
    TypeOf{H5T_INTEGER, 2, false, DType::kUInt16}, TypeOf{H5T_INTEGER, 4, false, DType::kUInt32},
    TypeOf{H5T_INTEGER, 8, false, DType::kUInt64},
};

DType dtype_of_hdf5(hid_t type, const std::string& name) {
  const H5T_class_t kind = h5().H5Tget_class(type);
  const size_t bytes = h5().H5Tget_size(type);
  const bool is_signed = kind != H5T_INTEGER || h5().H5Tget_sign(type) == H5T_SGN_2;
  // h5py writes bools as an enumeration of bytes.
  if (kind == H5T_ENUM && bytes == 1) return DType::kBool;
  if (bytes > 1 && h5().H5Tget_order(type) != H5T_ORDER_LE)
    bad_hdf5("dataset \"" + name + "\" is not little endian");
  for (const TypeOf& row : kHdf5Types)
    if (row.kind == kind && row.bytes == bytes && row.is_signed == is_signed) return row.dtype;
  bad_hdf5("dataset \"" + name + "\" has elements of another type than numbers of 1 to 8 bytes");
}

herr_t add_name(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

void check_storage(hid_t creation, const std::string& name) {
  if (h5().H5Pget_layout(creation) == H5D_VIRTUAL) bad_hdf5("dataset \"" + name + "\" is virtual");
  if (h5().H5Pget_external_count(creation) != 0) bad_hdf5("dataset \"" + name + "\" lies in another file");
  const int filters = h5().H5Pget_nfilters(creation);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    const H5Z_filter_t filter = h5().H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values,
                                                    nullptr, 0, nullptr, &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
      bad_hdf5("dataset \"" + name + "\" is packed by filter " + std::to_string(filter));
  }
}

}  // namespace

class Hdf5File::Impl {
public:
  Impl(std::string_view bytes, const Hdf5Limits& limits)
      : bytes_(bytes),
        limits_(limits),
        objects_("objects", limits.objects),
        read_("bytes of packed datasets", limits.read_bytes),
        image_{const_cast<char*>(bytes.data()), bytes.size()} {
    const Id access(h5().H5Pcreate(h5().file_access), h5().H5Pclose, "the file");
    H5FD_file_image_callbacks_t callbacks = {image_malloc, image_memcpy,  image_realloc, image_free,
                                             image_copy,   image_release, &image_};
    if (bytes.empty() || h5().H5Pset_fapl_core(access.get(), 1 << 16, 0) < 0 ||
        h5().H5Pset_file_image_callbacks(access.get(), &callbacks) < 0 ||
        h5().H5Pset_file_image(access.get(), image_.bytes, image_.size) < 0)
      bad_hdf5("the file cannot be opened");
    file_ = std::make_unique<Id>(h5().H5Fopen("model", kReadOnly, access.get()), h5().H5Fclose, "the file");
  }

  bool has(const std::string& path) {
    std::string part;
    for (size_t slash = 0; slash != std::string::npos;) {
      slash = path.find('/', slash + (slash == 0 ? 0 : 1));
      part = path.substr(0, slash);
      if (part.empty()) return path.empty();
      if (h5().H5Lexists(file_->get(), part.c_str(), H5P_DEFAULT) <= 0) return false;
      H5L_info_t info{};
      if (h5().H5Lget_info(file_->get(), part.c_str(), &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD)
        bad_hdf5("\"" + part + "\" is a link to elsewhere");
    }
    return true;
  }

  hid_t open(const std::string& path) {
    objects_.spend(1);
    if (!has(path)) bad_hdf5("there is no \"" + path + "\"");
    return h5().H5Oopen(file_->get(), path.empty() ? "/" : path.c_str(), H5P_DEFAULT);
  }

  std::vector<std::string> members(const std::string& path) {
    const Id group(open(path), h5().H5Oclose, "\"" + path + "\"");
    H5G_info_t info{};
    if (h5().H5Iget_type(group.get()) != H5I_GROUP || h5().H5Gget_info(group.get(), &info) < 0)
      bad_hdf5("\"" + path + "\" is no group");
    objects_.spend(info.nlinks);
    std::vector<std::string> names;
    if (h5().H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add_name, &names) < 0)
      bad_hdf5("group \"" + path + "\" is broken");
    return names;
  }

  Hdf5Dataset dataset(const std::string& path) {
    const Id object(open(path), h5().H5Oclose, "\"" + path + "\"");
    if (h5().H5Iget_type(object.get()) != H5I_DATASET) bad_hdf5("\"" + path + "\" is no dataset");
    const Id creation(h5().H5Dget_create_plist(object.get()), h5().H5Pclose, "dataset \"" + path + "\"");
    check_storage(creation.get(), path);
    const Id type(h5().H5Dget_type(object.get()), h5().H5Tclose, "dataset \"" + path + "\"");
    const Id space(h5().H5Dget_space(object.get()), h5().H5Sclose, "dataset \"" + path + "\"");
    Hdf5Dataset to;
    to.dtype = dtype_of_hdf5(type.get(), path);
    to.shape = shape_of(space.get(), path);
    uint64_t size = dtype_bytes(to.dtype);
    for (const int64_t extent : to.shape)
      if (__builtin_mul_overflow(size, static_cast<uint64_t>(extent), &size))
        bad_hdf5("dataset \"" + path + "\" has more elements than there can be");
    if (size == 0) return to;
    const haddr_t offset =
        h5().H5Pget_layout(creation.get()) == H5D_CONTIGUOUS ? h5().H5Dget_offset(object.get()) : HADDR_UNDEF;
    if (offset != HADDR_UNDEF) {
      if (offset > bytes_.size() || size > bytes_.size() - offset)
        bad_hdf5("dataset \"" + path + "\" passes the end of the file");
      to.data = bytes_.substr(offset, size);
      return to;
    }
    read_.spend(size);
    if (size / kMaxHdf5Ratio > bytes_.size())
      bad_hdf5("dataset \"" + path + "\" is larger than the file can hold");
    auto copy = std::make_shared<std::string>(size, '\0');
    if (h5().H5Dread(object.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, copy->data()) < 0)
      bad_hdf5("dataset \"" + path + "\" is broken");
    to.data = *copy;
    to.copy = std::move(copy);
    return to;
  }

  std::optional<std::vector<std::string>> texts(const std::string& path, const std::string& name) {
    const Id object(open(path), h5().H5Oclose, "\"" + path + "\"");
    if (h5().H5Aexists(object.get(), name.c_str()) <= 0) return std::nullopt;
    const std::string what = "attribute " + name + " of \"" + path + "\"";
    const Id attribute(h5().H5Aopen(object.get(), name.c_str(), H5P_DEFAULT), h5().H5Aclose, what);
    const Id type(h5().H5Aget_type(attribute.get()), h5().H5Tclose, what);
    const Id space(h5().H5Aget_space(attribute.get()), h5().H5Sclose, what);
    const hssize_t count = h5().H5Sget_simple_extent_npoints(space.get());
    // An empty list has numbers for its type.
    if (count == 0) return std::vector<std::string>{};
    if (h5().H5Tget_class(type.get()) != H5T_STRING) bad_hdf5(what + " is no text");
    const size_t width = h5().H5Tget_size(type.get());
    uint64_t size = 0;
    if (count < 0 || __builtin_mul_overflow(static_cast<uint64_t>(count), uint64_t{width}, &size) ||
        size > limits_.attribute_bytes)
      bad_hdf5(what + " is larger than " + std::to_string(limits_.attribute_bytes) + " bytes");
    if (width == 0) bad_hdf5(what + " has texts of no bytes");
    return h5().H5Tis_variable_str(type.get()) > 0 ? varying(attribute.get(), type.get(), space.get(), what)
                                                   : fixed(attribute.get(), type.get(), size, width, what);
  }

private:
  static Shape shape_of(hid_t space, const std::string& path) {
    const int rank = h5().H5Sget_simple_extent_ndims(space);
    if (rank < 0 || rank > 32) bad_hdf5("dataset \"" + path + "\" has " + std::to_string(rank) + " dims");
    std::array<hsize_t, 32> dims{};
    if (rank > 0 && h5().H5Sget_simple_extent_dims(space, dims.data(), nullptr) < 0)
      bad_hdf5("dataset \"" + path + "\" has no shape");
    Shape shape;
    for (int i = 0; i < rank; ++i) {
      if (dims[static_cast<size_t>(i)] > (uint64_t{1} << 48))
        bad_hdf5("dataset \"" + path + "\" is too large");
      shape.push_back(static_cast<int64_t>(dims[static_cast<size_t>(i)]));
    }
    return shape;
  }

  static std::vector<std::string> fixed(hid_t attribute, hid_t type, uint64_t size, size_t width,
                                        const std::string& what) {
    std::string bytes(size, '\0');
    if (h5().H5Aread(attribute, type, bytes.data()) < 0) bad_hdf5(what + " is broken");
    std::vector<std::string> texts;
    for (uint64_t at = 0; at < size; at += width) {
      std::string text = bytes.substr(at, width);
      text.resize(text.find_last_not_of('\0') + 1);
      texts.push_back(std::move(text));
    }
    return texts;
  }

  std::vector<std::string> varying(hid_t attribute, hid_t type, hid_t space, const std::string& what) const {
    std::vector<char*> pointers(static_cast<size_t>(h5().H5Sget_simple_extent_npoints(space)));
    if (h5().H5Aread(attribute, type, pointers.data()) < 0) bad_hdf5(what + " is broken");
    std::vector<std::string> texts;
    uint64_t left = limits_.attribute_bytes;
    bool is_large = false;
    for (const char* text : pointers) {
      const size_t length = text == nullptr ? 0 : std::strlen(text);
      is_large |= length > left;
      if (is_large) break;
      left -= length;
      texts.emplace_back(text == nullptr ? "" : text, length);
    }
    h5().H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
    if (is_large) bad_hdf5(what + " is too large");
    return texts;
  }

  std::string_view bytes_;
  Hdf5Limits limits_;
  WorkBudget objects_, read_;
  Image image_;
  std::unique_ptr<Id> file_;
};

Hdf5File::Hdf5File(std::string_view bytes, const Hdf5Limits& limits)
    : impl_(std::make_unique<Impl>(bytes, limits)) {}
Hdf5File::~Hdf5File() = default;

bool Hdf5File::has(const std::string& path) { return impl_->has(path); }
bool Hdf5File::is_group(const std::string& path) {
  const Id object(impl_->open(path), h5().H5Oclose, "\"" + path + "\"");
  return h5().H5Iget_type(object.get()) == H5I_GROUP;
}
std::vector<std::string> Hdf5File::members(const std::string& path) { return impl_->members(path); }
Hdf5Dataset Hdf5File::dataset(const std::string& path) { return impl_->dataset(path); }
std::optional<std::vector<std::string>> Hdf5File::texts(const std::string& path,
                                                        const std::string& attribute) {
  return impl_->texts(path, attribute);
}
std::optional<std::string> Hdf5File::text(const std::string& path, const std::string& attribute) {
  const auto all = impl_->texts(path, attribute);
  if (!all) return std::nullopt;
  if (all->size() != 1) bad_hdf5("attribute " + attribute + " of \"" + path + "\" is no single text");
  return all->front();
}

}  // namespace tensormill::frontend::wire
