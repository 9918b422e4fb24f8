#include "daemon/engine/load_queue.h"

#include <algorithm>

#include "base/check.h"

namespace slate::daemon {

LoadQueue::Ticket LoadQueue::join(uid_t uid, std::uint64_t bytes) {
  const Ticket ticket = ++last_ticket_;
  images_[ticket] = {.uid = uid, .bytes = std::clamp(bytes, kSmall, kBytesOfUser)};
  User& user = users_[uid];
  user.waiting.push_back(ticket);
  ++user.images;
  return ticket;
}

/// Whether the user's first image keeps to his part.
bool LoadQueue::fits(const User& user) const {
  return !user.waiting.empty() &&
         user.used + images_.at(user.waiting.front()).bytes <= kBytesOfUser;
}

/// The first user behind the last one who wants something of his part.
const LoadQueue::User* LoadQueue::next_user(uid_t& uid) const {
  const auto is_next = [this](const auto& entry) { return fits(entry.second); };
  const auto behind = users_.upper_bound(last_uid_);
  auto found = std::find_if(behind, users_.end(), is_next);
  if (found == users_.end()) found = std::find_if(users_.begin(), behind, is_next);
  if (found == behind && (behind == users_.end() || !is_next(*found))) return nullptr;
  uid = found->first;
  return &found->second;
}

bool LoadQueue::try_begin(Ticket ticket) {
  Image& image = images_.at(ticket);
  SLATE_CHECK(!image.has_begun);
  User& user = users_.at(image.uid);
  if (user.waiting.front() != ticket) return false;
  const bool is_free = user.used == 0 && image.bytes <= kSmall;
  if (!is_free) {
    // A large image that is next is waited for: small ones behind it would starve it.
    uid_t uid = 0;
    if (next_user(uid) != &user || used_ + image.bytes > kBytes) return false;
    last_uid_ = uid;
  }
  user.waiting.pop_front();
  user.used += image.bytes;
  used_ += image.bytes;
  image.has_begun = true;
  return true;
}

void LoadQueue::leave(Ticket ticket) {
  const auto found = images_.find(ticket);
  SLATE_CHECK(found != images_.end());
  const Image image = found->second;
  images_.erase(found);
  const auto at = users_.find(image.uid);
  User& user = at->second;
  if (image.has_begun) {
    user.used -= image.bytes;
    used_ -= image.bytes;
  } else {
    std::erase(user.waiting, ticket);
  }
  if (--user.images == 0) users_.erase(at);
}

}  // namespace slate::daemon
