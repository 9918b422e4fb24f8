// Products of matrices to be tested: every shape and type of mma and wmma that sim knows, kernels
// that run one of them, and inputs whose product is exact in any order. For matrix_test.cc and
// matrix_gpu_test.cc.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace slate::sim::test {

/// The types' names are PTX's.
struct MatrixCase {
  std::string a, b, c, d;
  unsigned m = 0, n = 0, k = 0;
  std::string layout = "row.col";
  std::string extra = "";  // ".xor.popc" and the like
  bool is_wmma = false;
  std::string shape() const {
    return "m" + std::to_string(m) + "n" + std::to_string(n) + "k" + std::to_string(k);
  }
  /// Products of one instruction: m8n8k4 of f16 makes four, each by eight lanes.
  unsigned products() const { return !is_wmma && a == "f16" && k == 4 ? 4 : 1; }
  /// The instruction's name.
  std::string name() const;
};

std::vector<MatrixCase> mma_cases();
std::vector<MatrixCase> wmma_cases();

unsigned bits_of_type(const std::string& type);
bool is_fp8(const std::string& type);
/// 4 or 8: bytes of a register that holds elements of `type`.
unsigned register_bytes(const std::string& type);
/// Registers of a fragment of `elements` elements in all lanes.
unsigned fragment_registers(const std::string& type, unsigned elements);

/// The bits of `value` as an element; a number that an element gives.
std::uint64_t encode_element(const std::string& type, int value);
double decode_element(const std::string& type, std::uint64_t bits);
/// A small number that `type` has.
int random_element(const std::string& type, std::mt19937& generator);

/// mma: register r of lane l of A is the 8 bytes at a + (r * 32 + l) * 8; B begins 2 KiB behind, C
/// 4 KiB. D likewise at b. Registers are not interpreted.
std::string mma_kernel(const MatrixCase& test);
inline constexpr unsigned kFragmentBytes = 2048;

/// wmma: A, B and C begin at a, 8 KiB and 16 KiB behind it, D at b; A and B have the case's
/// layouts, C and D go by row.
std::string wmma_kernel(const MatrixCase& test);
inline constexpr unsigned kTileBytes = 8192;
/// Elements from one line of a matrix of wmma_kernel() to the next.
unsigned stride_of(const MatrixCase& test);

}  // namespace slate::sim::test
