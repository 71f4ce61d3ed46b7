#include <bilogp/bilogp.hpp>

#include <cstdint>
#include <cstdio>

int main() {
  const float logits[] = {1.0f, 2.0f, 3.0f, 4.0f};
  const std::int64_t target_ids[] = {3};
  float logp[1];
  bilogp::Runtime::get("cpu").logp({.logits = bilogp::TensorView::contiguous(logits, bilogp::DType::float32, {1, 4}),
                                    .target_ids = bilogp::TensorView::contiguous(target_ids, bilogp::DType::int64, {1}),
                                    .logp = bilogp::TensorView::contiguous(logp, bilogp::DType::float32, {1})});
  std::printf("%.6f\n", static_cast<double>(logp[0]));
}
