// The last step of a row for the Hopper plans: as write_answers, but where a row has one target the two logarithms are
// taken at once, by two lanes, and the target's leaf before the sum is known.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_ROW_ANSWER_H
#define BILOGP_DEVICE_CUDA_HOPPER_ROW_ANSWER_H

#include "device/cuda/hopper/memory.h"
#include "rows/row_results.h"

namespace canon {

struct RowTarget {
  i64 id;
  float logit, p;
  i32 n;
};

// Asked for while the row is still on its way.
template<class Arguments>
CANON_FN RowTarget row_target(const Arguments& a, const TargetId* ids, const Stored* logits, i64 vocab,
                              const Scale& scale) {
  RowTarget t;
  t.id = (i64)load(ids);
  t.logit = Logits::widen(load(logits + (t.id >= 0 && t.id < vocab ? t.id : 0)));
  leaf_pair<float>(t.logit, scale, t.p, t.n);
  return t;
}

// By all lanes of a warp; `sum` is normalised.
template<class Arguments>
CANON_FN void answer_row(const Arguments& a, i64 row, i64 row_number, const TargetId* ids, const Stored* logits,
                         i64 vocab, Node sum, const Scale& scale, const RowTarget& target) {
  const bool in_vocab = target.id >= 0 && target.id < vocab;
  const bool ordinary = a.ids_per_row == 1 && in_vocab && sum.m >= 1.0f && target.logit >= -scale.bound;
  if (!ordinary) { // the same in all lanes
    write_answers(a, row, row_number, ids, vocab, sum, scale,
                  [&](i64 k, i64 id) { return k == 0 ? target.logit : Logits::widen(load(logits + id)); });
    return;
  }
  const u32 lane = threadIdx.x % 32;
  const double m = (double)sum.m;
  const double logarithm = log2_canon(lane == 0 ? (double)target.p / m : m);
  const i32 exponent = lane == 0 ? target.n - sum.E : sum.E;
  const float value = (float)(((double)exponent + logarithm) * inverse_log2_e);
  if (lane == 0) store(a.logp + row_offset(row, a.options, a.logp_strides), value);
  if (lane == 1 && a.lse != nullptr) store(a.lse + row_offset(row, a.options, a.lse_strides), value);
  if (lane == 2 && a.row_state != nullptr) {
    i32* out = a.row_state + row_offset(row, a.options, a.row_state_strides);
    store(out, (i32)bits_from_float(sum.m));
    store(out + 1, sum.E);
  }
}

} // namespace canon

#endif
