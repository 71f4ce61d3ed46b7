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
template<class S> CANON_COLD void write_gradient_columns(const GradientRow<S>& row, u32 first, u32 last) {
  CANON_ROLLED
  for (u32 j = first; j < last; ++j) {
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
  u32 word = S::stored_bits(S::narrow(kind == GradientKind::nans ? quiet_nan() : 0.0f));
  if (S::word_columns == 2) word |= word << 16;
  return Vector{{word, word, word, word}};
}

// Where the vectors of a row lie, and what is to be done with each. The row stays in the block's memory.
template<class S> struct GradientVectors {
  static constexpr u32 width = S::vector_columns;
  const GradientRow<S>& row;
  u32 lead; // columns of vector 0 that are before the row: column = vector * width - lead
  RowReader<S> reader;
  u32 count; // vectors
  // The gradients of vectors [plain_begin, plain_end) each come from one vector of logits, except for with_target.
  u32 plain_begin, plain_end, with_target;

  CANON_MEMBER explicit GradientVectors(const GradientRow<S>& r)
      : row(r), lead((u32)((u64)r.out & 15) / sizeof(typename S::Stored)),
        reader(r.logits - lead, lead, (u32)r.live + lead) {
    count = ((u32)r.columns + lead + width - 1) / width;
    const u32 beside = reader.phase == 0 ? 0 : 1;
    plain_begin = (lead + width - 1) / width + beside;
    plain_end = reader.end / width;
    plain_end = r.kind == GradientKind::near && plain_end > beside ? plain_end - beside : 0;
    with_target = r.target < 0 ? 0xffffffffu : ((u32)r.target + lead) / width;
  }

  CANON_MEMBER bool is_plain(u32 vector) const {
    return vector >= plain_begin && vector < plain_end && vector != with_target;
  }
  // By the widest stores there are for it.
  CANON_MEMBER void write_slowly(u32 vector) const {
    const u32 begin = vector * width > lead ? vector * width : lead, stored_end = (u32)row.columns + lead;
    const u32 end = (vector + 1) * width < stored_end ? (vector + 1) * width : stored_end;
    if (row.kind < GradientKind::near && end - begin == width)
      store_vector(row.out - lead + begin, constant_vector<S>(row.kind));
    else
      write_gradient_columns(row, begin - lead, end - lead);
  }
};

constexpr u32 vectors_in_flight = 2;

// Vectors [begin, end) of a row, by all threads of a block.
template<class S> CANON_FN void write_gradient(const GradientVectors<S>& vectors, u32 begin, u32 end) {
  const NearGradient<S> gradient(vectors.row);
  typename S::Stored* const out = vectors.row.out - vectors.lead;
  CANON_ROLLED
  for (u32 first = begin + thread_of_block(); first < end; first += vectors_in_flight * block_threads) {
    Vector v[vectors_in_flight];
    CANON_UNROLL
    for (u32 i = 0; i < vectors_in_flight; ++i) {
      const u32 vector = first + i * block_threads;
      if (vector < end && vectors.is_plain(vector)) v[i] = vectors.reader.read(vector * vectors.width);
    }
    CANON_UNROLL
    for (u32 i = 0; i < vectors_in_flight; ++i) {
      const u32 vector = first + i * block_threads;
      if (vector >= end) continue;
      if (vectors.is_plain(vector))
        store_vector(out + vector * vectors.width, gradient.of(v[i]));
      else
        vectors.write_slowly(vector);
    }
  }
}

} // namespace canon

#endif
