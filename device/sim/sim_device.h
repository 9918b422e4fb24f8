// SimDevice: the simulated GPU behind device::Device, put together from memory, modules and
// streams. A fault ends the stream that it happened on and nothing else. With
// Settings::fault_ends_all the device is lost, as a GPU is. Thread: any, as for device::Device.
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "device/device.h"
#include "device/sim/arrays.h"
#include "device/sim/copy.h"
#include "device/sim/memory.h"
#include "device/sim/modules.h"
#include "device/sim/partitions.h"
#include "device/sim/settings.h"
#include "device/sim/streams.h"

namespace slate::sim {

class SimDevice final : public device::Device {
 public:
  static Result<std::unique_ptr<SimDevice>> make(const Settings& settings);
  /// Cancels unfinished work and joins all threads.
  ~SimDevice() override = default;

  const DeviceInfo& info() const override { return info_; }
  Result<std::uint64_t> free_memory() override;
  Window window_of(std::uint64_t session, std::uint64_t most) const override {
    return memory_->window_of(session, most);
  }
  bool lost() const override { return streams_.lost(); }

  std::uint64_t granularity() const override { return kChunkBytes; }
  Result<device::Address> reserve(std::uint64_t bytes) override;
  Result<device::Address> reserve_at(std::uint64_t bytes, std::uint64_t align,
                                     device::Address wished) override;
  void unreserve(device::AddressRange range) override;
  Result<void> map(device::AddressRange range) override;
  Result<void> map_on_host(device::AddressRange range) override {
    return memory_->map_on_host(range);
  }
  Result<void> map_again(device::AddressRange range, device::Address mapped) override;
  Result<UniqueFd> export_memory(device::AddressRange range) override;
  Result<void> map_exported(device::AddressRange range, int memory) override;
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
  /// As in device::Device: each module has chunks of its own.
  std::uint64_t variable_memory(std::uint64_t bytes) const override {
    return (bytes / kChunkBytes + (bytes % kChunkBytes != 0)) * kChunkBytes;
  }
  std::uint64_t host_bytes(device::Module module) override { return modules_.host_bytes(module); }
  Result<device::Function> find_function(device::Module module, const std::string& name) override;
  Result<device::FunctionInfo> function_info(device::Function function) override;
  Result<std::uint32_t> max_blocks_per_sm(device::Function function,
                                          std::uint32_t threads_per_block,
                                          std::uint32_t dynamic_shared_bytes) override;
  Result<std::uint32_t> max_active_clusters(const device::LaunchSpec& spec) override;
  Result<std::uint32_t> max_cluster_size(const device::LaunchSpec& spec) override;
  Result<void> set_attribute(device::Function function, FunctionAttribute attribute,
                             std::int32_t value) override;
  Result<void> raise_limit(device::Limit limit, std::uint64_t value) override;
  Result<void> set_local_memory(std::uint64_t bytes) override;
  Result<device::AddressRange> find_global(device::Module module, const std::string& name) override;

  Result<device::Array> create_array(const ArraySpec& spec) override;
  void destroy_array(device::Array array) override;
  Result<device::Texture> create_texture(const TextureSpec& spec,
                                         device::AddressRange owner) override;
  void destroy_texture(device::Texture texture) override;
  Result<device::Surface> create_surface(device::Array array, std::uint32_t level,
                                         device::AddressRange owner) override;
  void destroy_surface(device::Surface surface) override;

  Result<std::vector<std::vector<std::uint32_t>>> partition_units() override;
  Result<device::Partition> create_partition(std::uint32_t first_unit,
                                             std::uint32_t unit_count) override;
  /// As in device::Device. Aborts if a stream of the partition was not destroyed.
  void destroy_partition(device::Partition partition) override;

  /// As an H200's.
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
  Result<void> fill(device::Address to, std::uint64_t to_pitch, FillValue value, const Box& box,
                    device::Stream stream) override;

 private:
  SimDevice(const Settings& settings, std::unique_ptr<Memory> memory);

  const Settings settings_;
  const DeviceInfo info_;
  const std::unique_ptr<Memory> memory_;
  Modules modules_;
  Arrays arrays_;
  Partitions partitions_;
  Mutex registered_mutex_;
  std::map<const void*, std::size_t> registered_ SLATE_GUARDED_BY(registered_mutex_);
  std::atomic<std::uint64_t> next_grid_id_{1};
  Streams streams_;  // last: no work is left when the other members go
};

}  // namespace slate::sim
