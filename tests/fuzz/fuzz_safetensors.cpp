// Any bytes as a .safetensors file: refused with a sentence, or all tensors lie inside the file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "bilogp/error.hpp"
#include "runtime/score/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    unsigned sum = 0;
    for (const bilogp::score::FileTensor& tensor : bilogp::score::parse_safetensors(file).tensors) {
      const std::byte* begin = tensor.bytes.data();
      if (!tensor.bytes.empty() &&
          (begin < file.data() || tensor.bytes.size() > size || begin + tensor.bytes.size() > file.data() + size))
        std::abort();
      for (const std::byte byte : tensor.bytes) sum += static_cast<unsigned>(byte); // readable, for the sanitizer
    }
    [[maybe_unused]] static volatile unsigned sink;
    sink = sum;
  } catch (const bilogp::Error& error) {
    if (error.kind() != bilogp::ErrorKind::invalid_argument) std::abort();
  }
  return 0;
}
