// What logp_forward and logp_finish do with a row once its sum is known; the two differ in where the sum and the
// target's logit come from. `Arguments` is the operator's own struct; both name these fields alike.
//
// All lanes that share a row call these together; the ids of a row are dealt out to them. `row` is its number or its
// place.
#ifndef BILOGP_ROWS_ROW_RESULTS_H
#define BILOGP_ROWS_ROW_RESULTS_H

#include "canon/finish.h"
#include "rows/specialization.h"

namespace canon {

template<class Arguments, class Row> CANON_FN const TargetId* row_ids(const Arguments& a, const Row& row) {
  return (const TargetId*)a.target_ids + row_offset(row, a.options, a.id_strides);
}

template<class Arguments> CANON_FN bool all_ignored(const Arguments& a, const TargetId* ids) {
  CANON_ROLLED
  for (i64 first = 0; first < a.ids_per_row; first += row_lanes()) {
    const i64 k = first + row_lane();
    const bool counts = k < a.ids_per_row && (i64)load(ids + k * a.id_stride_k) != a.options.ignore_index;
    if (row_any(counts)) return false;
  }
  return true;
}

template<class Arguments, class Row> CANON_FN void write_row(const Arguments& a, const Row& row, Node sum, float lse) {
  if (row_lane() != 0) return;
  if (a.lse != nullptr) store(a.lse + row_offset(row, a.options, a.lse_strides), lse);
  if (a.row_state != nullptr) {
    i32 words[2];
    store_node(words, sum);
    i32* out = a.row_state + row_offset(row, a.options, a.row_state_strides);
    store(out, words[0]);
    store(out + 1, words[1]);
  }
}

template<class Arguments, class Row> CANON_FN void write_ignored_row(const Arguments& a, const Row& row) {
  float* logp = a.logp + row_offset(row, a.options, a.logp_strides);
  CANON_ROLLED
  for (i64 k = row_lane(); k < a.ids_per_row; k += row_lanes()) store(logp + k * a.logp_stride_k, 0.0f);
  write_row(a, row, zero_node(), 0.0f);
}

// `target_logit(k, id)` is asked only for ids inside the vocabulary. Bad ids are reported under `row_number`.
template<class Arguments, class Row, class TargetLogit>
CANON_FN void write_answers(const Arguments& a, const Row& row, i64 row_number, const TargetId* ids, i64 vocab,
                            Node sum, const Scale& scale, TargetLogit target_logit) {
  float* logp = a.logp + row_offset(row, a.options, a.logp_strides);
  CANON_ROLLED
  for (i64 first = 0; first < a.ids_per_row; first += row_lanes()) {
    const i64 k = first + row_lane();
    bool is_bad = false;
    i64 id = 0;
    if (k < a.ids_per_row) {
      id = (i64)load(ids + k * a.id_stride_k);
      float answer = 0.0f;
      if (id != a.options.ignore_index) {
        is_bad = id < 0 || id >= vocab;
        answer = is_bad ? quiet_nan() : logp_of(sum, target_logit(k, id), scale);
      }
      store(logp + k * a.logp_stride_k, answer);
    }
    count_bad_target(a.options.errors, row_number, id, is_bad);
  }
  write_row(a, row, sum, lse_of(sum));
}

} // namespace canon

#endif
