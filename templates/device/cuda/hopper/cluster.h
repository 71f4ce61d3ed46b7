// The blocks of a cluster: who is who, and stores into each other's shared memory.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_CLUSTER_H
#define BILOGP_DEVICE_CUDA_HOPPER_CLUSTER_H

#include "device/cuda/hopper/memory.h"

namespace canon {

// Every call asks anew.
CANON_FN u32 number_of_block() {
  u32 r;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(r));
  return r;
}
CANON_FN u32 cluster_rank() {
  u32 r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
CANON_FN u32 cluster_index() {
  u32 r;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(r));
  return r;
}
CANON_FN u32 cluster_count() {
  u32 r;
  asm("mov.u32 %0, %%nclusterid.x;" : "=r"(r));
  return r;
}

CANON_FN void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release;" : : : "memory");
}
// Where nothing was written but barriers that are ready (barriers_are_ready): a release would wait for all loads.
CANON_FN void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" : : : "memory");
}
CANON_FN void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}

// The same place in the shared memory of block `rank`.
CANON_FN u32 address_in_block(u32 address, u32 rank) {
  u32 r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
  return r;
}

// Stores that count their bytes on a barrier of the same block, both given by address_in_block.
CANON_FN void send_pair(u32 address, u32 barrier, u32 a, u32 b) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%2, %3}, [%1];"
               :
               : "r"(address), "r"(barrier), "r"(a), "r"(b)
               : "memory");
}
CANON_FN void send_vector(u32 address, u32 barrier, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%2, %3, %4, %5}, [%1];"
               :
               : "r"(address), "r"(barrier), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

} // namespace canon

#endif
