// What the row operators need of the device they run on: storage types with widen and narrow; load and store of a
// scalar; row_lane(), row_lanes() and row_any(condition) for the lanes that share a row's small work; count_bad_target.
#ifndef BILOGP_ROWS_DEVICE_H
#define BILOGP_ROWS_DEVICE_H

#include "canon/numbers.h"

#if defined(BILOGP_DEVICE_CPU)
#include "device/cpu/bad_targets.h"
#include "device/cpu/storage.h"
#else
#include "device/gpu/bad_targets.h"
#include "device/gpu/storage.h"
#endif

#endif
