# Every library slate uses, found once. All but CUDA are Debian and Ubuntu packages
# (scripts/packages.txt); nothing is downloaded or vendored.
find_package(Boost 1.74 REQUIRED)  # headers only: Interprocess
# The compiled libraries: fmt's code in every object that formats a message takes more than half of the build.
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(FLEX REQUIRED)
find_package(SQLite3 3.35 REQUIRED)  # RETURNING

# Distributions differ in whether these ship CMake files, so they are found by hand.
find_path(SLATE_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(SLATE_TOMLPP_INCLUDE toml++/toml.h REQUIRED)
find_path(SLATE_ZSTD_INCLUDE zstd.h REQUIRED)
find_path(SLATE_LZ4_INCLUDE lz4.h REQUIRED)
# Static: libslate lives in strangers' processes and must not bring shared libraries along.
find_library(SLATE_ZSTD_LIBRARY libzstd.a REQUIRED)
find_library(SLATE_LZ4_LIBRARY liblz4.a REQUIRED)
find_library(SLATE_SYSTEMD_LIBRARY systemd REQUIRED)  # slated only
find_path(SLATE_SYSTEMD_INCLUDE systemd/sd-daemon.h REQUIRED)
find_library(SLATE_SECCOMP_LIBRARY seccomp REQUIRED)  # slated only
find_path(SLATE_SECCOMP_INCLUDE seccomp.h REQUIRED)
set(OPENSSL_USE_STATIC_LIBS TRUE)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)  # SHA-256 of base/digest.h, nothing else

find_package(CUDAToolkit 13.0 REQUIRED)

if(SLATE_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(SLATE_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
