# Sourced by scripts/demo, scripts/fuzz and scripts/test: finds the CUDA Toolkit, installs missing packages, and says in one
# sentence what is missing where it cannot. Defines die, set_up_toolkit, clang_package, fuzzer_packages,
# set_up_packages, configure_and_build.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

die() {
  echo "slate: $*" >&2
  exit 1
}

set_up_toolkit() {
  local candidate
  for candidate in "$(command -v nvcc || true)" "${CUDA_HOME:-}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then
      PATH="$(dirname "$candidate"):$PATH"
      export PATH CUDACXX="$candidate"
      local version
      version=$(nvcc --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
      [ "${version:-0}" -ge 13 ] ||
        die "the CUDA Toolkit found at $candidate is older than 13.0; install CUDA Toolkit 13.0 or later, or set CUDA_HOME to one."
      return
    fi
  done
  die "no CUDA Toolkit found (looked for nvcc in PATH, \$CUDA_HOME/bin and /usr/local/cuda/bin); install NVIDIA's CUDA Toolkit 13.0 or later. A GPU or driver is not needed."
}

# The package with a clang for scripts/thread_safety; nothing where there is one, or none is known.
clang_package() {
  local version
  for version in 16 17 18 19; do
    if command -v "clang++-$version" >/dev/null; then return; fi
  done
  case "$(. /etc/os-release 2>/dev/null && echo "$ID-$VERSION_ID")" in
    debian-12) echo clang-19 ;;
    ubuntu-24.04) echo clang-18 ;;
  esac
}

# The packages with a clang and its libFuzzer for scripts/fuzz; nothing where none are known.
fuzzer_packages() {
  case "$(. /etc/os-release 2>/dev/null && echo "$ID-$VERSION_ID")" in
    debian-12) echo clang-19 libclang-rt-19-dev ;;
    ubuntu-24.04) echo clang-18 libclang-rt-18-dev ;;
  esac
}

# set_up_packages [PACKAGE...]: those of packages.txt, and these.
set_up_packages() {
  local wanted missing=() package
  wanted="$(grep -v '^#' "$root/scripts/packages.txt") $*"
  if command -v dpkg-query >/dev/null; then
    for package in $wanted; do
      dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
        missing+=("$package")
    done
  elif ! command -v g++ >/dev/null || ! command -v cmake >/dev/null; then
    die "no C++ compiler or no CMake, and this is neither Debian nor Ubuntu; install the equivalents of: ${wanted//$'\n'/ }"
  fi
  [ ${#missing[@]} -eq 0 ] && return
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null ||
      die "these packages are missing and installing them needs root; run: sudo apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  echo "installing: ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update &&
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    die "installing packages failed; run: sudo apt-get install ${missing[*]}"
  fi
  rm -f "$log"
}

# configure_and_build PRESET [TARGET...]: everything when no target is named. In a new build folder up to sixteen files
# are compiled as one, which takes a third of the time; SLATE_UNITY=0 compiles each by itself. A folder stays as it is.
configure_and_build() {
  local preset=$1 unity=()
  shift
  local log="$root/build/$preset.log"
  mkdir -p "$root/build"
  if [ "${SLATE_UNITY:-1}" = 1 ] && [ ! -e "$root/build/$preset/CMakeCache.txt" ]; then
    unity=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16)
  fi
  (cd "$root" && cmake --preset "$preset" "${unity[@]}") >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "configuring failed; the whole log is build/$preset.log"
  }
  (cd "$root" && cmake --build --preset "$preset" ${1:+--target "$@"}) >>"$log" 2>&1 || {
    # Compilers speak the user's language.
    grep -E 'error|FAILED' "$log" | head -n 20 >&2 || tail -n 20 "$log" >&2
    die "the build failed; the whole log is build/$preset.log"
  }
}
