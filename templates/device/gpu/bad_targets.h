// Target ids outside the vocabulary, of one row that a warp works on: counted in the call's error words.
#ifndef BILOGP_DEVICE_GPU_BAD_TARGETS_H
#define BILOGP_DEVICE_GPU_BAD_TARGETS_H

#include "device/gpu/warp.h"

namespace canon {

// errors: count, lowest row, its first bad id, a lock that is 0 between the calls; or null.
CANON_COLD void report_bad_targets(i64* errors, i64 row, i64 first_id, i64 count) {
  if (errors == nullptr) return;
  while (!try_lock((u64*)(errors + 3))) {
  }
  memory_fence();
  if (load_locked(errors) == 0 || row < load_locked(errors + 1)) {
    store_locked(errors + 1, row);
    store_locked(errors + 2, first_id);
  }
  store_locked(errors, load_locked(errors) + count);
  memory_fence();
  unlock((u64*)(errors + 3));
}

// What one lane has seen; ids come with growing k.
struct BadTargets {
  i64 first_k = 0, first_id = 0;
  i64 count = 0;

  CANON_MEMBER void add(i64 k, i64 id) {
    if (count == 0) {
      first_k = k;
      first_id = id;
    }
    ++count;
  }

  CANON_MEMBER void report(i64* errors, i64 row) const {
    u32 lanes = warp_ballot(count != 0);
    if (lanes == 0) return;
    i64 total = 0, lowest_k = 0, id = 0;
    bool any = false;
    CANON_ROLLED
    while (lanes != 0) {
      const int lane = count_trailing_zeros(lanes);
      lanes &= lanes - 1;
      const i64 k = shuffle_from(first_k, lane), lane_id = shuffle_from(first_id, lane);
      total += shuffle_from(count, lane);
      if (!any || k < lowest_k) {
        lowest_k = k;
        id = lane_id;
      }
      any = true;
    }
    if (lane_of_warp() == 0) report_bad_targets(errors, row, id, total);
  }
};

} // namespace canon

#endif
