#include "injector/source/headers.h"

#include <algorithm>
#include <array>
#include <filesystem>

namespace slate::source {
namespace {

constexpr std::string_view kPreludeText = R"(#pragma once
#include <cuda_runtime.h>
#include <slate/standard_core.h>
#include <math.h>
#define _Bool bool
#ifndef CUDART_VERSION
#define CUDART_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
#endif
)";

constexpr std::string_view kIntegers = R"(#ifndef SLATE_INTEGERS
#define SLATE_INTEGERS
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef signed char int_least8_t;
typedef short int_least16_t;
typedef int int_least32_t;
typedef long int_least64_t;
typedef unsigned char uint_least8_t;
typedef unsigned short uint_least16_t;
typedef unsigned int uint_least32_t;
typedef unsigned long uint_least64_t;
typedef signed char int_fast8_t;
typedef long int_fast16_t;
typedef long int_fast32_t;
typedef long int_fast64_t;
typedef unsigned char uint_fast8_t;
typedef unsigned long uint_fast16_t;
typedef unsigned long uint_fast32_t;
typedef unsigned long uint_fast64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;
typedef long intmax_t;
typedef unsigned long uintmax_t;
#define INT8_MIN (-128)
#define INT16_MIN (-32767 - 1)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807L - 1)
#define INT8_MAX (127)
#define INT16_MAX (32767)
#define INT32_MAX (2147483647)
#define INT64_MAX (9223372036854775807L)
#define UINT8_MAX (255)
#define UINT16_MAX (65535)
#define UINT32_MAX (4294967295U)
#define UINT64_MAX (18446744073709551615UL)
#define SIZE_MAX (18446744073709551615UL)
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define INTPTR_MIN INT64_MIN
#define INTMAX_MIN INT64_MIN
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define PTRDIFF_MIN INT64_MIN
#define PTRDIFF_MAX INT64_MAX
#define INT8_C(value) value
#define INT16_C(value) value
#define UINT8_C(value) value
#define UINT16_C(value) value
#define INT32_C(value) value
#define INT64_C(value) value##L
#define UINT32_C(value) value##U
#define UINT64_C(value) value##UL
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
}
#endif
)";

// CCCL's own version for NVRTC makes the 64-bit types long long, which nvcc's (glibc's) are not:
// the mangled names of kernels would differ.
constexpr std::string_view kCcclIntegers = R"(#ifndef SLATE_CCCL_INTEGERS
#define SLATE_CCCL_INTEGERS
#include <cuda/std/version>
#include <cuda/std/climits>
#include <slate/integers.h>
#if defined(_LIBCUDACXX_BEGIN_NAMESPACE_STD)
_LIBCUDACXX_BEGIN_NAMESPACE_STD
#else
_CCCL_BEGIN_NAMESPACE_CUDA_STD
#endif
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::int_fast8_t; using ::int_fast16_t; using ::int_fast32_t; using ::int_fast64_t;
using ::uint_fast8_t; using ::uint_fast16_t; using ::uint_fast32_t; using ::uint_fast64_t;
using ::int_least8_t; using ::int_least16_t; using ::int_least32_t; using ::int_least64_t;
using ::uint_least8_t; using ::uint_least16_t; using ::uint_least32_t; using ::uint_least64_t;
using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
#if _CCCL_HAS_INT128()
using __cccl_intmax_t = __int128_t;
using __cccl_uintmax_t = __uint128_t;
#else
using __cccl_intmax_t = long long;
using __cccl_uintmax_t = unsigned long long;
#endif
#if defined(_LIBCUDACXX_END_NAMESPACE_STD)
_LIBCUDACXX_END_NAMESPACE_STD
#else
_CCCL_END_NAMESPACE_CUDA_STD
#endif
#endif
)";
constexpr std::string_view kToIntegers = "#include <slate/integers.h>\n";

constexpr std::string_view kDefinitions = R"(#pragma once
typedef unsigned long slate_size_t;
typedef long ptrdiff_t;
typedef long ssize_t;
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
namespace std {
using ::size_t;
using ::ptrdiff_t;
typedef decltype(nullptr) nullptr_t;
}
)";

constexpr std::string_view kLimits = R"(#ifndef SLATE_LIMITS
#define SLATE_LIMITS
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1L)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1LL)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#endif
)";

constexpr std::string_view kFloats = R"(#ifndef SLATE_FLOATS
#define SLATE_FLOATS
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_10_EXP 38
#define FLT_MAX 3.40282346638528859811704183484516925e+38F
#define FLT_MIN 1.17549435082228750796873653722224568e-38F
#define FLT_EPSILON 1.19209289550781250000000000000000000e-7F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MAX 1.79769313486231570814527423731704357e+308
#define DBL_MIN 2.22507385850720138309023271733240406e-308
#define DBL_EPSILON 2.22044604925031308084726333618164062e-16
#endif
)";

constexpr std::string_view kMath = R"(#ifndef SLATE_MATH
#define SLATE_MATH
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000LL)
#define HUGE_VALF __int_as_float(0x7f800000)
#endif
)";

constexpr std::string_view kAssert = R"(#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                            \
  ((condition) ? static_cast<void>(0)                                                \
               : __assertfail(#condition, __FILE__, static_cast<unsigned>(__LINE__), \
                              static_cast<const char*>(__PRETTY_FUNCTION__), sizeof(char)))
#endif
)";

// The part of namespace std that kernels use most; CCCL's takes a second to read.
constexpr std::string_view kStandardCore = R"(#ifndef SLATE_STANDARD_CORE
#define SLATE_STANDARD_CORE
namespace std {
using ::fmod; using ::fma; using ::erf; using ::erfc;
template <class T>
__device__ __forceinline__ constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T>
__device__ __forceinline__ constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T>
__device__ __forceinline__ constexpr void swap(T& a, T& b) { T c = a; a = b; b = c; }
template <class T, T v> struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  typedef integral_constant type;
  __device__ constexpr operator T() const { return v; }
};
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;
template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> inline constexpr bool is_same_v = is_same<A, B>::value;
template <bool b, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool b, class T = void> using enable_if_t = typename enable_if<b, T>::type;
template <bool b, class T, class F> struct conditional { typedef T type; };
template <class T, class F> struct conditional<false, T, F> { typedef F type; };
template <bool b, class T, class F> using conditional_t = typename conditional<b, T, F>::type;
template <class T> struct numeric_limits { enum : bool { is_specialized = false }; };
#define SLATE_LIMITS_OF(type, low, high, bits, negative)                   \
  template <> struct numeric_limits<type> {                                \
    enum : bool { is_specialized = true, is_integer = true };              \
    enum : bool { is_signed = negative, has_infinity = false };            \
    enum : int { digits = bits, radix = 2 };                               \
    __device__ static constexpr type min() noexcept { return low; }        \
    __device__ static constexpr type lowest() noexcept { return low; }     \
    __device__ static constexpr type max() noexcept { return high; }       \
    __device__ static constexpr type epsilon() noexcept { return 0; }      \
  };
SLATE_LIMITS_OF(bool, false, true, 1, false)
SLATE_LIMITS_OF(char, -128, 127, 7, true)
SLATE_LIMITS_OF(signed char, -128, 127, 7, true)
SLATE_LIMITS_OF(unsigned char, 0, 255, 8, false)
SLATE_LIMITS_OF(short, -32768, 32767, 15, true)
SLATE_LIMITS_OF(unsigned short, 0, 65535, 16, false)
SLATE_LIMITS_OF(int, (-2147483647 - 1), 2147483647, 31, true)
SLATE_LIMITS_OF(unsigned int, 0, 4294967295U, 32, false)
SLATE_LIMITS_OF(long, (-9223372036854775807L - 1), 9223372036854775807L, 63, true)
SLATE_LIMITS_OF(unsigned long, 0, 18446744073709551615UL, 64, false)
SLATE_LIMITS_OF(long long, (-9223372036854775807LL - 1), 9223372036854775807LL, 63, true)
SLATE_LIMITS_OF(unsigned long long, 0, 18446744073709551615ULL, 64, false)
#undef SLATE_LIMITS_OF
#define SLATE_LIMITS_OF(type, low, high, smallest, bits, infinite, none)       \
  template <> struct numeric_limits<type> {                                    \
    enum : bool { is_specialized = true, is_integer = false };                 \
    enum : bool { is_signed = true, has_infinity = true, has_quiet_NaN = true }; \
    enum : int { digits = bits, radix = 2 };                                   \
    __device__ static constexpr type min() noexcept { return low; }            \
    __device__ static constexpr type lowest() noexcept { return -high; }       \
    __device__ static constexpr type max() noexcept { return high; }           \
    __device__ static constexpr type epsilon() noexcept { return smallest; }   \
    __device__ static constexpr type infinity() noexcept { return infinite; }  \
    __device__ static constexpr type quiet_NaN() noexcept { return none; }     \
  };
SLATE_LIMITS_OF(float, 1.17549435082228750796873653722224568e-38F,
                3.40282346638528859811704183484516925e+38F, 1.1920928955078125e-7F, 24,
                __builtin_bit_cast(float, 0x7f800000), __builtin_bit_cast(float, 0x7fffffff))
SLATE_LIMITS_OF(double, 2.22507385850720138309023271733240406e-308,
                1.79769313486231570814527423731704357e+308, 2.220446049250313080847e-16, 53,
                __builtin_bit_cast(double, 0x7ff0000000000000), __builtin_bit_cast(double, 0x7ff8000000000000))
#undef SLATE_LIMITS_OF
}
#endif
)";

constexpr std::string_view kStandard = R"(#pragma once
#include <slate/standard_core.h>
#include <cuda/std/type_traits>
#include <cuda/std/limits>
#include <cuda/std/utility>
#include <cuda/std/cmath>
#include <cuda/std/cstdint>
#include <cuda/std/cstddef>
namespace std { using namespace ::cuda::std; }
)";

#define SLATE_STANDARD(header)                                                     \
  "#pragma once\n#include <slate/standard.h>\n#if __has_include(<cuda/std/" header \
  ">)\n#include <cuda/std/" header ">\n#endif\n"

constexpr std::string_view kNothing = "#pragma once\n";  // NVRTC declares what there is

constexpr std::string_view kCstdlib = R"(#pragma once
#include <stddef.h>
#define RAND_MAX 2147483647
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
)";

constexpr std::string_view kDriver = R"(#ifndef SLATE_DRIVER
#define SLATE_DRIVER
#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;
typedef int CUresult;
#endif
)";

constexpr std::string_view kComplex = R"(#pragma once
#include <cuComplex.h>
)";

constexpr std::string_view kFourier = R"(#pragma once
#include <cuComplex.h>
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1
)";

constexpr std::string_view kCub = R"(#pragma once
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>
)";

constexpr std::array kStandIns = std::to_array<StandIn>({
    {kPrelude, kPreludeText},
    {kStandardName, kStandard},
    {"slate/integers.h", kIntegers},
    {"cuda/std/cstdint", kCcclIntegers},
    {"stdint.h", kToIntegers},
    {"cstdint", kToIntegers},
    {"inttypes.h", kToIntegers},
    {"cinttypes", kToIntegers},
    {"sys/types.h", kDefinitions},
    {"stddef.h", kDefinitions},
    {"cstddef", kDefinitions},
    {"limits.h", kLimits},
    {"climits", kLimits},
    {"float.h", kFloats},
    {"cfloat", kFloats},
    {"values.h", kFloats},
    {"math.h", kMath},
    {"cmath", kMath},
    {"assert.h", kAssert},
    {"cassert", kAssert},
    {"string.h", kNothing},
    {"cstring", kNothing},
    {"stdio.h", kNothing},
    {"cstdio", kNothing},
    {"time.h", kNothing},
    {"ctime", kNothing},
    {"stdbool.h", kNothing},
    {"stdlib.h", kCstdlib},
    {"cstdlib", kCstdlib},
    {kStandardCoreName, kStandardCore},
    {"algorithm", SLATE_STANDARD("algorithm")},
    {"type_traits", SLATE_STANDARD("type_traits")},
    {"limits", SLATE_STANDARD("limits")},
    {"utility", SLATE_STANDARD("utility")},
    {"tuple", SLATE_STANDARD("tuple")},
    {"array", SLATE_STANDARD("array")},
    {"functional", SLATE_STANDARD("functional")},
    {"complex", SLATE_STANDARD("complex")},
    {"initializer_list", SLATE_STANDARD("initializer_list")},
    {"optional", SLATE_STANDARD("optional")},
    {"variant", SLATE_STANDARD("variant")},
    {"iterator", SLATE_STANDARD("iterator")},
    {"numeric", SLATE_STANDARD("numeric")},
    {"atomic", SLATE_STANDARD("atomic")},
    {"ratio", SLATE_STANDARD("ratio")},
    {"bit", SLATE_STANDARD("bit")},
    {"span", SLATE_STANDARD("span")},
    {"cuda.h", kDriver},
    {"cublas_v2.h", kComplex},
    {"cublas.h", kComplex},
    {"cusparse.h", kComplex},
    {"cusparse_v2.h", kComplex},
    {"cusolverDn.h", kComplex},
    {"cufft.h", kFourier},
    {"cufftXt.h", kFourier},
    {"cub/cub.cuh", kCub},
});

#undef SLATE_STANDARD

/// Headers of the toolkit that are the host's, although their names do not tell.
bool is_for_the_host(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kBeginnings = {
      "thrust/", "cupti",    "cusolver",  "cudnn",    "nccl",       "nvml",  "npp",
      "nvrtc",   "curand.h", "cuda_prof", "cuda_gl_", "nvToolsExt", "nvtx3", "cuda_egl"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](auto beginning) { return name.starts_with(beginning); });
}

bool is_cpp_standard(const StandIn& header) {
  return header.text.find(kStandardName) != std::string_view::npos && header.name != kStandardName;
}

}  // namespace

std::span<const StandIn> stand_ins() {
  return kStandIns;
}

const StandIn* stand_in_for(std::string_view name) {
  const auto found = std::find_if(kStandIns.begin(), kStandIns.end(),
                                  [&](const StandIn& header) { return header.name == name; });
  return found == kStandIns.end() ? nullptr : &*found;
}

bool is_in_core(std::string_view name) {
  static constexpr std::array<std::string_view, 76> kNames = {
      "min", "max", "swap", "integral_constant", "true_type", "false_type", "is_same", "is_same_v",
      "enable_if", "enable_if_t", "conditional", "conditional_t", "numeric_limits", "size_t",
      "ptrdiff_t", "nullptr_t", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t",
      "uint32_t", "uint64_t", "intptr_t", "uintptr_t", "intmax_t", "uintmax_t", "move", "forward",
      // NVRTC declares these by itself, but for four, which the core takes from outside of std.
      "abs", "fabs", "sqrt", "cbrt", "pow", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
      "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh",
      "acosh", "atanh", "floor", "ceil", "round", "trunc", "rint", "nearbyint", "lround", "fmod",
      "fma", "fmin", "fmax", "hypot", "erf", "erfc", "lgamma", "tgamma", "copysign", "isnan",
      "isinf", "isfinite", "signbit"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Fate fate_of(const Include& include, bool whole_std, const std::vector<std::string>& toolkit) {
  if (const StandIn* header = stand_in_for(include.spelling)) {
    return is_cpp_standard(*header) && !whole_std ? Fate::kDrop : Fate::kKeep;
  }
  if (is_for_the_host(include.spelling)) return Fate::kDrop;
  for (const auto& directory : toolkit) {
    std::error_code error;
    const auto path = std::filesystem::path(directory) / include.spelling;
    if (std::filesystem::is_regular_file(path, error)) return Fate::kKeep;
  }
  return Fate::kDrop;
}

}  // namespace slate::source
