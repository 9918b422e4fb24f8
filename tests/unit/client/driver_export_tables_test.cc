#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "client/driver/contexts.h"
#include "client/driver/export_tables.h"
#include "client/driver/front.h"

extern "C" CUresult cuGLInit();  // a stub

namespace slate::driver {
namespace {

CUuuid uuid(std::string_view text) {
  CUuuid id{};
  std::size_t digits = 0;
  for (const char letter : text) {
    if (letter == '-') continue;
    const int digit = letter <= '9' ? letter - '0' : letter - 'a' + 10;
    char& byte = id.bytes[digits++ / 2];
    byte = static_cast<char>(static_cast<unsigned char>(byte) << 4 | digit);
  }
  return id;
}

constexpr std::string_view kCudartInterfaceId = "6bd5fb6c-5bf4-e74a-8987-d93912fd9df9";
constexpr std::string_view kToolsHooksId = "a094798c-2e74-2e74-93f2-0800200c0a66";
constexpr std::string_view kToolsThreadId = "42d85a81-23f6-cb47-8298-f6e78a3aecdc";
constexpr std::string_view kContextStorageId = "c693336e-1121-df11-a8c3-68f355d89593";
constexpr std::string_view kContextCheckId = "263e8860-7cd2-6143-92f6-bbd5006dfa7e";
constexpr std::string_view kIntegrityCheckId = "d4082055-bde6-704b-8d34-ba123c66e1f2";
constexpr std::string_view kToolsContextId = "21318c60-9714-3248-8ca6-41ff7324c8f2";
constexpr std::string_view kSmTopologyId = "1734dc26-800d-4745-8726-c0f1e7dd8bca";
constexpr std::string_view kToolsModuleId = "6e163fbe-b958-444d-835c-e182aff1991e";

template <typename Table>
const Table& table(std::string_view id) {
  const CUuuid bytes = uuid(id);
  const void* found = nullptr;
  EXPECT_EQ(cuGetExportTable(&found, &bytes), CUDA_SUCCESS) << id;
  return *static_cast<const Table*>(found);
}

std::array<void*, 128> keys;  // places that stand for keys, as libraries do it

/// The primary context is retained and current.
class DriverExportTablesTest : public ::testing::Test {
 protected:
  DriverExportTablesTest() {
    Life::begin();
    Contexts::get().retain_primary();
    this_thread().current = &Contexts::get().primary();
  }
  ~DriverExportTablesTest() override {
    (void)Contexts::get().release_primary();
    this_thread().current = nullptr;
  }

  CUresult put(void* key, void* what) { return storage.put(nullptr, key, what, nullptr); }
  CUresult get(void* key) { return storage.get(&value, nullptr, key); }

  const ContextStorage& storage = table<ContextStorage>(kContextStorageId);
  void* value = nullptr;
};

TEST(DriverExportTableListTest, AllButOneTableBeginWithTheirSize) {
  EXPECT_EQ(table<std::size_t>(kCudartInterfaceId), 13 * 8u);
  EXPECT_EQ(table<std::size_t>(kToolsHooksId), 7 * 8u);
  EXPECT_EQ(table<std::size_t>(kToolsThreadId), 3 * 8u);
  EXPECT_EQ(table<std::size_t>(kContextCheckId), 15 * 8u);
  EXPECT_EQ(table<std::size_t>(kIntegrityCheckId), 3 * 8u);
  EXPECT_EQ(table<std::size_t>(kToolsContextId), 93 * 8u);
  EXPECT_EQ(table<std::size_t>(kSmTopologyId), 17 * 8u);
  EXPECT_EQ(table<std::size_t>(kToolsModuleId), 99 * 8u);
  EXPECT_GT(table<std::size_t>(kContextStorageId), 4096u);
}

TEST(DriverExportTableListTest, OtherTablesAreRefused) {
  for (const std::string_view id :
       {"f8cff951-2146-8b4e-b9e2-fb469e7c0dd9", "da9151d3-3ae6-cc41-a5c0-4f26d533e328",
        "195bcbf4-d67d-024a-acc5-1d29cea631ae", "00000000-0000-0000-0000-000000000000",
        "6bd5fb6c-5bf4-e74a-8987-d93912fd9df8"}) {
    const CUuuid bytes = uuid(id);
    const void* found = &bytes;
    EXPECT_EQ(cuGetExportTable(&found, &bytes), CUDA_ERROR_INVALID_VALUE) << id;
    EXPECT_EQ(found, nullptr) << id;
  }
  const CUuuid known = uuid(kCudartInterfaceId);
  const void* found = nullptr;
  EXPECT_EQ(cuGetExportTable(nullptr, &known), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGetExportTable(&found, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(DriverExportTableListTest, EntriesThatNobodyNeedsAreNotSupported) {
  EXPECT_EQ(table<CudartInterface>(kCudartInterfaceId).entry_1(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(table<CudartInterface>(kCudartInterfaceId).others.back()(), CUDA_ERROR_NOT_SUPPORTED);
  for (const Unserved entry : table<SmTopology>(kSmTopologyId).others)
    EXPECT_EQ(entry(), CUDA_ERROR_NOT_SUPPORTED);
  for (const Unserved entry : table<ToolsModule>(kToolsModuleId).others)
    EXPECT_EQ(entry(), CUDA_ERROR_NOT_SUPPORTED);
}

TEST(DriverExportTableListTest, NoToolListens) {
  const auto& hooks = table<ToolsHooks>(kToolsHooksId);
  for (const auto& [entry, expected] :
       {std::pair{hooks.functions, 1024u}, std::pair{hooks.events, 14u}}) {
    std::size_t *flags = nullptr, *again = nullptr;
    std::size_t count = 0;
    entry(&flags, &count);
    ASSERT_EQ(count, expected);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(flags[i], 0u);
    entry(&again, &count);
    EXPECT_EQ(again, flags) << "the caller keeps it";
  }
}

TEST_F(DriverExportTablesTest, ThePrimaryContextHasAHandleBeforeItIsRetained) {
  ASSERT_EQ(Contexts::get().release_primary(), CUDA_SUCCESS);
  CUcontext primary = nullptr;
  const auto& interface = table<CudartInterface>(kCudartInterfaceId);
  EXPECT_EQ(interface.primary_context(&primary, 0), CUDA_SUCCESS);
  EXPECT_EQ(primary, Contexts::get().primary().handle());
  EXPECT_FALSE(Contexts::get().primary().is_active);
  EXPECT_EQ(interface.primary_context(&primary, 1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(interface.primary_context(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  Contexts::get().retain_primary();
}

TEST_F(DriverExportTablesTest, ThreadsKnowTheirContextAndItsNumber) {
  CUcontext current = nullptr;
  EXPECT_EQ(table<ToolsThread>(kToolsThreadId).current_context(&current, 0), CUDA_SUCCESS);
  EXPECT_EQ(current, Contexts::get().primary().handle());
  std::uint64_t number = 0;
  std::uint32_t device = 7, result = 7;
  const auto& context = table<ToolsContext>(kToolsContextId);
  EXPECT_EQ(context.number(current, &number), CUDA_SUCCESS);
  EXPECT_EQ(number, 1u);
  EXPECT_EQ(context.device(current, &device), CUDA_SUCCESS);
  EXPECT_EQ(device, 0u);
  const auto& check = table<ContextCheck>(kContextCheckId);
  EXPECT_EQ(check.check(current, &result, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(result, 0u);
  EXPECT_EQ(check.check_all(), 0u);
}

TEST_F(DriverExportTablesTest, ValuesAreKeptByKey) {
  EXPECT_EQ(get(&keys[0]), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(put(&keys[0], &keys[1]), CUDA_SUCCESS);
  EXPECT_EQ(put(&keys[2], &keys[3]), CUDA_SUCCESS);
  EXPECT_EQ(get(&keys[0]), CUDA_SUCCESS);
  EXPECT_EQ(value, &keys[1]);
  EXPECT_EQ(storage.get(&value, Contexts::get().primary().handle(), &keys[2]), CUDA_SUCCESS);
  EXPECT_EQ(value, &keys[3]);
  EXPECT_EQ(storage.remove(nullptr, &keys[0]), CUDA_SUCCESS);
  EXPECT_EQ(storage.remove(nullptr, &keys[0]), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(get(&keys[0]), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(get(nullptr), CUDA_ERROR_INVALID_HANDLE) << "of a removed entry";
  EXPECT_EQ(get(&keys[2]), CUDA_SUCCESS);
}

TEST_F(DriverExportTablesTest, StorageNeedsALiveContext) {
  ASSERT_EQ(put(&keys[0], &keys[1]), CUDA_SUCCESS);
  int stranger = 0;
  EXPECT_EQ(storage.get(&value, reinterpret_cast<CUcontext>(&stranger), &keys[0]),
            CUDA_ERROR_INVALID_CONTEXT);
  this_thread().current = nullptr;
  EXPECT_EQ(get(&keys[0]), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(storage.get(&value, Contexts::get().primary().handle(), &keys[0]), CUDA_SUCCESS);
  this_thread().current = &Contexts::get().primary();
  ASSERT_EQ(Contexts::get().release_primary(), CUDA_SUCCESS);
  EXPECT_EQ(get(&keys[0]), CUDA_ERROR_INVALID_CONTEXT) << "current, but it has ended";
  Contexts::get().retain_primary();
  EXPECT_EQ(get(&keys[0]), CUDA_ERROR_INVALID_HANDLE) << "forgotten";
}

TEST_F(DriverExportTablesTest, TheEndOfAContextRunsItsDestructors) {
  static const void* destroyed = nullptr;
  ASSERT_EQ(storage.put(nullptr, &keys[0], &keys[1],
                        [](CUcontext context, void* key, void* kept) {
                          EXPECT_EQ(context, Contexts::get().primary().handle());
                          EXPECT_EQ(key, &keys[0]);
                          destroyed = kept;
                        }),
            CUDA_SUCCESS);
  Contexts::get().reset_primary();
  EXPECT_EQ(destroyed, &keys[1]);
}

/// The status of a child that runs `body`.
template <typename Body>
int status_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) body();
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_F(DriverExportTablesTest, AForkedChildIsNotInitialised) {
  ASSERT_EQ(put(&keys[0], &keys[1]), CUDA_SUCCESS);
  EXPECT_EQ(status_of_child([&] { ::_exit(get(&keys[0]) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1); }),
            0);
}

bool is_checked_at_end = false;

/// Runs after all that was registered later, Life's own handler included.
void check_at_end() {
  if (!is_checked_at_end) return;
  void* value = nullptr;
  const auto& storage = table<ContextStorage>(kContextStorageId);
  ::_exit(storage.get(&value, nullptr, &keys[0]) == CUDA_ERROR_DEINITIALIZED &&
                  cuGLInit() == CUDA_ERROR_DEINITIALIZED
              ? 0
              : 1);
}
[[maybe_unused]] const int registered = std::atexit(check_at_end);

TEST_F(DriverExportTablesTest, AtTheEndOfTheProgramTheDriverIsGone) {
  ASSERT_EQ(put(&keys[0], &keys[1]), CUDA_SUCCESS);
  EXPECT_EQ(status_of_child([] {
              is_checked_at_end = true;
              std::exit(2);
            }),
            0);
}

}  // namespace
}  // namespace slate::driver
