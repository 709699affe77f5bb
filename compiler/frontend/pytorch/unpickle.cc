#include "compiler/frontend/pytorch/unpickle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "runtime/base/error.h"

namespace tensormill::frontend::pytorch {

namespace {

constexpr int kMaxValueDepth = 64;
constexpr size_t kMaxValues = 10'000'000;

using Value = std::shared_ptr<PickleValue>;
using Kind = PickleValue::Kind;

struct StorageRow {
  std::string_view name;
  ScalarType type;
};
constexpr std::array kStorages = {
    StorageRow{"torch.FloatStorage", ScalarType::kFloat32},
    StorageRow{"torch.DoubleStorage", ScalarType::kFloat64},
    StorageRow{"torch.HalfStorage", ScalarType::kFloat16},
    StorageRow{"torch.BFloat16Storage", ScalarType::kBFloat16},
    StorageRow{"torch.LongStorage", ScalarType::kInt64},
    StorageRow{"torch.IntStorage", ScalarType::kInt32},
    StorageRow{"torch.ShortStorage", ScalarType::kInt16},
    StorageRow{"torch.CharStorage", ScalarType::kInt8},
    StorageRow{"torch.ByteStorage", ScalarType::kUInt8},
    StorageRow{"torch.BoolStorage", ScalarType::kBool},
    StorageRow{"torch.ComplexFloatStorage", ScalarType::kComplex64},
    StorageRow{"torch.ComplexDoubleStorage", ScalarType::kComplex128},
};

class Unpickler {
public:
  Unpickler(wire::ZipFile& zip, PickleSource source)
      : bytes_(zip.read(source.member)), zip_(zip), source_(std::move(source)) {}

  Value run() {
    for (;;) {
      const char code = take(1).front();
      if (code == '.') return pop();
      step(code);
    }
  }

private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidModel, short_name() + ", at byte " + std::to_string(at_) + ": " + what);
  }

  /// The member without the archive's own folder.
  std::string short_name() const {
    const size_t slash = source_.member.rfind('/');
    return slash == std::string::npos ? source_.member : source_.member.substr(slash + 1);
  }

  std::string_view take(uint64_t count) {
    if (count > bytes_.size() - at_) fail("it ends early");
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  template <typename T>
  T number() {
    T value{};
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos || end - at_ > 1024) fail("a line has no end");
    std::string text(take(end - at_));
    take(1);
    return text;
  }

  Value make(Kind kind, int64_t number = 0, std::string text = {}) {
    if (++values_ > kMaxValues) fail("more than " + std::to_string(kMaxValues) + " values");
    auto value = std::make_shared<PickleValue>();
    value->kind = kind;
    value->number = number;
    value->text = std::move(text);
    return value;
  }
  void push(Value value) { stack_.push_back(std::move(value)); }
  Value pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back()))
      fail("nothing is on the stack");
    Value value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  Value& top() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back()))
      fail("nothing is on the stack");
    return stack_.back();
  }
  std::vector<Value> pop_to_mark() {
    if (marks_.empty()) fail("there is no mark");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Value> items(std::make_move_iterator(begin), std::make_move_iterator(stack_.end()));
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  void put_into(PickleValue& holder, std::vector<Value> items) {
    for (Value& item : items) {
      if (item.get() == &holder) fail("a value holds itself");
      item->is_held = true;
      holder.depth = std::max(holder.depth, item->depth + 1);
      holder.items.push_back(std::move(item));
    }
    if (holder.depth > kMaxValueDepth) fail("values are nested too deeply");
  }
  void push_tuple(std::vector<Value> items) {
    Value tuple = make(Kind::kTuple);
    put_into(*tuple, std::move(items));
    push(std::move(tuple));
  }
  void push_last(size_t count) {
    std::vector<Value> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    push_tuple(std::move(items));
  }
  /// What lies in another value is whole, so that nothing comes to hold itself.
  void extend(Kind kind, std::vector<Value> items) {
    PickleValue& holder = *top();
    if (holder.kind != kind || holder.is_held || (kind == Kind::kDict && items.size() % 2 != 0))
      fail("something is put into what does not take it");
    put_into(holder, std::move(items));
  }

  /// The value that the opcode makes of what follows it alone; null for an opcode of another kind.
  Value literal(char code) {
    switch (code) {
      case '}':
        return make(Kind::kDict);
      case ']':
        return make(Kind::kList);
      case ')':
        return make(Kind::kTuple);
      case 'N':
        return make(Kind::kNone);
      case '\x88':
        return make(Kind::kBool, 1);
      case '\x89':
        return make(Kind::kBool, 0);
      case 'K':
        return make(Kind::kInt, number<uint8_t>());
      case 'M':
        return make(Kind::kInt, number<uint16_t>());
      case 'J':
        return make(Kind::kInt, number<int32_t>());
      case '\x8a':
        return make(Kind::kInt, long_number());
      case 'G':
        return real();
      case 'X':
        return make(Kind::kText, 0, std::string(take(number<uint32_t>())));
      default:
        return nullptr;
    }
  }

  /// Its bytes stand in the order of networks.
  Value real() {
    uint64_t bits = 0;
    for (const char byte : take(8)) bits = (bits << 8) | static_cast<uint8_t>(byte);
    Value value = make(Kind::kFloat);
    std::memcpy(&value->real, &bits, sizeof(bits));
    return value;
  }

  void step(char code) {
    if (Value value = literal(code)) return push(std::move(value));
    switch (code) {
      case '\x80':
        if (take(1).front() != 2) fail("another protocol than 2");
        return;
      case '\x81':
        return make_object();
      case '(':
        return marks_.push_back(stack_.size());
      case 't':
        return push_tuple(pop_to_mark());
      case '\x85':
        return push_last(1);
      case '\x86':
        return push_last(2);
      case '\x87':
        return push_last(3);
      case 'q':
        return remember(number<uint8_t>());
      case 'r':
        return remember(number<uint32_t>());
      case 'h':
        return push(recall(number<uint8_t>()));
      case 'j':
        return push(recall(number<uint32_t>()));
      case 'c':
        return push_name();
      case 'Q':
        return push(storage(*pop()));
      case 'R':
        return reduce();
      case 'b':
        return build();
      case 'a': {
        std::vector<Value> item = {pop()};
        return extend(Kind::kList, std::move(item));
      }
      case 'e':
        return extend(Kind::kList, pop_to_mark());
      case 's': {
        Value value = pop();
        std::vector<Value> pair = {pop(), std::move(value)};
        return extend(Kind::kDict, std::move(pair));
      }
      case 'u':
        return extend(Kind::kDict, pop_to_mark());
      default:
        --at_;
        fail("opcode " + std::to_string(static_cast<unsigned char>(code)) +
             ", which no dictionary of tensors has");
    }
  }

  static bool is_script_class(std::string_view name) { return name.starts_with("__torch__."); }

  void make_object() {
    const Value arguments = pop(), name = pop();
    const bool is_form = name->kind == Kind::kName && is_script_class(name->text) &&
                         arguments->kind == Kind::kTuple && arguments->items.empty();
    if (!is_form) fail("an object in a form that is not known");
    push(make(Kind::kObject, 0, name->text));
  }

  /// Only objects keep a state: that of a dictionary of tensors is its version.
  void build() {
    const Value state = pop();
    const Value& object = top();
    if (object->kind != Kind::kObject) return;
    if (!object->items.empty()) fail("an object has two states");
    put_into(*object, {state});
  }

  int64_t long_number() {
    const auto count = number<uint8_t>();
    if (count > 8) fail("a number of " + std::to_string(count) + " bytes");
    const std::string_view bytes = take(count);
    uint64_t value = count > 0 && (bytes.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
    std::memcpy(&value, bytes.data(), count);
    return static_cast<int64_t>(value);
  }

  void remember(uint32_t place) { memo_[place] = top(); }
  Value recall(uint32_t place) const {
    const auto found = memo_.find(place);
    if (found == memo_.end()) fail("nothing is remembered as " + std::to_string(place));
    return found->second;
  }

  void push_name() {
    const std::string module = line();
    const std::string name = module + "." + line();
    const bool is_known = storage_type(name) != ScalarType::kUnknown ||
                          (source_.has_objects && (is_script_class(name) || is_list_name(name)));
    if (!is_known && name != "collections.OrderedDict" && name != "torch._utils._rebuild_tensor_v2" &&
        name != "torch._utils._rebuild_parameter" && name != "torch.Size")
      fail("it imports " + name + ", which is none of what tensors are made of");
    push(make(Kind::kName, 0, name));
  }

  /// What TorchScript makes lists of one type with.
  static bool is_list_name(std::string_view name) {
    static constexpr std::array<std::string_view, 5> kNames = {
        "torch.jit._pickle.build_intlist", "torch.jit._pickle.build_doublelist",
        "torch.jit._pickle.build_boollist", "torch.jit._pickle.build_tensorlist",
        "torch.jit._pickle.restore_type_tag"};
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
  }

  static ScalarType storage_type(std::string_view name) {
    for (const StorageRow& row : kStorages)
      if (row.name == name) return row.type;
    return ScalarType::kUnknown;
  }

  /// ('storage', type, key, location, elements)
  Value storage(const PickleValue& id) {
    const bool is_form = id.kind == Kind::kTuple && id.items.size() == 5 &&
                         id.items[1]->kind == Kind::kName && id.items[2]->kind == Kind::kText &&
                         id.items[4]->kind == Kind::kInt;
    if (!is_form || id.items[0]->text != "storage") fail("a reference that is no storage");
    const ScalarType type = storage_type(id.items[1]->text);
    Value value = make(Kind::kStorage);
    value->tensor.dtype = type;
    value->tensor.storage = zip_.read(source_.storages + id.items[2]->text);
    const auto elements = static_cast<uint64_t>(id.items[4]->number);
    if (type == ScalarType::kUnknown) fail("a storage of " + id.items[1]->text);
    if (source_.is_hollow) return value;
    if (id.items[4]->number < 0 ||
        elements > value->tensor.storage.size() / static_cast<uint64_t>(scalar_bytes(type)))
      fail("storage \"" + id.items[2]->text + "\" has " + std::to_string(value->tensor.storage.size()) +
           " bytes for " + std::to_string(id.items[4]->number) + " elements");
    return value;
  }

  void reduce() {
    const Value arguments = pop();
    const Value name = pop();
    if (name->kind != Kind::kName || arguments->kind != Kind::kTuple) fail("a call of what is no function");
    const std::vector<Value>& items = arguments->items;
    if (name->text == "collections.OrderedDict" && items.empty()) return push(make(Kind::kDict));
    if (name->text.starts_with("torch.jit._pickle.build_") && items.size() == 1 &&
        items[0]->kind == Kind::kList)
      return push(items[0]);
    // A type that the interpreter keeps beside a value.
    if (name->text == "torch.jit._pickle.restore_type_tag" && items.size() == 2) return push(items[0]);
    if (name->text == "torch.Size" && items.size() == 1) return push(items[0]);
    if (name->text == "torch._utils._rebuild_parameter" && items.size() >= 2 &&
        items[0]->kind == Kind::kTensor)
      return push(items[0]);
    const bool is_tensor = name->text == "torch._utils._rebuild_tensor_v2" && items.size() >= 6 &&
                           items[0]->kind == Kind::kStorage && items[1]->kind == Kind::kInt;
    if (!is_tensor) fail("a call of " + name->text + " in a form that is not known");
    Value value = make(Kind::kTensor);
    value->tensor = items[0]->tensor;
    value->tensor.offset = items[1]->number;
    value->tensor.sizes = integers(*items[2]);
    value->tensor.strides = integers(*items[3]);
    push(std::move(value));
  }

  std::vector<int64_t> integers(const PickleValue& tuple) const {
    if (tuple.kind != Kind::kTuple || tuple.items.size() > 64) fail("a shape is no tuple");
    std::vector<int64_t> numbers;
    for (const Value& item : tuple.items) {
      if (item->kind != Kind::kInt) fail("a shape has more than integers");
      numbers.push_back(item->number);
    }
    return numbers;
  }

  std::string_view bytes_;
  wire::ZipFile& zip_;
  const PickleSource source_;
  size_t at_ = 0, values_ = 0;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, Value> memo_;
};

}  // namespace

void check_stored(const StoredTensor& tensor, const std::string& name) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::kInvalidModel, "tensor \"" + name + "\": " + what);
  };
  const int64_t bytes = scalar_bytes(tensor.dtype);
  if (bytes == 0) refuse("element type " + std::to_string(static_cast<int64_t>(tensor.dtype)));
  if (tensor.sizes.size() != tensor.strides.size() || tensor.offset < 0)
    refuse(std::to_string(tensor.sizes.size()) + " sizes, " + std::to_string(tensor.strides.size()) +
           " strides, offset " + std::to_string(tensor.offset));
  int64_t last = tensor.offset;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    int64_t step = 0;
    if (tensor.sizes[i] < 0 || tensor.strides[i] < 0) refuse("a size or a stride below 0");
    if (tensor.sizes[i] == 0) return;
    if (__builtin_mul_overflow(tensor.sizes[i] - 1, tensor.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      refuse("more elements than there can be");
  }
  if (static_cast<uint64_t>(last) >= tensor.storage.size() / static_cast<uint64_t>(bytes))
    refuse("its last element is number " + std::to_string(last) + " of a storage of " +
           std::to_string(tensor.storage.size()) + " bytes");
}

std::shared_ptr<const PickleValue> read_pickle(wire::ZipFile& zip, const PickleSource& source) {
  return Unpickler(zip, source).run();
}

std::map<std::string, StoredTensor> read_saved_tensors(wire::ZipFile& zip) {
  std::string root;
  for (const npz::ZipMember& member : zip.members())
    if (member.name.ends_with("data.pkl")) root = member.name.substr(0, member.name.size() - 8);
  const std::shared_ptr<const PickleValue> saved = read_pickle(zip, {root + "data.pkl", root + "data/"});
  if (saved->kind != Kind::kDict)
    throw Error(ErrorCode::kInvalidModel, "data.pkl is no dictionary of tensors");
  std::map<std::string, StoredTensor> tensors;
  for (size_t i = 0; i + 1 < saved->items.size(); i += 2) {
    const PickleValue &key = *saved->items[i], &value = *saved->items[i + 1];
    if (key.kind != Kind::kText || value.kind != Kind::kTensor)
      throw Error(ErrorCode::kInvalidModel,
                  "data.pkl: entry " + std::to_string(i / 2) + " is no tensor with a name");
    check_stored(value.tensor, key.text);
    tensors[key.text] = value.tensor;
  }
  return tensors;
}

}  // namespace tensormill::frontend::pytorch
