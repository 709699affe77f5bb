#include "runtime/exec/rooms_of_run.h"

#include <algorithm>
#include <cmath>

namespace tensormill::exec {

/// How large a room of which there is `room` has to be for what was wanted; 0: that is not known. What is
/// made of it alone is as a multiple of it, or, as the lack of before shows, a sum.
int64_t Rooms::wanted_room(const NoRoom& error, int64_t room, const std::optional<Lack>& before) {
  if (!error.wanted() || error.had() <= 0) return 0;
  const auto had = static_cast<double>(error.had()), lacks = static_cast<double>(*error.wanted()) - had;
  double growth = had / static_cast<double>(room);
  const bool is_same = before && before->error.rooms() == error.rooms() &&
                       before->error.wanted() == error.wanted() && before->error.had() < error.had() &&
                       before->room < room;
  if (is_same)
    growth =
        static_cast<double>(error.had() - before->error.had()) / static_cast<double>(room - before->room);
  const double more = std::ceil(lacks / growth);
  if (!(more > 0)) return 0;
  return room + static_cast<int64_t>(std::min(more, static_cast<double>(package::kMaxFreeDim)));
}

Rooms::Rooms(const package::LoadedPackage& package, int64_t budget)
    : package_(package),
      budget_(budget),
      dims_(package::room_dims(package.package().plans())),
      least_(dims_.size(), 1) {}

std::optional<std::vector<int64_t>> Rooms::more(const std::vector<int64_t>& dims, const NoRoom& error,
                                                bool goes_on) {
  std::vector<package::RoomWish> wishes;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if ((error.rooms() >> i & 1) != 0)
      wishes.push_back({dims_[i], wanted_room(error, dims[dims_[i]], before_)});
  }
  if (++restarts_ > kMostRestarts) return std::nullopt;
  const auto more_room = [&] {
    return package::with_more_room(package_.package().plans(), dims, wishes,
                                   goes_on ? package::kRoomGrowth / 2 : package::kRoomGrowth);
  };
  std::optional<std::vector<int64_t>> next = more_room();
  if (!next && !package_.package().plans().generic) {
    // What the largest of the package's rooms lacks is what there is to say.
    for (package::RoomWish& wish : wishes) wish.wanted = 0;
    next = more_room();
  }
  if (!next) return std::nullopt;
  before_.reset();
  if (wishes.size() == 1) before_ = Lack{error, dims[wishes[0].dim]};
  for (size_t i = 0; i < dims_.size(); ++i) {
    if ((*next)[dims_[i]] > dims[dims_[i]]) least_[i] = (*next)[dims_[i]];
  }
  if (dims_.size() == 1) return next;
  return package_.with_less_room(*next, least_, std::min(package::LoadedPackage::kManyRoomBytes, budget_));
}

std::optional<std::vector<int64_t>> Rooms::grown(std::vector<int64_t> dims, const NoRoom& error) {
  bool is_past = ++restarts_ > kMostRestarts;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if ((error.rooms() >> i & 1) == 0) continue;
    int64_t& room = dims[dims_[i]];
    const int64_t wanted = wanted_room(error, room, std::nullopt);
    // The product of several rooms may be much.
    constexpr int64_t kSpare = 8;
    room = wanted > room ? wanted + wanted / kSpare : room * package::kRoomGrowth;
    is_past = is_past || room > package::kMaxFreeDim;
  }
  return is_past ? std::nullopt : std::optional(std::move(dims));
}

std::optional<std::vector<int64_t>> rooms_for(const package::LoadedPackage& package, int64_t budget,
                                              const std::vector<int64_t>& first,
                                              const RoomCounts& counts) try {
  Rooms rooms(package, budget);
  std::optional<std::vector<int64_t>> dims = first;
  while (dims) {
    const std::shared_ptr<const package::BoundPlan> plan = package.bind(*dims);
    const auto lacks = [&](const package::RoomCheck& check) {
      const auto count = counts.find(check.name);
      return count != counts.end() && count->second > check.extent;
    };
    const auto check = std::find_if(plan->room_checks.begin(), plan->room_checks.end(), lacks);
    if (check == plan->room_checks.end()) return dims;
    dims = rooms.more(*dims, NoRoom("", check->extent, counts.at(check->name), check->rooms), false);
  }
  return std::nullopt;
} catch (const Error&) {
  // There is no plan on the way.
  return std::nullopt;
}

}  // namespace tensormill::exec
