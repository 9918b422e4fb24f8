#include "ipc/wake.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "ipc/messages.h"

namespace slate::ipc {

void write_byte(int fd, char byte) {
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  ssize_t n;
  do {
    n = ::write(fd, &byte, 1);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EPIPE && !was_pending) {
    const timespec now{0, 0};
    while (sigtimedwait(&pipe_signal, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void wake(std::atomic<std::uint32_t>& sleeps, int fd) {
  if (sleeps.load(std::memory_order_seq_cst) != 0 && sleeps.exchange(0) != 0)
    write_byte(fd, kWakeByte);
}

}  // namespace slate::ipc
