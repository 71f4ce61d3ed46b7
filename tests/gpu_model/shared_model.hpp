// Shared memory by 32-bit addresses on the host model, barriers in it, copies and stores that arrive later, clusters.
//
// An address counts from the begin of a block's shared memory, of which the system has the first kilobyte; the bits
// from 24 on are the block's rank in its cluster. What copies will bring arrives at moments drawn from the launch's
// seed, in any order; until then NaNs are there, or ordinary numbers where a kernel might look again, so that whoever
// reads too early, or still reads what is being overwritten, computes something else. Reported as errors: misaligned
// and foreign addresses, barriers that were not initialised, more arrivals than a phase waits for, and waits that never
// end.
#pragma once

#include <cstdint>

#include "tests/gpu_model/machine_model.hpp"

namespace gpu_model {

inline constexpr std::uint32_t reserved_shared_bytes = 1024, most_shared_bytes = 228 * 1024, rank_shift = 24;

// The block's object of this size, in the order in which each thread asks for them; what a launch adds is the last one.
void* static_shared(std::size_t size, std::uint32_t alignment);
unsigned char* dynamic_shared(std::uint32_t alignment);

std::uint32_t shared_address(const void* pointer);
// Where `size` bytes lie that the running thread reads or writes at once.
unsigned char* shared_place(std::uint32_t address, std::uint32_t size);
std::uint32_t address_in_block(std::uint32_t address, std::uint32_t rank);

void barrier_init(std::uint32_t barrier, std::uint32_t arrivals);
void barrier_arrive(std::uint32_t barrier, std::uint32_t arrivals);
void barrier_expect(std::uint32_t barrier, std::uint32_t bytes);
void barrier_wait(std::uint32_t barrier, std::uint32_t parity);

void copy_in(std::uint32_t to, const void* from, std::uint32_t bytes, std::uint32_t barrier);
// 2 or 4 words, to a block of the cluster.
void send(std::uint32_t to, std::uint32_t barrier, const std::uint32_t* words, std::uint32_t count);
// A thread's own copies of 16 bytes.
void copy_vector(bool condition, std::uint32_t to, const void* from);
void close_group_of_vectors();
void wait_for_vectors(int newer);

bool is_elected_lane();
void named_barrier_arrive(std::uint32_t name, std::uint32_t threads);
void named_barrier_wait(std::uint32_t name, std::uint32_t threads);

std::uint32_t cluster_rank();
int cluster_blocks();
void cluster_arrive();
void cluster_wait();

} // namespace gpu_model
