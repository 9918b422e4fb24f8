// Arrays, textures and surfaces: copies in and out, objects of every kind of resource, point and
// linear filtering, address modes, levels, layers, surfaces written and read. Prints exact bits.
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int kWidth = 16, kHeight = 8, kDepth = 4;
constexpr int kPoints = 64;

void check(const char* what, cudaError_t error) {
  if (error != cudaSuccess) std::printf("%s: %s\n", what, cudaGetErrorName(error));
}

unsigned bits(float value) {
  unsigned word;
  std::memcpy(&word, &value, sizeof(word));
  return word;
}

/// FNV-1a, so that every value counts.
unsigned hash(const void* bytes, std::size_t count) {
  unsigned sum = 2166136261u;
  for (std::size_t i = 0; i < count; ++i) {
    sum = (sum ^ static_cast<const unsigned char*>(bytes)[i]) * 16777619u;
  }
  return sum;
}

template <typename T>
class Results {
 public:
  explicit Results(int count) : count_(count) {
    check("cudaMalloc", cudaMalloc(&memory_, count * sizeof(T)));
    cudaMemset(memory_, 0xee, count * sizeof(T));
  }
  ~Results() { cudaFree(memory_); }
  operator T*() { return memory_; }
  std::vector<T> get() {
    std::vector<T> host(count_);
    check("result", cudaMemcpy(host.data(), memory_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  void print(const char* name) {
    const std::vector<T> host = get();
    std::printf("%s %08x", name, hash(host.data(), host.size() * sizeof(T)));
    for (int i = 0; i < 6; ++i) {
      unsigned word = 0;
      std::memcpy(&word, &host[i * 7 % count_], sizeof(T) < 4 ? sizeof(T) : 4);
      std::printf(" %x", word);
    }
    std::printf("\n");
  }

 private:
  T* memory_ = nullptr;
  int count_;
};

/// Small whole numbers: filtered with weights of 1/256 they are exact however they are summed.
std::vector<float> image(int count) {
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i) values[i] = static_cast<float>((i * 37 + 11) % 64);
  return values;
}

cudaTextureDesc sampler(cudaTextureAddressMode mode, cudaTextureFilterMode filter,
                        bool normalized) {
  cudaTextureDesc description{};
  for (auto& each : description.addressMode) each = mode;
  description.filterMode = filter;
  description.normalizedCoords = normalized;
  return description;
}

cudaTextureObject_t texture_of(cudaArray_t array, const cudaTextureDesc& description) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureObject_t texture = 0;
  check("cudaCreateTextureObject",
        cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  return texture;
}

cudaSurfaceObject_t surface_of(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t surface = 0;
  check("cudaCreateSurfaceObject", cudaCreateSurfaceObject(&surface, &resource));
  return surface;
}

__global__ void sample_1d(cudaTextureObject_t texture, float first, float step, float* out) {
  out[threadIdx.x] = tex1D<float>(texture, first + step * threadIdx.x);
}
__global__ void sample_2d(cudaTextureObject_t texture, float first, float step, float* out) {
  const int i = threadIdx.x;
  out[i] = tex2D<float>(texture, first + step * i, first + step * (i * 5 % kPoints));
}
__global__ void sample_3d(cudaTextureObject_t texture, float step, float* out) {
  const int i = threadIdx.x;
  out[i] = tex3D<float>(texture, step * i, step * (i % 9), step * (i % 5));
}
__global__ void sample_layers(cudaTextureObject_t texture, float* out) {
  const int i = threadIdx.x;
  out[i] = tex2DLayered<float>(texture, i % kWidth + 0.25f, i % 5 + 0.5f, i % kDepth);
}
__global__ void sample_levels(cudaTextureObject_t texture, float* out) {
  const int i = threadIdx.x;
  out[i] = tex2DLod<float>(texture, (i % 8) * 0.125f, (i % 4) * 0.25f, (i / 16) * 0.8125f);
}
__global__ void sample_colours(cudaTextureObject_t texture, float4* out) {
  const int i = threadIdx.x;
  out[i] = tex2D<float4>(texture, i % kWidth + 0.5f, i / kWidth + 0.5f);
}
__global__ void fetch_colours(cudaTextureObject_t texture, uchar4* out) {
  const int i = threadIdx.x;
  out[i] = tex2D<uchar4>(texture, i % kWidth + 0.5f, i / kWidth + 0.5f);
}
__global__ void fetch_line(cudaTextureObject_t texture, short2* out) {
  out[threadIdx.x] = tex1Dfetch<short2>(texture, static_cast<int>(threadIdx.x) - 8);
}
__global__ void gather(cudaTextureObject_t texture, float4* out) {
  const int i = threadIdx.x;
  out[i] = tex2Dgather<float4>(texture, i % 14 + 1.0f, i % 6 + 1.0f, 0);
}
__global__ void write_surface(cudaSurfaceObject_t surface) {
  const int x = threadIdx.x, y = blockIdx.x;
  surf2Dwrite(static_cast<float>(x * 100 + y), surface, x * 4, y);
}
__global__ void turn_surface(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  const int x = threadIdx.x, y = blockIdx.x;
  const float value = surf2Dread<float>(from, x * 4, y);
  surf2Dwrite(value + 0.5f, to, (kWidth - 1 - x) * 4, y);
  surf2Dwrite(9.0f, to, -4, y, cudaBoundaryModeZero);
}
__global__ void read_clamped(cudaSurfaceObject_t surface, float* out) {
  const int i = static_cast<int>(threadIdx.x) - 8;
  out[threadIdx.x] = surf2Dread<float>(surface, i * 4, i, cudaBoundaryModeClamp) +
                     surf2Dread<float>(surface, i * 4, 0, cudaBoundaryModeZero);
}
__global__ void write_volume(cudaSurfaceObject_t surface) {
  surf3Dwrite(make_uchar4(threadIdx.x, blockIdx.x, blockIdx.y, 7), surface, threadIdx.x * 4,
              blockIdx.x, blockIdx.y);
}

void one_dimension() {
  const std::vector<float> values = image(kWidth);
  const auto description = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  check("cudaMallocArray", cudaMallocArray(&array, &description, kWidth));
  check("cudaMemcpyToArray",
        cudaMemcpyToArray(array, 0, 0, values.data(), kWidth * 4, cudaMemcpyHostToDevice));
  Results<float> out(kPoints);
  // The second mode counts, even in one dimension.
  cudaTextureDesc border_of_x = sampler(cudaAddressModeBorder, cudaFilterModeLinear, true);
  border_of_x.addressMode[1] = cudaAddressModeClamp;
  const struct {
    const char* name;
    cudaTextureDesc description;
    float first, step;
  } kinds[] = {
      {"1D point clamp", sampler(cudaAddressModeClamp, cudaFilterModePoint, false), -3, 0.5f},
      {"1D linear clamp", sampler(cudaAddressModeClamp, cudaFilterModeLinear, false), -3, 0.375f},
      {"1D point wrap", sampler(cudaAddressModeWrap, cudaFilterModePoint, true), -1.96875f,
       0.0625f},
      {"1D linear wrap", sampler(cudaAddressModeWrap, cudaFilterModeLinear, true), -1, 0.0390625f},
      {"1D point mirror", sampler(cudaAddressModeMirror, cudaFilterModePoint, true), -1.96875f,
       0.0625f},
      {"1D linear mirror", sampler(cudaAddressModeMirror, cudaFilterModeLinear, true), -1,
       0.0390625f},
      {"1D linear border", sampler(cudaAddressModeBorder, cudaFilterModeLinear, true), -0.25f,
       0.0234375f},
      {"1D linear border of x", border_of_x, -0.25f, 0.0234375f}};
  for (const auto& kind : kinds) {
    const cudaTextureObject_t texture = texture_of(array, kind.description);
    sample_1d<<<1, kPoints>>>(texture, kind.first, kind.step, out);
    out.print(kind.name);
    check("cudaDestroyTextureObject", cudaDestroyTextureObject(texture));
  }
  check("cudaFreeArray", cudaFreeArray(array));
}

void two_dimensions() {
  const std::vector<float> values = image(kWidth * kHeight);
  const auto description = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr, other = nullptr;
  check("cudaMallocArray",
        cudaMallocArray(&array, &description, kWidth, kHeight, cudaArrayTextureGather));
  check("cudaMallocArray", cudaMallocArray(&other, &description, kWidth, kHeight));
  check("cudaMemcpy2DToArray", cudaMemcpy2DToArray(array, 0, 0, values.data(), kWidth * 4,
                                                   kWidth * 4, kHeight, cudaMemcpyHostToDevice));
  check("cudaMemcpy2DArrayToArray", cudaMemcpy2DArrayToArray(other, 16, 2, array, 0, 0, 32, 4));
  std::vector<float> back(kWidth * kHeight, -1.0f);
  check("cudaMemcpy2DFromArray",
        cudaMemcpy2DFromArray(back.data(), kWidth * 4, other, 0, 0, kWidth * 4, kHeight,
                              cudaMemcpyDeviceToHost));
  std::printf("2D copies %08x %x %x\n", hash(back.data(), back.size() * 4), bits(back[0]),
              bits(back[2 * kWidth + 4]));
  check("cudaMemcpyFromArray",
        cudaMemcpyFromArray(back.data(), array, 8, 1, 200, cudaMemcpyDeviceToHost));
  std::printf("2D run %08x\n", hash(back.data(), 200));
  Results<float> out(kPoints);
  auto clamp = sampler(cudaAddressModeClamp, cudaFilterModeLinear, false);
  cudaTextureObject_t texture = texture_of(array, clamp);
  sample_2d<<<1, kPoints>>>(texture, -1, 0.25f, out);
  out.print("2D linear");
  Results<float4> four(kPoints);
  gather<<<1, kPoints>>>(texture, four);
  four.print("2D gather");
  cudaDestroyTextureObject(texture);
  texture = texture_of(array, sampler(cudaAddressModeWrap, cudaFilterModePoint, true));
  sample_2d<<<1, kPoints>>>(texture, -1.984375f, 0.0625f, out);
  out.print("2D point");
  cudaDestroyTextureObject(texture);
  auto border = sampler(cudaAddressModeBorder, cudaFilterModeLinear, false);
  border.borderColor[0] = 32;
  texture = texture_of(array, border);
  sample_2d<<<1, kPoints>>>(texture, -2, 0.375f, out);
  out.print("2D linear border");
  cudaDestroyTextureObject(texture);
  cudaFreeArray(array);
  cudaFreeArray(other);
}

void colours() {
  std::vector<uchar4> values(kWidth * kHeight);
  for (int i = 0; i < kWidth * kHeight; ++i) {
    values[i] = make_uchar4(i % 2 * 255, i, 255 - i, 255);
  }
  uchar4* memory = nullptr;
  std::size_t pitch = 0;
  cudaMallocPitch(&memory, &pitch, kWidth * 4, kHeight);
  cudaMemcpy2D(memory, pitch, values.data(), kWidth * 4, kWidth * 4, kHeight,
               cudaMemcpyHostToDevice);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {memory, cudaCreateChannelDesc<uchar4>(), kWidth, kHeight, pitch};
  auto description = sampler(cudaAddressModeClamp, cudaFilterModePoint, false);
  cudaTextureObject_t texture = 0;
  check("pitch2D", cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  Results<uchar4> out(kPoints);
  fetch_colours<<<1, kPoints>>>(texture, out);
  out.print("bytes");
  cudaDestroyTextureObject(texture);
  description.readMode = cudaReadModeNormalizedFloat;
  check("normalized", cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  Results<float4> numbers(kPoints);
  sample_colours<<<1, kPoints>>>(texture, numbers);
  const std::vector<float4> host = numbers.get();
  std::printf("normalized %x %x %x %x\n", bits(host[0].x), bits(host[1].x), bits(host[0].z),
              bits(host[0].w));
  cudaDestroyTextureObject(texture);
  cudaFree(memory);
}

void line() {
  std::vector<short2> values(40);
  for (short i = 0; i < 40; ++i) values[i] = make_short2(i * 300 - 6000, -i);
  short2* memory = nullptr;
  cudaMalloc(&memory, 40 * sizeof(short2));
  cudaMemcpy(memory, values.data(), 40 * sizeof(short2), cudaMemcpyHostToDevice);
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {memory, cudaCreateChannelDesc<short2>(), 40 * sizeof(short2)};
  const cudaTextureDesc description{};
  cudaTextureObject_t texture = 0;
  check("linear", cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  Results<short2> out(kPoints);
  fetch_line<<<1, kPoints>>>(texture, out);
  out.print("line");
  cudaDestroyTextureObject(texture);
  cudaFree(memory);
}

void fill(cudaArray_t array, const std::vector<float>& values, int width, int height, int depth) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(const_cast<float*>(values.data()), width * 4, width, height);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(width, height, depth);
  copy.kind = cudaMemcpyHostToDevice;
  check("cudaMemcpy3D", cudaMemcpy3D(&copy));
}

void volumes() {
  const std::vector<float> values = image(kWidth * kHeight * kDepth);
  const auto description = cudaCreateChannelDesc<float>();
  const cudaExtent extent = make_cudaExtent(kWidth, kHeight, kDepth);
  cudaArray_t volume = nullptr, layers = nullptr;
  check("volume", cudaMalloc3DArray(&volume, &description, extent));
  check("layers", cudaMalloc3DArray(&layers, &description, extent, cudaArrayLayered));
  fill(volume, values, kWidth, kHeight, kDepth);
  fill(layers, values, kWidth, kHeight, kDepth);
  Results<float> out(kPoints);
  cudaTextureObject_t texture =
      texture_of(volume, sampler(cudaAddressModeClamp, cudaFilterModeLinear, false));
  sample_3d<<<1, kPoints>>>(texture, 0.25f, out);
  out.print("3D linear");
  cudaDestroyTextureObject(texture);
  texture = texture_of(volume, sampler(cudaAddressModeBorder, cudaFilterModeLinear, false));
  sample_3d<<<1, kPoints>>>(texture, 0.25f, out);
  out.print("3D linear border");
  cudaDestroyTextureObject(texture);
  texture = texture_of(layers, sampler(cudaAddressModeClamp, cudaFilterModeLinear, false));
  sample_layers<<<1, kPoints>>>(texture, out);
  out.print("layers");
  cudaDestroyTextureObject(texture);
  cudaFreeArray(volume);
  cudaFreeArray(layers);
}

void levels() {
  const auto description = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t mipmapped = nullptr;
  check("mipmapped",
        cudaMallocMipmappedArray(&mipmapped, &description, make_cudaExtent(kWidth, kHeight, 0), 4));
  for (int i = 0; i < 4; ++i) {
    cudaArray_t level = nullptr;
    check("level", cudaGetMipmappedArrayLevel(&level, mipmapped, i));
    fill(level, image((kWidth >> i) * (kHeight >> i)), kWidth >> i, kHeight >> i, 1);
  }
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = mipmapped;
  auto settings = sampler(cudaAddressModeWrap, cudaFilterModeLinear, true);
  settings.maxMipmapLevelClamp = 3;
  Results<float> out(kPoints);
  for (const auto filter : {cudaFilterModePoint, cudaFilterModeLinear}) {
    settings.mipmapFilterMode = filter;
    cudaTextureObject_t texture = 0;
    check("levels", cudaCreateTextureObject(&texture, &resource, &settings, nullptr));
    sample_levels<<<1, kPoints>>>(texture, out);
    out.print(filter == cudaFilterModePoint ? "levels point" : "levels linear");
    cudaDestroyTextureObject(texture);
  }
  check("cudaFreeMipmappedArray", cudaFreeMipmappedArray(mipmapped));
}

void surfaces() {
  const auto description = cudaCreateChannelDesc<float>();
  cudaArray_t first = nullptr, second = nullptr;
  check("first", cudaMallocArray(&first, &description, kWidth, kHeight, cudaArraySurfaceLoadStore));
  check("second",
        cudaMallocArray(&second, &description, kWidth, kHeight, cudaArraySurfaceLoadStore));
  const cudaSurfaceObject_t from = surface_of(first), to = surface_of(second);
  write_surface<<<kHeight, kWidth>>>(from);
  turn_surface<<<kHeight, kWidth>>>(from, to);
  std::vector<float> back(kWidth * kHeight);
  check("surface", cudaMemcpy2DFromArray(back.data(), kWidth * 4, second, 0, 0, kWidth * 4, kHeight,
                                         cudaMemcpyDeviceToHost));
  std::printf("surface %08x %x\n", hash(back.data(), back.size() * 4), bits(back[17]));
  Results<float> out(32);
  read_clamped<<<1, 32>>>(from, out);
  out.print("boundaries");
  cudaDestroySurfaceObject(from);
  cudaDestroySurfaceObject(to);
  cudaFreeArray(first);
  cudaFreeArray(second);

  const auto colour = cudaCreateChannelDesc<uchar4>();
  cudaArray_t volume = nullptr;
  check("volume", cudaMalloc3DArray(&volume, &colour, make_cudaExtent(kWidth, kHeight, kDepth),
                                    cudaArraySurfaceLoadStore));
  const cudaSurfaceObject_t surface = surface_of(volume);
  write_volume<<<dim3(kHeight, kDepth), kWidth>>>(surface);
  std::vector<uchar4> colours(kWidth * kHeight * kDepth);
  cudaMemcpy3DParms copy{};
  copy.srcArray = volume;
  copy.dstPtr = make_cudaPitchedPtr(colours.data(), kWidth * 4, kWidth, kHeight);
  copy.extent = make_cudaExtent(kWidth, kHeight, kDepth);
  copy.kind = cudaMemcpyDeviceToHost;
  check("from volume", cudaMemcpy3D(&copy));
  std::printf("volume %08x\n", hash(colours.data(), colours.size() * 4));
  cudaDestroySurfaceObject(surface);
  cudaFreeArray(volume);
}

/// A captured copy to an array and back, and pinned memory.
void in_a_graph() {
  const auto description = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr;
  int* host = nullptr;
  cudaMallocArray(&array, &description, kWidth, kHeight);
  cudaMallocHost(&host, 2 * kWidth * kHeight * sizeof(int));
  int* const back = host + kWidth * kHeight;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  check("begin", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  check("to", cudaMemcpy2DToArrayAsync(array, 0, 0, host, kWidth * 4, kWidth * 4, kHeight,
                                       cudaMemcpyHostToDevice, stream));
  check("from", cudaMemcpy2DFromArrayAsync(back, kWidth * 4, array, 0, 0, kWidth * 4, kHeight,
                                           cudaMemcpyDeviceToHost, stream));
  cudaGraph_t graph;
  check("end", cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec;
  check("instantiate", cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < kWidth * kHeight; ++i) host[i] = i * i;
  check("launch", cudaGraphLaunch(exec, stream));
  check("synchronize", cudaStreamSynchronize(stream));
  std::printf("graph %08x %d\n", hash(back, kWidth * kHeight * 4), back[100]);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFreeHost(host);
  cudaFreeArray(array);
}

}  // namespace

int main() {
  one_dimension();
  two_dimensions();
  colours();
  line();
  volumes();
  levels();
  surfaces();
  in_a_graph();
  std::printf("end %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
