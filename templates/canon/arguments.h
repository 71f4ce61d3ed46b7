// Arguments of the kernels, one struct per operator; the same text is compiled into the host library and the kernels.
// No includes: this file goes through clang, NVRTC and hipRTC, and through the host compiler inside a namespace.
// Strides are in elements. A row index r is (r / inner_rows, r % inner_rows) over the two row strides.
#ifndef BILOGP_CANON_ARGUMENTS_H
#define BILOGP_CANON_ARGUMENTS_H

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

struct RowStrides {
  i64 outer, inner;
};

// A leaf for every logit of 16 bits, and behind them what they were made for.
constexpr i64 leaf_count = 65536, leaf_table_floats = leaf_count + 1;

// Options shared by all operators.
struct RowOptions {
  i64 inner_rows;                 // rows per step of the outer stride
  i64 vocab_size;                 // columns of the whole vocabulary that count; the others are zero leaves
  i64 ignore_index;               //
  const float* temperature_rows;  // per row, or null
  RowStrides temperature_strides; //
  float temperature;              // used when temperature_rows is null; checked by the host
  i64* errors;                    // int64[4] or null: count, lowest bad row, its id, reserved
  float* leaf_table;              // CPU: leaf_table_floats of the calling thread, or null (device/cpu/leaf_table.h)
  i64 makes_leaf_table;           // 1 where the call is large enough to make the table for it
};

struct LogpForwardArguments {
  const void* logits; // first, with the options' first field: what a GPU asks for before anything else shares a line
  RowStrides logits_strides;
  RowOptions options;
  const void* target_ids;
  RowStrides id_strides;
  i64 id_stride_k;
  i64 ids_per_row;
  float* logp;
  RowStrides logp_strides;
  i64 logp_stride_k;
  float* lse; // or null
  RowStrides lse_strides;
  i32* row_state; // two words per row, or null
  RowStrides row_state_strides;
};

// Columns [column_begin, column_end) of the whole vocabulary are written; logits and grad_logits point at
// column_origin. A shard's column_origin is its first column.
struct LogpBackwardArguments {
  RowOptions options;
  const void* logits;
  RowStrides logits_strides;
  void* grad_logits;
  RowStrides grad_strides;
  const void* target_ids;
  RowStrides id_strides;
  const i32* row_state;
  RowStrides row_state_strides;
  const float* grad_logp;
  RowStrides grad_logp_strides;
  i64 column_origin;
  i64 column_begin, column_end;
  i64 past_cache; // CPU: 1 where the gradient is better written around the caches
};

// Forward and gradient in one pass over the row. One id per row; the fields are named as in the forward.
struct LogpGradientArguments {
  RowOptions options;
  const void* logits;
  RowStrides logits_strides;
  void* grad_logits; // the logits themselves, or memory of its own
  RowStrides grad_strides;
  const void* target_ids;
  RowStrides id_strides;
  i64 id_stride_k; // 0
  i64 ids_per_row; // 1
  const float* grad_logp;
  RowStrides grad_logp_strides;
  float* logp;
  RowStrides logp_strides;
  i64 logp_stride_k; // 0
  float* lse;        // or null
  RowStrides lse_strides;
  i32* row_state; // two words per row, or null
  RowStrides row_state_strides;
  i64 columns; // stored columns of a row; those from vocab_size on get a gradient of +0.0 (NaN in a poisoned row)
};

struct LogpPartialArguments {
  RowOptions options;
  const void* logits; // points at column shard_begin
  RowStrides logits_strides;
  const void* target_ids; // or null: no target_logit wanted and no row is ignored
  RowStrides id_strides;
  i32* nodes; // two words per node
  RowStrides node_strides;
  i64 node_stride_k;
  float* target_logit; // or null
  RowStrides target_logit_strides;
  i64 shard_begin, shard_end, full_vocab;
};

// One shard's nodes in logp_finish.
struct ShardNodesArgument {
  const i32* nodes;
  RowStrides node_strides;
  i64 node_stride_k;
  i64 shard_begin, shard_end;
};

struct LogpFinishArguments {
  RowOptions options;
  const ShardNodesArgument* shards; // in column order
  i64 shard_count;
  i64 full_vocab;
  const void* target_ids;
  RowStrides id_strides;
  i64 id_stride_k;
  i64 ids_per_row;
  const float* target_logit;
  RowStrides target_logit_strides;
  i64 target_logit_stride_k;
  float* logp;
  RowStrides logp_strides;
  i64 logp_stride_k;
  float* lse; // or null
  RowStrides lse_strides;
  i32* row_state; // or null
  RowStrides row_state_strides;
};

#endif
