// Rows of every kind under one set of options: the calls to make on them and what they must answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bilogp/tensor.hpp"
#include "runtime/kernel_arguments.hpp"
#include "tests/aarch64/job_builder.hpp"
#include "tests/aarch64/kernel_images.hpp"
#include "tests/reference/canon_reference.hpp"

namespace bilogp::test {

struct Scenario {
  reference::Storage storage = reference::Storage::float32;
  std::int64_t columns = 1;
  std::int64_t vocab_size = -1; // of the rows, -1: all columns
  DType id_dtype = DType::int64;
  float temperature = 1;
  bool temperature_rows = false;  // a temperature per row, some of them invalid
  std::int64_t row_padding = 0;   // columns between rows
  std::uint64_t misalignment = 0; // bytes by which logits and gradients begin off their alignment
  std::uint64_t fpcr = 0;         // of the caller
  std::uint64_t seed = 1;
};

class ScenarioCalls {
public:
  ScenarioCalls(JobBuilder& job, KernelImages& images, const Scenario& scenario);

  void add_forward(std::int64_t compiled_vocab = 0); // two ids per row; 0: the vocabulary is a run-time value
  // The gradient in blocks of columns that end at `ends`.
  void add_backward(bool in_place, const std::vector<std::int64_t>& ends);
  // logp_partial for the shards that end at `ends`, logp_finish on the nodes that they must give.
  void add_shards(const std::vector<std::int64_t>& ends);

private:
  struct Row {
    std::vector<std::uint32_t> logits;
    std::vector<std::int64_t> ids;
    float grad_logp = 1;
    reference::RowOptions options;
    reference::RowAnswer answer;
  };
  struct Shard {
    std::int64_t begin = 0, end = 0;
    std::uint64_t node_count = 0, nodes = 0; // offset of [rows, node_count, 2]
  };
  void make_rows();
  [[nodiscard]] std::vector<char> stored_logits() const;
  [[nodiscard]] std::vector<char> stored_gradients() const;
  [[nodiscard]] std::uint64_t place_ids();
  [[nodiscard]] std::uint64_t place_words(const std::string& name, const std::vector<std::uint32_t>& expected,
                                          std::size_t row_length);
  [[nodiscard]] std::uint64_t place_errors(std::size_t ids, const std::string& name);
  [[nodiscard]] std::uint64_t place_states(bool as_output, const std::string& name);
  [[nodiscard]] kernel::RowOptions options(std::uint64_t errors);
  [[nodiscard]] std::string name(const std::string& what) const;
  void allow_nan_gradients(std::uint64_t offset);
  [[nodiscard]] float target_logit(const Row& row, std::int64_t begin, std::int64_t end) const;
  Shard add_partial(std::int64_t begin, std::int64_t end);
  void add_finish(const std::vector<Shard>& shards);

  template<class Arguments>
  void add_call(Operator op, DType logits_dtype, std::int64_t vocab, const Arguments& arguments,
                std::initializer_list<PointerMember> pointers) {
    const std::uint64_t image = images_.index({op, logits_dtype, scenario_.id_dtype, vocab});
    job_.add_call("bilogp_" + std::string(to_string(op)), image, job_.place_arguments(arguments, pointers), rows(),
                  scenario_.fpcr);
  }
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  [[nodiscard]] std::int64_t row_stride() const { return scenario_.columns + scenario_.row_padding; }
  // Rows in steps, as a tensor of two leading dimensions has them.
  [[nodiscard]] kernel::RowStrides strides(std::int64_t inner) const { return {inner * inner_rows, inner}; }

  static constexpr std::int64_t inner_rows = 5;
  static constexpr std::int64_t ids_per_row = 2;
  JobBuilder& job_;
  KernelImages& images_;
  Scenario scenario_;
  std::int64_t vocab_ = 0;
  std::vector<Row> rows_;
};

} // namespace bilogp::test
