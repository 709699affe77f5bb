/// Vectors whose elements are reached within their range alone. How many dims a value has, and how many
/// numbers an attribute, is said by strangers' models: what reads past the end throws OutOfRange instead, by
/// index and by iterator. Thread-safety: as a vector.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace tensormill::ir {

/// What is outside of the range is a bug where the graph is known to be right, and the model's fault where
/// the graph is made of it (as_invalid_model).
class OutOfRange : public InternalError {
public:
  explicit OutOfRange(const std::string& reason) : InternalError(reason), reason_(reason) {}
  /// "axis 2 of a shape of rank 1"
  const std::string& reason() const { return reason_; }

private:
  std::string reason_;
};

/// What messages say of the list: "axis 2 of a shape of rank 1", "element 2 of a list of 1".
enum class ListKind : uint8_t { kList, kShape };
[[noreturn]] void throw_out_of_range(ListKind kind, int64_t index, int64_t size);

/// What work() returns; Error(kInvalidModel) where it leaves the range of a list, also of one of the standard
/// library: an `at` of another element than there are, or a list of more than can be.
template <typename Work>
decltype(auto) as_invalid_model(const Work& work) {
  try {
    return work();
  } catch (const OutOfRange& outside) {
    throw Error(ErrorCode::kInvalidModel, outside.reason());
  } catch (const std::out_of_range&) {
    throw Error(ErrorCode::kInvalidModel, "an element that a list has not");
  } catch (const std::length_error&) {
    throw Error(ErrorCode::kInvalidModel, "a list of more elements than there can be");
  }
}

/// A place in a list, from its begin to its end: it is moved no further by numbers, and reads no element but
/// the list's.
template <typename At, ListKind kind>
class CheckedIterator {
public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = typename std::iterator_traits<At>::value_type;
  using difference_type = typename std::iterator_traits<At>::difference_type;
  using pointer = typename std::iterator_traits<At>::pointer;
  using reference = typename std::iterator_traits<At>::reference;

  CheckedIterator() = default;
  CheckedIterator(At first, At at, At last) : first_(first), at_(at), last_(last) {}
  /// One that only reads, of one that writes too.
  template <typename Other>
  requires(std::convertible_to<Other, At> && !std::same_as<Other, At>)
      CheckedIterator(const CheckedIterator<Other, kind>& other)  // NOLINT
      : first_(other.first()), at_(other.base()), last_(other.last()) {}

  At first() const { return first_; }
  At base() const { return at_; }
  At last() const { return last_; }

  reference operator*() const {
    if (!(at_ >= first_ && at_ < last_)) throw_out_of_range(kind, at_ - first_, last_ - first_);
    return *at_;
  }
  pointer operator->() const { return &**this; }
  reference operator[](difference_type n) const { return *(*this + n); }

  CheckedIterator& operator++() {
    ++at_;
    return *this;
  }
  CheckedIterator operator++(int) { return {first_, at_++, last_}; }
  CheckedIterator& operator--() {
    --at_;
    return *this;
  }
  CheckedIterator operator--(int) { return {first_, at_--, last_}; }
  CheckedIterator& operator+=(difference_type n) {
    if (n < first_ - at_ || n > last_ - at_) throw_out_of_range(kind, at_ - first_ + n, last_ - first_);
    at_ += n;
    return *this;
  }
  CheckedIterator& operator-=(difference_type n) { return *this += -n; }

  friend CheckedIterator operator+(CheckedIterator at, difference_type n) { return at += n; }
  friend CheckedIterator operator+(difference_type n, CheckedIterator at) { return at += n; }
  friend CheckedIterator operator-(CheckedIterator at, difference_type n) { return at -= n; }
  friend difference_type operator-(const CheckedIterator& a, const CheckedIterator& b) {
    return a.at_ - b.at_;
  }
  friend bool operator==(const CheckedIterator& a, const CheckedIterator& b) { return a.at_ == b.at_; }
  friend std::strong_ordering operator<=>(const CheckedIterator& a, const CheckedIterator& b) {
    return a.at_ - b.at_ <=> difference_type{0};
  }

private:
  At first_ = {}, at_ = {}, last_ = {};
};

/// A vector, and what a vector converts to and from. As one of its base it is not checked.
template <typename T, ListKind kind = ListKind::kList>
class CheckedList : public std::vector<T> {
  using Base = std::vector<T>;

public:
  using iterator = CheckedIterator<typename Base::iterator, kind>;
  using const_iterator = CheckedIterator<typename Base::const_iterator, kind>;
  using reverse_iterator = std::reverse_iterator<iterator>;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;
  using reference = typename Base::reference;
  using const_reference = typename Base::const_reference;

  using Base::Base;
  CheckedList() = default;
  CheckedList(Base values) : Base(std::move(values)) {}  // NOLINT
  template <typename At, ListKind of>
  CheckedList(CheckedIterator<At, of> first, CheckedIterator<At, of> last)
      : Base(first.base(), ordered(first, last).base()) {}

  reference operator[](size_t index) {
    check(index);
    return Base::operator[](index);
  }
  const_reference operator[](size_t index) const {
    check(index);
    return Base::operator[](index);
  }
  reference at(size_t index) { return (*this)[index]; }
  const_reference at(size_t index) const { return (*this)[index]; }
  reference front() { return (*this)[0]; }
  const_reference front() const { return (*this)[0]; }
  reference back() { return (*this)[this->size() - 1]; }
  const_reference back() const { return (*this)[this->size() - 1]; }

  iterator begin() { return {Base::begin(), Base::begin(), Base::end()}; }
  iterator end() { return {Base::begin(), Base::end(), Base::end()}; }
  const_iterator begin() const { return {Base::begin(), Base::begin(), Base::end()}; }
  const_iterator end() const { return {Base::begin(), Base::end(), Base::end()}; }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  reverse_iterator rbegin() { return reverse_iterator(end()); }
  reverse_iterator rend() { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }

  using Base::assign;
  template <typename At, ListKind of>
  void assign(CheckedIterator<At, of> first, CheckedIterator<At, of> last) {
    Base::assign(first.base(), ordered(first, last).base());
  }
  iterator insert(const_iterator at, const T& value) { return place(Base::insert(at.base(), value)); }
  iterator insert(const_iterator at, T&& value) { return place(Base::insert(at.base(), std::move(value))); }
  iterator insert(const_iterator at, size_t count, const T& value) {
    return place(Base::insert(at.base(), count, value));
  }
  iterator insert(const_iterator at, std::initializer_list<T> values) {
    return place(Base::insert(at.base(), values));
  }
  template <std::input_iterator From>
  iterator insert(const_iterator at, From first, From last) {
    return place(Base::insert(at.base(), first, last));
  }
  template <typename At, ListKind of>
  iterator insert(const_iterator at, CheckedIterator<At, of> first, CheckedIterator<At, of> last) {
    return place(Base::insert(at.base(), first.base(), ordered(first, last).base()));
  }
  iterator erase(const_iterator at) {
    check(static_cast<size_t>(at - cbegin()));
    return place(Base::erase(at.base()));
  }
  iterator erase(const_iterator first, const_iterator last) {
    return place(Base::erase(first.base(), ordered(first, last).base()));
  }
  void pop_back() {
    check(this->size() - 1);
    Base::pop_back();
  }

private:
  void check(size_t index) const {
    if (index >= this->size()) [[unlikely]]
      throw_out_of_range(kind, static_cast<int64_t>(index), static_cast<int64_t>(this->size()));
  }
  iterator place(typename Base::iterator at) { return {Base::begin(), at, Base::end()}; }
  /// `last`, which does not stand before `first`.
  template <typename At, ListKind of>
  static const CheckedIterator<At, of>& ordered(const CheckedIterator<At, of>& first,
                                                const CheckedIterator<At, of>& last) {
    if (last < first) throw_out_of_range(of, last.base() - first.first(), first.last() - first.first());
    return last;
  }
};

/// What attributes list: axes, pads, strides.
using Ints = CheckedList<int64_t>;

}  // namespace tensormill::ir
