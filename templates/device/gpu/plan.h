// How one launch on a GPU is cut; the same text is compiled into the host library and the kernels. Chosen by the host
// from rows, columns, alignment and the device's limits; by the contract none of it can change a bit.
// No includes: see canon/arguments.h, which comes first.
#ifndef BILOGP_DEVICE_GPU_PLAN_H
#define BILOGP_DEVICE_GPU_PLAN_H

struct GpuPlan {
  i64 rows;              // of this launch
  i64 first_row;         // number of row 0 among the rows of the call; error words count from there
  i32 blocks_per_row;    // blocks that share a row; 1: every block takes whole rows
  i32 columns_per_block; // that each of them takes, a power of two, so that its part of the row is one node
  i32 parameters[6];     // a plan's own numbers, named where that plan is written
  i32* nodes;            // scratch, two words per (row, block of the row); null when the plan asked for none
  u32* tickets;          // scratch, one per row; zero before a launch, and left zero by it
};

// The shards of logp_finish, by value: a launch must not point at memory of the host.
constexpr i64 largest_shard_count = 64;
struct GpuShards {
  ShardNodesArgument shards[largest_shard_count];
};

#endif
