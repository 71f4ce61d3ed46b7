// logp_forward on Hopper: a ring of tiles for many rows, clusters for few.
#include "canon/arguments.h"
#include "device/gpu/plan.h"
#if defined(BILOGP_STAGE_TILES)
#include "device/cuda/hopper/logp_forward_ring.h"

BILOGP_KERNEL(canon::ring_threads, 1)
bilogp_logp_forward(BILOGP_BY_VALUE(LogpForwardArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  canon::forward_ring(a, plan);
}
#else
#include "device/cuda/hopper/logp_forward_few_rows.h"

#if BILOGP_CLUSTER > 1
BILOGP_CLUSTER_KERNEL(canon::few_rows_threads, BILOGP_BLOCKS, BILOGP_CLUSTER)
#else
BILOGP_KERNEL(canon::few_rows_threads, BILOGP_BLOCKS)
#endif
bilogp_logp_forward(BILOGP_BY_VALUE(LogpForwardArguments) a, BILOGP_BY_VALUE(GpuPlan) plan) {
  canon::forward_few_rows(a, plan);
}
#endif
