// The last step of a row for the Hopper plans: as write_answers, but where a row has one target, all that does not hang
// on the row's sum is there before it is, and the logarithm of the sum serves both results, each worked out by a lane.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_ROW_ANSWER_H
#define BILOGP_DEVICE_CUDA_HOPPER_ROW_ANSWER_H

#include "device/cuda/hopper/memory.h"
#include "device/gpu/close_log2.h"
#include "rows/row_results.h"

namespace canon {

struct RowTarget {
  i64 id;
  float logit;
  i32 n;
  double log2_p;    // close to it
  bool is_ordinary; // the row's only target, inside the vocabulary and not below the bound, and the row counts
};

// Where this lane's part of an ordinary row's answer goes: logp, lse and row state have a lane each; or 0.
template<class Arguments> CANON_FN u64 answer_place(const Arguments& a, const RowPlace& row) {
  const u32 lane = threadIdx.x % 32;
  u64 place = 0;
  if (lane == 0) place = (u64)(a.logp + row_offset(row, a.options, a.logp_strides));
  if (lane == 1 && a.lse != nullptr) place = (u64)(a.lse + row_offset(row, a.options, a.lse_strides));
  if (lane == 2 && a.row_state != nullptr) place = (u64)(a.row_state + row_offset(row, a.options, a.row_state_strides));
  // From itself: the compiler would else work it out where it is used, behind the wait for the sum.
  return __shfl_sync(all_lanes, place, (int)lane);
}

// By all lanes of a warp.
template<class Arguments>
CANON_FN RowTarget target_of(const Arguments& a, i64 id, float logit, i64 vocab, const Scale& scale) {
  RowTarget t;
  t.id = id;
  t.logit = logit;
  float p;
  leaf_pair<float>(t.logit, scale, p, t.n);
  t.log2_p = close_log2(p);
  t.is_ordinary = __all_sync(all_lanes, a.ids_per_row == 1 && id >= 0 && id < vocab && t.logit >= -scale.bound &&
                                            t.id != a.options.ignore_index && scale.valid);
  return t;
}

// Asked for while the row is still on its way, by all lanes of a warp.
template<class Arguments>
CANON_FN RowTarget row_target(const Arguments& a, const TargetId* ids, const Stored* logits, i64 vocab,
                              const Scale& scale) {
  const i64 id = (i64)load(ids);
  return target_of(a, id, Logits::widen(load(logits + (id >= 0 && id < vocab ? id : 0))), vocab, scale);
}

// An ignored row: seldom, and written in two places.
template<class Arguments> CANON_COLD void ignore_row(const Arguments& a, RowPlace row) {
  write_ignored_row(a, row);
}

// By all lanes of a warp; `sum` is normalised.
template<class Arguments>
CANON_FN void answer_row(const Arguments& a, const RowPlace& row, i64 row_number, const TargetId* ids,
                         const Stored* logits, i64 vocab, Node sum, const Scale& scale, const RowTarget& target,
                         u64 place) {
  const u32 lane = threadIdx.x % 32;
  if (target.is_ordinary && sum.m >= 1.0f) { // the same in all lanes
    const double log2_m = close_log2(sum.m);
    const double d = lane == 0 ? (double)(target.n - sum.E) + (target.log2_p - log2_m) : (double)sum.E + log2_m;
    float value;
    if (__all_sync(all_lanes, one_result(d, value))) {
      if (place == 0) return;
      store((u32*)place, bits_from_float(lane == 2 ? sum.m : value));
      if (lane == 2) store((i32*)place + 1, sum.E);
      return;
    }
  }
  write_answers(a, row, row_number, ids, vocab, sum, scale,
                [&](i64 k, i64 id) { return k == 0 ? target.logit : Logits::widen(load(logits + id)); });
}

} // namespace canon

#endif
