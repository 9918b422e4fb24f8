// Modules, kernels and the compiler of FakeDevice.
#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "tests/unit/daemon/fake_device.h"

namespace slate::daemon {

using device::Address;

Result<device::Module> FakeDevice::load_module(device::ImageKind kind,
                                               std::span<const std::byte> image) {
  const bool is_ptx = kind == device::ImageKind::kPtx;
  const std::lock_guard lock(mutex_);
  loaded_.push_back((is_ptx ? "ptx:" : "cubin:") +
                    std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  if (!is_ptx && std::exchange(refuses_code_, false)) {
    return fail(ErrorCode::kNoKernelImage, "code for another device");
  }
  if (!image.empty() && image.front() == std::byte{'#'}) throw std::bad_alloc();
  if (image.empty() || image.front() == std::byte{'!'}) {
    return fail(ErrorCode::kInvalidPtx, "bad image");
  }
  modules_.emplace(next_, std::make_unique<std::uint64_t>(0));
  return device::Module{next_++};
}

Result<std::vector<std::byte>> FakeDevice::compile(std::string_view ptx,
                                                   std::chrono::milliseconds) {
  std::unique_lock lock(mutex_);
  if (compiler_.empty()) return fail(ErrorCode::kNotSupported, "no compiler");
  ++compilations_;
  compiler_released_.wait(lock, [this] { return !compiler_held_; });
  if (!ptx.empty() && ptx.front() == '#') throw std::bad_alloc();
  if (ptx.empty() || ptx.front() == '!' || ptx.front() == '?')
    return fail(ErrorCode::kInvalidPtx, "bad text");
  const std::string code = "code:" + std::string(ptx);
  const auto bytes = std::as_bytes(std::span(code));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<std::string> FakeDevice::compiler_identity() const {
  const std::lock_guard lock(mutex_);
  if (compiler_.empty()) return fail(ErrorCode::kNotSupported, "no compiler");
  return compiler_;
}

void FakeDevice::set_compiler(std::string identity) {
  const std::lock_guard lock(mutex_);
  compiler_ = std::move(identity);
}

void FakeDevice::hold_compiler(bool held) {
  const std::lock_guard lock(mutex_);
  compiler_held_ = held;
  compiler_released_.notify_all();
}

std::size_t FakeDevice::compilations() const {
  const std::lock_guard lock(mutex_);
  return compilations_;
}

void FakeDevice::refuse_code() {
  const std::lock_guard lock(mutex_);
  refuses_code_ = true;
}

std::vector<std::string> FakeDevice::loaded() const {
  const std::lock_guard lock(mutex_);
  return loaded_;
}

void FakeDevice::unload_module(device::Module module) {
  const std::lock_guard lock(mutex_);
  SLATE_CHECK(modules_.erase(static_cast<std::uint64_t>(module)) == 1);
}

void FakeDevice::add_kernel(const std::string& name, KernelNeeds needs) {
  const std::lock_guard lock(mutex_);
  kernels_[name] = needs;
}

Result<device::Function> FakeDevice::find_function(device::Module, const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (!kernels_.contains(name)) return fail(ErrorCode::kSymbolNotFound, "no kernel " + name);
  functions_.emplace(next_, name);
  return device::Function{next_++};
}

Result<device::FunctionInfo> FakeDevice::function_info(device::Function function) {
  const std::lock_guard lock(mutex_);
  device::FunctionInfo info;
  info.name = functions_.at(static_cast<std::uint64_t>(function));
  const KernelNeeds& needs = kernels_.at(info.name);
  info.has_clusters = needs.has_clusters;
  info.registers = needs.registers;
  info.local_bytes = needs.local_bytes;
  info.static_shared_bytes = needs.static_shared_bytes;
  info.max_threads_per_block = 1024;
  info.parameters = {{0, 8}};
  return info;
}

Result<std::uint32_t> FakeDevice::max_blocks_per_sm(device::Function function,
                                                    std::uint32_t threads,
                                                    std::uint32_t dynamic_shared_bytes) {
  if (threads == 0 || threads > 1024) {
    return fail(ErrorCode::kInvalidConfiguration, "block too large");
  }
  const std::lock_guard lock(mutex_);
  const KernelNeeds& needs = kernels_.at(functions_.at(static_cast<std::uint64_t>(function)));
  const std::uint32_t by_shared =
      (228u << 10) / (dynamic_shared_bytes + needs.static_shared_bytes + 1024);
  const std::uint32_t blocks = std::min({32u, 2048 / threads, by_shared});
  if (blocks == 0) return fail(ErrorCode::kOutOfResources, "too much shared memory");
  return blocks;
}

Result<void> FakeDevice::raise_limit(device::Limit limit, std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  raised_limit_ = {limit, value};
  return {};
}

Result<void> FakeDevice::set_local_memory(std::uint64_t bytes) {
  if (bytes > most_local_) return fail(ErrorCode::kOutOfMemory, "local memory");
  const Stall stall(*this);
  std::unique_lock lock(mutex_);
  if (const auto hook = before_local_memory_) {
    lock.unlock();
    hook();
    lock.lock();
  }
  local_sizes_.push_back(bytes);
  return {};
}

Result<void> FakeDevice::set_attribute(device::Function function, FunctionAttribute attribute,
                                       std::int32_t value) {
  const std::lock_guard lock(mutex_);
  attributes_.push_back(functions_.at(static_cast<std::uint64_t>(function)) + " " +
                        std::to_string(static_cast<std::uint32_t>(attribute)) + "=" +
                        std::to_string(value));
  return {};
}

std::vector<std::string> FakeDevice::attributes() const {
  const std::lock_guard lock(mutex_);
  return attributes_;
}

Result<TensorMap> FakeDevice::encode_tensor_map(const TensorMapSpec& spec) {
  if (spec.rank == 9) return fail(ErrorCode::kInvalidValue, "a tensor of rank 9");
  TensorMap map;
  std::ranges::fill(map.bytes, std::byte(spec.rank));
  return map;
}

Result<device::AddressRange> FakeDevice::find_global(device::Module module,
                                                     const std::string& name) {
  if (name != "g") return fail(ErrorCode::kSymbolNotFound, "no variable " + name);
  const std::lock_guard lock(mutex_);
  auto* const variable = modules_.at(static_cast<std::uint64_t>(module)).get();
  return device::AddressRange{reinterpret_cast<Address>(variable), sizeof(*variable)};
}

}  // namespace slate::daemon
