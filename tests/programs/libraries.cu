// Code loaded at run time by cudaLibraryLoadData: kernels, variables, managed variables.
#include <cstdio>
#include <fstream>
#include <string>

static const char kCode[] = R"(.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 step = 3;
.global .attribute(.managed) .align 4 .u32 total = 5;
// .entry not_a_kernel()
.visible .entry add(.param .u64 add_0)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [add_0];
	cvta.to.global.u64 %rd2, %rd1;
	ld.global.u32 %r1, [%rd2];
	ld.global.u32 %r2, [step];
	add.u32 %r1, %r1, %r2;
	st.global.u32 [%rd2], %r1;
	red.global.add.u32 [total], %r1;
	ret;
}
.visible .entry nothing()
{
	ret;
}
)";

static const char* name(cudaError_t error) {
  return cudaGetErrorName(error);
}

int main() {
  cudaLibrary_t library = nullptr;
  std::printf("load %s\n",
              name(cudaLibraryLoadData(&library, kCode, nullptr, nullptr, 0, nullptr, nullptr, 0)));
  unsigned count = 0;
  cudaLibraryGetKernelCount(&count, library);
  cudaKernel_t kernels[3] = {};
  std::printf("kernels %u %s\n", count, name(cudaLibraryEnumerateKernels(kernels, 3, library)));
  cudaKernel_t add = nullptr;
  std::printf("kernel %s", name(cudaLibraryGetKernel(&add, library, "add")));
  std::printf(" known %d missing %s\n", add == kernels[0] || add == kernels[1],
              name(cudaLibraryGetKernel(&kernels[2], library, "sub")));
  const char* its_name = nullptr;
  cudaFuncGetName(&its_name, add);
  std::printf("name %s\n", its_name);

  int* value = nullptr;
  cudaMalloc(&value, sizeof(int));
  cudaMemset(value, 0, sizeof(int));
  void *step = nullptr, *total = nullptr;
  std::size_t bytes = 0;
  std::printf("global %s", name(cudaLibraryGetGlobal(&step, &bytes, library, "step")));
  std::printf(" %d missing %s\n", static_cast<int>(bytes),
              name(cudaLibraryGetGlobal(&step, &bytes, library, "steps")));
  cudaLibraryGetGlobal(&step, &bytes, library, "step");
  std::printf("managed %s", name(cudaLibraryGetManaged(&total, &bytes, library, "total")));
  std::printf(" %d holds %d\n", static_cast<int>(bytes), *static_cast<int*>(total));
  void* arguments[] = {&value};
  for (int i = 0; i < 2; ++i) cudaLaunchKernel(add, dim3(1), dim3(1), arguments, 0, nullptr);
  const int ten = 10;
  cudaMemcpy(step, &ten, sizeof(ten), cudaMemcpyHostToDevice);
  cudaLaunchKernel(add, dim3(1), dim3(1), arguments, 0, nullptr);
  int result = 0;
  cudaMemcpy(&result, value, sizeof(result), cudaMemcpyDeviceToHost);
  std::printf("result %d total %d\n", result, *static_cast<int*>(total));
  std::printf("attribute %s\n", name(cudaKernelSetAttributeForDevice(
                                    add, cudaFuncAttributeMaxDynamicSharedMemorySize, 4096, 0)));
  std::printf("unload %s\n", name(cudaLibraryUnload(library)));

  const std::string file = "/tmp/slate-library-" + std::to_string(reinterpret_cast<long>(&library));
  std::ofstream(file) << kCode;
  std::printf("file %s", name(cudaLibraryLoadFromFile(&library, file.c_str(), nullptr, nullptr, 0,
                                                      nullptr, nullptr, 0)));
  std::remove(file.c_str());
  std::printf(" %s\n", name(cudaLibraryUnload(library)));
  std::printf("no file %s\n", name(cudaLibraryLoadFromFile(&library, file.c_str(), nullptr, nullptr,
                                                           0, nullptr, nullptr, 0)));
  std::printf("bad %s", name(cudaLibraryLoadData(&library, ".version 8.0\nnonsense", nullptr,
                                                 nullptr, 0, nullptr, nullptr, 0)));
  std::printf(" used %d\n", cudaLibraryGetKernel(&add, library, "add") == cudaSuccess);
  cudaGetLastError();
  std::printf("%s\n", name(cudaDeviceSynchronize()));
}
