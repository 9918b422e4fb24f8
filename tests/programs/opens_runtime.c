/* Opens the runtime by name while it runs, as libraries with optional GPU support do. The name
 * comes from the command line; without one it is the soname. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int (*Malloc)(void**, size_t);
typedef int (*Copy)(void*, const void*, size_t, int);
typedef int (*Free)(void*);

int main(int argc, char** argv) {
  void* library = dlopen(argc > 1 ? argv[1] : "libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  Malloc allocate = (Malloc)dlsym(library, "cudaMalloc");
  Copy copy = (Copy)dlsym(library, "cudaMemcpy");
  Free release = (Free)dlsym(library, "cudaFree");
  char text[] = "through the device", back[sizeof(text)] = "";
  void* memory = NULL;
  printf("%d", allocate(&memory, sizeof(text)));
  printf(" %d", copy(memory, text, sizeof(text), 1));
  printf(" %d", copy(back, memory, sizeof(text), 2));
  printf(" %d %s\n", release(memory), back);
  return 0;
}
