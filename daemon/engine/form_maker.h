// FormMaker: makes the forms of the kernels that matter, in the background: on one thread of low
// priority, a kernel at a time. The users come in turn, and of each user the sessions. Made forms
// are in the compile cache for all sessions and later engines. One for each engine; any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/digest.h"
#include "base/mutex.h"
#include "daemon/dispatch/kernel_forms.h"
#include "daemon/engine/compiler.h"

namespace slate::daemon {

/// The texts from which the forms of a module's kernels are made.
struct FormSource {
  FormSource(std::string ptx, std::shared_ptr<const std::vector<std::byte>> native);

  const std::string text;  // PTX
  /// The module's own machine code; null where it is not known.
  const std::shared_ptr<const std::vector<std::byte>> code;
  const DigestBytes digest;  // digest of text and code

  std::uint64_t bytes() const { return text.size() + (code ? code->size() : 0); }
};

class FormMaker {
 public:
  using Outcome = std::shared_ptr<const MadeForms>;

  struct Settings {
    bool forms = true;                  // whether kernels are to have forms
    bool profiles = false;              // whether the profile form is wanted
    bool at_once = false;               // whether a kernel's first launch waits for its forms
    bool dispatch = false;              // whether a dispatch kernel for the worker form is wanted
    std::uint32_t reserved_shared = 0;  // of the device, as FenceOptions::reserved_shared
    /// CPU time for one run of the assembler. A kernel that needs more gets no form.
    std::chrono::milliseconds most_a_kernel{10'000};
    /// Time on the clock for all kernels of one session. Kernels beyond it get no form.
    std::chrono::milliseconds most_a_session{120'000};
  };

  /// Whose kernel it is. Sorted by user, for the turns.
  struct Owner {
    uid_t uid = 0;
    std::uint64_t session = 0;
    auto operator<=>(const Owner&) const = default;
  };

  /// A kernel whose forms are being made. Its last owner's end drops it, unless it was begun and is
  /// of a small text.
  class Order {
   public:
    bool done() const { return done_.load(std::memory_order_acquire); }
    /// Requires: done().
    const Outcome& outcome() const { return outcome_; }

   private:
    friend class FormMaker;
    std::shared_ptr<const FormSource> source_;
    std::string kernel_;
    Fencing fence_ = Fencing::kNone;
    FirstLaunch launch_;
    Owner owner_;
    Outcome outcome_;
    std::atomic<bool> done_{false};
  };

  struct Counts {
    std::uint64_t made = 0, without_forms = 0, from_cache = 0;
    double cost_ms = 0;  // time spent on the forms
  };

  /// `compiler` outlives it.
  FormMaker(Compiler& compiler, Settings settings);
  /// First waits for the present kernel's reader and assembler.
  ~FormMaker();
  FormMaker(const FormMaker&) = delete;
  FormMaker& operator=(const FormMaker&) = delete;

  bool wants_forms() const { return settings_.forms; }
  bool at_once() const { return settings_.at_once; }
  /// What is known of a kernel without making its forms. Errors: those of TextReader.
  Result<injector::KernelForms> analyse(const std::shared_ptr<const FormSource>& source,
                                        const std::string& kernel, const Loader& loader);
  /// The forms that the cache has; null for nothing.
  Outcome find(const FormSource& source, const std::string& kernel, Fencing fence = Fencing::kNone,
               const FirstLaunch& launch = {});
  /// Makes the forms while the caller waits. `launch`: as in FormRequest, of a kernel behind the
  /// fence. Never null.
  Outcome make(const std::shared_ptr<const FormSource>& source, const std::string& kernel,
               const Loader& loader, Fencing fence = Fencing::kNone,
               const FirstLaunch& launch = {});
  std::shared_ptr<Order> order(Owner owner, std::shared_ptr<const FormSource> source,
                               std::string kernel, Fencing fence = Fencing::kNone,
                               FirstLaunch launch = {});
  /// Frees what is kept of a session's orders.
  void forget(std::uint64_t session);

  Counts counts() const;

 private:
  using Queue = std::deque<std::weak_ptr<Order>>;
  using Reader = std::unique_ptr<TextReader>;

  void run();
  std::shared_ptr<Order> next(MutexLock& lock) SLATE_REQUIRES(mutex_);
  std::map<Owner, Queue>::iterator next_queue() SLATE_REQUIRES(mutex_);
  bool is_dropped_with_its_session(const FormSource& source) const;
  bool may_still_spend(std::uint64_t session);
  void spend(std::uint64_t session, double ms);
  cache::Key key_of(const FormSource& source, const std::string& kernel, Fencing fence,
                    const FirstLaunch& launch) const;
  Outcome make_anew(const std::shared_ptr<const FormSource>& source, const std::string& kernel,
                    const Loader& loader, Fencing fence, const FirstLaunch& launch);
  Result<MadeForms> make_from(TextReader& reader, const FormSource& source,
                              const std::string& kernel, const Loader& loader, Fencing fence,
                              FirstLaunch launch);
  Result<Reader> take_reader(const std::shared_ptr<const FormSource>& source, const Loader& loader);
  void keep_reader(Reader reader, const std::shared_ptr<const FormSource>& source);

  Compiler& compiler_;
  const Settings settings_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Owner, Queue> queues_ SLATE_GUARDED_BY(mutex_);
  uid_t last_uid_ SLATE_GUARDED_BY(mutex_) = 0;                   // user served last
  std::map<uid_t, Owner> last_of_user_ SLATE_GUARDED_BY(mutex_);  // by user: session served last
  std::map<std::uint64_t, double> spent_ms_ SLATE_GUARDED_BY(mutex_);
  // The reader of the module read last, as its kernels follow each other; null: none, or in use.
  std::weak_ptr<const FormSource> reader_source_ SLATE_GUARDED_BY(mutex_);
  Reader reader_ SLATE_GUARDED_BY(mutex_);
  Counts counts_ SLATE_GUARDED_BY(mutex_);
  bool ending_ SLATE_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // begun with the first order
};

}  // namespace slate::daemon
