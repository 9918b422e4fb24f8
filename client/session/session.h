// Session: one program's dealings with the daemon, in driver-level objects: memory, streams,
// events, modules, launches. No notion of any CUDA API: the fronts (cudart/) are built on it.
// Thread-safe. A session ends by abandon(), never by itself; after that every call fails with
// kUnavailable.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/device_info.h"
#include "base/result.h"
#include "client/session/allocation_table.h"
#include "client/session/array_table.h"
#include "client/session/fatbin.h"
#include "client/session/handle_table.h"
#include "client/session/host_blocks.h"
#include "client/session/host_functions.h"
#include "client/session/host_pool.h"
#include "client/session/managed_advice.h"
#include "client/session/managed_guard.h"
#include "client/session/managed_memory.h"
#include "client/session/pools.h"
#include "client/session/print_ring.h"
#include "client/session/progress.h"
#include "client/session/stream_attributes.h"
#include "ipc/channel.h"

namespace slate::client {

class Captures;

/// Tags of the ranges in Session::memory().
inline constexpr std::uint32_t kTagMemory = 1;           // of allocate()
inline constexpr std::uint32_t kTagGlobal = 2;           // a module's variable
inline constexpr std::uint32_t kTagManaged = 3;          // of allocate_managed(): host memory too
inline constexpr std::uint32_t kTagManagedVariable = 4;  // likewise, and a variable
inline constexpr std::uint32_t kTagImported = 5;         // of another session

/// Set in the flags of an entry of Session::events() once the event was recorded.
inline constexpr std::uint32_t kEventRecorded = 1u << 31;
/// Of an event that other sessions may record and wait for.
inline constexpr std::uint32_t kEventShared = 1u << 30;

/// `height` rows of `width` bytes.
struct Shape {
  std::uint64_t width = 0;
  std::uint64_t height = 1;
};

/// Rows on the device, `pitch` bytes apart.
struct DeviceRows {
  std::uint64_t address = 0;
  std::uint64_t pitch = 0;
};

/// The size of a copy of three dimensions; the width in bytes.
struct Box {
  std::uint64_t width = 0;
  std::uint64_t height = 1, depth = 1;

  bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

/// Where such a copy begins in an array, or in memory with rows `pitch` and planes `slice` apart.
struct ArrayPlace {
  ArrayTable::Entry array;
  std::uint64_t x = 0;  // bytes
  std::uint64_t y = 0, z = 0;
};
struct DevicePlanes {
  std::uint64_t address = 0;
  std::uint64_t pitch = 0, slice = 0;
};
struct HostPlanes {
  std::byte* memory = nullptr;  // not written where it is what a copy reads
  std::uint64_t pitch = 0, slice = 0;
};

/// A kernel as this session knows it. Made once, then constant but for its settings.
struct Function {
  std::uint64_t id = 0;
  std::uint64_t session = 0;  // Session::serial()
  ipc::FunctionReply info{};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> parameters;  // offset, size
  std::atomic<std::uint32_t> max_dynamic_shared{0};
  std::atomic<int> shared_carveout{-1};  // wished, in percent; -1: none. Counts for occupancy only
  // Told, and without effect.
  std::atomic<int> non_portable_clusters{0};
  std::atomic<int> cluster_scheduling{0};
  bool system_atomics = false;  // it may have atomics of system scope
};

/// A variable of a module that lies in managed memory.
struct PlacedVariable {
  std::string_view name;
  std::uint64_t address = 0;
};

struct LaunchConfig {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint64_t dynamic_shared_bytes = 0;
  std::uint64_t stream = ipc::kDefaultStream;
  bool cooperative = false;                       // all blocks resident at once
  std::array<std::uint32_t, 3> cluster{0, 0, 0};  // blocks; zeros: as the kernel was compiled
};

/// Where a command is among all commands, and where the one before it on the same stream.
struct Sent {
  std::uint64_t position = 0;
  std::uint64_t before = 0;  // 0: the first, or the stream has no entry in the progress table
};

class Session {
 public:
  /// Connects. `serial` tells this session from the others of the process.
  static Result<std::unique_ptr<Session>> open(const std::string& runtime_dir,
                                               std::chrono::milliseconds timeout,
                                               std::uint64_t serial);
  Session(std::unique_ptr<ipc::ClientChannel> channel, std::uint64_t serial);
  ~Session();

  std::uint64_t serial() const { return serial_; }
  const DeviceInfo& device() const { return channel_->status().device; }
  std::uint32_t capability() const;  // 90 for 9.0
  bool runs_ptx_only() const { return device().is_simulated != 0; }
  /// Takes the error of an earlier command that has no reply, else the session's lasting error, if
  /// any.
  Result<void> check();
  /// Only the former: for calls that send a command, which looks at the latter itself.
  Result<void> earlier_error();
  /// For the daemon's count of calls that slate does not have.
  Result<void> report_unsupported(std::string_view function);
  /// What kernels have printed since the last call.
  std::vector<Printed> take_printed();
  /// Writes that to stdout, and their failed assertions to stderr. Every call that waits for the
  /// device does this.
  void write_printed();
  /// How much of that is kept until it is taken (cudaLimitPrintfFifoSize). Another size is
  /// kInvalidValue once a kernel has printed.
  std::uint64_t print_fifo_bytes();
  Result<void> set_print_fifo_bytes(std::uint64_t bytes);
  /// What malloc in kernels has to give in all (cudaLimitMallocHeapSize); it is made with the first
  /// module that calls it, from this session's memory. Another size is kInvalidValue once it has
  /// given something, or beyond what there can be; kOutOfMemory.
  std::uint64_t heap_bytes();
  Result<void> set_heap_bytes(std::uint64_t bytes);
  /// Hangs up: the daemon frees everything. In a forked child it leaves the parent's session alone.
  /// Runs the host functions that are left first. Not from one of them.
  void abandon();
  /// In a forked child, where its threads are missing: it must not be destroyed then.
  void abandon_in_child() { channel_->abandon(); }

  // --- Memory
  // --------------------------------------------------------------------------------------------
  AllocationTable& memory() { return memory_; }
  Result<std::uint64_t> allocate(std::uint64_t bytes);
  /// Also of managed memory, for which it waits for all work. kInvalidValue when no allocation
  /// begins at `address`.
  Result<void> free(std::uint64_t address);
  Result<ipc::MemoryInfoReply> memory_info();

  /// Host memory that the device reaches: copies from and to it are one transfer each and return at
  /// once. Any failure leaves plain memory as good as before, if slower.
  HostBlocks& host_blocks() { return host_blocks_; }
  Result<HostBlock> allocate_host(std::uint64_t bytes);
  Result<void> free_host(std::uint64_t address);
  /// The same in pieces, as HostPool gives them.
  Result<std::uint64_t> allocate_host_piece(std::uint64_t bytes) {
    return host_pool_.allocate(bytes);
  }
  /// False when no piece of this session begins at `address`.
  bool free_host_piece(std::uint64_t address) { return host_pool_.free(address); }
  /// Memory with one address here and on the device; `tag`: kTagManaged, or kTagManagedVariable for
  /// what is not free()'d; `flags`: the caller's. Host memory, so charged to nobody's device
  /// memory.
  Result<std::uint64_t> allocate_managed(std::uint64_t bytes, std::uint32_t tag,
                                         std::uint32_t flags);
  /// Waits for all work. kInvalidValue when none with this tag begins at `address`.
  Result<void> free_managed(std::uint64_t address, std::uint32_t tag = kTagManaged);
  /// Makes the whole pages of memory that the program has such a block, unless they are one. What
  /// other threads write to it meanwhile may be lost. kNotSupported when there is too little of it,
  /// or it is of a kind that cannot be replaced.
  Result<void> register_host(std::uint64_t address, std::uint64_t bytes);
  /// Waits for all work, then makes [address, address + bytes) plain memory again; what is written
  /// to it meanwhile may be lost.
  Result<void> unregister_host(std::uint64_t address, std::uint64_t bytes);

  // What this user's sessions share, by handles that travel between the programs.
  Result<ipc::ShareHandle> export_memory(std::uint64_t address);
  /// True for a handle that export_memory() gave.
  bool has_exported(const ipc::ShareHandle& handle) const;
  /// The allocation as a whole, and how often it is open here. Opened again it is counted.
  Result<ipc::ImportReply> import_memory(const ipc::ShareHandle& handle);
  /// kInvalidValue when nothing imported begins at `address`.
  Result<void> close_import(std::uint64_t address);
  Result<ipc::ShareHandle> export_event(std::uint64_t event);
  Result<std::uint64_t> import_event(const ipc::ShareHandle& handle);

  // Copies and fills. Addresses are not checked here but by the daemon: see covers(). With pinned
  // host memory, on the device alone, and for fills they return at once; else those from the host
  // return when the source may be changed, those to the host when the data is there.
  Result<void> copy_to_device(DeviceRows to, const std::byte* from, std::uint64_t from_pitch,
                              Shape shape, std::uint64_t stream);
  /// For a caller who would wait for the end of this copy of pinned memory: true when it need not,
  /// as the source was read already and nobody can look at the destination before it is there.
  /// False when nothing was done.
  Result<bool> take_to_device(std::uint64_t to, std::span<const std::byte> from,
                              std::uint64_t stream);
  /// Waits for all of them: to be called by who has made a stream, or shares memory, that lets
  /// somebody look sooner.
  Result<void> settle_taken();
  /// Bytes that are not the program's memory, so that no earlier work can write them: waits for
  /// nothing.
  Result<void> write(std::uint64_t to, std::span<const std::byte> bytes, std::uint64_t stream,
                     Sent* sent = nullptr);
  Result<void> copy_to_host(std::byte* to, std::uint64_t to_pitch, DeviceRows from, Shape shape,
                            std::uint64_t stream);
  Result<void> copy_on_device(DeviceRows to, DeviceRows from, Shape shape, std::uint64_t stream);
  Result<void> fill(DeviceRows to, std::uint8_t value, Shape shape, std::uint64_t stream);
  /// True when all of these rows lie in one allocation or variable of this session.
  bool covers(DeviceRows rows, Shape shape) const;

  // --- Arrays, textures, surfaces
  // ------------------------------------------------------------------------
  ArrayTable& arrays() { return arrays_; }
  Result<std::uint64_t> create_array(const ArraySpec& spec);
  /// kInvalidHandle when there is no array with this id, or it is a level of one.
  Result<void> destroy_array(std::uint64_t id);
  /// The number that kernels take; arrays by the daemon's ids (ArrayTable::Entry::array).
  Result<std::uint64_t> create_texture(const TextureSpec& spec);
  Result<void> destroy_texture(std::uint64_t handle);
  Result<std::uint64_t> create_surface(const ArrayTable::Entry& array);
  Result<void> destroy_surface(std::uint64_t handle);
  // As the copies above. Places are not checked here but by the daemon.
  Result<void> copy_box(const ArrayPlace& to, const ArrayPlace& from, Box box,
                        std::uint64_t stream);
  Result<void> copy_box(const ArrayPlace& to, const DevicePlanes& from, Box box,
                        std::uint64_t stream);
  Result<void> copy_box(const DevicePlanes& to, const ArrayPlace& from, Box box,
                        std::uint64_t stream);
  Result<void> copy_box(const ArrayPlace& to, const HostPlanes& from, Box box,
                        std::uint64_t stream);
  Result<void> copy_box(const HostPlanes& to, const ArrayPlace& from, Box box,
                        std::uint64_t stream);

  // --- What the core keeps of the program's view of it
  Captures& captures() { return *captures_; }
  StreamAttributes& stream_attributes() { return stream_attributes_; }
  Pools& pools() { return pools_; }
  ManagedAdvice& managed_advice() { return managed_advice_; }

  // --- Streams and events
  // --------------------------------------------------------------------------------
  HandleTable& streams() { return streams_; }
  HandleTable& events() { return events_; }
  /// True for an id that an earlier session of this process may have made.
  bool made_earlier(std::uint64_t id) const;
  Result<std::uint64_t> create_stream(std::uint32_t flags, std::int32_t priority);
  Result<void> destroy_stream(std::uint64_t stream);
  Result<std::uint64_t> create_event(std::uint32_t flags);
  Result<void> destroy_event(std::uint64_t event);
  Result<void> record(std::uint64_t event, std::uint64_t stream);
  Result<void> wait(std::uint64_t stream, std::uint64_t event);
  Result<float> elapsed_ms(std::uint64_t start, std::uint64_t stop);
  Result<bool> finished(ipc::TargetKind kind, std::uint64_t id);
  Result<void> synchronize(ipc::TargetKind kind, std::uint64_t id);
  /// Until work that was given to the stream now could begin: that waits for more than
  /// synchronize() where the stream and the default one wait for each other. For work that the host
  /// does.
  Result<void> wait_for_turn(std::uint64_t stream);
  /// Whether the event's last record is passed. Leaves errors of earlier commands for others to
  /// find: only a lasting one is told.
  Result<bool> reached(std::uint64_t event);
  /// As ClientChannel::spin_until().
  bool spin_until(const std::function<bool()>& ready) const { return channel_->spin_until(ready); }
  /// For HostFunctions: the stream behind this ticket's gate goes on.
  Result<void> host_done(std::uint64_t ticket);
  /// Has `function` called once all earlier work of the stream is done, on a thread of the
  /// library's own; later work waits until it has returned. Functions of all streams run one after
  /// the other, those of one in the order of these calls. With the session's error if that came
  /// first, see HostFunctions.
  Result<void> call_on_host(std::uint64_t stream, HostFunction function);
  /// True while functions of call_on_host() wait or run.
  bool has_host_functions() const { return host_functions_.busy(); }
  bool in_host_function() const { return host_functions_.is_own_thread(); }
  /// For HostFunctions, when one of them has returned.
  void host_function_ended() { managed_guard_.host_function_ended(); }

  // --- Code
  // ----------------------------------------------------------------------------------------------
  /// With some of its variables in managed memory. kOutOfMemory also when its kernels call malloc
  /// and there is none left for the heap.
  Result<std::uint64_t> load_module(const Image& image,
                                    std::span<const PlacedVariable> placed = {});
  Result<void> unload_module(std::uint64_t module);
  /// A thread's stack in kernels of modules loaded from now on: at least so many bytes. Shared by
  /// all sessions.
  Result<void> raise_stack(std::uint64_t bytes);
  /// Launches by kernels that may wait for their turn: at least so many. Shared likewise.
  Result<void> raise_pending_launches(std::uint64_t count);
  Result<std::unique_ptr<Function>> find_function(std::uint64_t module, const std::string& name);
  Result<void> set_max_dynamic_shared(Function& function, std::uint32_t bytes);
  /// How many clusters of this launch run at once, or (`largest`) how many blocks one may have.
  Result<std::uint32_t> ask_about_clusters(const Function& function, const LaunchConfig& config,
                                           bool largest);
  /// Also enters the variable in memory().
  Result<ipc::GlobalReply> find_global(std::uint64_t module, const std::string& name);

  /// Checks the launch, gathers the arguments and sends it off. `arguments` holds one pointer a
  /// parameter.
  Result<void> launch(const Function& function, const LaunchConfig& config,
                      const void* const* arguments);

 private:
  /// Where modules that print, or assert, find their ring; nothing before the first of them.
  struct Printing {
    std::mutex mutex;
    std::unique_ptr<PrintRing> ring;
    HostBlock block;
    std::map<std::uint64_t, std::uint64_t> variables;  // by module: what holds the ring's address
    std::uint64_t fifo_bytes = kPrintFifoBytes;
    std::atomic<bool> exists{false};  // `ring`; read without the mutex
  };
  /// What malloc in kernels gives; no memory before the first module that calls it.
  struct KernelHeap {
    std::mutex mutex;
    std::uint64_t address = 0;  // not in memory_, as it is not the program's; 0: none yet
    std::map<std::uint64_t, std::uint64_t> variables;  // by module: what holds the address
    std::uint64_t bytes = kKernelHeapBytes;
  };
  // As the driver of CUDA 13.0 has them.
  static constexpr std::uint64_t kPrintFifoBytes = 8650752;
  static constexpr std::uint64_t kKernelHeapBytes = 8 << 20;

  /// `source`: of an ELF, the PTX that its kernels' forms are made from.
  Result<std::uint64_t> send_module(ImageKind kind, std::span<const std::byte> bytes,
                                    std::span<const PlacedVariable> placed,
                                    std::span<const std::byte> source = {});
  Result<void> post_chunks(ipc::ModuleLoad& load, std::span<const std::byte> bytes);
  Result<std::uint64_t> load_text(const Image& image, std::span<const PlacedVariable> placed);
  Result<std::uint64_t> variable_of(std::uint64_t module, std::string_view name);
  template <typename Work>
  Result<void> on_own_stream(Work work);
  Result<void> write_address(std::uint64_t variable, std::uint64_t address);
  Result<void> connect_printing(std::uint64_t module);
  Result<void> make_ring(std::uint64_t bytes);
  Result<void> need_heap();
  Result<std::uint64_t> make_heap(std::uint64_t bytes);
  Result<void> connect_heap(std::uint64_t module);
  void raise_drivers_heap(std::span<const std::byte> code);
  Result<void> look_for_assertions();
  Result<void> raise_limit(std::uint32_t limit, std::uint64_t value);
  template <typename Body>
  Result<void> post(ipc::CommandType type, const Body& body);
  /// The same for work on a stream, which is noted in progress_.
  template <typename Body>
  Result<void> post_work(ipc::CommandType type, const Body& body, std::uint64_t stream,
                         std::span<const std::byte> tail = {}, Sent* sent = nullptr);
  std::uint32_t progress_of(std::uint64_t stream) const;
  Result<void> ask_to_synchronize(ipc::TargetKind kind, std::uint64_t id);
  std::optional<bool> known_finished(ipc::TargetKind kind, std::uint64_t id) const;
  Result<bool> ask_finished(ipc::TargetKind kind, std::uint64_t id);  // the daemon
  std::uint64_t mark_of(ipc::TargetKind kind, std::uint64_t id) const;
  Result<void> wait_until_finished(ipc::TargetKind kind, std::uint64_t id);
  Result<HostBlock> request_host(std::uint64_t bytes, UniqueFd& fd, std::uint64_t least = 0);
  Result<std::uint64_t> allocate_slab(std::uint64_t bytes);
  Result<std::uint64_t> get_managed_block(std::uint64_t bytes);
  Result<void> give_back_managed_block(std::uint64_t address);
  Result<void> launch_guarded(const ipc::Launch& launch, std::span<const std::byte> block);
  template <typename Other>
  Result<bool> copy_pinned(const HostBlock& block, DeviceRows device_rows, std::uint64_t host,
                           std::uint64_t host_pitch, Shape shape, std::uint64_t stream,
                           bool to_device, const Other& other);
  std::optional<HostBlock> pinned_block(std::uint64_t host, std::uint64_t pitch, Shape shape) const;
  Result<void> settle_host_memory(bool under_way, std::uint64_t stream);
  Result<void> stage_to_device(DeviceRows to, const std::byte* from, std::uint64_t from_pitch,
                               Shape shape, std::uint64_t stream, Sent* sent = nullptr);
  Result<void> stage_to_host(std::byte* to, std::uint64_t to_pitch, DeviceRows from, Shape shape,
                             std::uint64_t stream);
  Result<void> post_box(const ipc::BoxPlace& to, const ipc::BoxPlace& from, Box box,
                        std::uint64_t stream);
  Result<std::optional<ipc::BoxPlace>> pinned_planes(const HostPlanes& planes, Box box,
                                                     std::uint64_t stream);
  template <typename Reply, typename Body>
  Result<Reply> call(ipc::CommandType type, const Body& body, std::string_view tail = {});

  std::unique_ptr<ipc::ClientChannel> channel_;
  const std::uint64_t serial_;
  std::atomic<std::uint64_t> next_id_{0};
  // The table's ids start with the session's number, so that another session's are never taken for
  // ours.
  std::atomic<std::uint64_t> handle_counter_;
  AllocationTable memory_;
  ArrayTable arrays_{handle_counter_};
  HandleTable streams_{handle_counter_};
  HandleTable events_{handle_counter_};
  ProgressTable progress_;
  std::atomic<int> unordered_streams_{0};  // that do not wait for the default stream
  std::atomic<bool> shares_memory_{false};
  /// Where the newest copy of take_to_device() is; 0: none that may not be there yet.
  std::atomic<std::uint64_t> taken_at_{0};
  std::mutex host_order_mutex_;  // keeps gates and host_functions_ in one order
  HostFunctions host_functions_{*this};
  HostBlocks host_blocks_;
  HostPool host_pool_;
  mutable std::mutex imports_mutex_;  // so that memory_ tells of imports what the last answer did
  std::set<std::string> exported_;    // handles; guarded by imports_mutex_
  Printing printing_;
  KernelHeap kernel_heap_;
  ManagedMemory managed_{
      [this](std::uint64_t bytes) { return get_managed_block(bytes); },
      [this](std::uint64_t address) { return give_back_managed_block(address); }};
  ManagedGuard managed_guard_;
  std::unique_ptr<Captures> captures_;
  StreamAttributes stream_attributes_;
  Pools pools_;
  ManagedAdvice managed_advice_;
};

/// kInvalidValue or kOutOfResources for what CUDA refuses at the launch call itself.
Result<void> check_launch(const DeviceInfo& device, const Function& function,
                          const LaunchConfig& config);

/// Copies the arguments to their places; bytes between them become 0.
/// Requires: block.size() == info.parameter_bytes, which find_function() has checked against the
/// layout.
void gather_parameters(const Function& function, const void* const* arguments,
                       std::span<std::byte> block);

}  // namespace slate::client
