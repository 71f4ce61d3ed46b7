// What logp_forward and logp_finish do with a row once its sum is known; the two differ in where the sum and the
// target's logit come from. `Arguments` is the operator's own struct; both name these fields alike.
#ifndef BILOGP_DEVICE_CPU_ROW_RESULTS_H
#define BILOGP_DEVICE_CPU_ROW_RESULTS_H

#include "canon/finish.h"
#include "device/cpu/specialization.h"

namespace canon {

template<class Arguments> CANON_FN const TargetId* row_ids(const Arguments& a, i64 row) {
  return (const TargetId*)a.target_ids + row_offset(row, a.options, a.id_strides);
}

template<class Arguments> CANON_FN bool all_ignored(const Arguments& a, const TargetId* ids) {
  for (i64 k = 0; k < a.ids_per_row; ++k)
    if ((i64)load(ids + k * a.id_stride_k) != a.options.ignore_index) return false;
  return true;
}

template<class Arguments> CANON_FN void write_row(const Arguments& a, i64 row, Node sum, float lse) {
  if (a.lse != nullptr) store(a.lse + row_offset(row, a.options, a.lse_strides), lse);
  if (a.row_state != nullptr) {
    i32 words[2];
    store_node(words, sum);
    i32* out = a.row_state + row_offset(row, a.options, a.row_state_strides);
    store(out, words[0]);
    store(out + 1, words[1]);
  }
}

template<class Arguments> CANON_FN void write_ignored_row(const Arguments& a, i64 row) {
  float* logp = a.logp + row_offset(row, a.options, a.logp_strides);
  for (i64 k = 0; k < a.ids_per_row; ++k) store(logp + k * a.logp_stride_k, 0.0f);
  write_row(a, row, zero_node(), 0.0f);
}

// `target_logit(k, id)` is asked only for ids inside the vocabulary.
template<class Arguments, class TargetLogit>
CANON_FN void write_answers(const Arguments& a, i64 row, const TargetId* ids, i64 vocab, Node sum, const Scale& scale,
                            TargetLogit target_logit) {
  float* logp = a.logp + row_offset(row, a.options, a.logp_strides);
  for (i64 k = 0; k < a.ids_per_row; ++k) {
    const i64 id = (i64)load(ids + k * a.id_stride_k);
    float answer = 0.0f;
    if (id != a.options.ignore_index) {
      if (id >= 0 && id < vocab) {
        answer = logp_of(sum, target_logit(k, id), scale);
      } else {
        answer = quiet_nan();
        flag_bad_target(a.options, row, id);
      }
    }
    store(logp + k * a.logp_stride_k, answer);
  }
  write_row(a, row, sum, lse_of(sum));
}

} // namespace canon

#endif
