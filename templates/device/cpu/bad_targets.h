// Target ids outside the vocabulary, of one row: counted in the call's error words. A CPU thread works on a row alone.
#ifndef BILOGP_DEVICE_CPU_BAD_TARGETS_H
#define BILOGP_DEVICE_CPU_BAD_TARGETS_H

#include "device/cpu/machine.h"

namespace canon {

CANON_FN i64 row_lane() {
  return 0;
}
CANON_FN i64 row_lanes() {
  return 1;
}
CANON_FN bool row_any(bool condition) {
  return condition;
}

struct BadTargets {
  i64 count = 0;
  i64 first_id = 0; // of the lowest k

  CANON_MEMBER void add(i64 k, i64 id) {
    (void)k; // they come in order
    if (count == 0) first_id = id;
    ++count;
  }

  // errors: count, lowest row, its first bad id; or null.
  CANON_MEMBER void report(i64* errors, i64 row) const {
    if (count == 0 || errors == nullptr) return;
    if (errors[0] == 0 || row < errors[1]) {
      errors[1] = row;
      errors[2] = first_id;
    }
    errors[0] += count;
  }
};

} // namespace canon

#endif
