// Target ids outside the vocabulary, of one row that a warp works on: counted in the call's error words.
#ifndef BILOGP_DEVICE_GPU_BAD_TARGETS_H
#define BILOGP_DEVICE_GPU_BAD_TARGETS_H

#include "device/gpu/warp.h"

namespace canon {

// By one lane. errors: count, lowest row, its first bad id, a lock that is 0 between the calls; or null.
CANON_COLD void report_bad_target(i64* errors, i64 row, i64 id) {
  if (errors == nullptr) return;
  while (!try_lock((u64*)(errors + 3))) {
  }
  memory_fence();
  if (load_locked(errors) == 0 || row < load_locked(errors + 1)) {
    store_locked(errors + 1, row);
    store_locked(errors + 2, id);
  }
  store_locked(errors, load_locked(errors) + 1);
  memory_fence();
  unlock((u64*)(errors + 3));
}

// By all lanes: counts the ids that are bad, in the order of the lanes, so that the row's first one is kept.
CANON_FN void count_bad_target(i64* errors, i64 row, i64 id, bool is_bad) {
  u32 lanes = warp_ballot(is_bad);
  CANON_ROLLED
  while (lanes != 0) {
    if (lane_of_warp() == count_trailing_zeros(lanes)) report_bad_target(errors, row, id);
    lanes &= lanes - 1;
    warp_barrier();
  }
}

} // namespace canon

#endif
