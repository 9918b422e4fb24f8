/* slate.h: load CUDA kernels at run time, from PTX or from CUDA C++ source, and launch them through
 * slated. Plain C; for C++17 and later also the classes of namespace slate. Needs no CUDA header
 * and no nvcc; link with -lslate. The same library provides cudart's memory, streams, events and
 * copies (cudaMalloc, cudaMemcpy, ...). docs/slate_h.md has two complete programs.
 *
 * Units: sizes are bytes. Threads: every function may be called from any thread, at the same time
 * too. Waiting: each function says whether it waits for the daemon; none waits for kernels.
 *
 * Errors: a function that fails returns a status other than SLATE_SUCCESS, leaves its results
 * untouched, and says why in slate_last_message(). None throws, and none ends the program. A status
 * has the number of a cudaError_t; numbers that are not listed here are possible too. As in CUDA, a
 * function that calls the daemon may return the error of earlier asynchronous work of this process,
 * such as SLATE_ERROR_ILLEGAL_ADDRESS. No function changes what cudaGetLastError() reads.
 *
 * SLATE_C_ONLY, defined before the header is included, leaves the C++ part out.
 */
#ifndef SLATE_H
#define SLATE_H

#include <stddef.h>

#if defined(__GNUC__)
#define SLATE_EXPORT __attribute__((visibility("default")))
#else
#define SLATE_EXPORT
#endif
#ifdef __cplusplus
#define SLATE_NOEXCEPT noexcept
extern "C" {
#else
#define SLATE_NOEXCEPT
#endif

typedef enum slate_status {
  SLATE_SUCCESS = 0,
  SLATE_ERROR_INVALID_VALUE = 1,      /* an argument is null, empty, too large or does not fit */
  SLATE_ERROR_OUT_OF_MEMORY = 2,      /* on the host or on the device, or a limit of slated's */
  SLATE_ERROR_INITIALIZATION = 3,     /* slated was not reached, or refused this program */
  SLATE_ERROR_UNAVAILABLE = 46,       /* slated or its engine is gone */
  SLATE_ERROR_NO_KERNEL_IMAGE = 209,  /* the code is not for this device */
  SLATE_ERROR_INVALID_PTX = 218,      /* PTX that does not assemble */
  SLATE_ERROR_NO_COMPILER = 221,      /* source was given and there is no usable libnvrtc */
  SLATE_ERROR_INVALID_SOURCE = 300,   /* source that does not compile: the message is its log */
  SLATE_ERROR_FILE_NOT_FOUND = 301,   /* a file cannot be opened */
  SLATE_ERROR_OPERATING_SYSTEM = 304, /* another failure of the operating system */
  SLATE_ERROR_INVALID_HANDLE = 400,   /* no such module, kernel or stream (any more) */
  SLATE_ERROR_NOT_FOUND = 500,        /* the module has no kernel or variable of this name */
  SLATE_ERROR_ILLEGAL_ADDRESS = 700,  /* a kernel touched memory that is not this program's */
  SLATE_ERROR_OUT_OF_RESOURCES = 701, /* the kernel's registers do not allow this block size */
  SLATE_ERROR_LAUNCH_TIMEOUT = 702,   /* a kernel cannot make progress */
  SLATE_ERROR_SESSION_ENDED = 709,    /* the module was loaded before cudaDeviceReset() or fork() */
  SLATE_ERROR_ASSERT = 710,           /* an assert() in a kernel failed */
  SLATE_ERROR_ILLEGAL_INSTRUCTION = 715,
  SLATE_ERROR_MISALIGNED_ADDRESS = 716,
  SLATE_ERROR_LAUNCH_FAILURE = 719, /* any other fault inside a kernel */
  SLATE_ERROR_NOT_PERMITTED = 800,
  SLATE_ERROR_NOT_SUPPORTED = 801,
  SLATE_ERROR_UNKNOWN = 999
} slate_status;

/* A module: loaded code with its kernels and variables. Lives until slate_module_unload(), or until
 * the process's session ends (cudaDeviceReset(), exit). A child of fork() has no module of its
 * parent's. Handles are never reused: a stale one gives SLATE_ERROR_INVALID_HANDLE. */
typedef struct slate_module slate_module;

/* A kernel of a module. Belongs to the module and ends with it; there is nothing to release. */
typedef struct slate_kernel slate_kernel;

/* cudaStream_t of CUDA's headers points to this type. */
struct CUstream_st;

/* Blocks of a grid, or threads of a block, along x, y and z; each at least 1. */
typedef struct slate_dim3 {
  unsigned x, y, z;
} slate_dim3;

/* How to compile source. All zero is valid; texts end in NUL and are copied. */
typedef struct slate_source_options {
  const char* name;      /* stands for the source in messages; default: the file's path, else
                            "source.cu" */
  const char* directory; /* where #include "..." is looked up first; default: the file's, else the
                            current one */
  const char* const* include_directories; /* searched afterwards, in this order */
  size_t include_directory_count;
  const char* const* options; /* the compiler's: "-DN=4", "--use_fast_math", "-std=c++20" */
  size_t option_count;
  const char* const* instances; /* template instances that the source does not make itself and
                                   slate_module_kernel() is to find: "scale<float>" */
  size_t instance_count;
  const void* reserved[4]; /* null */
} slate_source_options;

/* The needs of a kernel, per thread (registers, local) or per block (static_shared). */
typedef struct slate_kernel_info {
  size_t registers;
  size_t static_shared_bytes;
  size_t max_dynamic_shared_bytes; /* the most for a launch: see the setter below */
  size_t constant_bytes;
  size_t local_bytes;
  size_t max_threads_per_block;
  size_t parameter_count;
  size_t parameter_bytes; /* of all parameters, with the gaps between them */
  size_t reserved[4];     /* 0 */
} slate_kernel_info;

/* Why the last failed call of this thread failed, with the compiler's log, if any. Its line numbers
 * are those of the caller's source. "" if no call has failed. Never null; valid until the next call
 * of a slate_ function in this thread. */
SLATE_EXPORT const char* slate_last_message(void) SLATE_NOEXCEPT;

/* "SLATE_ERROR_INVALID_PTX" for that status; "SLATE_ERROR_UNKNOWN" for a number that is not listed
 * above. Never null, valid for ever. */
SLATE_EXPORT const char* slate_status_name(slate_status status) SLATE_NOEXCEPT;

/* Loads a module. The three functions wait until the daemon has it. The process's first call that
 * needs the daemon connects to it. On success the caller has to unload *module.
 *
 * From `bytes` > 0 bytes of PTX (a terminating NUL may be counted or not).
 * INVALID_PTX: the message is the assembler's, cut at 1 KiB. */
SLATE_EXPORT slate_status slate_module_load_ptx(slate_module** module, const char* ptx,
                                                size_t bytes) SLATE_NOEXCEPT;

/* From `bytes` > 0 bytes of CUDA C++ source: a whole .cu file or its device part. Host code in it
 * is ignored. The installed libnvrtc (found at the first call) compiles it in this process, for the
 * session's device. The result is kept in the user's own cache directory (source/ below
 * $SLATE_CACHE_DIR, $XDG_CACHE_HOME/slate or ~/.cache/slate). It is used again until the source, a
 * header of the user's, an option or the compiler changes.
 * `options` may be null. INVALID_SOURCE: one "NAME(LINE): error: ..." a line. NO_COMPILER. */
SLATE_EXPORT slate_status
slate_module_load_source(slate_module** module, const char* source, size_t bytes,
                         const slate_source_options* options) SLATE_NOEXCEPT;

/* From a file of PTX, which begins with ".version", or else of CUDA C++ source. `options` may be
 * null and counts for source only.
 * FILE_NOT_FOUND, and the errors of the two functions above. */
SLATE_EXPORT slate_status slate_module_load_file(
    slate_module** module, const char* path, const slate_source_options* options) SLATE_NOEXCEPT;

/* Forgets the module and its kernels. Does not wait: launches that are queued still run, and the
 * daemon frees the code and the module's variables after them. Copies from and to its variables
 * have to be queued before. Fails only for an invalid handle. */
SLATE_EXPORT slate_status slate_module_unload(slate_module* module) SLATE_NOEXCEPT;

/* The compiler's warnings; "" for none, or for PTX. Valid until the module is unloaded. */
SLATE_EXPORT slate_status slate_module_log(const char** log, slate_module* module) SLATE_NOEXCEPT;

/* The kernel of this name. A name is one of:
 * - as written in the source, with namespace and template arguments ("blur", "image::blur",
 *   "scale<float>", "scale<float, 4>"), and with parameters where it is overloaded ("add(float*)"),
 * - as in the PTX ("_Z5scaleIfEvPT_i").
 * The same name gives the same handle. Waits for the daemon the first time. NOT_FOUND: the message
 * lists the kernels. INVALID_VALUE: several kernels have this name. */
SLATE_EXPORT slate_status slate_module_kernel(slate_kernel** kernel, slate_module* module,
                                              const char* name) SLATE_NOEXCEPT;

/* Address and size of a __device__, __constant__ or __managed__ variable. The address is for
 * cudaMemcpy() and kernels; a managed variable's also for the host's code. Names as above. Either
 * result may be null. Waits for the daemon the first time. The address is valid until the module is
 * unloaded. NOT_FOUND. */
SLATE_EXPORT slate_status slate_module_global(void** address, size_t* bytes, slate_module* module,
                                              const char* name) SLATE_NOEXCEPT;

/* What the kernel needs. Does not wait. */
SLATE_EXPORT slate_status slate_kernel_get_info(slate_kernel_info* info,
                                                slate_kernel* kernel) SLATE_NOEXCEPT;

/* Offset in the parameter block, and size, of parameter `index`, counted from 0. Either result may
 * be null. Does not wait. INVALID_VALUE: there are no more than `index` parameters. */
SLATE_EXPORT slate_status slate_kernel_get_parameter(size_t* offset, size_t* bytes,
                                                     slate_kernel* kernel,
                                                     size_t index) SLATE_NOEXCEPT;

/* The name that the kernel has in the PTX. Valid until its module is unloaded. */
SLATE_EXPORT slate_status slate_kernel_get_name(const char** name,
                                                slate_kernel* kernel) SLATE_NOEXCEPT;

/* Allows launches with up to `bytes` of dynamic shared memory a block. Without this, a launch gets
 * up to 48 KiB less the kernel's static shared memory. Waits for the daemon. INVALID_VALUE: more
 * than the device has for a block (227 KiB on an H200, less the static shared memory). */
SLATE_EXPORT slate_status slate_kernel_set_max_dynamic_shared(slate_kernel* kernel,
                                                              size_t bytes) SLATE_NOEXCEPT;

/* Queues one run of the kernel on `stream` and returns; waits only while the queue to the daemon is
 * full. A null `stream` is the legacy default stream; cudaStreamLegacy and cudaStreamPerThread are
 * allowed. `arguments` has `argument_count` pointers, each to the value of one parameter. The
 * values are copied before the call returns. `arguments` may be null if the kernel takes none. An
 * error of the run is returned by a later call, cudaStreamSynchronize() at the latest.
 * INVALID_VALUE: wrong number of arguments, a null one, an empty or too large grid or block, more
 * dynamic shared memory than is allowed. OUT_OF_RESOURCES. INVALID_HANDLE: no such stream.
 * NOT_SUPPORTED: the stream captures; the capture is lost. */
SLATE_EXPORT slate_status slate_kernel_launch(slate_kernel* kernel, slate_dim3 grid,
                                              slate_dim3 block, size_t dynamic_shared_bytes,
                                              struct CUstream_st* stream, void** arguments,
                                              size_t argument_count) SLATE_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#if defined(__cplusplus) && !defined(SLATE_C_ONLY)

#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace slate {
inline namespace v0 {

/// The exception of this layer, beside std::bad_alloc. what() is slate_last_message().
class SLATE_EXPORT Error : public std::runtime_error {
 public:
  Error(slate_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  slate_status status() const noexcept { return status_; }

 private:
  slate_status status_;
};

/// Throws an Error if `status` is an error.
inline void check(slate_status status) {
  if (status != SLATE_SUCCESS) throw Error(status, slate_last_message());
}

/// A size in up to three dimensions, from integers of any type or from CUDA's dim3 or uint3.
struct Dim3 {
  unsigned x = 1, y = 1, z = 1;

  constexpr Dim3() = default;
  template <typename X, typename Y = unsigned, typename Z = unsigned,
            std::enable_if_t<
                std::is_integral_v<X> && std::is_integral_v<Y> && std::is_integral_v<Z>, int> = 0>
  constexpr Dim3(X x_size, Y y_size = 1, Z z_size = 1)  // NOLINT: meant to convert
      : x(number(x_size)), y(number(y_size)), z(number(z_size)) {}
  template <typename Other, std::enable_if_t<std::is_class_v<Other> &&
                                                 std::is_same_v<decltype(Other::x), unsigned> &&
                                                 std::is_same_v<decltype(Other::y), unsigned> &&
                                                 std::is_same_v<decltype(Other::z), unsigned>,
                                             int> = 0>
  constexpr Dim3(const Other& other)  // NOLINT: meant to convert
      : x(other.x), y(other.y), z(other.z) {}

  /// To CUDA's dim3, or to slate_dim3: `dim3 grid = size.as<dim3>();`
  template <typename Other>
  constexpr Other as() const {
    Other other{};
    other.x = x;
    other.y = y;
    other.z = z;
    return other;
  }

 private:
  template <typename T>
  static constexpr unsigned number(T value) {
    // A negative number becomes one that is too large.
    if (static_cast<unsigned long long>(value) > std::numeric_limits<unsigned>::max()) {
      throw Error(SLATE_ERROR_INVALID_VALUE, "a size of a grid or block is negative or too large");
    }
    return static_cast<unsigned>(value);
  }
};

/// slate_source_options, with owned texts.
struct SourceOptions {
  std::string name, directory;
  std::vector<std::string> include_directories, options, instances;
};

/// A variable of a module. The memory is the module's.
struct Global {
  void* address = nullptr;
  std::size_t bytes = 0;
};

/// A kernel, ready to launch. A cheap handle; copies are the same kernel. Keeps its module loaded.
/// Any thread. Exception: an assignment needs this object to itself.
class Kernel {
 public:
  /// Runs the kernel over `grid` blocks of `block` threads on `stream`; see slate_kernel_launch().
  ///   kernel.launch({blocks}, {16, 16}, stream, pointer, 2.0f, count);
  /// Each argument must have exactly the size of its parameter: 2.0 is no float, and 1 no size_t.
  template <typename... Arguments>
  void launch(Dim3 grid, Dim3 block, CUstream_st* stream, Arguments... arguments) const {
    launch_with_shared(0, grid, block, stream, arguments...);
  }

  /// As above, with `dynamic_shared_bytes` of dynamic shared memory for each block.
  template <typename... Arguments>
  void launch_with_shared(std::size_t dynamic_shared_bytes, Dim3 grid, Dim3 block,
                          CUstream_st* stream, Arguments... arguments) const {
    static_assert((std::is_trivially_copyable_v<Arguments> && ...),
                  "a kernel's arguments are copied byte by byte");
    check_arguments({sizeof(Arguments)...});
    std::array<void*, sizeof...(Arguments) + 1> pointers{static_cast<void*>(&arguments)...};
    check(slate_kernel_launch(kernel_, grid.as<slate_dim3>(), block.as<slate_dim3>(),
                              dynamic_shared_bytes, stream, pointers.data(), sizeof...(Arguments)));
  }

  slate_kernel_info info() const {
    slate_kernel_info info{};
    check(slate_kernel_get_info(&info, kernel_));
    return info;
  }
  /// The size of each parameter in bytes.
  const std::vector<std::size_t>& parameter_sizes() const { return known_->sizes; }
  /// The name in the PTX.
  std::string name() const {
    const char* name = nullptr;
    check(slate_kernel_get_name(&name, kernel_));
    return name;
  }
  /// See slate_kernel_set_max_dynamic_shared(). Counts for every copy of this kernel.
  void set_max_dynamic_shared(std::size_t bytes) const {
    check(slate_kernel_set_max_dynamic_shared(kernel_, bytes));
  }
  /// The handle for the C functions. Valid while this object, a copy of it, or the Module lives.
  slate_kernel* get() const noexcept { return kernel_; }

 private:
  friend class Module;
  struct Known {
    std::string name;  // as it was asked for
    std::vector<std::size_t> sizes;
  };

  Kernel(std::shared_ptr<slate_module> module, slate_kernel* kernel, const std::string& asked)
      : module_(std::move(module)), kernel_(kernel) {
    auto known = std::make_shared<Known>(Known{asked, {}});
    known->sizes.resize(info().parameter_count);
    for (std::size_t i = 0; i < known->sizes.size(); ++i) {
      check(slate_kernel_get_parameter(nullptr, &known->sizes[i], kernel_, i));
    }
    known_ = std::move(known);
  }

  void check_arguments(std::initializer_list<std::size_t> given) const {
    const std::vector<std::size_t>& sizes = known_->sizes;
    if (given.size() != sizes.size()) {
      throw Error(SLATE_ERROR_INVALID_VALUE, "kernel " + known_->name + " takes " +
                                                 std::to_string(sizes.size()) + " arguments, not " +
                                                 std::to_string(given.size()));
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (given.begin()[i] == sizes[i]) continue;
      throw Error(SLATE_ERROR_INVALID_VALUE,
                  "argument " + std::to_string(i + 1) + " of kernel " + known_->name + " has " +
                      std::to_string(given.begin()[i]) + " bytes, its parameter has " +
                      std::to_string(sizes[i]));
    }
  }

  std::shared_ptr<slate_module> module_;
  slate_kernel* kernel_;
  std::shared_ptr<const Known> known_;
};

/// A loaded module; it can be moved, not copied. It is unloaded with the last of this object and
/// its Kernels; queued launches still run. A default-made or moved-from module is empty: its
/// functions throw SLATE_ERROR_INVALID_HANDLE.
class Module {
 public:
  Module() = default;
  Module(Module&&) noexcept = default;
  Module& operator=(Module&&) noexcept = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// See slate_module_load_ptx(), and likewise for the next two.
  static Module from_ptx(std::string_view ptx) {
    slate_module* module = nullptr;
    check(slate_module_load_ptx(&module, ptx.data(), ptx.size()));
    return Module(module);
  }
  static Module from_source(std::string_view source, const SourceOptions& options = {}) {
    slate_module* module = nullptr;
    const PlainOptions plain(options);
    check(slate_module_load_source(&module, source.data(), source.size(), &plain.value));
    return Module(module);
  }
  static Module from_file(const std::string& path, const SourceOptions& options = {}) {
    slate_module* module = nullptr;
    const PlainOptions plain(options);
    check(slate_module_load_file(&module, path.c_str(), &plain.value));
    return Module(module);
  }

  /// See slate_module_kernel().
  Kernel kernel(const std::string& name) const {
    slate_kernel* kernel = nullptr;
    check(slate_module_kernel(&kernel, module_.get(), name.c_str()));
    return Kernel(module_, kernel, name);
  }
  /// See slate_module_global().
  Global global(const std::string& name) const {
    Global global;
    check(slate_module_global(&global.address, &global.bytes, module_.get(), name.c_str()));
    return global;
  }
  /// The compiler's warnings.
  std::string log() const {
    const char* log = nullptr;
    check(slate_module_log(&log, module_.get()));
    return log;
  }
  explicit operator bool() const noexcept { return module_ != nullptr; }
  /// The handle for the C functions. Only this object may unload the module.
  slate_module* get() const noexcept { return module_.get(); }

 private:
  explicit Module(slate_module* module) : module_(module, slate_module_unload) {}

  struct PlainOptions {
    explicit PlainOptions(const SourceOptions& from) {
      value.name = from.name.empty() ? nullptr : from.name.c_str();
      value.directory = from.directory.empty() ? nullptr : from.directory.c_str();
      value.include_directories = list(from.include_directories, value.include_directory_count);
      value.options = list(from.options, value.option_count);
      value.instances = list(from.instances, value.instance_count);
    }
    PlainOptions(const PlainOptions&) = delete;
    PlainOptions& operator=(const PlainOptions&) = delete;
    slate_source_options value{};

   private:
    const char* const* list(const std::vector<std::string>& texts, std::size_t& count) {
      std::vector<const char*>& pointers = lists_[used_++];
      for (const std::string& text : texts) pointers.push_back(text.c_str());
      count = pointers.size();
      return pointers.data();
    }
    std::array<std::vector<const char*>, 3> lists_;
    std::size_t used_ = 0;
  };

  std::shared_ptr<slate_module> module_;
};

}  // namespace v0
}  // namespace slate

#endif /* __cplusplus */
#endif /* SLATE_H */
