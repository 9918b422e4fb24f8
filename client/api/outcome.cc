#include "client/api/outcome.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>

#include "client/session/error_table.h"
#include "client/session/say.h"

namespace slate::api {
namespace {

// Not a std::string: its destructor would run before the exit handlers of programs that still call
// slate. A key's destructor runs when a thread ends, but not when the process does.
constinit thread_local char* message_of_thread = nullptr;

void free_at_thread_end(char* message) {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    ::pthread_key_create(&made, [](void* kept) {
      message_of_thread = nullptr;
      std::free(kept);
    });
    return made;
  }();
  ::pthread_setspecific(key, message);
}

}  // namespace

std::unexpected<Failure> refuse(const Error& error, std::string_view about) {
  std::string message(about);
  if (!message.empty()) message += ": ";
  message += error.message.empty() ? error_name(error.code) : std::string_view(error.message);
  return refuse(static_cast<slate_status>(client::cuda_error_number(error.code)),
                std::move(message));
}

slate_status remember(slate_status status, std::string_view message) noexcept {
  if (client::verbose()) client::say(message);
  // On failure the old message stays, which is better than none.
  auto* const room = static_cast<char*>(std::realloc(message_of_thread, message.size() + 1));
  if (room == nullptr) return status;
  std::memcpy(room, message.data(), message.size());
  room[message.size()] = '\0';
  message_of_thread = room;
  free_at_thread_end(room);
  return status;
}

const char* last_message() noexcept {
  return message_of_thread == nullptr ? "" : message_of_thread;
}

}  // namespace slate::api

using namespace slate::api;

extern "C" {

const char* slate_last_message() noexcept {
  return last_message();
}

const char* slate_status_name(slate_status status) noexcept {
  switch (status) {
#define SLATE_NAME(name) \
  case name:             \
    return #name
    SLATE_NAME(SLATE_SUCCESS);
    SLATE_NAME(SLATE_ERROR_INVALID_VALUE);
    SLATE_NAME(SLATE_ERROR_OUT_OF_MEMORY);
    SLATE_NAME(SLATE_ERROR_INITIALIZATION);
    SLATE_NAME(SLATE_ERROR_UNAVAILABLE);
    SLATE_NAME(SLATE_ERROR_NO_KERNEL_IMAGE);
    SLATE_NAME(SLATE_ERROR_INVALID_PTX);
    SLATE_NAME(SLATE_ERROR_NO_COMPILER);
    SLATE_NAME(SLATE_ERROR_INVALID_SOURCE);
    SLATE_NAME(SLATE_ERROR_FILE_NOT_FOUND);
    SLATE_NAME(SLATE_ERROR_OPERATING_SYSTEM);
    SLATE_NAME(SLATE_ERROR_INVALID_HANDLE);
    SLATE_NAME(SLATE_ERROR_NOT_FOUND);
    SLATE_NAME(SLATE_ERROR_ILLEGAL_ADDRESS);
    SLATE_NAME(SLATE_ERROR_OUT_OF_RESOURCES);
    SLATE_NAME(SLATE_ERROR_LAUNCH_TIMEOUT);
    SLATE_NAME(SLATE_ERROR_SESSION_ENDED);
    SLATE_NAME(SLATE_ERROR_ASSERT);
    SLATE_NAME(SLATE_ERROR_ILLEGAL_INSTRUCTION);
    SLATE_NAME(SLATE_ERROR_MISALIGNED_ADDRESS);
    SLATE_NAME(SLATE_ERROR_LAUNCH_FAILURE);
    SLATE_NAME(SLATE_ERROR_NOT_PERMITTED);
    SLATE_NAME(SLATE_ERROR_NOT_SUPPORTED);
    SLATE_NAME(SLATE_ERROR_UNKNOWN);
#undef SLATE_NAME
  }
  return "SLATE_ERROR_UNKNOWN";
}

}  // extern "C"
