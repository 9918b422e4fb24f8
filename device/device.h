// Device: the one interface between slate and a GPU. Two implementations: cuda/ (driver API, opened
// at run time) and sim/ (executes PTX on the CPU). The engine owns exactly one Device.
//
// Threads: every method may be called from any thread at any time unless it says otherwise. No
// method waits for GPU work to finish unless its comment says so. Work on one stream runs in order;
// streams are ordered against one another only by events.
#pragma once

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
#include <variant>
#include <vector>

#include "base/array.h"
#include "base/device_info.h"
#include "base/result.h"

namespace slate::device {

using Address = std::uint64_t;  // an address in the device's own address space

enum class Stream : std::uint64_t {};  // handles are made by the device and never 0
enum class Event : std::uint64_t {};
enum class Module : std::uint64_t {};
enum class Function : std::uint64_t {};  // lives as long as its module
enum class Partition : std::uint64_t {};
enum class Array : std::uint64_t {};        // all levels of a mipmapped one
enum class Texture : std::uint64_t {};      // the very number that kernels take
enum class Surface : std::uint64_t {};      // likewise
inline constexpr Partition kWholeDevice{};  // the one partition that is not made

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

struct AddressRange {
  Address base = 0;
  std::uint64_t bytes = 0;
  bool contains(Address address, std::uint64_t size) const {
    return address >= base && size <= bytes && address - base <= bytes - size;
  }
};

enum class ImageKind { kPtx, kCubin };

struct ParameterInfo {
  std::uint32_t offset;  // bytes from the start of the parameter block
  std::uint32_t size;    // bytes
};

struct FunctionInfo {
  std::string name;
  std::uint32_t max_threads_per_block = 0;
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t max_dynamic_shared_bytes = 0;  // what a launch may ask for at present
  std::uint32_t constant_bytes = 0;
  std::uint32_t local_bytes = 0;     // per thread
  std::uint32_t registers = 0;       // per thread
  std::uint32_t ptx_version = 0;     // 90 for compute_90
  std::uint32_t binary_version = 0;  // 90 for sm_90
  bool has_clusters = false;         // of blocks, as it was compiled
  std::vector<ParameterInfo> parameters;
};

struct LaunchSpec {
  Function function{};
  Dim3 grid{};
  Dim3 block{};
  std::uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters{};  // packed at FunctionInfo's offsets; copied by launch()
  AddressRange arena{};  // the only memory, besides its module's, that it may touch
  /// All blocks resident at once, so that they may wait for one another; else
  /// kCooperativeTooLarge, for the stream's partition.
  bool cooperative = false;
  Dim3 cluster{0, 0, 0};   // blocks of a cluster; zeros: as the kernel was compiled
  AddressRange control{};  // and the control block of a rewritten kernel; mapped, may be empty
  /// Its blocks go before those of other launches that wait for the same SMs, as if its stream were
  /// of the next higher priority. sim does not look at it, nor at the next one.
  bool ahead = false;
  /// Percent of an SM's memory that is shared memory while its blocks are there, and caches
  /// nothing; 0: as the device thinks. Kernels that want different parts are never on an SM
  /// together.
  std::uint32_t carveout = 0;
  /// The kernel whose form this is, in another module than that of `function`: it may touch the
  /// variables of that kernel's module. 0: none. cuda does not look at it.
  Function variables_of{};
  /// Ranges of map_host() that it may touch too, by rising address; null for none. cuda does not
  /// look at it.
  std::shared_ptr<const std::vector<AddressRange>> host{};
};

/// One rectangular copy or fill: `height` rows of `width` bytes; a pitch is the distance of two
/// rows.
struct Shape {
  std::uint64_t width = 0;
  std::uint64_t height = 1;
};

/// Where a copy of three dimensions begins. A pitch is the distance of two rows, a slice that of
/// two planes, a multiple of the pitch; all in bytes.
struct ArrayPlace {
  Array array{};
  std::uint32_t level = 0;
  std::uint64_t x = 0;  // bytes, which may cut elements
  std::uint64_t y = 0, z = 0;
};
struct DevicePlace {
  Address address = 0;
  std::uint64_t pitch = 0, slice = 0;
};
struct HostPlace {
  void* memory = nullptr;  // not written when it is what a copy reads
  std::uint64_t pitch = 0, slice = 0;
};
using Place = std::variant<ArrayPlace, DevicePlace, HostPlace>;
struct Box {
  std::uint64_t width = 0;  // bytes
  std::uint64_t height = 1, depth = 1;
};

/// What threads share besides memory that somebody allocated.
enum class Limit : std::uint32_t {
  kStack = 0,            // bytes a thread
  kHeap = 1,             // bytes of all that malloc() gives in kernels that came as machine code
  kPendingLaunches = 2,  // launches by kernels, beyond which they fail unseen by the host
};

/// What kernels print by CUDA's own printf goes to this process's stdout.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  /// Bytes of device memory not mapped by anyone.
  virtual Result<std::uint64_t> free_memory() = 0;

  /// True once a fault has made the whole device unusable for this process (cuda after a kernel
  /// fault). sim confines a fault to the stream that it happened on.
  virtual bool lost() const = 0;

  /// Called around each call of a driver that waits until nothing runs on the device and holds up
  /// every launch meanwhile: in cuda those that load and unload modules and find their functions,
  /// make partitions, and take registered memory back. And around map() and create_array(), where
  /// kernels of the driver's, which need room, clear memory. Not for calls that are made within
  /// another. sim, where nobody waits, calls them in the same places, for those who test what they
  /// do.
  struct StallHooks {
    std::function<void()> begin, end;
  };
  /// Requires: nothing else is called meanwhile.
  void set_stall_hooks(StallHooks hooks) { stall_hooks_ = std::move(hooks); }

  // --- Address space
  // ---------------------------------------------------------------------------------
  /// All ranges below are multiples of this many bytes, in address and size.
  virtual std::uint64_t granularity() const = 0;
  virtual Result<Address> reserve(std::uint64_t bytes) = 0;
  virtual void unreserve(AddressRange range) = 0;
  /// Backs part of a reserved range with physical memory that reads as zero. kOutOfMemory when
  /// there is none left.
  virtual Result<void> map(AddressRange range) = 0;
  /// Backs another range, of the same size, with the memory that is mapped at `mapped`: what work
  /// writes in one is in the other when that work has ended. It stays until both are unmapped.
  virtual Result<void> map_again(AddressRange range, Address mapped) = 0;
  /// `range` must be exactly one that was mapped. Requires: no unfinished work touches it.
  virtual Result<void> unmap(AddressRange range) = 0;

  /// Lets the device reach host memory directly, which makes copies from and to it asynchronous.
  virtual Result<void> register_host(void* memory, std::size_t bytes) = 0;
  virtual void unregister_host(void* memory) = 0;
  /// Maps the first `bytes` of the shared memory `fd` into this process so that host and kernels
  /// reach it at one address, not below `least`, the same in every process where that one is free;
  /// either half of a copy, and a fill, may be there too. Requires: a multiple of 4096, not more
  /// than there is.
  virtual Result<Address> map_host(int fd, std::uint64_t bytes, Address least) = 0;
  /// `range` must be exactly one of map_host(). Requires: no unfinished work touches it.
  virtual void unmap_host(AddressRange range) = 0;

  // --- Modules
  // ---------------------------------------------------------------------------------------
  /// kInvalidPtx or kNoKernelImage with the assembler's words in the message; kLimit on sim for
  /// more code than it has room for.
  virtual Result<Module> load_module(ImageKind kind, std::span<const std::byte> image) = 0;
  /// Machine code for this device, which load_module(kCubin) takes and which is as good as what
  /// load_module(kPtx) makes. Keeps the caller waiting for milliseconds to minutes. Any failure
  /// leaves load_module(kPtx) worth a try: what compiles here may be older than what is inside the
  /// driver, or not usable at the moment. kInvalidPtx with the assembler's words; kLimit after
  /// `most_cpu` of processor time; kNotSupported where there is nothing to compile with (sim; cuda
  /// without a ptxas).
  virtual Result<std::vector<std::byte>> compile(std::string_view ptx,
                                                 std::chrono::milliseconds most_cpu) = 0;
  Result<std::vector<std::byte>> compile(std::string_view ptx) {
    return compile(ptx, std::chrono::minutes(10));
  }
  /// What the result of compile() depends on besides the text. kNotSupported, with the reason,
  /// where compile() is. Never changes; the first call may take tens of milliseconds.
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
  /// How much of the device's memory others lose to a module with so many bytes of variables.
  virtual std::uint64_t variable_memory(std::uint64_t bytes) const { return bytes; }
  /// About what the module has taken of this process's memory, with the functions found in it so
  /// far. On cuda that is the driver's, and no more than its image.
  virtual std::uint64_t host_bytes(Module /*module*/) { return 0; }
  virtual Result<Function> find_function(Module module, const std::string& name) = 0;
  virtual Result<FunctionInfo> function_info(Function function) = 0;
  /// How many blocks of this shape one SM holds at once; never 0. kOutOfResources when not even one
  /// fits, kInvalidConfiguration for a number of threads that no block may have.
  virtual Result<std::uint32_t> max_blocks_per_sm(Function function,
                                                  std::uint32_t threads_per_block,
                                                  std::uint32_t dynamic_shared_bytes) = 0;
  /// How many clusters of this launch the whole device holds at once, and how many blocks the
  /// largest cluster may have that it could be launched with. kNotSupported where there are no
  /// clusters (sim).
  virtual Result<std::uint32_t> max_active_clusters(const LaunchSpec& spec) = 0;
  virtual Result<std::uint32_t> max_cluster_size(const LaunchSpec& spec) = 0;
  /// Raises the limit of dynamic shared memory of later launches (cudaFuncSetAttribute).
  virtual Result<void> set_max_dynamic_shared(Function function, std::uint32_t bytes) = 0;
  virtual Result<AddressRange> find_global(Module module, const std::string& name) = 0;
  /// Gives launches of modules loaded from now on at least so much, whoever's they are; never less
  /// than before. kInvalidValue for more than there can be, and on cuda for a heap that is in use.
  virtual Result<void> raise_limit(Limit limit, std::uint64_t value) = 0;

  // --- Arrays, textures, surfaces
  // --------------------------------------------------------------------
  /// An array that reads as zero. May keep the caller waiting until it does. kOutOfMemory when
  /// there is no memory left. Requires: check_array().
  virtual Result<Array> create_array(const ArraySpec& spec) = 0;
  /// Requires: no unfinished work, texture or surface uses it.
  virtual void destroy_array(Array array) = 0;
  /// `resource.array` is an Array, of which a texture of kind kArray reads one level; memory is
  /// mapped as long as the texture lives. `owner` is the arena of the launches that may use it: sim
  /// looks at that, cuda cannot. kNotSupported for what the device cannot read so.
  /// Requires: check_texture(), and linear_bytes() for memory.
  virtual Result<Texture> create_texture(const TextureSpec& spec, AddressRange owner) = 0;
  /// Requires: no unfinished work uses it.
  virtual void destroy_texture(Texture texture) = 0;
  /// Also of an array without kArraySurface, as the driver does it. Otherwise as for textures.
  virtual Result<Surface> create_surface(Array array, std::uint32_t level, AddressRange owner) = 0;
  virtual void destroy_surface(Surface surface) = 0;

  // --- Partitions
  // ------------------------------------------------------------------------------------
  /// What partitions are made of: the numbers (as %smid tells them) of each unit's SMs. Every SM is
  /// in exactly one unit; units need not be of one size. Never changes. The first call may take 100
  /// ms and waits for kernels of its own on every SM: call it before there is other work.
  /// kNotSupported, with the reason, where the device cannot be partitioned; kOutOfResources when
  /// other work kept SMs from answering.
  virtual Result<std::vector<std::vector<std::uint32_t>>> partition_units() = 0;
  /// The SMs of `unit_count` units from `first_unit` on. Partitions may overlap. Takes
  /// milliseconds. kInvalidValue for units that there are not; otherwise as partition_units().
  /// Should the device not be able to join the last unit to others (cuda; it says so in the log),
  /// then the partition lacks it.
  virtual Result<Partition> create_partition(std::uint32_t first_unit,
                                             std::uint32_t unit_count) = 0;
  /// Requires: its streams were destroyed. May wait for what they left unfinished.
  virtual void destroy_partition(Partition partition) = 0;

  // --- Streams and events
  // ----------------------------------------------------------------------------
  /// The least and the greatest priority that the device tells apart; greater is smaller, as in
  /// CUDA.
  virtual std::pair<int, int> stream_priorities() const = 0;
  /// A stream that waits for no other stream. Smaller `priority` runs first; one beyond
  /// stream_priorities() counts as the nearest. Its kernels run on the partition's SMs only;
  /// functions, events and memory are the same everywhere.
  virtual Result<Stream> create_stream(int priority, Partition partition) = 0;
  Result<Stream> create_stream(int priority) { return create_stream(priority, kWholeDevice); }
  /// Unfinished work still completes, unless it was cancelled.
  virtual void destroy_stream(Stream stream) = 0;
  /// Drops what is queued on the stream and ends what runs, where the device can (sim); otherwise
  /// kNotSupported, and the caller has to wait.
  virtual Result<void> cancel(Stream stream) = 0;

  virtual Result<Event> create_event(bool timing) = 0;
  /// An event for record() and query() only, which it makes cheap where the device can tell the
  /// host by itself. Requires: destroyed and recorded again only when it was reached, or the device
  /// is lost.
  virtual Result<Event> create_watched_event() { return create_event(false); }
  virtual void destroy_event(Event event) = 0;
  virtual Result<void> record(Event event, Stream stream) = 0;
  virtual Result<void> wait(Stream stream, Event event) = 0;
  /// True when the work before the last record() has finished (also when it was never recorded).
  /// The error if that work faulted.
  virtual Result<bool> query(Event event) = 0;
  /// Milliseconds between two recorded, finished, timed events.
  virtual Result<float> elapsed_ms(Event start, Event stop) = 0;
  /// Blocks until some event may have been reached since the last call, or `timeout` has passed.
  virtual void wait_for_progress(std::chrono::microseconds timeout) = 0;

  // --- Work
  // ------------------------------------------------------------------------------------------
  /// kInvalidConfiguration or kOutOfResources for what the device cannot run at all; faults inside
  /// the kernel arrive through query().
  virtual Result<void> launch(const LaunchSpec& spec, Stream stream) = 0;
  /// As launch() of each, in order, but sooner where the device takes several in one go. One that
  /// is refused does not keep those behind it; the first such error is returned.
  virtual Result<void> launch_row(std::span<const LaunchSpec> specs, Stream stream) {
    Result<void> outcome;
    for (const LaunchSpec& spec : specs) {
      if (const auto done = launch(spec, stream); !done && outcome) outcome = done;
    }
    return outcome;
  }
  /// Host memory must stay untouched until the copy has finished.
  virtual Result<void> copy_to_device(Address to, std::uint64_t to_pitch, const void* from,
                                      std::uint64_t from_pitch, Shape shape, Stream stream) = 0;
  virtual Result<void> copy_to_host(void* to, std::uint64_t to_pitch, Address from,
                                    std::uint64_t from_pitch, Shape shape, Stream stream) = 0;
  virtual Result<void> copy_on_device(Address to, std::uint64_t to_pitch, Address from,
                                      std::uint64_t from_pitch, Shape shape, Stream stream) = 0;
  /// Between arrays, or an array and memory. As the copies above do with host memory.
  virtual Result<void> copy_box(const Place& to, const Place& from, Box box, Stream stream) = 0;
  virtual Result<void> fill(Address to, std::uint64_t to_pitch, std::uint8_t value, Shape shape,
                            Stream stream) = 0;

 protected:
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
};

/// What there is to say besides which device; of use to cuda only.
struct OpenSettings {
  std::string assembler;               // the ptxas that compile() runs; empty: looked for
  std::filesystem::path driver_cache;  // where the driver keeps what it compiles itself; empty: as
                                       // it likes. Made if its parent can be.
  std::uint64_t driver_cache_bytes = 0;
};

/// Opens "cuda", "cuda:N", "sim" or "sim:KEY=VALUE,...". "auto" takes cuda:0 where the driver finds
/// a GPU, else sim. The settings of sim are in device/sim/README.md.
/// Requires: with a `driver_cache`, no other thread uses the environment, which this changes.
Result<std::unique_ptr<Device>> open_device(std::string_view description,
                                            const OpenSettings& settings = {});

}  // namespace slate::device
