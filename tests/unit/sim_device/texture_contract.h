// What every device must do with arrays, textures and surfaces, as checks that the tests of both
// run: copies of boxes, new arrays that read as zero, fetches by kernels, surfaces.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "device/device.h"

namespace slate::device {

inline constexpr char kTexturePtx[] = R"(
.version 8.0
.target sm_70
.address_size 64

// One thread an element: out[i] = texture at (i % 8 + 0.5, i / 8 + 0.5)
.visible .entry fetch(.param .u64 texture, .param .u64 out) {
  .reg .b64 %rd<6>;
  .reg .b32 %r<8>;
  .reg .f32 %f<8>;
  ld.param.u64 %rd1, [texture];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 7;
  shr.u32 %r3, %r1, 3;
  cvt.rn.f32.u32 %f1, %r2;
  cvt.rn.f32.u32 %f2, %r3;
  add.f32 %f1, %f1, 0f3f000000;
  add.f32 %f2, %f2, 0f3f000000;
  tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.f32 [%rd4], %f3;
  ret;
}
// As many threads as elements of a row: surface(x, y) = value + x of surface(x, y)
.visible .entry add(.param .u64 surface, .param .u32 y, .param .u32 value) {
  .reg .b64 %rd<2>;
  .reg .b32 %r<8>;
  ld.param.u64 %rd1, [surface];
  ld.param.u32 %r1, [y];
  ld.param.u32 %r2, [value];
  mov.u32 %r3, %tid.x;
  shl.b32 %r4, %r3, 2;
  suld.b.2d.b32.trap {%r5}, [%rd1, {%r4, %r1}];
  add.s32 %r6, %r5, %r2;
  sust.b.2d.b32.trap [%rd1, {%r4, %r1}], {%r6};
  ret;
}
)";

class TextureContract {
 public:
  /// `finish` waits for the stream, and fails the test when its work did.
  TextureContract(Device& device, AddressRange arena, Stream stream, std::function<void()> finish)
      : device_(device), arena_(arena), stream_(stream), finish_(std::move(finish)) {}

  static ArraySpec words(ArrayExtent extent, std::uint32_t flags = 0, std::uint32_t levels = 0) {
    return {{ChannelKind::kUnsigned, 32, 1, 0}, extent, flags, levels};
  }

  Array make(const ArraySpec& spec) {
    const auto array = device_.create_array(spec);
    EXPECT_TRUE(array) << array.error().message;
    return array.value_or(Array{});
  }

  /// Elements of a box of an array, by way of the host.
  std::vector<std::uint32_t> read(Array array, ArrayExtent box, std::uint32_t level = 0) {
    std::vector<std::uint32_t> values(box.width * box.height * box.depth, 0xdead);
    const Place to = Place::on_host(values.data(), box.width * 4, box.width * box.height * 4);
    expect(device_.copy(to, Place::in_array(array, level), {box.width * 4, box.height, box.depth},
                        stream_));
    finish_();
    return values;
  }

  void new_arrays_read_as_zero() {
    for (const ArrayExtent extent :
         {ArrayExtent{33, 0, 0}, {33, 5, 0}, {33, 5, 3}, {1000, 700, 0}}) {
      const Array array = make(words(extent));
      const ArrayExtent box = level_box(words(extent), 0);
      for (const std::uint32_t value : read(array, box)) ASSERT_EQ(value, 0u);
      device_.destroy_array(array);
    }
  }

  void boxes_go_to_their_places() {
    const Array first = make(words({8, 4, 3})), second = make(words({8, 4, 3}));
    std::vector<std::uint32_t> values(96);
    std::iota(values.begin(), values.end(), 100u);
    expect(device_.copy(Place::in_array(first), Place::on_host(values.data(), 32, 128), {32, 4, 3},
                        stream_));
    EXPECT_EQ(read(first, {8, 4, 3}), values);
    // A part of it to another place of another array, and on to memory of the device and back.
    expect(device_.copy(Place::in_array(second, 0, 4, 1, 1), Place::in_array(first, 0, 16, 2, 0),
                        {12, 2, 2}, stream_));
    std::vector<std::uint32_t> wanted(96);
    for (std::size_t z = 0; z < 2; ++z) {
      for (std::size_t y = 0; y < 2; ++y) {
        for (std::size_t x = 0; x < 3; ++x) {
          wanted[(z + 1) * 32 + (y + 1) * 8 + x + 1] = values[z * 32 + (y + 2) * 8 + x + 4];
        }
      }
    }
    EXPECT_EQ(read(second, {8, 4, 3}), wanted);
    const Place memory = Place::on_device(arena_.base, 64, 64 * 5);
    expect(device_.copy(memory, Place::in_array(first), {32, 4, 3}, stream_));
    expect(device_.copy(Place::in_array(second), memory, {32, 4, 3}, stream_));
    EXPECT_EQ(read(second, {8, 4, 3}), values);
    device_.destroy_array(first);
    device_.destroy_array(second);
  }

  void levels_are_apart() {
    const Array array = make(words({8, 4, 0}, 0, 3));
    for (std::uint32_t level = 0; level < 3; ++level) {
      const std::uint64_t width = 8u >> level, height = 4u >> level;
      std::vector<std::uint32_t> values(width * height, level + 7);
      expect(device_.copy(Place::in_array(array, level),
                          Place::on_host(values.data(), width * 4, 0), {width * 4, height, 1},
                          stream_));
      finish_();
    }
    for (std::uint32_t level = 0; level < 3; ++level) {
      for (const std::uint32_t value : read(array, {8u >> level, 4u >> level, 1}, level)) {
        EXPECT_EQ(value, level + 7);
      }
    }
    device_.destroy_array(array);
  }

  void kernels_read_textures() {
    const ArraySpec spec{{ChannelKind::kFloat, 32, 1, 0}, {8, 4, 0}, 0, 0};
    const Array array = make(spec);
    std::vector<float> values(32);
    std::iota(values.begin(), values.end(), 0.25f);
    expect(device_.copy(Place::in_array(array), Place::on_host(values.data(), 32, 128), {32, 4, 1},
                        stream_));
    TextureSpec texture;
    texture.resource.array = static_cast<std::uint64_t>(array);
    texture.sampler.address_mode.fill(AddressMode::kClamp);
    EXPECT_EQ(fetch(texture), values);
    // The same values as memory with a pitch.
    const Address memory = arena_.base + 4096;
    expect(device_.copy(Place::on_device(memory, 64, 256), Place::in_array(array), {32, 4, 1},
                        stream_));
    texture.resource = {};
    texture.resource.kind = ResourceKind::kPitch2D;
    texture.resource.address = memory;
    texture.resource.width = 8;
    texture.resource.height = 4;
    texture.resource.pitch = 64;
    texture.resource.format = spec.format;
    EXPECT_EQ(fetch(texture), values);
    device_.destroy_array(array);
  }

  void kernels_write_surfaces() {
    const Array array = make(words({8, 4, 0}, kArraySurface));
    std::vector<std::uint32_t> values(32, 5);
    expect(device_.copy(Place::in_array(array), Place::on_host(values.data(), 32, 128), {32, 4, 1},
                        stream_));
    const auto surface = device_.create_surface(array, 0, arena_);
    ASSERT_TRUE(surface) << surface.error().message;
    struct {
      std::uint64_t surface;
      std::uint32_t y, value;
    } const parameters{static_cast<std::uint64_t>(*surface), 2, 37};
    launch("add", 8, &parameters, sizeof(parameters));
    for (std::size_t x = 0; x < 8; ++x) values[16 + x] = 42;
    EXPECT_EQ(read(array, {8, 4, 1}), values);
    device_.destroy_surface(*surface);
    device_.destroy_array(array);
  }

  void an_array_without_the_flag_makes_a_surface() {
    const Array array = make(words({8, 4, 0}));
    const auto surface = device_.create_surface(array, 0, arena_);
    ASSERT_TRUE(surface) << surface.error().message;
    device_.destroy_surface(*surface);
    device_.destroy_array(array);
  }

  void copies_cut_elements() {
    const Array array = make(words({8, 4, 0}));
    std::vector<std::uint32_t> values(32, 0);
    std::array<std::uint8_t, 6> bytes{1, 2, 3, 4, 5, 6};
    expect(device_.copy(Place::in_array(array, 0, 6, 1), Place::on_host(bytes.data(), 6, 6),
                        {6, 1, 1}, stream_));
    values[9] = 0x02010000;
    values[10] = 0x06050403;
    EXPECT_EQ(read(array, {8, 4, 1}), values);
    device_.destroy_array(array);
  }

 private:
  static void expect(const Result<void>& done) { ASSERT_TRUE(done) << done.error().message; }

  void launch(const std::string& name, std::uint32_t threads, const void* parameters,
              std::size_t bytes) {
    const auto module = device_.load_module(
        ImageKind::kPtx, std::as_bytes(std::span(std::string_view(kTexturePtx))));
    ASSERT_TRUE(module) << module.error().message;
    const auto function = device_.find_function(*module, name);
    ASSERT_TRUE(function) << function.error().message;
    LaunchSpec spec;
    spec.function = *function;
    spec.block = {threads, 1, 1};
    spec.parameters = std::span(static_cast<const std::byte*>(parameters), bytes);
    spec.arena = arena_;
    expect(device_.launch(spec, stream_));
    finish_();
    device_.unload_module(*module);
  }

  std::vector<float> fetch(const TextureSpec& spec) {
    std::vector<float> values(32, -1.0f);
    const auto texture = device_.create_texture(spec, arena_);
    EXPECT_TRUE(texture) << texture.error().message;
    if (!texture) return values;
    const std::uint64_t parameters[2] = {static_cast<std::uint64_t>(*texture), arena_.base};
    launch("fetch", 32, parameters, sizeof(parameters));
    expect(device_.copy(Place::on_host(values.data(), 128), Place::on_device(arena_.base, 128),
                        {128, 1}, stream_));
    finish_();
    device_.destroy_texture(*texture);
    return values;
  }

  Device& device_;
  const AddressRange arena_;
  const Stream stream_;
  const std::function<void()> finish_;
};

}  // namespace slate::device
