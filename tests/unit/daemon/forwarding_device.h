// ForwardingDevice: a Device that passes every call on to another one, for test devices that change
// a few of them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"

namespace slate::daemon {

class ForwardingDevice : public device::Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<device::Device> inner) : inner_(std::move(inner)) {}

  using Device::compile;
  using Device::create_stream;
  const DeviceInfo& info() const override { return inner_->info(); }
  Result<std::uint64_t> free_memory() override { return inner_->free_memory(); }
  std::uint64_t own_bytes() const override { return inner_->own_bytes(); }
  bool lost() const override { return inner_->lost(); }
  Window window_of(std::uint64_t session, std::uint64_t most) const override {
    return inner_->window_of(session, most);
  }
  std::uint64_t granularity() const override { return inner_->granularity(); }
  Result<device::Address> reserve(std::uint64_t bytes) override { return inner_->reserve(bytes); }
  Result<device::Address> reserve_at(std::uint64_t bytes, std::uint64_t align,
                                     device::Address wished) override {
    return inner_->reserve_at(bytes, align, wished);
  }
  void unreserve(device::AddressRange range) override { return inner_->unreserve(range); }
  Result<void> map(device::AddressRange range) override { return inner_->map(range); }
  Result<void> map_on_host(device::AddressRange range) override {
    return inner_->map_on_host(range);
  }
  Result<void> map_again(device::AddressRange range, device::Address mapped) override {
    return inner_->map_again(range, mapped);
  }
  Result<void> unmap(device::AddressRange range) override {
    before_unmap(range);
    return inner_->unmap(range);
  }
  Result<UniqueFd> export_memory(device::AddressRange range) override {
    return inner_->export_memory(range);
  }
  Result<void> map_exported(device::AddressRange range, int memory) override {
    return inner_->map_exported(range, memory);
  }
  Result<void> register_host(void* memory, std::size_t bytes) override {
    return inner_->register_host(memory, bytes);
  }
  void unregister_host(void* memory) override { return inner_->unregister_host(memory); }
  Result<device::Address> map_host(int fd, std::uint64_t bytes, device::Address least) override {
    return inner_->map_host(fd, bytes, least);
  }
  void unmap_host(device::AddressRange range) override {
    before_unmap(range);
    return inner_->unmap_host(range);
  }
  Result<device::Module> load_module(device::ImageKind kind,
                                     std::span<const std::byte> image) override {
    return inner_->load_module(kind, image);
  }
  Result<std::vector<std::byte>> compile(std::string_view ptx,
                                         std::chrono::milliseconds most_cpu) override {
    return inner_->compile(ptx, most_cpu);
  }
  Result<std::string> compiler_identity() const override { return inner_->compiler_identity(); }
  Result<void> can_link() const override { return inner_->can_link(); }
  Result<std::vector<std::byte>> link(std::span<const std::string> ptx,
                                      std::chrono::milliseconds most_cpu) override {
    return inner_->link(ptx, most_cpu);
  }
  void unload_module(device::Module module) override { return inner_->unload_module(module); }
  std::uint64_t variable_memory(std::uint64_t bytes) const override {
    return inner_->variable_memory(bytes);
  }
  std::uint64_t host_bytes(device::Module module) override { return inner_->host_bytes(module); }
  Result<device::Function> find_function(device::Module module, const std::string& name) override {
    return inner_->find_function(module, name);
  }
  Result<device::FunctionInfo> function_info(device::Function function) override {
    return inner_->function_info(function);
  }
  Result<std::uint32_t> max_blocks_per_sm(device::Function function,
                                          std::uint32_t threads_per_block,
                                          std::uint32_t dynamic_shared_bytes) override {
    return inner_->max_blocks_per_sm(function, threads_per_block, dynamic_shared_bytes);
  }
  Result<std::uint32_t> max_active_clusters(const device::LaunchSpec& spec) override {
    return inner_->max_active_clusters(spec);
  }
  Result<std::uint32_t> max_cluster_size(const device::LaunchSpec& spec) override {
    return inner_->max_cluster_size(spec);
  }
  Result<void> set_attribute(device::Function function, FunctionAttribute attribute,
                             std::int32_t value) override {
    return inner_->set_attribute(function, attribute, value);
  }
  Result<device::AddressRange> find_global(device::Module module,
                                           const std::string& name) override {
    return inner_->find_global(module, name);
  }
  Result<void> raise_limit(device::Limit limit, std::uint64_t value) override {
    return inner_->raise_limit(limit, value);
  }
  Result<void> set_local_memory(std::uint64_t bytes) override {
    return inner_->set_local_memory(bytes);
  }
  Result<device::Array> create_array(const ArraySpec& spec) override {
    return inner_->create_array(spec);
  }
  void destroy_array(device::Array array) override { return inner_->destroy_array(array); }
  Result<device::Texture> create_texture(const TextureSpec& spec,
                                         device::AddressRange owner) override {
    return inner_->create_texture(spec, owner);
  }
  void destroy_texture(device::Texture texture) override {
    return inner_->destroy_texture(texture);
  }
  Result<device::Surface> create_surface(device::Array array, std::uint32_t level,
                                         device::AddressRange owner) override {
    return inner_->create_surface(array, level, owner);
  }
  void destroy_surface(device::Surface surface) override {
    return inner_->destroy_surface(surface);
  }
  Result<TensorMap> encode_tensor_map(const TensorMapSpec& spec) override {
    return inner_->encode_tensor_map(spec);
  }
  Result<std::vector<std::vector<std::uint32_t>>> partition_units() override {
    return inner_->partition_units();
  }
  Result<device::Partition> create_partition(std::uint32_t first_unit,
                                             std::uint32_t unit_count) override {
    return inner_->create_partition(first_unit, unit_count);
  }
  void destroy_partition(device::Partition partition) override {
    return inner_->destroy_partition(partition);
  }
  std::pair<int, int> stream_priorities() const override { return inner_->stream_priorities(); }
  Result<device::Stream> create_stream(int priority, device::Partition partition) override {
    return inner_->create_stream(priority, partition);
  }
  void destroy_stream(device::Stream stream) override { return inner_->destroy_stream(stream); }
  Result<void> cancel(device::Stream stream) override { return inner_->cancel(stream); }
  Result<device::Event> create_event(bool timing) override { return inner_->create_event(timing); }
  Result<device::Event> create_watched_event() override { return inner_->create_watched_event(); }
  void destroy_event(device::Event event) override { return inner_->destroy_event(event); }
  Result<void> record(device::Event event, device::Stream stream) override {
    return inner_->record(event, stream);
  }
  Result<void> wait(device::Stream stream, device::Event event) override {
    return inner_->wait(stream, event);
  }
  Result<bool> query(device::Event event) override { return inner_->query(event); }
  Result<float> elapsed_ms(device::Event start, device::Event stop) override {
    return inner_->elapsed_ms(start, stop);
  }
  void wait_for_progress(std::chrono::microseconds timeout) override {
    return inner_->wait_for_progress(timeout);
  }
  Result<void> launch(const device::LaunchSpec& spec, device::Stream stream) override {
    return inner_->launch(spec, stream);
  }
  Result<void> launch_row(std::span<const device::LaunchSpec> specs,
                          device::Stream stream) override {
    return inner_->launch_row(specs, stream);
  }
  Result<void> copy(const Place& to, const Place& from, const Box& box,
                    device::Stream stream) override {
    return inner_->copy(to, from, box, stream);
  }
  Result<void> fill(device::Address to, std::uint64_t to_pitch, FillValue value, const Box& box,
                    device::Stream stream) override {
    return inner_->fill(to, to_pitch, value, box, stream);
  }

 protected:
  const std::unique_ptr<device::Device> inner_;
};

}  // namespace slate::daemon
