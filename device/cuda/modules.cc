#include "device/cuda/modules.h"

#include <array>
#include <utility>

#include "device/cuda/image.h"

namespace slate::cuda {
namespace {

/// The log on one line: an Error's message is one sentence.
std::string flatten(const char* log) {
  std::string text;
  for (const char* at = log; *at != '\0'; ++at) {
    if (*at != '\n' && *at != '\r') {
      text += *at;
    } else if (!text.empty() && text.back() != ' ') {
      text += "; ";
    }
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == ';')) text.pop_back();
  return text;
}

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

  std::array<char, 8192> log{};
  std::array options = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                        CU_JIT_TARGET_FROM_CUCONTEXT};
  std::array<void*, options.size()> values = {
      log.data(), reinterpret_cast<void*>(std::uintptr_t{log.size() - 1}), nullptr};
  // A cubin is not compiled: only the log applies to it.
  const unsigned int count = kind == device::ImageKind::kPtx ? 3 : 2;

  const Entry<decltype(::cuModuleLoadDataEx)>& load = context.driver().cuModuleLoadDataEx;
  CUmodule module = nullptr;
  const CUresult result =
      context.attempt(load, &module, checked->data(), count, options.data(), values.data());
  if (result == CUDA_SUCCESS) return module;
  Error error = context.failure(result, load.name);
  if (result == CUDA_ERROR_INVALID_IMAGE && kind == device::ImageKind::kPtx) {
    error.code = ErrorCode::kInvalidPtx;
  }
  log.back() = '\0';
  if (const std::string words = flatten(log.data()); !words.empty()) error.message += ": " + words;
  return std::unexpected<Error>(std::move(error));
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
  auto parameters = parameters_of(context, function);
  if (!parameters) return std::unexpected(parameters.error());
  info.parameters = std::move(*parameters);
  return info;
}

Result<void> set_max_dynamic_shared(Context& context, CUfunction function, std::uint32_t bytes) {
  if (bytes > INT32_MAX) {
    return fail(ErrorCode::kInvalidValue,
                std::to_string(bytes) + " bytes of dynamic shared memory: no device has that much");
  }
  return context.call(context.driver().cuFuncSetAttribute, function,
                      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes));
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
