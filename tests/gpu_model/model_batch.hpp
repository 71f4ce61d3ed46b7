// A batch of rows, run through the plain plan's kernels on the host model and compared with the slow reference, bit by
// bit.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/gpu_model/kernels.hpp"
#include "tests/gpu_model/machine_model.hpp"
#include "tests/reference/canon_reference.hpp"
#include "tests/reference/row_generators.hpp"

namespace gpu_model {

namespace reference = bilogp::reference;
using reference::Storage;

inline constexpr Storage all_storages[] = {Storage::float32, Storage::float16, Storage::bfloat16};

struct BatchShape {
  Storage storage = Storage::bfloat16;
  std::int64_t columns = 1;
  std::int64_t rows = 0; // 0: one of each kind of row
  std::uint64_t seed = 1;
  std::int64_t ids_per_row = 1;
  Build build = Build::wide_ids;
  std::int64_t offset = 0;      // elements from a 64-byte boundary to the first row
  std::int64_t row_padding = 0; // elements between rows
  std::int64_t inner_rows = 0;  // rows per step of the outer stride; 0: all
  std::int64_t vocab_size = -1;
  float temperature = 1;
  bool row_temperatures = false;  // some of them bad
  unsigned ignored_of_8 = 0;      // rows of eight, about, beside those that are ignored anyway
  std::int64_t spare_vectors = 0; // of Hopper kernels: stored behind the last one that counts
};

// How a launch is cut.
struct Cut {
  std::int64_t blocks = 0;            // of the grid; 0: one for each piece of work
  std::int64_t columns_per_block = 0; // 0: the plan's usual number
};

class ModelBatch {
public:
  explicit ModelBatch(const BatchShape& shape);
  virtual ~ModelBatch() = default;
  // Of these rows, in binary32 bits that the storage type holds, instead of generated ones.
  ModelBatch(const BatchShape& shape, std::vector<std::vector<std::uint32_t>> logits);

  // "" or what differs.
  std::string check_forward(Cut cut = {});
  std::string check_backward(bool in_place, Cut cut = {});
  std::string check_with_gradient(bool in_place, Cut cut = {});
  // The vocabulary cut at `cuts` (sorted, inside (0, columns)).
  std::string check_shards(const std::vector<std::int64_t>& cuts, Cut cut = {});
  std::string check_backward_shards(const std::vector<std::int64_t>& cuts, Cut cut = {});
  // All of these that fit the shape.
  std::string check_everything(const std::vector<std::int64_t>& cuts, Cut cut = {});

  // Raw answers of a forward, for comparing kernels with each other.
  struct Answers {
    std::vector<std::uint32_t> logp;
    std::vector<std::uint32_t> lse;
    std::vector<std::int32_t> state;
    std::int64_t errors[4] = {};
  };
  std::string forward(Cut cut, Answers& answers);
  std::string shards(const std::vector<std::int64_t>& cuts, Cut cut, Answers& answers);
  [[nodiscard]] std::string compare(const std::string& what, const Answers& answers) const;

protected:
  struct Row {
    std::vector<std::uint32_t> logits;
    std::vector<std::int64_t> ids;
    float upstream = 1;
    float temperature = 1;
    reference::RowAnswer answer;
    std::vector<std::uint32_t> gradient;
  };
  // The bytes of logits, or of a gradient.
  struct Matrix {
    std::vector<char> memory;
    char* base = nullptr;
  };
  // What all calls need besides the logits.
  struct Call {
    std::vector<char> ids;
    std::vector<float> upstream;
    std::vector<float> temperatures;
    std::vector<std::int32_t> state;
    std::int64_t errors[4] = {};
    Launch launch;
  };

  // By the plain plan; other plans' tests have their own.
  virtual std::string launch(Call& call, const bilogp::kernel::LogpForwardArguments& a, Cut cut);
  virtual std::string launch(Call& call, const bilogp::kernel::LogpGradientArguments& a, Cut cut);

  void add_row(std::vector<std::uint32_t> logits, std::mt19937_64& random);
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  [[nodiscard]] std::int64_t element_size() const { return shape_.storage == Storage::float32 ? 4 : 2; }
  [[nodiscard]] std::int64_t row_offset(std::int64_t row) const; // in elements
  [[nodiscard]] bilogp::kernel::RowStrides matrix_strides() const;
  [[nodiscard]] bilogp::kernel::RowStrides strides(std::int64_t inner) const; // of a contiguous output
  [[nodiscard]] reference::RowOptions reference_options(const Row& row) const;
  [[nodiscard]] std::int64_t vocab_size() const;
  void fill(Matrix& matrix) const;
  void allow(Call& call, const Matrix& matrix, bool is_writable, std::int64_t begin, std::int64_t end) const;
  template<class T> void allow(Call& call, const std::vector<T>& values, bool is_writable) const;
  void begin(Call& call, bilogp::kernel::RowOptions& options);
  std::string run(Call& call, std::int64_t pieces, Cut cut, const std::function<void()>& thread);
  bilogp::kernel::LogpBackwardArguments backward_arguments(Call& call, const Matrix& logits, const Matrix& gradient);
  std::string compare_gradient(const std::string& what, const Matrix& gradient) const;

  BatchShape shape_;
  std::vector<Row> rows_;
  std::uint64_t launches_ = 0;
};

std::string describe(const BatchShape& shape);

// "" or the first difference over launches of this shape, for tests that draw many.
std::string check_shape(const BatchShape& shape, const std::vector<std::int64_t>& cuts, Cut cut = {});

} // namespace gpu_model
