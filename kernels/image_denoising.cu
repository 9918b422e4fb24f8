// Non-local means: a pixel becomes the mean of those around it, weighted by how much their
// neighbourhoods resemble its own. The image is read through a texture (four channels of 8 bits as
// numbers from 0 to 1, clamped at the edges): texture units, and exponentials.
#include <algorithm>
#include <array>

#include "common/program.h"

namespace {

using slate::kernels::blocks_for;
using slate::kernels::DeviceBuffer;
using slate::kernels::kFloatRounding;
using slate::kernels::Run;

constexpr int kSearch = 3;  // how far around a pixel others are looked at
constexpr int kPatch = 1;   // and how far around those
constexpr int kPatchEdge = 2 * kPatch + 1;
constexpr unsigned kEdge = 16;     // of a block
constexpr float kFalloff = 12.0f;  // of weights, by squared distance of patches

}  // namespace

static __device__ float3 colour_at(cudaTextureObject_t image, int x, int y) {
  const float4 colour =
      tex2D<float4>(image, static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f);
  return make_float3(colour.x, colour.y, colour.z);
}

static __device__ float add_square(float a, float b, float sum) {
  const float difference = a - b;
  return fmaf(difference, difference, sum);
}

static __device__ unsigned char to_byte(float value) {
  return static_cast<unsigned char>(__float2int_rn(255 * value));
}

/// The fourth channel of the result is 255.
__global__ void image_denoising(cudaTextureObject_t image, uchar4* __restrict__ result, int n) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= n || y >= n) return;
  float3 own[kPatchEdge][kPatchEdge];
#pragma unroll
  for (int v = 0; v < kPatchEdge; ++v) {
#pragma unroll
    for (int u = 0; u < kPatchEdge; ++u)
      own[v][u] = colour_at(image, x + u - kPatch, y + v - kPatch);
  }
  float red = 0, green = 0, blue = 0, weights = 0;
  for (int dy = -kSearch; dy <= kSearch; ++dy) {
    for (int dx = -kSearch; dx <= kSearch; ++dx) {
      float distance = 0;
      float3 colour{};
#pragma unroll
      for (int v = 0; v < kPatchEdge; ++v) {
#pragma unroll
        for (int u = 0; u < kPatchEdge; ++u) {
          const float3 other = colour_at(image, x + dx + u - kPatch, y + dy + v - kPatch);
          distance = add_square(other.x, own[v][u].x, distance);
          distance = add_square(other.y, own[v][u].y, distance);
          distance = add_square(other.z, own[v][u].z, distance);
          if (v == kPatch && u == kPatch) colour = other;
        }
      }
      const float weight = expf(-kFalloff * distance);
      weights += weight;
      red = fmaf(weight, colour.x, red);
      green = fmaf(weight, colour.y, green);
      blue = fmaf(weight, colour.z, blue);
    }
  }
  result[static_cast<std::size_t>(y) * n + x] =
      make_uchar4(to_byte(red / weights), to_byte(green / weights), to_byte(blue / weights), 255);
}

namespace {

/// An image in an array, and the texture that reads it.
class Texture {
 public:
  Texture(const std::vector<uchar4>& pixels, std::size_t n) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
    SLATE_REQUIRE(cudaMallocArray(&array_, &format, n, n));
    SLATE_REQUIRE(cudaMemcpy2DToArray(array_, 0, 0, pixels.data(), n * sizeof(uchar4),
                                      n * sizeof(uchar4), n, cudaMemcpyHostToDevice));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array_;
    cudaTextureDesc description{};
    description.addressMode[0] = cudaAddressModeClamp;
    description.addressMode[1] = cudaAddressModeClamp;
    description.filterMode = cudaFilterModePoint;
    description.readMode = cudaReadModeNormalizedFloat;
    SLATE_REQUIRE(cudaCreateTextureObject(&texture_, &resource, &description, nullptr));
  }
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;
  ~Texture() {
    cudaDestroyTextureObject(texture_);
    cudaFreeArray(array_);
  }
  cudaTextureObject_t get() const { return texture_; }

 private:
  cudaArray_t array_ = nullptr;
  cudaTextureObject_t texture_ = 0;
};

/// Stripes and a slope with noise on them.
std::vector<uchar4> make_image(std::size_t n) {
  std::vector<uchar4> pixels(n * n);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t x = i % n, y = i / n;
    const std::uint64_t noise = slate::kernels::mix(1, i);
    const auto channel = [&](std::size_t base, int k) {
      return static_cast<unsigned char>(base + (noise >> (8 * k) & 63));
    };
    pixels[i] = {channel((x + y) / 8 % 2 * 150, 0), channel(x * 190 / n, 1),
                 channel(y / 5 % 3 * 90, 2), channel(0, 3)};
  }
  return pixels;
}

using Colour = std::array<double, 3>;

struct Image {
  const std::vector<uchar4>& pixels;
  int n;
  Colour at(int x, int y) const {
    const uchar4 pixel =
        pixels[static_cast<std::size_t>(std::clamp(y, 0, n - 1)) * n + std::clamp(x, 0, n - 1)];
    return {pixel.x / 255.0, pixel.y / 255.0, pixel.z / 255.0};
  }
};

double patch_distance(const Image& image, int x, int y, int dx, int dy) {
  double distance = 0;
  for (int v = -kPatch; v <= kPatch; ++v) {
    for (int u = -kPatch; u <= kPatch; ++u) {
      const Colour a = image.at(x + u, y + v), b = image.at(x + dx + u, y + dy + v);
      for (int k = 0; k < 3; ++k) distance += (a[k] - b[k]) * (a[k] - b[k]);
    }
  }
  return distance;
}

/// A byte is off by half of one. Before, a weight w = exp(-e) is off by 36 roundings of e, which
/// make 36 e w < 14 of 1, and four of its own; sums of 49 weights and colours by 49 each, relative
/// to all weights, of which the pixel's own is 1.
void check_pixel(Run& run, const Image& image, uchar4 got, int x, int y) {
  Colour sum{};
  double weights = 0;
  for (int dy = -kSearch; dy <= kSearch; ++dy) {
    for (int dx = -kSearch; dx <= kSearch; ++dx) {
      const double weight = std::exp(-double{kFalloff} * patch_distance(image, x, y, dx, dy));
      const Colour colour = image.at(x + dx, y + dy);
      weights += weight;
      for (int k = 0; k < 3; ++k) sum[k] += weight * colour[k];
    }
  }
  constexpr double kWeights = (2 * kSearch + 1) * (2 * kSearch + 1);
  const double tolerance = 0.5 + 255 * 2 * (18 * kWeights + kWeights) * kFloatRounding;
  const unsigned char bytes[] = {got.x, got.y, got.z};
  for (int k = 0; k < 3; ++k) run.compare(bytes[k], 255 * sum[k] / weights, tolerance);
  run.compare_exact(got.w, static_cast<unsigned char>(255));
}

void run(Run& run) {
  const int n = static_cast<int>(run.size());
  const std::vector<uchar4> pixels = make_image(run.size());
  const Texture texture(pixels, run.size());
  DeviceBuffer<uchar4> device_result(pixels.size());
  const dim3 grid(blocks_for(n, kEdge), blocks_for(n, kEdge));
  run.time([&] {
    image_denoising<<<grid, dim3(kEdge, kEdge)>>>(texture.get(), device_result.data(), n);
  });
  const std::vector<uchar4> result = device_result.download();

  run.add_output(result);
  if (!run.wants_check()) return;
  const Image image{pixels, n};
  run.for_sample(result.size(), 1 << 14, [&](std::uint64_t i) {
    check_pixel(run, image, result[i], static_cast<int>(i % n), static_cast<int>(i / n));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "image_denoising",
                                      .summary = "Non-local means of an image, by a texture",
                                      .size_meaning = "pixels along each edge of the image",
                                      .default_size = 60,
                                      .max_size = 32768},
                                     argc, argv, run);
}
