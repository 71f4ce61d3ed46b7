// Any bytes as a .npy file: refused with a sentence, or the array lies inside the file. The first byte says which dtype
// the user states.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "bilogp/error.hpp"
#include "runtime/score/npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::optional<bilogp::DType> stated;
  if (data[0] % 6 < 5) stated = static_cast<bilogp::DType>(data[0] % 6);
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  try {
    const bilogp::score::FileTensor tensor = bilogp::score::read_npy(file, "array", stated);
    unsigned sum = 0;
    for (const std::byte byte : tensor.bytes) sum += static_cast<unsigned>(byte); // readable, for the sanitizer
    [[maybe_unused]] static volatile unsigned sink;
    sink = sum;
  } catch (const bilogp::Error& error) {
    if (error.kind() != bilogp::ErrorKind::invalid_argument) std::abort();
  }
  return 0;
}
