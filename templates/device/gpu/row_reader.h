// Reading vectors of neighbouring columns from a row at any address that its elements may have.
//
// A row whose vectors do not begin at multiples of sixteen bytes is read as the two aligned vectors around each, which
// are then shifted together. Nothing outside the readable columns is touched.
#ifndef BILOGP_DEVICE_GPU_ROW_READER_H
#define BILOGP_DEVICE_GPU_ROW_READER_H

#include "device/gpu/storage.h"

namespace canon {

// The sixteen bytes that begin `phase` bytes into low:high, 0 < phase < 16.
CANON_FN Vector shifted_vector(const Vector& low, const Vector& high, u32 phase) {
  u32 word[8] = {low.word[0],  low.word[1],  low.word[2],  low.word[3],
                 high.word[0], high.word[1], high.word[2], high.word[3]};
  if (phase & 8) {
    CANON_UNROLL
    for (int i = 0; i < 6; ++i) word[i] = word[i + 2];
  }
  if (phase & 4) {
    CANON_UNROLL
    for (int i = 0; i < 5; ++i) word[i] = word[i + 1];
  }
  Vector v;
  CANON_UNROLL
  for (int i = 0; i < 4; ++i) v.word[i] = funnel_shift_right(word[i], word[i + 1], (phase & 3) * 8);
  return v;
}

template<class S> struct RowReader {
  typedef typename S::Stored Stored;
  const Stored* row; // of column 0 in the reader's numbering; the column itself need not be readable
  u32 begin, end;    // readable columns
  u32 phase;         // address of vectors modulo 16; vectors begin at multiples of S::vector_columns

  CANON_MEMBER RowReader(const Stored* of_column_0, u32 readable_begin, u32 readable_end)
      : row(of_column_0), begin(readable_begin), end(readable_end), phase((u32)(u64)of_column_0 & 15) {}

  // Whether read() may be used for all vectors in [column, column + columns): what it loads is readable.
  CANON_MEMBER bool may_read(u32 column, u32 columns) const {
    const u32 beside = phase == 0 ? 0 : S::vector_columns;
    return column >= begin + beside && column + columns + beside <= end;
  }
  CANON_MEMBER Vector aligned(u32 column) const { return load_vector(row + column); }
  CANON_MEMBER Vector shifted(u32 column) const {
    const char* before = (const char*)(row + column) - phase;
    return shifted_vector(load_vector(before), load_vector(before + 16), phase);
  }
  CANON_MEMBER Vector read(u32 column) const { return phase == 0 ? aligned(column) : shifted(column); }

  // Columns [column + first, column + last) of the vector that begins at `column`, all readable; the others are 0.
  CANON_MEMBER Vector guarded(u32 column, int first, int last) const {
    if (may_read(column, S::vector_columns)) return read(column);
    Vector v = {{0, 0, 0, 0}};
    CANON_UNROLL
    for (int i = 0; i < S::vector_columns; ++i) {
      if (i < first || i >= last) continue;
      const u32 bits = S::stored_bits(load(row + column + i));
      v.word[i / S::word_columns] |= bits << (i % S::word_columns * 16);
    }
    return v;
  }
};

} // namespace canon

#endif
