// FakeDevice: a Device in memory for tests of the engine, with its work under the test's control
// and faults on request. Modules hold kernels that are known by name:
//   noop, write (stores 42 at its argument), fault (ends its stream), lose (loses the device), spin
//   (runs until release_spinning() or cancel()),
// and those that the test adds, which do nothing. Every kernel takes one parameter of 8 bytes.
// Destruction aborts when anything was left behind.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/device.h"

namespace slate::daemon {

inline constexpr std::uint64_t kMiB = 1 << 20;

class FakeDevice : public device::Device {
 public:
  static constexpr std::uint64_t kGranularity = 2 << 20;
  static constexpr std::uint32_t kMostShared = 227 << 10;  // of a block

  explicit FakeDevice(std::uint64_t capacity = 256 << 20);
  ~FakeDevice() override;

  /// What a kernel takes of an SM.
  struct KernelNeeds {
    std::uint32_t registers = 0;  // of a thread; they limit nothing here
    std::uint32_t local_bytes = 0;
    std::uint32_t static_shared_bytes = 0;
    bool has_clusters = false;
  };

  // --- The test's side ---
  void add_kernel(const std::string& name, KernelNeeds needs);
  /// While held, work is queued; step() runs one piece. On release everything that can run does.
  void hold(bool held);
  /// Runs the next piece of `stream` if it can run now.
  bool step(device::Stream stream);
  std::vector<device::Stream> streams() const;
  /// What ran, as "kernel@stream" in order.
  std::vector<std::string> trace() const;
  void release_spinning();
  /// Called with a kernel's name at the beginning of launch(), on the caller's thread.
  void before_launch(std::function<void(const std::string&)> hook) {
    const std::lock_guard lock(mutex_);
    before_launch_ = std::move(hook);
  }
  /// Until told otherwise record() answers kOutOfResources.
  void refuse_records(bool refused) { refuses_records_ = refused; }
  int launches() const { return launches_.load(); }
  /// Calls of record() so far.
  std::size_t records() const { return records_.load(); }
  /// How the newest launch was to go.
  struct Newest {
    bool ahead = false;
    bool on_a_part = false;  // of the device
    bool overlaps = false;
    std::uint32_t carveout = 0;
  };
  Newest newest() const { return newest_.load(); }
  /// Of 160 KiB, that is 64.
  static constexpr std::uint32_t kCommonCarveout = 40;
  /// Each of its four SMs is a unit from now on. It could not be partitioned before.
  void allow_partitions() { can_be_partitioned_ = true; }
  /// info() says that it is not simulated.
  void pretend_to_be_hardware() { info_.is_simulated = 0; }
  /// cancel() answers kNotSupported, as cuda does.
  void refuse_cancel() { can_cancel_ = false; }
  /// From now on compile() works and says this of itself. Its code is "code:" and the text; text
  /// that begins with '!' does not compile, and with '?' only load_module(kPtx) takes it. For text
  /// that begins with '#' no memory is left, neither there nor here.
  void set_compiler(std::string identity);
  /// While held, compile() does not return.
  void hold_compiler(bool held);
  /// Calls of compile() so far, those that are held included.
  std::size_t compilations() const;
  /// The next load_module(kCubin) answers kNoKernelImage.
  void refuse_code();
  /// What host_bytes() says of each module.
  void pretend_host_bytes(std::uint64_t bytes) { host_bytes_ = bytes; }
  /// The images of load_module() so far, as "ptx:TEXT" or "cubin:TEXT".
  std::vector<std::string> loaded() const;
  std::uint64_t mapped_bytes() const;
  bool holds_nothing() const;

  // --- Device ---
  const DeviceInfo& info() const override { return info_; }
  Result<std::uint64_t> free_memory() override;
  bool lost() const override;
  std::uint64_t granularity() const override { return kGranularity; }
  Result<device::Address> reserve(std::uint64_t bytes) override;
  /// Grants no wish.
  Result<device::Address> reserve_at(std::uint64_t bytes, std::uint64_t, device::Address) override {
    return reserve(bytes);
  }
  void unreserve(device::AddressRange range) override;
  Result<void> map(device::AddressRange range) override;
  /// Memory of its own, which does not count.
  Result<void> map_again(device::AddressRange range, device::Address mapped) override;
  Result<void> unmap(device::AddressRange range) override;
  Result<void> register_host(void* memory, std::size_t bytes) override;
  void unregister_host(void* memory) override;
  Result<device::Address> map_host(int fd, std::uint64_t bytes, device::Address least) override;
  void unmap_host(device::AddressRange range) override;
  Result<device::Module> load_module(device::ImageKind kind,
                                     std::span<const std::byte> image) override;
  using Device::compile;
  Result<std::vector<std::byte>> compile(std::string_view ptx,
                                         std::chrono::milliseconds most_cpu) override;
  Result<std::string> compiler_identity() const override;
  void unload_module(device::Module module) override;
  std::uint64_t host_bytes(device::Module) override { return host_bytes_; }
  Result<device::Function> find_function(device::Module module, const std::string& name) override;
  Result<device::FunctionInfo> function_info(device::Function function) override;
  /// 2048 threads, 32 blocks and 228 KiB of shared memory an SM.
  Result<std::uint32_t> max_blocks_per_sm(device::Function function,
                                          std::uint32_t threads_per_block,
                                          std::uint32_t dynamic_shared_bytes) override;
  Result<std::uint32_t> max_active_clusters(const device::LaunchSpec& spec) override;
  Result<std::uint32_t> max_cluster_size(const device::LaunchSpec& spec) override;
  Result<void> set_attribute(device::Function function, FunctionAttribute attribute,
                             std::int32_t value) override;
  /// What was set of kernels so far, as "kernel 14=1".
  std::vector<std::string> attributes() const;
  Result<void> raise_limit(device::Limit limit, std::uint64_t value) override;
  Result<void> set_local_memory(std::uint64_t bytes) override;
  /// The sizes that were set so far.
  std::vector<std::uint64_t> local_sizes() const {
    const std::lock_guard lock(mutex_);
    return local_sizes_;
  }
  /// Called by set_local_memory(), while it stalls.
  void before_local_memory(std::function<void()> hook) {
    const std::lock_guard lock(mutex_);
    before_local_memory_ = std::move(hook);
  }
  /// From now on set_local_memory() answers kOutOfMemory for more.
  void limit_local_memory(std::uint64_t bytes) { most_local_ = bytes; }
  /// What was asked for last.
  std::pair<device::Limit, std::uint64_t> raised_limit() const {
    const std::lock_guard lock(mutex_);
    return raised_limit_;
  }
  Result<device::AddressRange> find_global(device::Module module, const std::string& name) override;
  /// All bytes are the rank; none of rank 9.
  Result<TensorMap> encode_tensor_map(const TensorMapSpec& spec) override;
  Result<std::vector<std::vector<std::uint32_t>>> partition_units() override;
  Result<device::Partition> create_partition(std::uint32_t first_unit,
                                             std::uint32_t unit_count) override;
  void destroy_partition(device::Partition partition) override;
  std::pair<int, int> stream_priorities() const override { return {0, -5}; }
  using Device::create_stream;
  Result<device::Stream> create_stream(int priority, device::Partition partition) override;
  void destroy_stream(device::Stream stream) override;
  Result<void> cancel(device::Stream stream) override;
  Result<device::Event> create_event(bool timing) override;
  void destroy_event(device::Event event) override;
  Result<void> record(device::Event event, device::Stream stream) override;
  Result<void> wait(device::Stream stream, device::Event event) override;
  Result<bool> query(device::Event event) override;
  Result<float> elapsed_ms(device::Event start, device::Event stop) override;
  void wait_for_progress(std::chrono::microseconds timeout) override;
  Result<void> launch(const device::LaunchSpec& spec, device::Stream stream) override;
  Result<void> copy(const Place& to, const Place& from, const Box& box,
                    device::Stream stream) override;
  Result<device::Array> create_array(const ArraySpec& spec) override;
  void destroy_array(device::Array array) override;
  Result<device::Texture> create_texture(const TextureSpec& spec,
                                         device::AddressRange owner) override;
  void destroy_texture(device::Texture texture) override;
  Result<device::Surface> create_surface(device::Array array, std::uint32_t level,
                                         device::AddressRange owner) override;
  void destroy_surface(device::Surface surface) override;
  Result<void> fill(device::Address to, std::uint64_t to_pitch, FillValue value, const Box& shape,
                    device::Stream stream) override;

 private:
  struct Mark {
    bool reached = false;
    std::optional<Error> error;
  };
  using MarkPointer = std::shared_ptr<Mark>;
  struct Piece {
    enum class Kind { kWork, kRecord, kWait, kSpin } kind;
    std::string name;
    std::function<Result<void>()> work;
    MarkPointer mark;
  };
  struct Queue {
    std::deque<Piece> pieces;
    std::optional<Error> fault;
    std::uint64_t partition = 0;  // 0: the whole device
  };

  struct FakeArray;

  static void set_array_limits(DeviceInfo& info);
  Result<std::uint64_t> add_object(std::uint64_t array);
  void remove_object(std::uint64_t object);
  std::function<char*(std::uint64_t, std::uint64_t)> rows_of(const Place& place);
  Result<void> push(device::Stream stream, Piece piece);
  bool must_wait(const Piece& piece) const;
  bool step_locked(std::uint64_t stream, Queue& queue);
  void run_all_locked();
  bool is_mapped(device::Address address, std::uint64_t bytes) const;
  Piece piece_of(const device::LaunchSpec& spec);

  DeviceInfo info_{};
  const std::uint64_t capacity_;
  bool can_cancel_ = true;
  std::atomic<std::uint64_t> host_bytes_ = 0;
  std::atomic<bool> refuses_records_ = false;
  std::atomic<std::size_t> records_ = 0;
  std::function<void(const std::string&)> before_launch_;
  std::function<void()> before_local_memory_;
  std::atomic<Newest> newest_{};
  std::atomic<int> launches_{0};
  mutable std::mutex mutex_;
  std::pair<device::Limit, std::uint64_t> raised_limit_{};
  std::vector<std::uint64_t> local_sizes_;
  std::atomic<std::uint64_t> most_local_{~std::uint64_t{0}};
  std::condition_variable progress_;
  std::uint64_t marks_reached_ = 0;
  std::uint64_t marks_seen_ = 0;
  bool held_ = false;
  bool lost_ = false;
  bool spin_released_ = false;
  std::uint64_t next_ = 1;
  std::map<device::Address, std::uint64_t> reserved_;
  std::map<device::Address, std::uint64_t> mapped_;
  std::map<device::Address, device::AddressRange> mapped_again_;  // and what of
  std::set<void*> registered_;
  std::map<device::Address, std::uint64_t> hosts_;                   // bytes of map_host()
  std::map<std::uint64_t, std::unique_ptr<std::uint64_t>> modules_;  // each with one global, "g"
  std::map<std::string, KernelNeeds> kernels_;
  std::map<std::uint64_t, std::string> functions_;
  std::vector<std::string> attributes_;
  bool can_be_partitioned_ = false;
  std::set<std::uint64_t> partitions_;
  std::map<std::uint64_t, Queue> streams_;
  std::map<std::uint64_t, MarkPointer> events_;
  std::map<std::uint64_t, std::shared_ptr<FakeArray>> arrays_;
  std::map<std::uint64_t, std::uint64_t> objects_;  // textures and surfaces: their arrays, or 0
  std::vector<std::string> trace_;
  std::string compiler_;
  std::condition_variable compiler_released_;
  bool compiler_held_ = false;
  std::size_t compilations_ = 0;
  bool refuses_code_ = false;
  std::vector<std::string> loaded_;
};

}  // namespace slate::daemon
