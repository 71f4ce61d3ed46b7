// TensorView and its conversion from DLPack.
#include <array>

#include <doctest/doctest.h>

#include "tests/runtime/support.hpp"

using bilogp::DType;
using bilogp::TensorView;
using runtime_test::refusal;
using runtime_test::says;
constexpr auto invalid = bilogp::ErrorKind::invalid_argument;

namespace {

struct Given {
  std::array<std::int64_t, 9> shape{2, 3, 4};
  std::array<std::int64_t, 9> strides{};
  std::array<std::int64_t, 64> memory{};
  bilogp::dlpack::DLTensor tensor{memory.data(), {1, 0}, 3, {2, 32, 1}, shape.data(), nullptr, 0};
  std::string refused() {
    return refusal([this] { bilogp::from_dlpack(tensor); });
  }
};

} // namespace

TEST_CASE("dlpack: every dtype that bilogp knows, and no other") {
  Given given;
  const std::array<std::pair<bilogp::dlpack::DLDataType, DType>, 5> known{{{{2, 32, 1}, DType::float32},
                                                                           {{2, 16, 1}, DType::float16},
                                                                           {{4, 16, 1}, DType::bfloat16},
                                                                           {{0, 32, 1}, DType::int32},
                                                                           {{0, 64, 1}, DType::int64}}};
  for (int code = 0; code < 20; ++code)
    for (const int type_bits : {0, 1, 4, 8, 16, 32, 64, 128})
      for (const int lanes : {0, 1, 2}) {
        given.tensor.dtype = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(type_bits),
                              static_cast<std::uint16_t>(lanes)};
        bool is_known = false;
        for (const auto& [type, dtype] : known)
          if (type.code == code && type.bits == type_bits && lanes == 1) {
            is_known = true;
            CHECK(bilogp::from_dlpack(given.tensor).dtype == dtype);
          }
        if (!is_known)
          CHECK(says(given.refused(), invalid,
                     {"code " + std::to_string(code), std::to_string(type_bits) + " bits", "bfloat16"}));
      }
}

TEST_CASE("dlpack: strides, row-major where there are none, and the byte offset") {
  Given given;
  given.tensor.byte_offset = 8;
  const TensorView plain = bilogp::from_dlpack(given.tensor);
  CHECK(plain.data == given.memory.data() + 1);
  CHECK(plain.rank == 3);
  CHECK(plain.elements() == 24);
  CHECK(plain.strides[0] == 12);
  CHECK(plain.strides[1] == 4);
  CHECK(plain.strides[2] == 1);
  given.strides = {1, -2, 0};
  given.tensor.strides = given.strides.data();
  const TensorView strided = bilogp::from_dlpack(given.tensor);
  CHECK(strided.strides[0] == 1);
  CHECK(strided.strides[1] == -2);
  CHECK(strided.strides[2] == 0);
  given.tensor.data = nullptr;
  CHECK(bilogp::from_dlpack(given.tensor).data == nullptr);
}

TEST_CASE("dlpack: devices") {
  Given given;
  for (const int type : {1, 2, 10}) {
    given.tensor.device = {type, 3};
    CHECK(static_cast<int>(bilogp::from_dlpack(given.tensor).device.type) == type);
    CHECK(bilogp::from_dlpack(given.tensor).device.index == 3);
  }
  for (const int type : {0, -1, 3, 4, 7, 8, 14}) {
    given.tensor.device.device_type = type;
    CHECK(says(given.refused(), invalid, {"device type " + std::to_string(type), "1 (cpu)"}));
  }
}

TEST_CASE("dlpack: bad ranks and shapes are refused") {
  Given given;
  given.tensor.ndim = 9;
  CHECK(says(given.refused(), invalid, {"9 dimensions", "at most 8"}));
  given.tensor.ndim = -1;
  CHECK(says(given.refused(), invalid, {"-1 dimensions"}));
  given.tensor.ndim = 3;
  given.shape[1] = -5;
  CHECK(says(given.refused(), invalid, {"dimension 1", "-5", "0 or more"}));
  given.shape = {INT64_MAX, 2, 4};
  CHECK(says(given.refused(), invalid, {"64 bits"}));
  given.shape[2] = 0; // nothing is there, however large the others
  CHECK(bilogp::from_dlpack(given.tensor).elements() == 0);
  given.tensor.shape = nullptr;
  CHECK(says(given.refused(), invalid, {"3 dimensions", "no shape"}));
  given.tensor.ndim = 0;
  CHECK(bilogp::from_dlpack(given.tensor).rank == 0);
}

TEST_CASE("dlpack: a struct of another header is taken by its fields") {
  struct OtherDevice {
    enum Kind : std::uint8_t { cpu = 1 } device_type = cpu;
    int device_id = 0;
  };
  struct OtherTensor {
    void* data = nullptr;
    OtherDevice device;
    int ndim = 1;
    bilogp::dlpack::DLDataType dtype{2, 16, 1};
    std::int64_t* shape = nullptr;
    std::int64_t* strides = nullptr;
    std::uint64_t byte_offset = 0;
  } other;
  std::int64_t extent = 5;
  other.shape = &extent;
  CHECK(bilogp::from_dlpack(other).dtype == DType::float16);
}

TEST_CASE("tensor: an extent of 0 leaves nothing, whatever the others are") {
  constexpr std::int64_t large = std::int64_t{1} << 62;
  float none = 0;
  CHECK(bilogp::TensorView::contiguous(&none, bilogp::DType::float32, {large, large, 0}).elements() == 0);
  bilogp::LogpArgs args;
  args.logits = bilogp::TensorView::contiguous(&none, bilogp::DType::float32, {large, large, 0, 7});
  args.target_ids = bilogp::TensorView::contiguous(&none, bilogp::DType::int64, {large, large, 0});
  args.logp = bilogp::TensorView::contiguous(&none, bilogp::DType::float32, {large, large, 0});
  bilogp::Runtime::get("cpu").logp(args);
}

TEST_CASE("tensor: bad shapes are refused where a view is made") {
  CHECK(says(refusal([] { TensorView::contiguous(nullptr, DType::int32, {1, 1, 1, 1, 1, 1, 1, 1, 1}); }), invalid,
             {"9 dimensions", "8"}));
  CHECK(says(refusal([] { TensorView::contiguous(nullptr, DType::int32, {3, -1}); }), invalid, {"dimension 1", "-1"}));
  CHECK(says(refusal([] { TensorView::strided(nullptr, DType::int32, {3, 1}, {1}); }), invalid,
             {"2 extents", "1 strides"}));
  CHECK(says(refusal([] { TensorView::contiguous(nullptr, DType::int32, {INT64_MAX, INT64_MAX}); }), invalid,
             {"64 bits"}));
}
