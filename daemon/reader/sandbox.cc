#include "daemon/reader/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/unique_fd.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLATE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SLATE_SANITIZED 1
#endif
#endif

namespace slate::daemon {
namespace {

#ifdef SLATE_SANITIZED
constexpr bool kIsSanitized = true;  // sanitizers map terabytes and make system calls of their own
#else
constexpr bool kIsSanitized = false;
#endif

constexpr rlim_t kMostCpuSeconds = 120;  // for all questions; the engine allows less for each
constexpr uid_t kNobody = 65534;

Result<void> set_limit(__rlimit_resource which, rlim_t most) {
  const rlimit limit{most, most};
  if (::setrlimit(which, &limit) != 0) return fail_errno("setrlimit");
  return {};
}

Result<void> give_up_root() {
  if (::geteuid() != 0) return {};
  const bool done = ::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
                    ::setresuid(kNobody, kNobody, kNobody) == 0;
  if (!done) return fail_errno("giving up root");
  return {};
}

struct Release {
  void operator()(void* filter) const { ::seccomp_release(filter); }
};

/// Calls that a computation makes, of the C library's own.
constexpr int kAllowed[] = {SCMP_SYS(read),
                            SCMP_SYS(write),
                            SCMP_SYS(close),
                            SCMP_SYS(munmap),
                            SCMP_SYS(mremap),
                            SCMP_SYS(madvise),
                            SCMP_SYS(brk),
                            SCMP_SYS(futex),
                            SCMP_SYS(exit),
                            SCMP_SYS(exit_group),
                            SCMP_SYS(rt_sigreturn),
                            SCMP_SYS(rt_sigprocmask),
                            SCMP_SYS(getrandom),
                            SCMP_SYS(clock_gettime),
                            SCMP_SYS(gettimeofday),
                            SCMP_SYS(sched_yield),
                            SCMP_SYS(getpid),
                            SCMP_SYS(gettid),
                            SCMP_SYS(restart_syscall),
                            SCMP_SYS(sysinfo)};

/// Memory may be mapped, but never so that it can be run.
Result<void> filter_calls() {
  const std::unique_ptr<void, Release> filter(::seccomp_init(SCMP_ACT_KILL_PROCESS));
  if (!filter) return fail(ErrorCode::kNotSupported, "this kernel filters no system calls");
  int error = 0;
  for (const int call : kAllowed) {
    if (error == 0) error = ::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 0);
  }
  for (const int call : {SCMP_SYS(mmap), SCMP_SYS(mprotect)}) {
    const scmp_arg_cmp not_executable = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
    if (error == 0)
      error = ::seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, 1, not_executable);
  }
  if (error == 0) error = ::seccomp_load(filter.get());
  if (error != 0) return fail_errno("the filter of system calls", -error);
  return {};
}

}  // namespace

std::uint64_t reader_memory(std::uint64_t text_bytes) {
  constexpr std::uint64_t kLeast = std::uint64_t{512} << 20, kMost = std::uint64_t{3} << 30;
  return std::min(kMost, kLeast + 256 * text_bytes);
}

Result<void> limit_reader(std::uint64_t text_bytes) {
  // Not being allowed to is no failure: then it is not the first to go.
  if (const UniqueFd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score)
    std::ignore = ::write(score.get(), "1000", 4);
  for (const auto& [which, most] : {std::pair{RLIMIT_CPU, kMostCpuSeconds},
                                    {RLIMIT_CORE, rlim_t{0}},
                                    {RLIMIT_FSIZE, rlim_t{0}},
                                    {RLIMIT_NOFILE, rlim_t{0}},
                                    {RLIMIT_AS, reader_memory(text_bytes)}}) {
    if (kIsSanitized && which != RLIMIT_CPU) continue;
    if (const auto done = set_limit(which, most); !done) return done;
  }
  return {};
}

Result<void> enter_sandbox() {
  if (const auto done = give_up_root(); !done) return done;
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("no_new_privs");
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return fail_errno("PR_SET_DUMPABLE");
  return kIsSanitized ? Result<void>() : filter_calls();
}

}  // namespace slate::daemon
