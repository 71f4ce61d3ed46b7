/* The C interface from C: returns 0, or the line of the first expectation that does not hold. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "bilogp/bilogp.h"

#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition)) return __LINE__;                                                                                 \
  } while (0)

static bilogp_tensor tensor_of(void* data, int32_t dtype, int32_t rank, int64_t a, int64_t b, int64_t c) {
  bilogp_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.struct_size = sizeof tensor;
  tensor.dtype = dtype;
  tensor.rank = rank;
  tensor.data = data;
  const int64_t shape[3] = {a, b, c};
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    tensor.shape[d] = shape[d];
    tensor.strides[d] = stride;
    stride *= shape[d];
  }
  return tensor;
}

static float logits[2][8] = {{1, 2, 3, 4, 5, 6, 7, 8}, {0, 0, 0, 0, 0, 0, 0, 0}};
static int64_t ids[2] = {7, 3};
static float logp[2], lse[2], grad[2][8], upstream[2] = {1, 1};
static int32_t state[2][2];

static int scoring(bilogp_runtime* runtime) {
  const bilogp_tensor l = tensor_of(logits, BILOGP_FLOAT32, 2, 2, 8, 0), i = tensor_of(ids, BILOGP_INT64, 1, 2, 0, 0);
  const bilogp_tensor p = tensor_of(logp, BILOGP_FLOAT32, 1, 2, 0, 0), e = tensor_of(lse, BILOGP_FLOAT32, 1, 2, 0, 0);
  const bilogp_tensor s = tensor_of(state, BILOGP_INT32, 2, 2, 2, 0),
                      u = tensor_of(upstream, BILOGP_FLOAT32, 1, 2, 0, 0);
  const bilogp_tensor g = tensor_of(grad, BILOGP_FLOAT32, 2, 2, 8, 0);
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, NULL, NULL) == BILOGP_OK);
  EXPECT(fabsf(logp[1] + 2.0794415F) < 1e-6F && fabsf(logp[0] + 0.4583397F) < 1e-6F);
  const float alone = logp[0];
  EXPECT(bilogp_logp(runtime, &l, &i, &p, &e, &s, NULL, NULL) == BILOGP_OK);
  EXPECT(logp[0] == alone && fabsf(lse[1] - 2.0794415F) < 1e-6F);
  EXPECT(bilogp_logp_backward(runtime, &l, &i, &s, &u, &g, 0, NULL, NULL) == BILOGP_OK);
  EXPECT(grad[1][3] == 0.875F && grad[1][0] == -0.125F);
  float again[2][8], logp_again[2];
  const bilogp_tensor g2 = tensor_of(again, BILOGP_FLOAT32, 2, 2, 8, 0);
  const bilogp_tensor p2 = tensor_of(logp_again, BILOGP_FLOAT32, 1, 2, 0, 0);
  EXPECT(bilogp_logp_with_gradient(runtime, &l, &i, &u, &p2, NULL, NULL, &g2, 0, NULL, NULL) == BILOGP_OK);
  EXPECT(memcmp((const void*)again, (const void*)grad, sizeof grad) == 0); // by their bits
  EXPECT(memcmp((const void*)logp_again, (const void*)logp, sizeof logp) == 0);
  EXPECT(bilogp_logp_with_gradient(runtime, &l, &i, &u, &p2, NULL, NULL, &l, 0, NULL, NULL) == BILOGP_INVALID_ARGUMENT);
  EXPECT(bilogp_logp_with_gradient(runtime, &l, &i, &u, NULL, NULL, NULL, &g2, 0, NULL, NULL) ==
         BILOGP_INVALID_ARGUMENT);

  int64_t left = 0, right = 0;
  EXPECT(bilogp_node_count(0, 3, 8, &left) == BILOGP_OK && bilogp_node_count(3, 8, 8, &right) == BILOGP_OK);
  EXPECT(left == 2 && right == 2);
  EXPECT(bilogp_node_count(3, 9, 8, &right) == BILOGP_INVALID_ARGUMENT);
  EXPECT(bilogp_node_count(3, 8, 8, NULL) == BILOGP_INVALID_ARGUMENT);
  int32_t nodes[2][2][2][2];
  float targets[2][2], whole[2];
  bilogp_shard shards[2];
  bilogp_tensor views[2], halves[2], ts[2];
  for (int k = 0; k < 2; ++k) {
    const int64_t begin = k == 0 ? 0 : 3, end = k == 0 ? 3 : 8;
    halves[k] = tensor_of(&logits[0][begin], BILOGP_FLOAT32, 2, 2, end - begin, 0);
    halves[k].strides[0] = 8;
    views[k] = tensor_of(nodes[k], BILOGP_INT32, 3, 2, 2, 2);
    ts[k] = tensor_of(targets[k], BILOGP_FLOAT32, 1, 2, 0, 0);
    EXPECT(bilogp_logp_partial(runtime, &halves[k], &i, begin, end, 8, &views[k], &ts[k], NULL, NULL) == BILOGP_OK);
    memset(&shards[k], 0, sizeof shards[k]);
    shards[k].struct_size = sizeof shards[k];
    shards[k].shard_begin = begin;
    shards[k].shard_end = end;
    shards[k].nodes = &views[k];
  }
  for (int row = 0; row < 2; ++row)
    if (targets[1][row] > targets[0][row]) targets[0][row] = targets[1][row];
  const bilogp_shard* const list[2] = {&shards[1], &shards[0]};
  const bilogp_tensor w = tensor_of(whole, BILOGP_FLOAT32, 1, 2, 0, 0);
  EXPECT(bilogp_logp_finish(runtime, list, 2, 8, &i, &ts[0], &w, NULL, NULL, NULL, NULL) == BILOGP_OK);
  EXPECT(memcmp((const void*)whole, (const void*)logp, sizeof logp) == 0); // by their bits
  const bilogp_shard* const holes[2] = {&shards[1], NULL};
  EXPECT(bilogp_logp_finish(runtime, holes, 2, 8, &i, &ts[0], &w, NULL, NULL, NULL, NULL) == BILOGP_INVALID_ARGUMENT);
  EXPECT(bilogp_logp_finish(runtime, NULL, 2, 8, &i, &ts[0], &w, NULL, NULL, NULL, NULL) == BILOGP_INVALID_ARGUMENT);
  EXPECT(bilogp_logp_finish(runtime, list, -1, 8, &i, &ts[0], &w, NULL, NULL, NULL, NULL) == BILOGP_INVALID_ARGUMENT);
  return 0;
}

static int structs(bilogp_runtime* runtime) {
  const bilogp_tensor i = tensor_of(ids, BILOGP_INT64, 1, 2, 0, 0), p = tensor_of(logp, BILOGP_FLOAT32, 1, 2, 0, 0);
  bilogp_tensor l = tensor_of(logits, BILOGP_FLOAT32, 2, 2, 8, 0);
  bilogp_options options;
  memset(&options, 0xff, sizeof options);
  bilogp_options_init(&options);
  EXPECT(options.struct_size == sizeof options && options.temperature == 1 && options.vocab_size == -1);
  EXPECT(options.ignore_index == -100 && options.threads == 0 && options.error_buffer == NULL);
  /* A caller from before ignore_index existed: the rest takes its default, whatever lies there. */
  options.struct_size = offsetof(bilogp_options, ignore_index);
  options.temperature = -5;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, &options, NULL) == BILOGP_OK);
  options.struct_size = sizeof options;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, &options, NULL) == BILOGP_INVALID_ARGUMENT);
  EXPECT(strstr(bilogp_last_error(), "temperature is -5") != NULL);
  options.struct_size = 3;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, &options, NULL) == BILOGP_INVALID_ARGUMENT);
  EXPECT(strstr(bilogp_last_error(), "struct_size 3") != NULL);
  /* A caller from the future. */
  struct {
    bilogp_options known;
    int64_t later;
  } longer;
  bilogp_options_init(&longer.known);
  longer.known.struct_size = sizeof longer;
  longer.later = 0;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, &longer.known, NULL) == BILOGP_OK);
  longer.later = 1;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, &longer.known, NULL) == BILOGP_INVALID_ARGUMENT);
  EXPECT(strstr(bilogp_last_error(), "update bilogp") != NULL);
  l.dtype = 5;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, NULL, NULL) == BILOGP_INVALID_ARGUMENT);
  l.dtype = BILOGP_FLOAT32;
  l.rank = 9;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, NULL, NULL) == BILOGP_INVALID_ARGUMENT);
  l.rank = 2;
  l.device_type = 2;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, NULL, NULL) != BILOGP_OK);
  l.device_type = 77;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, NULL, NULL) != BILOGP_OK);
  return 0;
}

static int failures(bilogp_runtime* runtime) {
  const bilogp_tensor l = tensor_of(logits, BILOGP_FLOAT32, 2, 2, 8, 0), i = tensor_of(ids, BILOGP_INT64, 1, 2, 0, 0);
  const bilogp_tensor p = tensor_of(logp, BILOGP_FLOAT32, 1, 2, 0, 0);
  bilogp_runtime* none = NULL;
  EXPECT(bilogp_runtime_get("nonsense", &none) == BILOGP_INVALID_ARGUMENT && none == NULL);
  EXPECT(strstr(bilogp_last_error(), "nonsense") != NULL);
  EXPECT(bilogp_runtime_get("cpu", NULL) == BILOGP_INVALID_ARGUMENT);
  EXPECT(bilogp_logp(NULL, &l, &i, &p, NULL, NULL, NULL, NULL) == BILOGP_INVALID_ARGUMENT);
  EXPECT(bilogp_logp(runtime, NULL, &i, &p, NULL, NULL, NULL, NULL) == BILOGP_INVALID_ARGUMENT);
  EXPECT(strstr(bilogp_last_error(), "logits") != NULL);
  EXPECT(bilogp_logp(runtime, &l, NULL, &p, NULL, NULL, NULL, NULL) == BILOGP_INVALID_ARGUMENT);
  EXPECT(bilogp_logp(runtime, &l, &i, NULL, NULL, NULL, NULL, NULL) == BILOGP_INVALID_ARGUMENT);
  ids[0] = 8;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, NULL, NULL) == BILOGP_OUT_OF_RANGE);
  bilogp_options options;
  bilogp_options_init(&options);
  options.validate = 2;
  int64_t errors[3] = {0, 0, 0};
  EXPECT(bilogp_take_errors(runtime, 0, 0, errors) == BILOGP_OK);
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, &options, NULL) == BILOGP_OK && isnan(logp[0]));
  EXPECT(bilogp_take_errors(runtime, 1, 0, errors) == BILOGP_OK);
  EXPECT(errors[0] == 1 && errors[1] == 0 && errors[2] == 8);
  options.bad_ids_counted = 1;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, &options, NULL) == BILOGP_OK && isnan(logp[0]));
  EXPECT(bilogp_take_errors(runtime, 1, 0, errors) == BILOGP_OK && errors[0] == 0);
  options.bad_ids_counted = 2;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, &options, NULL) == BILOGP_INVALID_ARGUMENT);
  options.bad_ids_counted = 0;
  EXPECT(bilogp_take_errors(runtime, 2, 0, errors) == BILOGP_UNSUPPORTED);
  EXPECT(bilogp_take_errors(runtime, 1, 0, NULL) == BILOGP_INVALID_ARGUMENT);
  ids[0] = 7;
  options.validate = 3;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, &options, NULL) == BILOGP_INVALID_ARGUMENT);
  options.validate = 0;
  options.numerics = 9;
  EXPECT(bilogp_logp(runtime, &l, &i, &p, NULL, NULL, &options, NULL) != BILOGP_OK);
  return 0;
}

int c_abi_works(void);
int c_abi_works(void) {
  EXPECT(bilogp_abi_version() == BILOGP_ABI_VERSION);
  EXPECT(strlen(bilogp_version()) >= 5);
  bilogp_runtime* runtime = NULL;
  EXPECT(bilogp_runtime_get("cpu", &runtime) == BILOGP_OK && runtime != NULL);
  int line = scoring(runtime);
  if (line == 0) line = structs(runtime);
  if (line == 0) line = failures(runtime);
  return line;
}
