// Device: the one interface between slate and a GPU. There are two implementations: cuda/ (driver
// API, opened at run time) and sim/ (executes PTX on the CPU). The engine owns exactly one Device.
// It knows no sessions: the engine does.
//
// Threads: every method may be called from any thread at any time unless it says otherwise. No
// method waits for GPU work unless its comment says so. Work on one stream runs in order; streams
// are ordered against one another only by events.
//
// Handles are made by the device, are never 0, and belong to the caller until destroyed. Addresses
// and sizes are in bytes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/array.h"
#include "base/copy.h"
#include "base/device_info.h"
#include "base/function_attribute.h"
#include "base/result.h"
#include "base/tensor_map.h"
#include "base/unique_fd.h"

namespace slate::device {

using Address = std::uint64_t;  // in the device's own address space

enum class Stream : std::uint64_t {};
enum class Event : std::uint64_t {};
enum class Module : std::uint64_t {};
enum class Function : std::uint64_t {};  // valid as long as its module
enum class Partition : std::uint64_t {};
enum class Array : std::uint64_t {};        // with all levels of a mipmapped one
enum class Texture : std::uint64_t {};      // the number that kernels get as a parameter
enum class Surface : std::uint64_t {};      // the number that kernels get as a parameter
inline constexpr Partition kWholeDevice{};  // the one partition that is not made

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

/// Addresses [base, base + bytes).
struct AddressRange {
  Address base = 0;
  std::uint64_t bytes = 0;
  bool contains(Address address, std::uint64_t size) const {
    return address >= base && size <= bytes && address - base <= bytes - size;
  }
  /// Whether both have a byte in common.
  bool overlaps(const AddressRange& other) const {
    return base < other.base + other.bytes && other.base < base + bytes;
  }
};

/// PTX text, or machine code of one architecture.
enum class ImageKind { kPtx, kCubin };

struct ParameterInfo {
  std::uint32_t offset;  // bytes from the start of the parameter block
  std::uint32_t size;    // bytes
};

/// What is known of a kernel. Sizes are in bytes.
struct FunctionInfo {
  std::string name;
  std::uint32_t max_threads_per_block = 0;
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t max_dynamic_shared_bytes = 0;  // most that a launch may ask for at present
  std::uint32_t constant_bytes = 0;
  std::uint32_t local_bytes = 0;           // of one thread
  std::uint32_t registers = 0;             // of one thread
  std::uint32_t ptx_version = 0;           // 90 for compute_90
  std::uint32_t binary_version = 0;        // 90 for sm_90
  bool has_clusters = false;               // whether it was compiled with a cluster size
  bool needs_cluster = false;              // whether every launch has to have clusters
  std::array<std::uint32_t, 3> cluster{};  // blocks of a cluster as compiled; zeros: no such size
  bool non_portable_clusters = false;    // whether clusters may have more than 8 blocks at present
  std::uint32_t cluster_scheduling = 0;  // CUclusterSchedulingPolicy at present
  std::vector<ParameterInfo> parameters;
};

/// One launch of a kernel.
struct LaunchSpec {
  Function function{};
  Dim3 grid{};
  Dim3 block{};
  std::uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters{};  // packed at FunctionInfo's offsets; copied by launch()
  AddressRange arena{};                     // memory that it may touch, besides that of its module
  /// Whether all blocks must be resident at once, so that they may wait for one another. Errors of
  /// the launch: kCooperativeTooLarge if they do not fit on the stream's partition.
  bool cooperative = false;
  /// Whether its blocks may begin before the launch in front of it on the stream has ended (CUDA's
  /// programmatic stream serialization). sim never lets them.
  bool overlaps = false;
  Dim3 cluster{0, 0, 0};   // blocks of a cluster; zeros: as the kernel was compiled
  AddressRange control{};  // control block of a worker, which it may touch; mapped, or empty
  /// Whether its blocks go before waiting blocks of other launches for the same SMs, as if its
  /// stream had the next higher priority. sim ignores it.
  bool ahead = false;
  /// Percent of an SM's memory that is shared memory, not cache, while its blocks are there; 0: the
  /// device decides. Kernels that want different parts are never on an SM together. sim ignores it.
  std::uint32_t carveout = 0;
  /// The kernel whose form `function` is, if it is in another module: the launch may touch that
  /// module's variables. 0: none. cuda ignores it.
  Function variables_of{};
  /// Ranges of map_host() that it may touch, by rising address; null: none. cuda ignores it.
  std::shared_ptr<const std::vector<AddressRange>> host{};
  /// What a fenced kernel looks its accesses up in, and where it records a violation; may be empty.
  /// cuda ignores both.
  AddressRange fence_table{}, fence_record{};
};

/// Resources that all threads share, besides allocated memory.
enum class Limit : std::uint32_t {
  kHeap = 0,             // bytes of all that malloc() gives in kernels that came as machine code
  kPendingLaunches = 1,  // launches by kernels, beyond which they fail unseen by the host
};

/// Bytes of local memory (stack, and arrays outside of registers) that each thread has at least.
inline constexpr std::uint64_t kBaseLocalBytes = 1024;

/// The device. What kernels print by CUDA's own printf goes to this process's stdout.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  /// Bytes of device memory that are not mapped.
  virtual Result<std::uint64_t> free_memory() = 0;
  /// Bytes of device memory that the driver took for this process when the device was opened; 0:
  /// unknown, none, or not measured (OpenSettings). Other processes that allocated at that moment
  /// count, too.
  virtual std::uint64_t own_bytes() const { return 0; }

  /// Whether a fault has made the whole device unusable for this process (cuda, after a kernel's
  /// fault). sim confines a fault to the stream that it happened on.
  virtual bool lost() const = 0;
  /// Whether nothing runs any more on a device that is lost.
  virtual bool stops_when_lost() const { return false; }

  /// Functions called around each call of the driver that waits until nothing runs on the device,
  /// and holds up every launch meanwhile. In cuda these calls
  /// - load and unload modules and find their functions;
  /// - make partitions;
  /// - unregister host memory.
  /// Also around map() and create_array(), where kernels of the driver, which need room, clear
  /// memory. Calls do not nest. sim never waits, but calls them in the same places, for tests.
  struct StallHooks {
    std::function<void()> begin, end;
  };
  /// Requires: no other method is called meanwhile.
  void set_stall_hooks(StallHooks hooks) { stall_hooks_ = std::move(hooks); }

  /// Called in front of each unmap() and unmap_host(), with what is about to go. Requires: no other
  /// method is called meanwhile.
  void set_unmap_hook(std::function<void(AddressRange)> hook) { unmap_hook_ = std::move(hook); }

  // --- Address space
  /// Addresses to wish for: with them, what a session has in one process is likely to be free in
  /// another one. 0: none.
  struct Window {
    AddressRange reservation{};  // for reserve_at()
    Address host = 0;            // for map_host(); the next kHostWindowBytes are the session's
  };
  static constexpr std::uint64_t kHostWindowBytes = std::uint64_t{8} << 30;
  /// `most`: bytes of memory that a session may have, the same number for all sessions.
  virtual Window window_of(std::uint64_t /*session*/, std::uint64_t /*most*/) const { return {}; }
  /// Granularity in bytes: addresses and sizes of all ranges below are multiples of it.
  virtual std::uint64_t granularity() const = 0;
  /// Reserves addresses without memory. Returns the first one.
  virtual Result<Address> reserve(std::uint64_t bytes) = 0;
  /// The same at a multiple of `align`, a power of two, and at `wished` if these addresses are
  /// free.
  virtual Result<Address> reserve_at(std::uint64_t bytes, std::uint64_t align, Address wished) = 0;
  /// Gives the addresses back. Requires: nothing is mapped there.
  virtual void unreserve(AddressRange range) = 0;
  /// Backs a part of a reserved range with physical memory that reads as zero. May wait for that.
  /// Errors: kOutOfMemory when there is none left.
  virtual Result<void> map(AddressRange range) = 0;
  /// As map(), with memory of the host, which kernels reach over the link to it. Errors:
  /// kNotSupported where the device cannot; kOutOfMemory.
  virtual Result<void> map_on_host(AddressRange /*range*/) {
    return fail(ErrorCode::kNotSupported, "this device maps no memory of the host at will");
  }
  /// Backs `range` with the memory that is mapped at `mapped`, with the same size. What work writes
  /// in one range is in the other when that work has ended. The memory stays until both are
  /// unmapped.
  virtual Result<void> map_again(AddressRange range, Address mapped) = 0;
  /// Takes the memory away. Requires: `range` was mapped by one call, and no unfinished work
  /// touches it.
  virtual Result<void> unmap(AddressRange range) = 0;
  /// A descriptor of the memory that map() put at `range`. Whoever holds it keeps the memory with
  /// its contents, also when the device is lost and this process gone. Errors: kNotSupported.
  virtual Result<UniqueFd> export_memory(AddressRange /*range*/) {
    return fail(ErrorCode::kNotSupported, "this device's memory ends with its process");
  }
  /// As map(), with the memory of an export_memory() of the same size, as it was left there.
  virtual Result<void> map_exported(AddressRange /*range*/, int /*memory*/) {
    return fail(ErrorCode::kNotSupported, "this device's memory ends with its process");
  }

  /// Lets the device reach host memory directly, which makes copies from and to it asynchronous.
  virtual Result<void> register_host(void* memory, std::size_t bytes) = 0;
  /// Ends register_host() for the memory that begins there. cuda may wait until nothing runs.
  virtual void unregister_host(void* memory) = 0;
  /// Maps the first `bytes` of the shared memory `fd` into this process. Host and kernels reach it
  /// at one address, not below `least`, the same in every process where it is free. Either end of a
  /// copy, and a fill, may be there too. Requires: `bytes` is a multiple of 4096 and at most the
  /// memory's size.
  virtual Result<Address> map_host(int fd, std::uint64_t bytes, Address least) = 0;
  /// Requires: `range` is one of map_host(), and no unfinished work touches it.
  virtual void unmap_host(AddressRange range) = 0;

  // --- Modules
  /// Loads code. Errors: kInvalidPtx or kNoKernelImage with the assembler's words; kLimit on sim
  /// for more code than it has room for.
  virtual Result<Module> load_module(ImageKind kind, std::span<const std::byte> image) = 0;
  /// Returns machine code for this device, which load_module(kCubin) takes and which is as good as
  /// what load_module(kPtx) makes. Takes milliseconds to minutes. After any failure
  /// load_module(kPtx) is worth a try: this compiler may be older than the one in the driver, or
  /// not usable now. Errors:
  /// - kInvalidPtx, with the assembler's words;
  /// - kLimit, after `most_cpu` of processor time;
  /// - kNotSupported, where there is no compiler (sim; cuda without a ptxas).
  virtual Result<std::vector<std::byte>> compile(std::string_view ptx,
                                                 std::chrono::milliseconds most_cpu) = 0;
  Result<std::vector<std::byte>> compile(std::string_view ptx) {
    return compile(ptx, std::chrono::minutes(10));
  }
  /// What the result of compile() depends on besides the text. It never changes; the first call may
  /// take tens of milliseconds. Errors: kNotSupported, with the reason, where compile() is not
  /// supported.
  virtual Result<std::string> compiler_identity() const = 0;
  /// Whether link() is to be had; else kNotSupported, with the reason: on sim, and on cuda without
  /// ptxas, nvlink or libcudadevrt.a. The first call may take tens of milliseconds.
  virtual Result<void> can_link() const {
    return fail(ErrorCode::kNotSupported,
                "the simulator cannot run kernels that launch other kernels");
  }
  /// As compile(), of texts that name each other's kernels and launch kernels themselves.
  /// Requires: not empty.
  virtual Result<std::vector<std::byte>> link(std::span<const std::string> /*ptx*/,
                                              std::chrono::milliseconds /*most_cpu*/) {
    const auto can = can_link();
    return can ? fail(ErrorCode::kInternal, "nothing links") : std::unexpected(can.error());
  }
  /// Requires: no unfinished work uses it.
  virtual void unload_module(Module module) = 0;
  /// Bytes of device memory that other sessions lose to a module with `bytes` of variables.
  virtual std::uint64_t variable_memory(std::uint64_t bytes) const { return bytes; }
  /// About the bytes of this process's memory that the module takes, with the functions found in it
  /// so far. On cuda 0: that is the driver's, and no more than the image.
  virtual std::uint64_t host_bytes(Module /*module*/) { return 0; }
  /// Errors: kSymbolNotFound.
  virtual Result<Function> find_function(Module module, const std::string& name) = 0;
  virtual Result<FunctionInfo> function_info(Function function) = 0;
  /// Blocks of this shape that one SM holds at once; never 0. Errors: kOutOfResources when not even
  /// one fits; kInvalidConfiguration for a number of threads that no block may have.
  virtual Result<std::uint32_t> max_blocks_per_sm(Function function,
                                                  std::uint32_t threads_per_block,
                                                  std::uint32_t dynamic_shared_bytes) = 0;
  /// Clusters of this launch that the whole device holds at once, and most blocks of a cluster that
  /// it could be launched with. Errors: kNotSupported where there are no clusters (sim).
  virtual Result<std::uint32_t> max_active_clusters(const LaunchSpec& spec) = 0;
  virtual Result<std::uint32_t> max_cluster_size(const LaunchSpec& spec) = 0;
  /// Sets an attribute for later launches. sim keeps no wishes. Errors: kInvalidValue for what the
  /// function cannot have, and for the sizes of clusters, which launches name themselves.
  virtual Result<void> set_attribute(Function function, FunctionAttribute attribute,
                                     std::int32_t value) = 0;
  /// The same of kMaxDynamicShared.
  Result<void> set_max_dynamic_shared(Function function, std::uint32_t bytes) {
    if (bytes > INT32_MAX)
      return fail(ErrorCode::kInvalidValue, "no device has so much shared memory");
    return set_attribute(function, FunctionAttribute::kMaxDynamicShared,
                         static_cast<std::int32_t>(bytes));
  }
  /// Addresses of a variable. Errors: kSymbolNotFound.
  virtual Result<AddressRange> find_global(Module module, const std::string& name) = 0;
  /// Raises a limit for launches of all modules loaded from now on; a smaller value than before is
  /// ignored. Errors: kInvalidValue for more than there can be, and on cuda for a heap that is in
  /// use.
  virtual Result<void> raise_limit(Limit limit, std::uint64_t value) = 0;
  /// Sets the local memory of each thread that the device can hold: for stacks, and for kernels up
  /// to FunctionInfo::local_bytes. Waits for all kernels. On cuda it takes that much of the
  /// device's memory; a launch that needs more takes it by itself, for ever. Errors: kOutOfMemory.
  virtual Result<void> set_local_memory(std::uint64_t bytes) = 0;

  // --- Arrays, textures, surfaces
  /// Makes an array that reads as zero, and may wait for that. Requires: check_array() succeeds.
  /// Errors: kOutOfMemory when there is no memory left.
  virtual Result<Array> create_array(const ArraySpec& spec) = 0;
  /// Requires: no unfinished work, texture or surface uses it.
  virtual void destroy_array(Array array) = 0;
  /// Makes a texture. `resource.array` is an Array; kind kArray reads one level of it. Memory stays
  /// mapped as long as the texture lives. `owner` is the arena of the launches that may use it: sim
  /// checks it, cuda cannot. Requires: check_texture() succeeds, and linear_bytes() for memory.
  /// Errors: kNotSupported for what the device cannot read so.
  virtual Result<Texture> create_texture(const TextureSpec& spec, AddressRange owner) = 0;
  /// Requires: no unfinished work uses it.
  virtual void destroy_texture(Texture texture) = 0;
  /// Makes a surface, also of an array without kArraySurface, as the driver does. Otherwise as
  /// create_texture().
  virtual Result<Surface> create_surface(Array array, std::uint32_t level, AddressRange owner) = 0;
  virtual void destroy_surface(Surface surface) = 0;

  /// What kernels take for this tensor. Errors: kNotSupported where there are no tensor maps (sim);
  /// kInvalidValue for what cannot be.
  virtual Result<TensorMap> encode_tensor_map(const TensorMapSpec& /*spec*/) {
    return fail(ErrorCode::kNotSupported, "the simulated device has no tensor maps");
  }

  // --- Partitions
  /// The units of which partitions are made: the numbers (%smid) of each unit's SMs. Every SM is in
  /// exactly one unit; units may differ in size. Never changes. The first call may take 100 ms and
  /// waits for kernels of its own on every SM, so call it before there is other work. Errors:
  /// kNotSupported, with the reason, where the device cannot be partitioned; kOutOfResources when
  /// other work kept SMs from answering.
  virtual Result<std::vector<std::vector<std::uint32_t>>> partition_units() = 0;
  /// Makes a partition of `unit_count` units from `first_unit` on. Partitions may overlap. Takes
  /// milliseconds. Where cuda cannot join the last unit to others, the partition lacks it, and the
  /// log says so. Errors: kInvalidValue for units that do not exist; those of partition_units().
  virtual Result<Partition> create_partition(std::uint32_t first_unit,
                                             std::uint32_t unit_count) = 0;
  /// May wait for unfinished work of its streams. Requires: its streams were destroyed.
  virtual void destroy_partition(Partition partition) = 0;

  // --- Streams and events
  /// The lowest and the highest priority that the device distinguishes. A smaller number is a
  /// higher priority, as in CUDA.
  virtual std::pair<int, int> stream_priorities() const = 0;
  /// Makes a stream that waits for no other stream. A smaller `priority` runs first; one beyond
  /// stream_priorities() counts as the nearest. Its kernels run on the partition's SMs only;
  /// functions, events and memory are the same everywhere.
  virtual Result<Stream> create_stream(int priority, Partition partition) = 0;
  Result<Stream> create_stream(int priority) { return create_stream(priority, kWholeDevice); }
  /// Unfinished work still completes, unless it was cancelled.
  virtual void destroy_stream(Stream stream) = 0;
  /// Drops what is queued on the stream and ends what runs. Errors: kNotSupported where the device
  /// cannot (cuda); then the caller has to wait.
  virtual Result<void> cancel(Stream stream) = 0;

  /// Makes an event. `timing`: for elapsed_ms().
  virtual Result<Event> create_event(bool timing) = 0;
  /// Makes an event for record() and query() only, which are then cheap where the device can tell
  /// the host by itself. Requires: it is destroyed, or recorded again, only when it was reached or
  /// the device is lost.
  virtual Result<Event> create_watched_event() { return create_event(false); }
  virtual void destroy_event(Event event) = 0;
  /// Marks the end of the work that is on the stream now. Later calls replace the mark.
  virtual Result<void> record(Event event, Stream stream) = 0;
  /// Work given to `stream` from now on waits for the event's last record().
  virtual Result<void> wait(Stream stream, Event event) = 0;
  /// Whether the work before the last record() has finished; true if it was never recorded. Errors:
  /// that of the work, if it faulted.
  virtual Result<bool> query(Event event) = 0;
  /// Milliseconds between two events. Requires: both were made with timing, recorded and reached.
  virtual Result<float> elapsed_ms(Event start, Event stop) = 0;
  /// Waits until some event may have been reached since the last call, or `timeout` has passed.
  virtual void wait_for_progress(std::chrono::microseconds timeout) = 0;

  // --- Work
  /// Starts a kernel. A fault of the kernel comes from query(). Errors: kInvalidConfiguration or
  /// kOutOfResources for what the device cannot run at all.
  virtual Result<void> launch(const LaunchSpec& spec, Stream stream) = 0;
  /// Starts several kernels in order, sooner than by launch() where the device takes several at
  /// once. A refused one does not keep the others from starting. Errors: the first of those that
  /// launch() would return.
  virtual Result<void> launch_row(std::span<const LaunchSpec> specs, Stream stream) {
    Result<void> outcome;
    for (const LaunchSpec& spec : specs) {
      if (const auto done = launch(spec, stream); !done && outcome) outcome = done;
    }
    return outcome;
  }
  /// Copies a box. Places are of kind kArray, kDevice or kHost. Errors: kInvalidValue when neither
  /// side is an array or memory of the device. Requires: host memory is not touched until the copy
  /// has finished; beside an array, slices of memory are multiples of the pitch.
  virtual Result<void> copy(const Place& to, const Place& from, const Box& box, Stream stream) = 0;
  /// Writes the value over and over into a box of one plane. Requires: value.fits().
  virtual Result<void> fill(Address to, std::uint64_t to_pitch, FillValue value, const Box& box,
                            Stream stream) = 0;

 protected:
  void before_unmap(AddressRange range) const {
    if (unmap_hook_) unmap_hook_(range);
  }

  /// Calls the stall hooks around a scope.
  class Stall {
   public:
    explicit Stall(const Device& device) : device_(device) {
      if (device_.stall_hooks_.begin) device_.stall_hooks_.begin();
    }
    ~Stall() {
      if (device_.stall_hooks_.end) device_.stall_hooks_.end();
    }
    Stall(const Stall&) = delete;
    Stall& operator=(const Stall&) = delete;

   private:
    const Device& device_;
  };

 private:
  StallHooks stall_hooks_;
  std::function<void(AddressRange)> unmap_hook_;  // may be empty
};

/// Settings of open_device() that only cuda uses.
struct OpenSettings {
  std::string assembler;  // path of the ptxas for compile(); empty: searched for
  /// Directory of the code that the driver compiles itself; made if its parent can be. Empty: the
  /// driver's own choice.
  std::filesystem::path driver_cache;
  std::uint64_t driver_cache_bytes = 0;  // most bytes in `driver_cache`
  bool measures_own = false;             // whether own_bytes() is found out, which takes time
};

/// Opens "cuda", "cuda:N", "sim" or "sim:KEY=VALUE,...". "auto" takes cuda:0 where the driver finds
/// a GPU, else sim. The settings of sim are in device/sim/README.md. Requires: with a
/// `driver_cache`, no other thread uses the environment, which this changes. Errors: kInvalidValue
/// for another description.
Result<std::unique_ptr<Device>> open_device(std::string_view description,
                                            const OpenSettings& settings = {});

}  // namespace slate::device
