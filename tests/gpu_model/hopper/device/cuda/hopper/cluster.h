// The blocks of a cluster on the host model, with the names that the templates' header gives them.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_CLUSTER_H
#define BILOGP_DEVICE_CUDA_HOPPER_CLUSTER_H

#include "device/cuda/hopper/memory.h"

namespace canon {

using gpu_model::address_in_block;
using gpu_model::cluster_arrive;
using gpu_model::cluster_rank;
using gpu_model::cluster_wait;

CANON_FN u32 number_of_block() {
  return blockIdx.x;
}
CANON_FN u32 cluster_index() {
  return blockIdx.x / (u32)gpu_model::cluster_blocks();
}
CANON_FN u32 cluster_count() {
  return gridDim.x / (u32)gpu_model::cluster_blocks();
}
CANON_FN void cluster_arrive_relaxed() {
  gpu_model::cluster_arrive();
}

CANON_FN void send_pair(u32 address, u32 barrier, u32 a, u32 b) {
  const u32 words[2] = {a, b};
  gpu_model::send(address, barrier, words, 2);
}
CANON_FN void send_vector(u32 address, u32 barrier, u32 a, u32 b, u32 c, u32 d) {
  const u32 words[4] = {a, b, c, d};
  gpu_model::send(address, barrier, words, 4);
}

} // namespace canon

#endif
