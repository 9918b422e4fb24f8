// What slate.h promises, against a real slated: one case a run, named by the first argument. Says
// what went wrong and returns 1. C++17, as the least that the header asks for.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/slate.h"

namespace {

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  std::exit(1);
}
#define EXPECT(condition) expect(condition, #condition)

void expect(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::printf("cudart: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

constexpr int kCount = 1000;

struct Buffer {
  Buffer() {
    expect(cudaMalloc(reinterpret_cast<void**>(&data), kCount * sizeof(int)));
    expect(cudaMemset(data, 0, kCount * sizeof(int)));
  }
  ~Buffer() { cudaFree(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::vector<int> read() const {
    std::vector<int> values(kCount);
    expect(cudaMemcpy(values.data(), data, kCount * sizeof(int), cudaMemcpyDeviceToHost));
    return values;
  }
  int* data = nullptr;
};

// out[i] = i + step.
constexpr const char* kPtx = R"(
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 base = 5;
.visible .entry number(.param .u64 out, .param .u32 step, .param .u32 count) {
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [count];
  setp.ge.u32 %p, %r4, %r5;
  @%p bra DONE;
  ld.param.u64 %d1, [out];
  cvta.to.global.u64 %d2, %d1;
  mul.wide.u32 %d3, %r4, 4;
  add.u64 %d2, %d2, %d3;
  ld.param.u32 %r6, [step];
  ld.global.u32 %r7, [base];
  add.u32 %r6, %r6, %r7;
  add.u32 %r6, %r6, %r4;
  st.global.u32 [%d2], %r6;
DONE:
  ret;
}
)";

void ptx_module() {
  const slate::Module module = slate::Module::from_ptx(kPtx);
  const slate::Kernel number = module.kernel("number");
  EXPECT((number.parameter_sizes() == std::vector<std::size_t>{8, 4, 4}));
  EXPECT(number.info().registers > 0);
  EXPECT(number.info().max_threads_per_block >= 256);
  const Buffer buffer;
  number.launch({4}, {256}, nullptr, buffer.data, 100, kCount);
  const std::vector<int> values = buffer.read();
  for (int i = 0; i < kCount; ++i) EXPECT(values[i] == i + 105);
}

void broken_ptx() {
  slate_module* module = nullptr;
  const std::string ptx = std::string(kPtx) + ".visible .entry bad(.param .u64 {\n";
  const slate_status status = slate_module_load_ptx(&module, ptx.data(), ptx.size());
  EXPECT(status == SLATE_ERROR_INVALID_PTX);
  EXPECT(module == nullptr);
  EXPECT(slate_last_message()[0] != '\0');
}

constexpr const char* kTemplates = R"(#include <cstdio>
template <typename T>
__global__ void scale(T* values, T factor, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * factor + T(i);
}
template __global__ void scale<int>(int*, int, int);

__device__ int calls = 3;
__global__ void count_calls() { atomicAdd(&calls, 1); }

extern __shared__ int tile[];
__global__ void reverse(int* values) {
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  values[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

int main() {
  std::puts("host code is ignored");
  return 0;
}
)";

slate::Module templates() {
  slate::SourceOptions options;
  options.instances = {"scale<float>", "scale< unsigned long >"};
  return slate::Module::from_source(kTemplates, options);
}

void source_module() {
  const slate::Module module = templates();
  const Buffer buffer;
  const slate::Kernel whole = module.kernel("scale<int>");
  whole.launch({8}, {128}, nullptr, buffer.data, 7, kCount);
  whole.launch({8}, {128}, nullptr, buffer.data, 7, kCount);
  std::vector<int> values = buffer.read();
  for (int i = 0; i < kCount; ++i) EXPECT(values[i] == i * 7 + i);
  EXPECT(module.kernel("scale<float>").name() != whole.name());
  EXPECT(module.kernel(whole.name()).get() == whole.get());
  EXPECT(module.kernel("scale<unsigned long>").parameter_sizes()[1] == sizeof(unsigned long));

  const slate::Kernel reverse = module.kernel("reverse");
  const std::size_t large = 100 * 1024;
  bool refused = false;
  try {
    reverse.launch_with_shared(large, {1}, {256}, nullptr, buffer.data);
  } catch (const slate::Error& error) {
    refused = error.status() == SLATE_ERROR_INVALID_VALUE;
  }
  EXPECT(refused);
  reverse.set_max_dynamic_shared(large);
  reverse.launch_with_shared(large, {1}, {256}, nullptr, buffer.data);
  values = buffer.read();
  for (int i = 0; i < 256; ++i) EXPECT(values[i] == 255 - i);
}

void syntax_error() {
  const std::string source =
      "__global__ void good(int* p) { *p = 1; }\n"
      "int host() { return 2; }\n"
      "__global__ void bad(int* p) {\n"
      "  *p = undeclared_thing;\n"
      "}\n";
  slate::SourceOptions options;
  options.name = "mine.cu";
  try {
    slate::Module::from_source(source, options);
    std::printf("it compiled\n");
  } catch (const slate::Error& error) {
    EXPECT(error.status() == SLATE_ERROR_INVALID_SOURCE);
    std::printf("%s\n", error.what());
  }
}

void argument_count() {
  const slate::Module module = slate::Module::from_ptx(kPtx);
  const slate::Kernel number = module.kernel("number");
  const Buffer buffer;
  void* pointer = buffer.data;
  void* arguments[] = {&pointer, &pointer};
  const slate_status status =
      slate_kernel_launch(number.get(), {1, 1, 1}, {32, 1, 1}, 0, nullptr, arguments, 2);
  EXPECT(status == SLATE_ERROR_INVALID_VALUE);
  std::printf("%s\n", slate_last_message());
  try {
    number.launch({1}, {32}, nullptr, buffer.data, 1.0, kCount);
  } catch (const slate::Error& error) {
    std::printf("%s\n", error.what());
  }
  for (const int value : buffer.read()) EXPECT(value == 0);
}

void created_stream() {
  const slate::Module module = templates();
  const slate::Kernel scale = module.kernel("scale<int>");
  cudaStream_t stream = nullptr;
  expect(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const Buffer buffer;
  expect(cudaDeviceSynchronize());
  for (int i = 0; i < 10; ++i) scale.launch({8}, {128}, stream, buffer.data, 1, kCount);
  expect(cudaStreamSynchronize(stream));
  const std::vector<int> values = buffer.read();
  for (int i = 0; i < kCount; ++i) EXPECT(values[i] == 10 * i);
  expect(cudaStreamDestroy(stream));
}

void global_variable() {
  const slate::Module module = templates();
  const slate::Global calls = module.global("calls");
  EXPECT(calls.bytes == sizeof(int));
  int value = 0;
  expect(cudaMemcpy(&value, calls.address, sizeof(value), cudaMemcpyDeviceToHost));
  EXPECT(value == 3);
  value = 10;
  expect(cudaMemcpy(calls.address, &value, sizeof(value), cudaMemcpyHostToDevice));
  module.kernel("count_calls").launch({2}, {32}, nullptr);
  expect(cudaMemcpy(&value, calls.address, sizeof(value), cudaMemcpyDeviceToHost));
  EXPECT(value == 74);
}

void unload_while_queued() {
  const Buffer buffer;
  const int rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    const slate::Module module = templates();
    const slate::Kernel scale = module.kernel("scale<int>");
    scale.launch({8}, {128}, nullptr, buffer.data, 1, kCount);
  }
  const std::vector<int> values = buffer.read();
  for (int i = 0; i < kCount; ++i) EXPECT(values[i] == rounds * i);
}

/// The file is the second argument.
void file(const char* path) {
  const slate::Module module = slate::Module::from_file(path);
  const Buffer buffer;
  module.kernel("number").launch({4}, {256}, nullptr, buffer.data, 100, kCount);
  std::printf("%d\n", buffer.read()[7]);
}

}  // namespace

int main(int count, char** words) {
  const std::map<std::string, std::function<void()>> cases{
      {"ptx_module", ptx_module},           {"broken_ptx", broken_ptx},
      {"source_module", source_module},     {"syntax_error", syntax_error},
      {"argument_count", argument_count},   {"created_stream", created_stream},
      {"global_variable", global_variable}, {"unload_while_queued", unload_while_queued},
      {"file", [&] { file(words[2]); }}};
  const auto found = cases.find(count > 1 ? words[1] : "");
  if (found == cases.end()) return 2;
  try {
    found->second();
  } catch (const slate::Error& error) {
    std::printf("%s: %s\n", slate_status_name(error.status()), error.what());
    return 1;
  }
  return 0;
}
