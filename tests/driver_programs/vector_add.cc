// Adds vectors by PTX that it brings as text: with a log of the compilation, with arguments one by
// one and packed, from a module and from a library. Broken text leaves its complaint in the log.
#include <cstddef>
#include <cstring>
#include <vector>

#include "check.h"

namespace {

constexpr char kPtx[] = R"(
.version 7.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 launches;
.visible .const .align 4 .f32 factor = 0f40000000;

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 sum, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [sum];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd4, %rd1;
  cvta.to.global.u64 %rd5, %rd2;
  cvta.to.global.u64 %rd6, %rd3;
  mul.wide.u32 %rd7, %r5, 4;
  add.s64 %rd8, %rd4, %rd7;
  add.s64 %rd9, %rd5, %rd7;
  add.s64 %rd10, %rd6, %rd7;
  ld.global.f32 %f1, [%rd8];
  ld.global.f32 %f2, [%rd9];
  ld.const.f32 %f3, [factor];
  fma.rn.f32 %f4, %f1, %f3, %f2;
  st.global.f32 [%rd10], %f4;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra DONE;
  atom.global.add.u32 %r1, [launches], 1;
DONE:
  ret;
}
)";
constexpr char kBroken[] = ".version 7.0\n.target sm_75\n.address_size 64\n.entry broken( {\n";

constexpr unsigned kCount = 10'000, kBlock = 256;
constexpr std::size_t kBytes = kCount * sizeof(float);

void compile_broken() {
  std::vector<char> log(8192);
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  CUmodule module = nullptr;
  const CUresult result = cuModuleLoadDataEx(&module, kBroken, 2, options, values);
  const bool has_line = std::strstr(log.data(), "line") != nullptr;
  std::printf("broken text: %s, the log %s a line\n",
              result == CUDA_ERROR_INVALID_PTX ? "invalid" : "something else",
              has_line ? "names" : "does not name");
}

CUmodule compile() {
  std::vector<char> info(8192), error(8192);
  CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_LOG_VERBOSE,      CU_JIT_MAX_REGISTERS};
  void* values[] = {info.data(),  reinterpret_cast<void*>(info.size()),
                    error.data(), reinterpret_cast<void*>(error.size()),
                    nullptr,      reinterpret_cast<void*>(std::size_t{32})};
  CUmodule module = nullptr;
  CHECK(cuModuleLoadDataEx(&module, kPtx, 6, options, values));
  std::printf("compiled, %zu bytes of errors\n", std::strlen(error.data()));
  return module;
}

class Vectors {
 public:
  Vectors() {
    std::vector<float> host(kCount);
    for (CUdeviceptr* each : {&a_, &b_, &sum_}) CHECK(cuMemAlloc(each, kBytes));
    for (unsigned i = 0; i < kCount; ++i) host[i] = static_cast<float>(i);
    CHECK(cuMemcpyHtoD(a_, host.data(), kBytes));
    for (float& each : host) each = 5;
    CHECK(cuMemcpyHtoD(b_, host.data(), kBytes));
  }
  ~Vectors() {
    for (const CUdeviceptr each : {a_, b_, sum_}) CHECK(cuMemFree(each));
  }
  Vectors(const Vectors&) = delete;
  Vectors& operator=(const Vectors&) = delete;

  void add(CUfunction function) {
    CHECK(cuMemsetD32(sum_, 0xffffffff, kCount));
    unsigned count = kCount;
    void* arguments[] = {&a_, &b_, &sum_, &count};
    CHECK(cuLaunchKernel(function, (kCount + kBlock - 1) / kBlock, 1, 1, kBlock, 1, 1, 0, nullptr,
                         arguments, nullptr));
  }
  void add_packed(CUfunction function) {
    CHECK(cuMemsetD32(sum_, 0xffffffff, kCount));
    struct {
      CUdeviceptr a, b, sum;
      unsigned count;
    } packed{a_, b_, sum_, kCount};
    std::size_t bytes = offsetof(decltype(packed), count) + sizeof(packed.count);  // no padding
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel(function, (kCount + kBlock - 1) / kBlock, 1, 1, kBlock, 1, 1, 0, nullptr,
                         nullptr, extra));
  }
  void print(const char* what, float factor) {
    std::vector<float> host(kCount);
    CHECK(cuMemcpyDtoH(host.data(), sum_, kBytes));
    unsigned wrong = 0;
    for (unsigned i = 0; i < kCount; ++i) wrong += host[i] != static_cast<float>(i) * factor + 5;
    std::printf("%s: %u wrong, the last is %.0f\n", what, wrong, host.back());
  }

 private:
  CUdeviceptr a_ = 0, b_ = 0, sum_ = 0;
};

void use_module(Vectors& vectors) {
  const CUmodule module = compile();
  CUfunction add = nullptr;
  CUdeviceptr factor = 0, launches = 0;
  std::size_t bytes = 0;
  CHECK(cuModuleGetFunction(&add, module, "add"));
  vectors.add(add);
  vectors.print("one by one", 2);
  vectors.add_packed(add);
  vectors.print("packed", 2);
  CHECK(cuModuleGetGlobal(&factor, &bytes, module, "factor"));
  const float half = 0.5;
  CHECK(cuMemcpyHtoD(factor, &half, bytes));
  vectors.add(add);
  vectors.print("with another factor", 0.5);
  CHECK(cuModuleGetGlobal(&launches, &bytes, module, "launches"));
  unsigned count = 0;
  CHECK(cuMemcpyDtoH(&count, launches, bytes));
  std::printf("%u launches\n", count);
  CHECK(cuModuleUnload(module));
}

void use_library(Vectors& vectors) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  unsigned count = 0;
  CHECK(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CHECK(cuLibraryGetKernelCount(&count, library));
  CHECK(cuLibraryGetKernel(&kernel, library, "add"));
  CHECK(cuKernelGetFunction(&function, kernel));
  const char* name = nullptr;
  CHECK(cuFuncGetName(&name, function));
  std::printf("library of %u: %s\n", count, name);
  vectors.add(reinterpret_cast<CUfunction>(kernel));
  vectors.print("as a kernel", 2);
  vectors.add(function);
  vectors.print("as a function", 2);
  CHECK(cuLibraryUnload(library));
}

}  // namespace

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuCtxCreate(&context, nullptr, 0, device));
  compile_broken();
  {
    Vectors vectors;
    use_module(vectors);
    use_library(vectors);
  }
  CHECK(cuCtxDestroy(context));
  return 0;
}
