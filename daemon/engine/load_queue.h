// LoadQueue: whose text is read next, of users who all want memory for it. Users come in turn, and
// none holds more than a part. Pure: no clock and no lock. Thread: one at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>

namespace slate::daemon {

class LoadQueue {
 public:
  using Ticket = std::uint64_t;

  /// Text of all users at a time.
  static constexpr std::uint64_t kBytes = 32 << 20;
  /// Text of one user at a time. A larger image counts as so much.
  static constexpr std::uint64_t kBytesOfUser = kBytes / 2;
  /// What the smallest image counts as: it has its tree and its passes, too. A user who has nothing
  /// under way never waits with so little.
  static constexpr std::uint64_t kSmall = kBytes / 64;

  /// Joins behind the user's other images.
  Ticket join(uid_t uid, std::uint64_t bytes);
  /// Begins the image if it is its turn. Requires: it has not begun.
  bool try_begin(Ticket ticket);
  /// Ends an image that has begun, or takes one that waits out of the queue.
  void leave(Ticket ticket);

 private:
  struct Image {
    uid_t uid = 0;
    std::uint64_t bytes = 0;
    bool has_begun = false;
  };
  struct User {
    std::deque<Ticket> waiting;
    std::uint64_t used = 0;  // bytes of images that have begun
    std::uint64_t images = 0;
  };

  const User* next_user(uid_t& uid) const;
  bool fits(const User& user) const;

  std::unordered_map<Ticket, Image> images_;
  std::map<uid_t, User> users_;  // those who have images
  Ticket last_ticket_ = 0;
  uid_t last_uid_ = 0;  // the user who began last in turn
  std::uint64_t used_ = 0;
};

}  // namespace slate::daemon
