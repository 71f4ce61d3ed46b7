/* The compiler component's interface, in C: no exception and no C++ type crosses it.
 *
 * Thread-safety: all functions may be called from any thread; compiles of several threads run side by side. */
#ifndef BILOGP_CLANG_H
#define BILOGP_CLANG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised with every change of the structs below; the two sides must agree. */
#define BILOGP_CLANG_INTERFACE 1u

struct bilogp_clang_file {
  const char* name; /* relative to the root of the files: "canon/leaf.h" */
  size_t name_size;
  const char* text; /* need not end in a zero */
  size_t text_size;
};

struct bilogp_clang_request {
  const struct bilogp_clang_file* files; /* the main file first; nothing else can be included */
  size_t file_count;
  const char* const* arguments; /* clang -cc1's, without the main file's name */
  size_t argument_count;
  const char* const* entries; /* functions that the image must have */
  size_t entry_count;
};

struct bilogp_clang_result {
  const char* error;             /* null, or one sentence; then only this is set */
  uint32_t machine;              /* ELF e_machine */
  const char* code;              /* position-independent, to be mapped at a page boundary */
  size_t code_size;              /* bytes */
  const uint64_t* entry_offsets; /* into code, in the order of the request */
  double set_up_seconds, front_end_seconds, optimizer_seconds, code_generation_seconds, link_seconds;
};

uint32_t bilogp_clang_interface(void);

/* Of the clang library as loaded: "19.1.7". */
const char* bilogp_clang_version(void);

/* Null only when there is no memory for a result. Nothing is printed, no file is touched, no process is started. */
const struct bilogp_clang_result* bilogp_clang_compile(const struct bilogp_clang_request* request);

void bilogp_clang_free(const struct bilogp_clang_result* result);

#ifdef __cplusplus
}
#endif

#endif
