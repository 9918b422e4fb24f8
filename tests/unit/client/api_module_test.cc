// slate.h's functions on modules, in C, against a fake daemon: what each answers.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

#define SLATE_C_ONLY
#include "client/slate.h"
#include "tests/unit/client/api_daemon.h"
#include "tests/unit/client/fake_cache.h"
#include "tests/unit/client/fake_daemon.h"
#include "tests/unit/client/fake_source.h"

namespace {

using slate::ErrorCode;
using slate::ipc::CommandType;
using slate::test::compiled;
using slate::test::fake_compiler;
using slate::test::kTestPtx;

class ApiModuleTest : public ::testing::Test {
 protected:
  static slate_status load(slate_module** module, const char* ptx = kTestPtx) {
    return slate_module_load_ptx(module, ptx, std::strlen(ptx));
  }
  slate_module* loaded() {
    slate_module* module = nullptr;
    EXPECT_EQ(load(&module), SLATE_SUCCESS) << slate_last_message();
    return module;
  }
  static slate_status load_source(slate_module** module,
                                  const slate_source_options* options = nullptr) {
    return slate_module_load_source(module, "source", 6, options);
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(daemon.directory() + "/" + name) << text;
    return daemon.directory() + "/" + name;
  }
  static std::string message() { return slate_last_message(); }

  slate::test::ApiDaemon daemon;
};

TEST_F(ApiModuleTest, PtxIsLoadedWithoutItsEndOfText) {
  slate_module* module = nullptr;
  ASSERT_EQ(slate_module_load_ptx(&module, kTestPtx, std::strlen(kTestPtx) + 1), SLATE_SUCCESS);
  EXPECT_EQ(daemon.fake().count(CommandType::kModuleLoad), 1);
  const char* log = nullptr;
  EXPECT_EQ(slate_module_log(&log, module), SLATE_SUCCESS);
  EXPECT_STREQ(log, "");
  EXPECT_EQ(slate_module_unload(module), SLATE_SUCCESS);
}

TEST_F(ApiModuleTest, MissingArgumentsAreRefusedBeforeAnybodyIsAsked) {
  slate_module* module = nullptr;
  EXPECT_EQ(slate_module_load_ptx(nullptr, kTestPtx, 10), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_load_ptx(&module, nullptr, 10), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(message(), "the PTX is null");
  EXPECT_EQ(slate_module_load_ptx(&module, kTestPtx, 0), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_load_source(nullptr, "x", 1, nullptr), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_load_source(&module, nullptr, 1, nullptr), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_load_source(&module, "x", 0, nullptr), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_load_source(&module, "\0", 1, nullptr), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_load_file(nullptr, "x", nullptr), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_load_file(&module, nullptr, nullptr), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(daemon.fake().sessions(), 0);
  EXPECT_EQ(module, nullptr);
}

TEST_F(ApiModuleTest, ManagedVariablesAreTheHostsToo) {
  constexpr const char* kPtx =
      ".version 9.0\n.target sm_90\n.visible .global .attribute(.managed) .align 4 .u32 both[8];\n"
      ".visible .global .u32 device_only;\n";
  slate_module* module = nullptr;
  ASSERT_EQ(load(&module, kPtx), SLATE_SUCCESS) << message();
  EXPECT_EQ(daemon.fake().count(CommandType::kVariablePlace), 1);
  void* place = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(slate_module_global(&place, &bytes, module, "both"), SLATE_SUCCESS) << message();
  EXPECT_EQ(bytes, 32u);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, place), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  static_cast<unsigned*>(place)[7] = 42;
  EXPECT_EQ(cudaFree(place), cudaErrorInvalidValue) << "it goes with its module";
  cudaGetLastError();
  ASSERT_EQ(slate_module_global(&place, &bytes, module, "device_only"), SLATE_SUCCESS);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, place), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(slate_module_unload(module), SLATE_SUCCESS);
}

TEST_F(ApiModuleTest, TextThatIsNoPtxIsNotSent) {
  slate_module* module = nullptr;
  EXPECT_EQ(load(&module, "__global__ void f() {}"), SLATE_ERROR_INVALID_PTX);
  EXPECT_NE(message().find(".version"), std::string::npos);
  EXPECT_EQ(daemon.fake().sessions(), 0);
}

TEST_F(ApiModuleTest, TheDaemonsRefusalComesWithItsWords) {
  daemon.fake().refuse(CommandType::kModuleLoad, {ErrorCode::kInvalidPtx, "line 3: no such type"});
  slate_module* module = nullptr;
  EXPECT_EQ(load(&module), SLATE_ERROR_INVALID_PTX);
  EXPECT_EQ(message(), "line 3: no such type");
  EXPECT_EQ(module, nullptr);
  daemon.fake().refuse(CommandType::kModuleLoad, {ErrorCode::kNoKernelImage, "for sm_100"});
  EXPECT_EQ(load(&module), SLATE_ERROR_NO_KERNEL_IMAGE);
}

TEST_F(ApiModuleTest, WithoutADaemonNothingLoads) {
  daemon.stop();
  ::setenv("SLATE_RUNTIME_DIR", "/nonexistent/slate", 1);
  slate_module* module = nullptr;
  EXPECT_EQ(load(&module), SLATE_ERROR_INITIALIZATION);
  EXPECT_NE(message().find("slated"), std::string::npos) << message();
}

TEST_F(ApiModuleTest, SourceIsCompiledForTheSessionsDevice) {
  const char* includes[] = {"/a", "/b"};
  const char* options[] = {"-DN=4"};
  const char* instances[] = {"scale<float>"};
  slate_source_options given{};
  given.name = "mine.cu";
  given.directory = "/sources";
  given.include_directories = includes;
  given.include_directory_count = 2;
  given.options = options;
  given.option_count = 1;
  given.instances = instances;
  given.instance_count = 1;
  slate_module* module = nullptr;
  ASSERT_EQ(load_source(&module, &given), SLATE_SUCCESS) << message();
  const slate::source::SourceOptions& asked = fake_compiler().options;
  EXPECT_EQ(fake_compiler().text, "source");
  EXPECT_EQ(asked.architecture, 90u);
  EXPECT_EQ(asked.name, "mine.cu");
  EXPECT_EQ(asked.directory, "/sources");
  EXPECT_EQ(asked.include_directories, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(asked.options, std::vector<std::string>{"-DN=4"});
  EXPECT_EQ(asked.instances, std::vector<std::string>{"scale<float>"});
  const char* log = nullptr;
  EXPECT_EQ(slate_module_log(&log, module), SLATE_SUCCESS);
  EXPECT_STREQ(log, "a warning");
}

TEST_F(ApiModuleTest, BadOptionsAreRefused) {
  slate_module* module = nullptr;
  slate_source_options options{};
  options.option_count = 1;
  EXPECT_EQ(load_source(&module, &options), SLATE_ERROR_INVALID_VALUE);
  const char* missing[] = {nullptr};
  options.options = missing;
  EXPECT_EQ(load_source(&module, &options), SLATE_ERROR_INVALID_VALUE);
  options = {};
  options.reserved[3] = &options;
  EXPECT_EQ(load_source(&module, &options), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_load_file(&module, "/nonexistent", &options), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(fake_compiler().compilations, 0);
}

TEST_F(ApiModuleTest, TheCompilersLogIsTheMessageInFull) {
  const std::string log = "source.cu(3): error: " + std::string(100'000, 'x');
  fake_compiler().result = slate::fail(ErrorCode::kInvalidPtx, log);
  slate_module* module = nullptr;
  EXPECT_EQ(load_source(&module), SLATE_ERROR_INVALID_SOURCE);
  EXPECT_EQ(message(), log);
}

TEST_F(ApiModuleTest, OtherCompilerFailuresHaveStatusesOfTheirOwn) {
  slate_module* module = nullptr;
  fake_compiler().result = slate::fail(ErrorCode::kNotSupported, "no libnvrtc in /usr/lib");
  EXPECT_EQ(load_source(&module), SLATE_ERROR_NO_COMPILER);
  EXPECT_EQ(message(), "no libnvrtc in /usr/lib");
  fake_compiler().result = slate::fail(ErrorCode::kIo, "x.h cannot be read");
  EXPECT_EQ(load_source(&module), SLATE_ERROR_OPERATING_SYSTEM);
}

TEST_F(ApiModuleTest, FilesOfBothKindsAreToldByTheirContent) {
  slate_module* module = nullptr;
  const std::string ptx = write("kernels.cu", kTestPtx);
  ASSERT_EQ(slate_module_load_file(&module, ptx.c_str(), nullptr), SLATE_SUCCESS) << message();
  EXPECT_EQ(fake_compiler().compilations, 0);
  const std::string source = write("kernels.ptx", "__global__ void f() {}");
  ASSERT_EQ(slate_module_load_file(&module, source.c_str(), nullptr), SLATE_SUCCESS) << message();
  EXPECT_EQ(fake_compiler().text, "__global__ void f() {}");
  EXPECT_EQ(fake_compiler().options.name, source);
  EXPECT_EQ(fake_compiler().options.directory, daemon.directory());
}

TEST_F(ApiModuleTest, FilesThatCannotBeLoadedSayWhy) {
  slate_module* module = nullptr;
  EXPECT_EQ(slate_module_load_file(&module, "/nonexistent.cu", nullptr),
            SLATE_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(message(), "/nonexistent.cu cannot be read: No such file or directory");
  EXPECT_EQ(slate_module_load_file(&module, "/", nullptr), SLATE_ERROR_FILE_NOT_FOUND);
  EXPECT_EQ(slate_module_load_file(&module, write("empty", "").c_str(), nullptr),
            SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_load_file(&module,
                                   write("elf",
                                         "\x7f"
                                         "ELF2")
                                       .c_str(),
                                   nullptr),
            SLATE_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(module, nullptr);
}

TEST_F(ApiModuleTest, AKernelHasOneHandleUnderAllItsNames) {
  slate_module* const module = loaded();
  slate_kernel *first = nullptr, *second = nullptr, *other = nullptr;
  ASSERT_EQ(slate_module_kernel(&first, module, "scale<float>"), SLATE_SUCCESS) << message();
  ASSERT_EQ(slate_module_kernel(&second, module, "_Z5scaleIfEvPT_"), SLATE_SUCCESS);
  ASSERT_EQ(slate_module_kernel(&other, module, "plain"), SLATE_SUCCESS);
  EXPECT_EQ(first, second);
  EXPECT_NE(first, other);
  EXPECT_EQ(daemon.fake().count(CommandType::kFunctionGet), 2);
}

TEST_F(ApiModuleTest, NamesThatAreMissingAreAnsweredWithWhatThereIs) {
  slate_module* const module = loaded();
  slate_kernel* kernel = nullptr;
  EXPECT_EQ(slate_module_kernel(&kernel, module, "scale<double>"), SLATE_ERROR_NOT_FOUND);
  EXPECT_NE(message().find("scale<float>"), std::string::npos) << message();
  EXPECT_NE(message().find("options"), std::string::npos) << message();
  EXPECT_EQ(slate_module_kernel(&kernel, module, "factor"), SLATE_ERROR_NOT_FOUND);
  EXPECT_EQ(slate_module_global(nullptr, nullptr, module, "plain"), SLATE_ERROR_NOT_FOUND);
  EXPECT_EQ(message(), "\"plain\" is not among factor of the module's variables");
  EXPECT_EQ(slate_module_kernel(nullptr, module, "plain"), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_kernel(&kernel, module, nullptr), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_global(nullptr, nullptr, module, nullptr), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(slate_module_log(nullptr, module), SLATE_ERROR_INVALID_VALUE);
  EXPECT_EQ(kernel, nullptr);
}

TEST_F(ApiModuleTest, OverloadsHaveToBeToldApart) {
  slate_module* module = nullptr;
  ASSERT_EQ(load(&module, ".version 9.0\n.entry _Z3addPf() {}\n.entry _Z3addPd() {}"),
            SLATE_SUCCESS);
  slate_kernel* kernel = nullptr;
  EXPECT_EQ(slate_module_kernel(&kernel, module, "add"), SLATE_ERROR_INVALID_VALUE);
  EXPECT_NE(message().find("_Z3addPd"), std::string::npos);
  EXPECT_EQ(slate_module_kernel(&kernel, module, "add(double*)"), SLATE_SUCCESS);
}

TEST_F(ApiModuleTest, AVariableIsMemoryToCudart) {
  slate_module* const module = loaded();
  void* address = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(slate_module_global(&address, &bytes, module, "factor"), SLATE_SUCCESS) << message();
  EXPECT_EQ(bytes, 64u);
  EXPECT_EQ(slate_module_global(nullptr, nullptr, module, "factor"), SLATE_SUCCESS);
  EXPECT_EQ(daemon.fake().count(CommandType::kGlobalGet), 1);
  float value = 2.5f, back = 0;
  EXPECT_EQ(cudaMemcpy(address, &value, 4, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(&back, address, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, 2.5f);
  EXPECT_EQ(slate_module_unload(module), SLATE_SUCCESS);
  EXPECT_EQ(cudaMemcpy(address, &value, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
}

TEST_F(ApiModuleTest, TheDaemonsAnswerAboutANameIsPassedOn) {
  slate_module* const module = loaded();
  daemon.fake().refuse(CommandType::kFunctionGet, {ErrorCode::kInvalidPtx, "ptxas said no"});
  daemon.fake().refuse(CommandType::kGlobalGet, {ErrorCode::kSymbolNotFound, "optimised away"});
  slate_kernel* kernel = nullptr;
  EXPECT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_ERROR_INVALID_PTX);
  EXPECT_EQ(message(), "kernel plain: ptxas said no");
  EXPECT_EQ(slate_module_global(nullptr, nullptr, module, "factor"), SLATE_ERROR_NOT_FOUND);
  daemon.fake().refuse(CommandType::kFunctionGet, {ErrorCode::kNone, ""});
  EXPECT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_SUCCESS);
}

TEST_F(ApiModuleTest, AnUnloadedModuleIsGoneWithItsKernels) {
  slate_module* const module = loaded();
  slate_kernel* kernel = nullptr;
  ASSERT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_SUCCESS);
  EXPECT_EQ(slate_module_unload(module), SLATE_SUCCESS);
  EXPECT_EQ(slate_module_unload(module), SLATE_ERROR_INVALID_HANDLE);
  EXPECT_EQ(slate_module_unload(nullptr), SLATE_ERROR_INVALID_HANDLE);
  EXPECT_EQ(message(), "the module is null");
  EXPECT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_ERROR_INVALID_HANDLE);
  EXPECT_EQ(slate_module_global(nullptr, nullptr, module, "x"), SLATE_ERROR_INVALID_HANDLE);
  const char* text = nullptr;
  EXPECT_EQ(slate_module_log(&text, module), SLATE_ERROR_INVALID_HANDLE);
  EXPECT_EQ(slate_kernel_get_name(&text, kernel), SLATE_ERROR_INVALID_HANDLE);
  EXPECT_NE(loaded(), module) << "handles are not reused";
  daemon.settle();
  EXPECT_EQ(daemon.unloads(), 1);
}

TEST_F(ApiModuleTest, AResetLosesModulesAndUnloadingThemStaysPossible) {
  slate_module* const module = loaded();
  cudaDeviceReset();
  slate_kernel* kernel = nullptr;
  EXPECT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_ERROR_SESSION_ENDED);
  EXPECT_NE(loaded(), nullptr);
  EXPECT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_ERROR_SESSION_ENDED);
  EXPECT_EQ(slate_module_global(nullptr, nullptr, module, "factor"), SLATE_ERROR_SESSION_ENDED);
  EXPECT_EQ(slate_module_unload(module), SLATE_SUCCESS);
  daemon.settle();
  EXPECT_EQ(daemon.unloads(), 0) << "the session that had it is gone";
}

TEST_F(ApiModuleTest, AChildHasNoneOfItsParentsModules) {
  slate_module* const module = loaded();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // rather dead than waiting for a lock that nobody holds
    slate_kernel* kernel = nullptr;
    const bool lost = slate_module_kernel(&kernel, module, "plain") == SLATE_ERROR_SESSION_ENDED &&
                      slate_module_unload(module) == SLATE_SUCCESS;
    ::_exit(lost ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  slate_kernel* kernel = nullptr;
  EXPECT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_SUCCESS) << message();
}

TEST_F(ApiModuleTest, AFaultOfTheSessionIsTheAnswerToEveryCall) {
  slate_module* const module = loaded();
  slate_kernel* kernel = nullptr;
  ASSERT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_SUCCESS);
  daemon.fake().fault_next();
  void* argument = nullptr;
  void* arguments[] = {&argument};
  slate_kernel_launch(kernel, {1, 1, 1}, {32, 1, 1}, 0, nullptr, arguments, 1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  slate_module* other = nullptr;
  EXPECT_EQ(load(&other), SLATE_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(message(), "a kernel wrote to 0x10");
  EXPECT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(slate_module_global(nullptr, nullptr, module, "factor"), SLATE_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(slate_kernel_set_max_dynamic_shared(kernel, 0), SLATE_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(slate_kernel_launch(kernel, {1, 1, 1}, {32, 1, 1}, 0, nullptr, arguments, 1),
            SLATE_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(slate_module_unload(module), SLATE_SUCCESS);
}

TEST_F(ApiModuleTest, MessagesBelongToTheirThreadAndStayUntilTheNextFailure) {
  slate_module* module = nullptr;
  EXPECT_EQ(load(&module, "no PTX"), SLATE_ERROR_INVALID_PTX);
  const std::string mine = message();
  std::thread([&] {
    EXPECT_STREQ(slate_last_message(), "");
    EXPECT_EQ(slate_module_unload(nullptr), SLATE_ERROR_INVALID_HANDLE);
    EXPECT_STREQ(slate_last_message(), "the module is null");
  }).join();
  EXPECT_EQ(load(&module), SLATE_SUCCESS);
  EXPECT_EQ(message(), mine);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "slate.h leaves cudart's last error alone";
}

TEST_F(ApiModuleTest, ThreadsLoadAndUnloadSideBySide) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        slate_module* module = nullptr;
        slate_kernel* kernel = nullptr;
        void* argument = nullptr;
        void* arguments[] = {&argument};
        ASSERT_EQ(load(&module), SLATE_SUCCESS);
        ASSERT_EQ(slate_module_kernel(&kernel, module, "plain"), SLATE_SUCCESS);
        ASSERT_EQ(slate_kernel_launch(kernel, {1, 1, 1}, {1, 1, 1}, 0, nullptr, arguments, 1),
                  SLATE_SUCCESS);
        ASSERT_EQ(slate_module_unload(module), SLATE_SUCCESS);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  daemon.settle();
  EXPECT_EQ(daemon.unloads(), 80);
  EXPECT_EQ(daemon.launches(), 80);
}

TEST(ApiStatusTest, StatusesAreNamedAndNumberedAsCudas) {
  EXPECT_STREQ(slate_status_name(SLATE_SUCCESS), "SLATE_SUCCESS");
  EXPECT_STREQ(slate_status_name(SLATE_ERROR_INVALID_SOURCE), "SLATE_ERROR_INVALID_SOURCE");
  EXPECT_STREQ(slate_status_name(static_cast<slate_status>(998)), "SLATE_ERROR_UNKNOWN");
  EXPECT_EQ(int{SLATE_ERROR_INVALID_PTX}, int{cudaErrorInvalidPtx});
  EXPECT_EQ(int{SLATE_ERROR_NO_COMPILER}, int{cudaErrorJitCompilerNotFound});
  EXPECT_EQ(int{SLATE_ERROR_INVALID_SOURCE}, int{cudaErrorInvalidSource});
  EXPECT_EQ(int{SLATE_ERROR_FILE_NOT_FOUND}, int{cudaErrorFileNotFound});
  EXPECT_EQ(int{SLATE_ERROR_NOT_FOUND}, int{cudaErrorSymbolNotFound});
  EXPECT_EQ(int{SLATE_ERROR_SESSION_ENDED}, int{cudaErrorContextIsDestroyed});
  EXPECT_EQ(int{SLATE_ERROR_INVALID_HANDLE}, int{cudaErrorInvalidResourceHandle});
}

}  // namespace
