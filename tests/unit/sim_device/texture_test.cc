// Arrays, textures and surfaces of sim: the contract, and the faults that name line and reason.
#include "tests/unit/sim_device/sim_fixture.h"
#include "tests/unit/sim_device/texture_contract.h"

namespace slate::sim {
namespace {

using device::TextureContract;

class TextureTest : public SimFixture {
 protected:
  void SetUp() override { open("sms=2,memory=64M"); }

  TextureContract contract() {
    return {*device_, arena_, stream_, [this] {
              const auto done = finish(stream_);
              ASSERT_TRUE(done) << done.error().message;
            }};
  }

  /// Runs `body`, an entry `k(.param .u64 object)` of one thread, and gives its fault.
  Error fault_of(const std::string& body, std::uint64_t object) {
    const std::string text =
        ".version 8.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry k(.param .u64 object) {\n"
        ".reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .f32 %f<8>;\n"
        "ld.param.u64 %rd1, [object];\nmov.u32 %r1, 0;\nmov.f32 %f1, 0f00000000;\n" +
        body + "\nret;\n}\n";
    module_ = load(text);
    EXPECT_TRUE(launch(stream_, "k", {}, {}, object));
    const auto done = finish(stream_);
    device_->destroy_stream(stream_);
    stream_ = *device_->create_stream(0);
    return done ? Error{ErrorCode::kNone, {}} : done.error();
  }

  device::Surface surface_of(device::Array array) {
    return *device_->create_surface(array, 0, arena_);
  }
};

TEST_F(TextureTest, NewArraysReadAsZero) {
  contract().new_arrays_read_as_zero();
}
TEST_F(TextureTest, BoxesGoToTheirPlaces) {
  contract().boxes_go_to_their_places();
}
TEST_F(TextureTest, LevelsAreApart) {
  contract().levels_are_apart();
}
TEST_F(TextureTest, KernelsReadTextures) {
  contract().kernels_read_textures();
}
TEST_F(TextureTest, KernelsWriteSurfaces) {
  contract().kernels_write_surfaces();
}
TEST_F(TextureTest, AnArrayWithoutTheFlagMakesASurface) {
  contract().an_array_without_the_flag_makes_a_surface();
}
TEST_F(TextureTest, CopiesCutElements) {
  contract().copies_cut_elements();
}

TEST_F(TextureTest, ArraysTakeMemoryAndGiveItBack) {
  const auto before = *device_->free_memory();
  const ArraySpec spec = TextureContract::words({1024, 1024, 0});
  const auto array = *device_->create_array(spec);
  EXPECT_EQ(*device_->free_memory(), before - array_bytes(spec));
  const auto more = device_->create_array(TextureContract::words({4096, 8192, 0}));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kOutOfMemory);
  device_->destroy_array(array);
  EXPECT_EQ(*device_->free_memory(), before);
}

TEST_F(TextureTest, AnUnknownObjectIsAFault) {
  const Error fault = fault_of("tex.1d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd1, {%f1}];", 77);
  EXPECT_EQ(fault.code, ErrorCode::kIllegalAddress);
  EXPECT_NE(fault.message.find("line 9: tex.1d.v4.f32.f32 of object 0x4d: there is no such object"),
            std::string::npos)
      << fault.message;
}

TEST_F(TextureTest, AnotherSessionsObjectIsAFault) {
  const auto array = *device_->create_array(TextureContract::words({8, 0, 0}, kArraySurface));
  const auto other = make_arena();
  const auto surface = *device_->create_surface(array, 0, other);
  const Error fault =
      fault_of("suld.b.1d.b32.trap {%r2}, [%rd1, {%r1}];", static_cast<std::uint64_t>(surface));
  EXPECT_EQ(fault.code, ErrorCode::kIllegalAddress);
  device_->destroy_surface(surface);
  device_->destroy_array(array);
}

TEST_F(TextureTest, BoundariesOfSurfacesTrapClampOrAreNothing) {
  const auto array = *device_->create_array(TextureContract::words({8, 0, 0}, kArraySurface));
  const auto surface = surface_of(array);
  const auto number = static_cast<std::uint64_t>(surface);
  const std::string far = "mov.u32 %r1, 32; mov.u32 %r2, 9;\n";
  const Error trapped = fault_of(far + "sust.b.1d.b32.trap [%rd1, {%r1}], {%r2};", number);
  EXPECT_EQ(trapped.code, ErrorCode::kIllegalAddress);
  EXPECT_NE(trapped.message.find("outside of the surface"), std::string::npos) << trapped.message;
  EXPECT_EQ(fault_of(far + "sust.b.1d.b32.zero [%rd1, {%r1}], {%r2};", number).code,
            ErrorCode::kNone);
  EXPECT_EQ(contract().read(array, {8, 1, 1})[7], 0u);
  EXPECT_EQ(fault_of(far + "sust.b.1d.b32.clamp [%rd1, {%r1}], {%r2};", number).code,
            ErrorCode::kNone);
  EXPECT_EQ(contract().read(array, {8, 1, 1})[7], 9u);
  EXPECT_EQ(fault_of("mov.u32 %r1, 2; suld.b.1d.b32.trap {%r2}, [%rd1, {%r1}];", number).code,
            ErrorCode::kMisalignedAddress);
  device_->destroy_surface(surface);
  device_->destroy_array(array);
}

TEST_F(TextureTest, FormattedStoresCountInElements) {
  const ArraySpec spec{{ChannelKind::kUnsigned, 8, 4, 0}, {8, 0, 0}, kArraySurface, 0};
  const auto array = *device_->create_array(spec);
  const auto surface = surface_of(array);
  const auto number = static_cast<std::uint64_t>(surface);
  const std::string values = "mov.u32 %r1, 3; mov.u32 %r2, 1; mov.u32 %r3, 255;\n";
  EXPECT_EQ(
      fault_of(values + "sust.p.1d.v4.b32.trap [%rd1, {%r1}], {%r2, %r3, %r2, %r3};", number).code,
      ErrorCode::kNone);
  std::vector<std::uint32_t> back(8);
  ASSERT_TRUE(device_->copy(Place::on_host(back.data(), 32, 32), Place::in_array(array), {32, 1, 1},
                            stream_));
  ASSERT_TRUE(finish(stream_));
  EXPECT_EQ(back[3], 0xff01ff01u);
  const Error fault = fault_of(
      "mov.u32 %r2, 256; sust.p.1d.v4.b32.trap [%rd1, {%r1}], {%r2, %r2, %r2, %r2};", number);
  EXPECT_NE(fault.message.find("a value that the surface's format does not have"),
            std::string::npos)
      << fault.message;
  device_->destroy_surface(surface);
  device_->destroy_array(array);
}

TEST_F(TextureTest, SizesCanBeAskedFor) {
  const auto array = *device_->create_array(TextureContract::words({8, 4, 0}, kArraySurface));
  const auto surface = surface_of(array);
  // Traps, which is another fault, unless the answers are 8 and 4.
  const std::string body =
      ".reg .pred %p<3>;\nsuq.width.b32 %r2, [%rd1];\nsuq.height.b32 %r3, [%rd1];\n"
      "setp.ne.u32 %p1, %r2, 8;\n@%p1 trap;\nsetp.ne.u32 %p2, %r3, 4;\n@%p2 trap;";
  EXPECT_EQ(fault_of(body, static_cast<std::uint64_t>(surface)).code, ErrorCode::kNone);
  device_->destroy_surface(surface);
  device_->destroy_array(array);
}

TEST_F(TextureTest, WhatSimLacksIsAFaultOfItsLine) {
  const Error fault = fault_of(
      "tex.grad.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd1, {%f1, %f1}], {%f1, %f1}, {%f1, %f1};",
      1);
  EXPECT_EQ(fault.code, ErrorCode::kIllegalInstruction);
  EXPECT_NE(fault.message.find("line 9: tex.grad.2d.v4.f32.f32 is not known to sim"),
            std::string::npos)
      << fault.message;
}

TEST_F(TextureTest, MemoryThatIsNotTheLaunchsIsAFault) {
  const auto other = make_arena();
  TextureSpec spec;
  spec.resource.kind = ResourceKind::kLinear;
  spec.resource.address = other.base;
  spec.resource.bytes = 64;
  spec.resource.format = {ChannelKind::kFloat, 32, 1, 0};
  const auto texture = *device_->create_texture(spec, arena_);
  const Error fault = fault_of("tex.1d.v4.f32.s32 {%f2, %f3, %f4, %f5}, [%rd1, {%r1}];",
                               static_cast<std::uint64_t>(texture));
  EXPECT_EQ(fault.code, ErrorCode::kIllegalAddress);
  device_->destroy_texture(texture);
}

}  // namespace
}  // namespace slate::sim
