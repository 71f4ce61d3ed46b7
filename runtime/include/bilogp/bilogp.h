/* The C interface of bilogp, for bindings and for programs in other languages.
 *
 * Every struct begins with its own size, so that old callers go on working: a shorter struct gets defaults for what it
 * lacks, a longer one is refused when the part this library does not know is not all zero. A function returns 0, or one
 * of the codes below; bilogp_last_error() then has the sentence. No exception leaves the library. Thread-safe.
 */
#ifndef BILOGP_BILOGP_H
#define BILOGP_BILOGP_H

#include <stdint.h>

#include "bilogp/export.hpp"

#ifdef __cplusplus
extern "C" {
#endif

/* Rises when a struct or a function changes its meaning. */
#define BILOGP_ABI_VERSION 1
BILOGP_API uint32_t bilogp_abi_version(void);
BILOGP_API const char* bilogp_version(void);

enum bilogp_status {
  BILOGP_OK = 0,
  BILOGP_INVALID_ARGUMENT = 1,
  BILOGP_OUT_OF_RANGE = 2,
  BILOGP_UNSUPPORTED = 3,
  BILOGP_COMPILE_FAILED = 4,
  BILOGP_DEVICE = 5,
  BILOGP_OUT_OF_MEMORY = 6,
  BILOGP_IO = 7,
  BILOGP_CACHE = 8,
  BILOGP_INTERNAL = 99
};

/* The sentence of this thread's last failure; valid until the thread's next call. */
BILOGP_API const char* bilogp_last_error(void);

enum bilogp_dtype { BILOGP_FLOAT32 = 0, BILOGP_FLOAT16 = 1, BILOGP_BFLOAT16 = 2, BILOGP_INT32 = 3, BILOGP_INT64 = 4 };

/* A tensor of up to 8 dimensions; strides in elements. All zero after struct_size means "no tensor". */
typedef struct bilogp_tensor {
  uint32_t struct_size;
  int32_t dtype;
  int32_t rank;
  int32_t device_type; /* 1 cpu, 2 cuda, 10 hip; 0 means cpu */
  int32_t device_index;
  int32_t reserved;
  void* data;
  int64_t shape[8];
  int64_t strides[8];
} bilogp_tensor;

typedef struct bilogp_options {
  uint32_t struct_size;
  int32_t validate;                         /* 0 automatic, 1 on, 2 off */
  int64_t ignore_index;                     /* set by bilogp_options_init to -100 */
  double temperature;                       /* set by bilogp_options_init to 1 */
  int64_t vocab_size;                       /* set by bilogp_options_init to -1: all columns */
  const bilogp_tensor* temperature_per_row; /* or null */
  int64_t* error_buffer;                    /* int64[4] or null */
  int32_t threads;                          /* 0: the default */
  int32_t numerics;                         /* 0 portable, 1 native: on a GPU only */
  int32_t plan;                             /* set by bilogp_options_init to -1; see LogpOptions in runtime.hpp */
  int32_t bad_ids_counted;                  /* 1: by another call with the same ids, this one counts none */
} bilogp_options;

BILOGP_API void bilogp_options_init(bilogp_options* options);

typedef struct bilogp_runtime bilogp_runtime; /* never freed */

/* "auto", "cpu", "cpu:x86-64-v3", "cuda", "cuda:sm_90a", ... */
BILOGP_API int bilogp_runtime_get(const char* target, bilogp_runtime** runtime);

/* Shapes and dtypes as in bilogp/runtime.hpp. `lse` and `row_state` may be null, `options` too (defaults). */
BILOGP_API int bilogp_logp(bilogp_runtime* runtime, const bilogp_tensor* logits, const bilogp_tensor* target_ids,
                           const bilogp_tensor* logp, const bilogp_tensor* lse, const bilogp_tensor* row_state,
                           const bilogp_options* options, void* stream);

BILOGP_API int bilogp_logp_backward(bilogp_runtime* runtime, const bilogp_tensor* logits,
                                    const bilogp_tensor* target_ids, const bilogp_tensor* row_state,
                                    const bilogp_tensor* grad_logp, const bilogp_tensor* grad_logits, int in_place,
                                    const bilogp_options* options, void* stream);

/* Scores and gradients of an upstream gradient that is known beforehand, in one pass. */
BILOGP_API int bilogp_logp_with_gradient(bilogp_runtime* runtime, const bilogp_tensor* logits,
                                         const bilogp_tensor* target_ids, const bilogp_tensor* grad_logp,
                                         const bilogp_tensor* logp, const bilogp_tensor* lse,
                                         const bilogp_tensor* row_state, const bilogp_tensor* grad_logits, int in_place,
                                         const bilogp_options* options, void* stream);

BILOGP_API int bilogp_node_count(int64_t shard_begin, int64_t shard_end, int64_t full_vocab, int64_t* count);

BILOGP_API int bilogp_logp_partial(bilogp_runtime* runtime, const bilogp_tensor* logits,
                                   const bilogp_tensor* target_ids, int64_t shard_begin, int64_t shard_end,
                                   int64_t full_vocab, const bilogp_tensor* nodes, const bilogp_tensor* target_logit,
                                   const bilogp_options* options, void* stream);

typedef struct bilogp_shard {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t shard_begin, shard_end;
  const bilogp_tensor* nodes;
} bilogp_shard;

BILOGP_API int bilogp_logp_finish(bilogp_runtime* runtime, const bilogp_shard* const* shards, int64_t shard_count,
                                  int64_t full_vocab, const bilogp_tensor* target_ids,
                                  const bilogp_tensor* target_logit, const bilogp_tensor* logp,
                                  const bilogp_tensor* lse, const bilogp_tensor* row_state,
                                  const bilogp_options* options, void* stream);

/* errors: count, lowest row, its id. */
BILOGP_API int bilogp_take_errors(bilogp_runtime* runtime, int32_t device_type, int32_t device_index,
                                  int64_t errors[3]);

#ifdef __cplusplus
}
#endif

#endif
