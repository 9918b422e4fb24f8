// Forces between charged particles whose potential falls off as a Gaussian, in double precision.
// Space is cut into boxes as wide as the forces reach: a block takes a box, and its threads go with
// a particle each through the particles of the 27 boxes around it, put into shared memory box by
// box. Boxes hold different numbers of particles; a grid in three dimensions.
#include <algorithm>
#include <array>

#include "common/program.h"

namespace {

using slate::kernels::DeviceBuffer;
using slate::kernels::mix;
using slate::kernels::Run;
using slate::kernels::uniform;

constexpr unsigned kCapacity = 96;  // particles of a box at most, and threads of a block
constexpr unsigned kFewest = 60;
constexpr double kAlpha = 0.25;  // the potential of a charge q at distance r: q exp(-kAlpha r^2)
constexpr double kDoubleRounding = 0x1p-53;

}  // namespace

struct Particle {
  double x, y, z;  // in widths of a box
  double charge;
};

/// On a unit of charge.
struct Field {
  double potential;
  double x, y, z;
};

/// Box b, counted by x first, has the particles from starts[b] to below starts[b + 1].
__global__ void molecular_dynamics(const Particle* __restrict__ particles,
                                   const unsigned* __restrict__ starts,
                                   Field* __restrict__ fields) {
  __shared__ Particle near[kCapacity];
  const unsigned t = threadIdx.x;
  const int edge = static_cast<int>(gridDim.x);
  const unsigned home = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned me = starts[home] + t;
  const bool has_particle = me < starts[home + 1];
  const Particle own = particles[has_particle ? me : 0];
  Field field{};
  for (int neighbour = 0; neighbour < 27; ++neighbour) {
    const int x = static_cast<int>(blockIdx.x) + neighbour % 3 - 1;
    const int y = static_cast<int>(blockIdx.y) + neighbour / 3 % 3 - 1;
    const int z = static_cast<int>(blockIdx.z) + neighbour / 9 - 1;
    if (x < 0 || x >= edge || y < 0 || y >= edge || z < 0 || z >= edge) continue;
    const int box = (z * edge + y) * edge + x;
    const unsigned first = starts[box];
    const unsigned count = starts[box + 1] - first;
    __syncthreads();
    if (t < count) near[t] = particles[first + t];
    __syncthreads();
    for (unsigned j = 0; j < count && has_particle; ++j) {
      if (first + j == me) continue;
      const double dx = own.x - near[j].x;
      const double dy = own.y - near[j].y;
      const double dz = own.z - near[j].z;
      const double decay = exp(-kAlpha * fma(dx, dx, fma(dy, dy, dz * dz)));
      const double slope = 2 * kAlpha * near[j].charge * decay;
      field.potential = fma(near[j].charge, decay, field.potential);
      field.x = fma(slope, dx, field.x);
      field.y = fma(slope, dy, field.y);
      field.z = fma(slope, dz, field.z);
    }
  }
  if (has_particle) fields[me] = field;
}

namespace {

struct Boxes {
  std::vector<unsigned> starts;
  std::vector<Particle> particles;
};

Boxes make_boxes(unsigned edge) {
  Boxes boxes;
  boxes.starts.push_back(0);
  for (unsigned box = 0; box < edge * edge * edge; ++box) {
    const auto count =
        kFewest + static_cast<unsigned>(mix(1, box) >> 40) % (kCapacity - kFewest + 1);
    for (unsigned k = 0; k < count; ++k) {
      const std::uint64_t i = boxes.particles.size();
      boxes.particles.push_back({uniform(2, i, 0, 1) + static_cast<double>(box % edge),
                                 uniform(3, i, 0, 1) + static_cast<double>(box / edge % edge),
                                 uniform(4, i, 0, 1) + static_cast<double>(box / edge / edge),
                                 uniform(5, i, -1, 1)});
    }
    boxes.starts.push_back(static_cast<unsigned>(boxes.particles.size()));
  }
  return boxes;
}

/// A sum, and those of the magnitudes of its terms.
struct Sum {
  double value = 0;
  double magnitude = 0;
  void add(double term) {
    value += term;
    magnitude += std::fabs(term);
  }
};

/// Compares the field at particle i. Exponents stay below 0.25 * 12: their roundings make less than
/// 20 of the exponential, to which come three of other products; a sum rounds once a term.
void check_particle(Run& run, const Boxes& boxes, const Field& field, std::size_t i, int edge) {
  const Particle& own = boxes.particles[i];
  const auto coordinate = [](double at) { return static_cast<int>(std::floor(at)); };
  const auto range = [&](double at) {
    return std::array{std::max(coordinate(at) - 1, 0), std::min(coordinate(at) + 1, edge - 1)};
  };
  std::array<Sum, 4> sums;
  unsigned terms = 0;
  for (int z = range(own.z)[0]; z <= range(own.z)[1]; ++z) {
    for (int y = range(own.y)[0]; y <= range(own.y)[1]; ++y) {
      // Boxes along x lie one behind the other.
      const int row = (z * edge + y) * edge;
      const unsigned end = boxes.starts[row + range(own.x)[1] + 1];
      for (unsigned j = boxes.starts[row + range(own.x)[0]]; j < end; ++j, ++terms) {
        const Particle& other = boxes.particles[j];
        const double d[] = {own.x - other.x, own.y - other.y, own.z - other.z};
        const double potential =
            j == i ? 0
                   : other.charge / std::exp(kAlpha * (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]));
        sums[0].add(potential);
        for (int axis = 0; axis < 3; ++axis) sums[axis + 1].add(2 * kAlpha * potential * d[axis]);
      }
    }
  }
  const double got[] = {field.potential, field.x, field.y, field.z};
  for (int k = 0; k < 4; ++k) {
    const double roundings = 2 * (terms + 23.0);  // ours and the CPU's
    run.compare(got[k], sums[k].value, roundings * kDoubleRounding * sums[k].magnitude);
  }
}

void run(Run& run) {
  const auto edge = static_cast<unsigned>(run.size());
  const Boxes boxes = make_boxes(edge);
  DeviceBuffer<Particle> particles(boxes.particles);
  DeviceBuffer<unsigned> starts(boxes.starts);
  DeviceBuffer<Field> device_fields(boxes.particles.size());
  run.time([&] {
    molecular_dynamics<<<dim3(edge, edge, edge), kCapacity>>>(particles.data(), starts.data(),
                                                              device_fields.data());
  });
  const std::vector<Field> fields = device_fields.download();

  run.add_output(fields);
  if (!run.wants_check()) return;
  run.for_sample(fields.size(), 2048, [&](std::uint64_t i) {
    check_particle(run, boxes, fields[i], i, static_cast<int>(edge));
  });
}

}  // namespace

int main(int argc, char** argv) {
  return slate::kernels::run_program({.name = "molecular_dynamics",
                                      .summary = "Forces between particles in boxes",
                                      .size_meaning = "boxes along each edge of the cube",
                                      .default_size = 3,
                                      .max_size = 128},
                                     argc, argv, run);
}
