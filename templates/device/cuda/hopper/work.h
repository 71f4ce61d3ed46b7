// How the rows of a launch are dealt out to persistent blocks.
//
// Units of work are taken from a counter in scratch memory: first whole rows, then, so that all blocks end together,
// pieces of the remaining rows, whose tile nodes meet in scratch memory. Ignored rows cost a look at their ids and
// nothing more.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_WORK_H
#define BILOGP_DEVICE_CUDA_HOPPER_WORK_H

#include "device/cuda/hopper/memory.h"
#include "device/gpu/plan.h"

namespace canon {

// GpuPlan::parameters of the ring plans.
struct RingParameters {
  static constexpr int stages = 0;     // of the ring
  static constexpr int whole_rows = 1; // rows taken whole; the others are cut
  static constexpr int pieces = 2;     // that each of those is cut into
};
// GpuPlan::tickets of the ring plans.
struct RingTickets {
  static constexpr int next_unit = 0, finished_blocks = 1, rows = 2;
};

struct Unit {
  i64 row;
  int tile_begin, tile_end;
};

struct Work {
  i64 whole_rows, units;
  int pieces, tiles; // of a row

  CANON_MEMBER Work(const GpuPlan& plan, int tiles_of_row)
      : whole_rows(plan.parameters[RingParameters::whole_rows]), pieces(plan.parameters[RingParameters::pieces]),
        tiles(tiles_of_row) {
    units = whole_rows + (plan.rows - whole_rows) * pieces;
  }
  CANON_MEMBER Unit unit(i64 number) const {
    if (number < whole_rows) return Unit{number, 0, tiles};
    const u32 cut = (u32)(number - whole_rows), piece = cut % (u32)pieces;
    return Unit{whole_rows + cut / (u32)pieces, (int)(piece * (u32)tiles / (u32)pieces),
                (int)((piece + 1) * (u32)tiles / (u32)pieces)};
  }
};

// Each block begins with the unit of its own number; this gives all later ones. One thread asks.
CANON_FN i64 next_unit(const GpuPlan& plan) {
  return (i64)gridDim.x + take_tickets(plan.tickets + RingTickets::next_unit, 1);
}
// The last block to say this leaves the counters as they were found.
CANON_FN void no_more_units(const GpuPlan& plan) {
  if (take_tickets(plan.tickets + RingTickets::finished_blocks, 1) != gridDim.x - 1) return;
  plan.tickets[RingTickets::next_unit] = 0;
  plan.tickets[RingTickets::finished_blocks] = 0;
}

} // namespace canon

#endif
