// CudaDevice: device::Device on the driver API. Private to device/cuda and its tests; other code
// uses cuda_device.h. cuda_device.cc has its life, modules, streams and events, work.cc its
// launches, copies and fills.
// Handles are the driver's own pointers, and are not looked up: the engine owns them. Only stream
// handles point to a CudaStream.
// Thread: any, as for device::Device.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/mutex.h"
#include "device/cuda/arrays.h"
#include "device/cuda/context.h"
#include "device/cuda/launch_graphs.h"
#include "device/cuda/memory.h"
#include "device/cuda/partitions.h"
#include "device/cuda/ptxas.h"
#include "device/cuda/tensor_maps.h"
#include "device/cuda/watched_events.h"
#include "device/device.h"

namespace slate::cuda {

/// What a device::Stream points to.
struct CudaStream {
  CUstream stream = nullptr;
  int priority = 0;
  std::unique_ptr<StreamGraphs> graphs;  // null: launches are made one by one
};

class CudaDevice final : public device::Device {
 public:
  /// Requires: `driver` has been initialised. `assembler`: path of a ptxas; empty: searched for.
  /// Errors: as open_cuda_device().
  static Result<std::unique_ptr<device::Device>> open(const Driver& driver, int ordinal,
                                                      const device::OpenSettings& settings = {});

  const DeviceInfo& info() const override { return context_->info(); }
  Result<std::uint64_t> free_memory() override;
  std::uint64_t own_bytes() const override { return context_->own_bytes(); }
  Window window_of(std::uint64_t session, std::uint64_t most) const override;
  bool stops_when_lost() const override { return true; }
  bool lost() const override { return context_->lost(); }

  std::uint64_t granularity() const override { return space_->granularity(); }
  Result<device::Address> reserve(std::uint64_t bytes) override { return space_->reserve(bytes); }
  Result<device::Address> reserve_at(std::uint64_t bytes, std::uint64_t align,
                                     device::Address wished) override {
    return space_->reserve(bytes, align, wished);
  }
  void unreserve(device::AddressRange range) override { space_->unreserve(range); }
  Result<void> map(device::AddressRange range) override;
  Result<void> map_on_host(device::AddressRange range) override {
    return space_->map_on_host(range);
  }
  Result<void> map_again(device::AddressRange range, device::Address mapped) override {
    return space_->map_again(range, mapped);
  }
  Result<UniqueFd> export_memory(device::AddressRange range) override {
    return space_->export_memory(range);
  }
  Result<void> map_exported(device::AddressRange range, int memory) override {
    return space_->map_exported(range, memory);
  }
  Result<void> unmap(device::AddressRange range) override {
    before_unmap(range);
    return space_->unmap(range);
  }
  Result<void> register_host(void* memory, std::size_t bytes) override;
  void unregister_host(void* memory) override;
  Result<device::Address> map_host(int fd, std::uint64_t bytes, device::Address least) override;
  void unmap_host(device::AddressRange range) override;

  Result<device::Module> load_module(device::ImageKind kind,
                                     std::span<const std::byte> image) override;
  using Device::compile;
  Result<std::vector<std::byte>> compile(std::string_view ptx,
                                         std::chrono::milliseconds most_cpu) override;
  Result<std::string> compiler_identity() const override { return assembler_.identity(); }
  Result<void> can_link() const override { return assembler_.can_link(); }
  Result<std::vector<std::byte>> link(std::span<const std::string> ptx,
                                      std::chrono::milliseconds most_cpu) override {
    return assembler_.link(ptx, most_cpu);
  }
  void unload_module(device::Module module) override;
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

  Result<device::Array> create_array(const ArraySpec& spec) override {
    const Stall stall(*this);
    return arrays_.create(spec);
  }
  void destroy_array(device::Array array) override { arrays_.destroy(array); }
  Result<device::Texture> create_texture(const TextureSpec& spec, device::AddressRange) override {
    return arrays_.create_texture(spec);
  }
  void destroy_texture(device::Texture texture) override { arrays_.destroy_texture(texture); }
  Result<device::Surface> create_surface(device::Array array, std::uint32_t level,
                                         device::AddressRange) override {
    return arrays_.create_surface(array, level);
  }
  void destroy_surface(device::Surface surface) override { arrays_.destroy_surface(surface); }

  Result<TensorMap> encode_tensor_map(const TensorMapSpec& spec) override {
    return cuda::encode_tensor_map(*context_, spec);
  }

  Result<std::vector<std::vector<std::uint32_t>>> partition_units() override;
  Result<device::Partition> create_partition(std::uint32_t first_unit,
                                             std::uint32_t unit_count) override;
  void destroy_partition(device::Partition partition) override;

  std::pair<int, int> stream_priorities() const override;
  using Device::create_stream;
  Result<device::Stream> create_stream(int priority, device::Partition partition) override;
  void destroy_stream(device::Stream stream) override;
  Result<void> cancel(device::Stream stream) override;
  Result<device::Event> create_event(bool timing) override;
  Result<device::Event> create_watched_event() override;
  void destroy_event(device::Event event) override;
  Result<void> record(device::Event event, device::Stream stream) override;
  Result<void> wait(device::Stream stream, device::Event event) override;
  Result<bool> query(device::Event event) override;
  Result<float> elapsed_ms(device::Event start, device::Event stop) override;
  void wait_for_progress(std::chrono::microseconds timeout) override;

  Result<void> launch(const device::LaunchSpec& spec, device::Stream stream) override;
  Result<void> launch_row(std::span<const device::LaunchSpec> specs,
                          device::Stream stream) override;
  /// As in device::Device; the driver may copy from pageable host memory before it returns.
  Result<void> copy(const Place& to, const Place& from, const Box& box,
                    device::Stream stream) override;
  Result<void> fill(device::Address to, std::uint64_t to_pitch, FillValue value, const Box& box,
                    device::Stream stream) override;

 private:
  CudaDevice(std::unique_ptr<Context> context, std::unique_ptr<AddressSpace> space,
             const std::string& assembler);

  const Driver& driver() const { return context_->driver(); }
  /// Notes that work moves, for wait_for_progress(): it was given to the device, or has ended.
  void moved() { moved_ns_.store(now_ns(), std::memory_order_relaxed); }
  /// Records an event on a partition's stream where the driver refuses to record it plainly.
  Result<void> record_on_partition(device::Event event, device::Stream stream, CUresult refusal);
  std::uint64_t max_pitch() const;
  /// Errors: kInvalidConfiguration for a grid or block beyond the device's limits.
  Result<void> check_configuration(const device::LaunchSpec& spec) const;
  /// Launches without a graph.
  Result<void> launch_plain(const device::LaunchSpec& spec, device::Stream stream);
  /// The handle of a new stream.
  device::Stream keep(CUstream stream, int priority, std::unique_ptr<StreamGraphs> graphs);
  CUresult launch_extended(const device::LaunchSpec& spec, device::Stream stream, void** extra);
  Result<void> copy_line(const Place& to, const Place& from, std::uint64_t bytes,
                         device::Stream stream);
  Result<void> copy_plane(const Place& to, const Place& from, const Box& box,
                          device::Stream stream);

  std::unique_ptr<Context> context_;
  // All of these use context_, so they are declared behind it.
  std::unique_ptr<AddressSpace> space_;
  Arrays arrays_;
  Partitions partitions_;
  WatchedEvents watched_;
  LaunchGraphs graphs_;
  const Ptxas assembler_;

  std::atomic<std::int64_t> moved_ns_ = 0;  // time of the last moved(), by now_ns()
  /// Bytes of addresses that map_host() has given out.
  std::atomic<std::uint64_t> host_window_used_ = 0;
  Mutex limits_mutex_;  // held from reading a limit to raising it
  Mutex streams_mutex_;
  std::unordered_map<device::Stream, std::unique_ptr<CudaStream>> streams_
      SLATE_GUARDED_BY(streams_mutex_);
};

/// The handle of a driver's object.
template <typename Handle>
Handle to_handle(const void* driver_object) {
  return static_cast<Handle>(reinterpret_cast<std::uintptr_t>(driver_object));
}
/// What a stream's handle points to.
inline CudaStream& state(device::Stream stream) {
  return *reinterpret_cast<CudaStream*>(stream);
}
inline CUstream raw(device::Stream stream) {
  return state(stream).stream;
}
inline CUevent raw(device::Event event) {
  return reinterpret_cast<CUevent>(event);
}
inline CUgreenCtx raw(device::Partition partition) {
  return reinterpret_cast<CUgreenCtx>(partition);
}
inline CUmodule raw(device::Module module) {
  return reinterpret_cast<CUmodule>(module);
}
inline CUfunction raw(device::Function function) {
  return reinterpret_cast<CUfunction>(function);
}

}  // namespace slate::cuda
