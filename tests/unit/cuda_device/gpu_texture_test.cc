// Arrays, textures and surfaces on a real GPU: the contract that sim keeps too.
#include "gpu_fixture.h"
#include "tests/unit/sim_device/texture_contract.h"

namespace slate::cuda {
namespace {

class GpuTextureTest : public GpuTest {
 protected:
  device::TextureContract contract() {
    return {*device_, arena_, stream_, [this] { finish(stream_); }};
  }
};

TEST_F(GpuTextureTest, NewArraysReadAsZero) {
  contract().new_arrays_read_as_zero();
}
TEST_F(GpuTextureTest, BoxesGoToTheirPlaces) {
  contract().boxes_go_to_their_places();
}
TEST_F(GpuTextureTest, LevelsAreApart) {
  contract().levels_are_apart();
}
TEST_F(GpuTextureTest, KernelsReadTextures) {
  contract().kernels_read_textures();
}
TEST_F(GpuTextureTest, KernelsWriteSurfaces) {
  contract().kernels_write_surfaces();
}
TEST_F(GpuTextureTest, AnArrayWithoutTheFlagMakesASurface) {
  contract().an_array_without_the_flag_makes_a_surface();
}
TEST_F(GpuTextureTest, CopiesCutElements) {
  contract().copies_cut_elements();
}

}  // namespace
}  // namespace slate::cuda
