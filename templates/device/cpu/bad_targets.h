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

// Counts an id of this row if it is bad; ids come in the order of k. errors: count, lowest row, its first bad id; or
// null.
CANON_FN void count_bad_target(i64* errors, i64 row, i64 id, bool is_bad) {
  if (!is_bad || errors == nullptr) return;
  if (errors[0] == 0 || row < errors[1]) {
    errors[1] = row;
    errors[2] = id;
  }
  errors[0] += 1;
}

} // namespace canon

#endif
