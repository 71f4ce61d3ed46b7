// The gradient row from a row's sum, by the threads of one block or of several that share its columns.
//
// Vectors begin where the output is aligned to sixteen bytes. Each is read whole before it is written, and by the
// thread that writes it, so that the gradient may overwrite the logits.
#ifndef BILOGP_DEVICE_GPU_GRADIENT_ROW_H
#define BILOGP_DEVICE_GPU_GRADIENT_ROW_H

#include "canon/gradient.h"
#include "device/gpu/row_reader.h"

namespace canon {

enum class GradientKind : i32 { zeros, nans, near, far };

// What the threads of a block share of a row; columns are counted from the first one to write.
template<class S> struct GradientRow {
  typedef typename S::Stored Stored;
  const Stored* logits;
  Stored* out;
  i64 columns, live; // to write; those from `live` on are +0.0 and not read (NaN in a row of NaNs)
  i64 target;        // -1 when it is not among these
  Scale scale;
  Node sum;
  float g, factor, low;
  GradientKind kind;

  // Fills in what follows from the sum.
  CANON_MEMBER void prepare(Node row_sum, const Scale& row_scale, float upstream) {
    sum = row_sum;
    scale = row_scale;
    g = upstream;
    if (!scale.valid || is_poison(sum) || is_zero(sum)) {
      kind = GradientKind::nans;
      return;
    }
    factor = gradient_factor(g, sum, scale);
    kind = is_near(sum, scale, low) ? GradientKind::near : GradientKind::far;
  }
};

// Any column of a row whose kind is near or far.
template<class S> CANON_FN float gradient_of_column(const GradientRow<S>& row, i64 column, float x) {
  if (column == row.target) return gradient_at_target(row.g, x, row.sum, row.scale);
  if (row.kind == GradientKind::near) return gradient_near<float>(x, row.scale.c, row.low, row.sum.E, row.factor);
  float p;
  i32 n;
  leaf_pair<float>(x, row.scale, p, n);
  return gradient_from_pair<float>(p, n, row.sum.E, row.factor);
}

// Columns [first, last) one by one.
template<class S> CANON_COLD void write_gradient_columns(const GradientRow<S>& row, i64 first, i64 last) {
  CANON_ROLLED
  for (i64 j = first; j < last; ++j) {
    float y = row.kind == GradientKind::nans ? quiet_nan() : 0.0f;
    if (row.kind >= GradientKind::near && j < row.live) y = gradient_of_column(row, j, S::widen(load(row.logits + j)));
    store(row.out + j, S::narrow(y));
  }
}

// What the many columns of a near row need, in registers.
template<class S> struct NearGradient {
  float c, low, factor;
  i32 E;

  CANON_MEMBER explicit NearGradient(const GradientRow<S>& row)
      : c(row.scale.c), low(row.low), factor(row.factor), E(row.sum.E) {}

  CANON_MEMBER Vector of(const Vector& v) const {
    Vector result;
    CANON_UNROLL
    for (int w = 0; w < 4; ++w) {
      float y[S::word_columns];
      CANON_UNROLL
      for (int i = 0; i < S::word_columns; ++i)
        y[i] = gradient_near<float>(S::column(v, w * S::word_columns + i), c, low, E, factor);
      result.word[w] = S::pack(y);
    }
    return result;
  }
};

template<class S> CANON_FN Vector constant_vector(GradientKind kind) {
  const float y[2] = {kind == GradientKind::nans ? quiet_nan() : 0.0f, kind == GradientKind::nans ? quiet_nan() : 0.0f};
  u32 word = S::stored_bits(S::narrow(y[0]));
  if (S::word_columns == 2) word |= word << 16;
  return Vector{{word, word, word, word}};
}

// Where the vectors of a row lie, and what is to be done with each. The row stays in the block's memory.
template<class S> struct GradientVectors {
  static constexpr int width = S::vector_columns;
  const GradientRow<S>& row;
  typename S::Stored* out;
  i64 columns, target, start; // start: column of the first vector, 0 or a few before it
  RowReader<S> reader;
  GradientKind kind;

  CANON_MEMBER explicit GradientVectors(const GradientRow<S>& r)
      : row(r), out(r.out), columns(r.columns), target(r.target), start(aligned_start(r.out)),
        reader(r.logits + start, -start, r.live - start), kind(r.kind) {}

  CANON_MEMBER static i64 aligned_start(const typename S::Stored* address) {
    return -(i64)(((u64)address & 15) / sizeof(typename S::Stored));
  }
  CANON_MEMBER i64 count() const { return (columns - start + width - 1) / width; }
  CANON_MEMBER i64 column(i64 vector) const { return start + vector * width; }
  CANON_MEMBER bool is_inside(i64 vector) const { return column(vector) >= 0 && column(vector) + width <= columns; }

  // Whether the vector's gradient comes from one vector of logits, without the target.
  CANON_MEMBER bool is_plain(i64 vector) const {
    const i64 begin = vector * width, to_target = target - column(vector);
    return kind == GradientKind::near && begin >= reader.begin && begin + width <= reader.end &&
           (reader.phase == 0 || reader.shifts(begin)) && (to_target < 0 || to_target >= width);
  }
  CANON_MEMBER Vector read(i64 vector) const {
    return reader.phase == 0 ? load_vector(reader.row + vector * width) : reader.shifted(vector * width);
  }
  CANON_MEMBER void write(i64 vector, const Vector& v) const { store_vector(out + column(vector), v); }

  CANON_MEMBER void write_columns(i64 vector) const {
    const i64 begin = column(vector), end = begin + width;
    write_gradient_columns(row, begin < 0 ? 0 : begin, end < columns ? end : columns);
  }
};

constexpr int vectors_in_flight = 2;

// Vectors [begin, end) of a row, by all threads of a block.
template<class S> CANON_FN void write_gradient(const GradientVectors<S>& vectors, i64 begin, i64 end) {
  const NearGradient<S> gradient(vectors.row);
  CANON_ROLLED
  for (i64 first = begin + thread_of_block(); first < end; first += vectors_in_flight * block_threads) {
    Vector v[vectors_in_flight];
    bool is_plain[vectors_in_flight];
    CANON_UNROLL
    for (int i = 0; i < vectors_in_flight; ++i) {
      const i64 vector = first + i * block_threads;
      is_plain[i] = vector < end && vectors.is_plain(vector);
      if (is_plain[i]) v[i] = vectors.read(vector);
    }
    CANON_UNROLL
    for (int i = 0; i < vectors_in_flight; ++i) {
      const i64 vector = first + i * block_threads;
      if (is_plain[i])
        vectors.write(vector, gradient.of(v[i]));
      else if (vector < end && vectors.kind < GradientKind::near && vectors.is_inside(vector))
        vectors.write(vector, constant_vector<S>(vectors.kind));
      else if (vector < end)
        vectors.write_columns(vector);
    }
  }
}

} // namespace canon

#endif
