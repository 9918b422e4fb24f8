#include "device/cuda/modules.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "device/cuda/image.h"
#include "device/cuda/one_line.h"

namespace slate::cuda {
namespace {

/// The options of one compilation and the assembler's words about it.
class JitLog {
 public:
  JitLog() = default;
  JitLog(const JitLog&) = delete;  // values_ points into it
  JitLog& operator=(const JitLog&) = delete;

  CUjit_option* options() { return options_.data(); }
  void** values() { return values_.data(); }

  /// `error`, with the words behind it.
  Error error(Error error, device::ImageKind kind, CUresult result) {
    if (result == CUDA_ERROR_INVALID_IMAGE && kind == device::ImageKind::kPtx) {
      error.code = ErrorCode::kInvalidPtx;
    }
    text_.back() = '\0';
    if (const std::string words = one_line(text_.data()); !words.empty()) {
      error.message += ": " + words;
    }
    return error;
  }

 private:
  std::array<char, 8192> text_{};
  std::array<CUjit_option, 3> options_ = {
      CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_TARGET_FROM_CUCONTEXT};
  std::array<void*, 3> values_ = {
      text_.data(), reinterpret_cast<void*>(std::uintptr_t{text_.size() - 1}), nullptr};
};

/// As find_function and find_global report a name that is not there.
std::unexpected<Error> with_name(Error error, const std::string& name) {
  error.message = "'" + name + "': " + error.message;
  return std::unexpected<Error>(std::move(error));
}

Result<std::uint32_t> attribute(Context& context, CUfunction function, CUfunction_attribute which) {
  int value = 0;
  if (auto got = context.call(context.driver().cuFuncGetAttribute, &value, which, function); !got) {
    return std::unexpected(got.error());
  }
  return static_cast<std::uint32_t>(value);
}

/// A driver that does not know of clusters has none.
void fill_clusters(Context& context, CUfunction function, device::FunctionInfo& info) {
  const auto value = [&](CUfunction_attribute which) {
    int its = 0;
    context.attempt(context.driver().cuFuncGetAttribute, &its, which, function);
    return its > 0 ? static_cast<std::uint32_t>(its) : 0;
  };
  info.needs_cluster = value(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) != 0;
  info.cluster = {value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
                  value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
                  value(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)};
  info.has_clusters = info.cluster[0] > 0;
  info.non_portable_clusters = value(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) != 0;
  info.cluster_scheduling = value(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
}

Result<std::vector<device::ParameterInfo>> parameters_of(Context& context, CUfunction function) {
  std::vector<device::ParameterInfo> parameters;
  for (;;) {
    std::size_t offset = 0;
    std::size_t size = 0;
    const Entry<decltype(::cuFuncGetParamInfo)>& get = context.driver().cuFuncGetParamInfo;
    const CUresult result = context.attempt(get, function, parameters.size(), &offset, &size);
    if (result == CUDA_ERROR_INVALID_VALUE) return parameters;  // one past the last
    if (result != CUDA_SUCCESS) return std::unexpected<Error>(context.failure(result, get.name));
    parameters.push_back(
        {.offset = static_cast<std::uint32_t>(offset), .size = static_cast<std::uint32_t>(size)});
  }
}

}  // namespace

Result<CUmodule> load_module(Context& context, device::ImageKind kind,
                             std::span<const std::byte> image) {
  const Result<std::string> checked = checked_image(kind, image);
  if (!checked) return std::unexpected(checked.error());

  JitLog log;
  // A cubin is not compiled: only the log applies to it.
  const unsigned int count = kind == device::ImageKind::kPtx ? 3 : 2;
  const Entry<decltype(::cuModuleLoadDataEx)>& load = context.driver().cuModuleLoadDataEx;
  CUmodule module = nullptr;
  const CUresult result =
      context.attempt(load, &module, checked->data(), count, log.options(), log.values());
  if (result == CUDA_SUCCESS) return module;
  return std::unexpected<Error>(log.error(context.failure(result, load.name), kind, result));
}

Result<CUfunction> find_function(Context& context, CUmodule module, const std::string& name) {
  const Driver& driver = context.driver();
  CUfunction function = nullptr;
  auto found = context.call(driver.cuModuleGetFunction, &function, module, name.c_str());
  // The driver loads lazily, and loading may wait for running kernels: here, on the thread that
  // asks, and not in the first launch, where every other session would wait too.
  if (found) found = context.call(driver.cuFuncLoad, function);
  if (!found) return with_name(found.error(), name);
  return function;
}

Result<device::FunctionInfo> function_info(Context& context, CUfunction function) {
  device::FunctionInfo info;
  const char* name = nullptr;
  if (auto got = context.call(context.driver().cuFuncGetName, &name, function); !got) {
    return std::unexpected(got.error());
  }
  info.name = name;
  const std::pair<CUfunction_attribute, std::uint32_t*> wanted[] = {
      {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &info.max_threads_per_block},
      {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &info.static_shared_bytes},
      {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &info.max_dynamic_shared_bytes},
      {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &info.constant_bytes},
      {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &info.local_bytes},
      {CU_FUNC_ATTRIBUTE_NUM_REGS, &info.registers},
      {CU_FUNC_ATTRIBUTE_PTX_VERSION, &info.ptx_version},
      {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &info.binary_version},
  };
  for (const auto& [which, where] : wanted) {
    const Result<std::uint32_t> value = attribute(context, function, which);
    if (!value) return std::unexpected(value.error());
    *where = *value;
  }
  fill_clusters(context, function, info);
  auto parameters = parameters_of(context, function);
  if (!parameters) return std::unexpected(parameters.error());
  info.parameters = std::move(*parameters);
  return info;
}

Result<std::uint32_t> max_blocks_per_sm(Context& context, CUfunction function,
                                        std::uint32_t threads_per_block,
                                        std::uint32_t dynamic_shared_bytes) {
  const int most = context.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  if (threads_per_block == 0 || threads_per_block > static_cast<std::uint32_t>(most)) {
    return fail(ErrorCode::kInvalidConfiguration,
                fmt::format("a block of {} threads: 1 to {} are allowed", threads_per_block, most));
  }
  int blocks = 0;
  auto got = context.call(context.driver().cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks,
                          function, static_cast<int>(threads_per_block), dynamic_shared_bytes);
  if (!got) return std::unexpected(got.error());
  if (blocks <= 0) {
    return fail(ErrorCode::kOutOfResources,
                fmt::format("no block of {} threads with {} bytes of dynamic shared memory fits on "
                            "an SM",
                            threads_per_block, dynamic_shared_bytes));
  }
  return static_cast<std::uint32_t>(blocks);
}

Result<void> set_attribute(Context& context, CUfunction function, FunctionAttribute attribute,
                           std::int32_t value) {
  switch (attribute) {
    case FunctionAttribute::kMaxDynamicShared:
    case FunctionAttribute::kCarveout:
    case FunctionAttribute::kNonPortableClusters:
    case FunctionAttribute::kClusterScheduling:
      return context.call(context.driver().cuFuncSetAttribute, function,
                          static_cast<CUfunction_attribute>(attribute), value);
    case FunctionAttribute::kClusterWidth:
    case FunctionAttribute::kClusterHeight:
    case FunctionAttribute::kClusterDepth:
      break;
  }
  return fail(ErrorCode::kInvalidValue, "an attribute that cannot be set of a kernel");
}

Result<device::AddressRange> find_global(Context& context, CUmodule module,
                                         const std::string& name) {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  if (auto found =
          context.call(context.driver().cuModuleGetGlobal, &base, &bytes, module, name.c_str());
      !found) {
    return with_name(found.error(), name);
  }
  return device::AddressRange{.base = base, .bytes = bytes};
}

}  // namespace slate::cuda
