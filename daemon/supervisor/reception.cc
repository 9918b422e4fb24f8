#include "daemon/supervisor/reception.h"

#include <algorithm>

#include "base/log.h"

namespace slate::daemon {
namespace {

using namespace std::chrono_literals;

constexpr auto kHelloTimeout = 5s;
constexpr auto kClosedFor = 100ms;
constexpr int kMostAtOnce = 64;  // visitors taken in before the loop looks at its other duties

}  // namespace

void send_refusal(int socket, const Error& reason, bool come_again) {
  ipc::Welcome welcome;
  welcome.status = static_cast<std::uint32_t>(reason.code);
  welcome.come_again = come_again ? 1 : 0;
  reason.message.copy(welcome.message, sizeof(welcome.message) - 1);
  if (const auto sent = ipc::send_welcome(socket, welcome); !sent)
    log_debug("refusal not delivered: {}", sent.error().message);
}

void Reception::add_to(PollSet& polls) const {
  if (Clock::now() < closed_until_) {
    polls.add_deadline(closed_until_);
  } else {
    polls.add(point_.fd(), POLLIN);
  }
  for (const Guest& guest : guests_) {
    polls.add(guest.visitor.socket.get(), POLLIN);
    polls.add_deadline(guest.deadline);
  }
}

void Reception::service() {
  take_in();
  for (auto guest = guests_.begin(); guest != guests_.end();)
    guest = listen_to(*guest) ? std::next(guest) : guests_.erase(guest);
}

void Reception::take_in() {
  if (Clock::now() < closed_until_) return;
  for (int i = 0; i < kMostAtOnce; ++i) {
    auto come = point_.accept();
    if (!come) {
      log_warning("visitors wait: {}", come.error().message);
      closed_until_ = Clock::now() + kClosedFor;
      return;
    }
    if (!*come) return;
    const uid_t user = (*come)->uid;
    const auto here = std::ranges::count_if(
        guests_, [user](const Guest& each) { return each.visitor.uid == user; });
    if (here >= kMostOfUser) {
      send_refusal((*come)->socket.get(),
                   {ErrorCode::kLimit, "too many programs of this user begin at a time"}, true);
      continue;
    }
    guests_.push_back({std::move(**come), Clock::now() + kHelloTimeout});
  }
}

/// False when the guest has gone on, or out.
bool Reception::listen_to(Guest& guest) {
  const auto hello = ipc::receive_hello(guest.visitor);
  if (!hello) {
    if (hello.error().code == ErrorCode::kProtocol)
      send_refusal(guest.visitor.socket.get(), {ErrorCode::kInitialization, hello.error().message});
    return false;
  }
  if (!*hello) return Clock::now() < guest.deadline;
  const Greet& greet = (*hello)->kind == ipc::HelloKind::kControl ? control_ : session_;
  greet(**hello, std::move(guest.visitor));
  return false;
}

}  // namespace slate::daemon
