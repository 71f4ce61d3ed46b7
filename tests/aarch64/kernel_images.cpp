#include "tests/aarch64/kernel_images.hpp"

#include "cache/store.hpp"
#include "runtime/backends/cpu/kernels.hpp"

namespace bilogp::test {
namespace {

std::string image_of(const Specialization& spec) {
  const cpu::CompileRequest request = cpu::compile_request(spec, cpu::resolve_target("aarch64"));
  const cache::Key key = cpu::store_key(request);
  if (std::optional<cache::Entry> entry = cache::process_store().get(key)) return std::move(entry->payload);
  const cpu::CompiledImage compiled = cpu::compile(request);
  const cache::Metadata metadata{"cpu", request.target.name, std::string(cpu::compiler_version()), describe(spec),
                                 static_cast<std::int64_t>(compiled.times.total * 1e6)};
  cache::process_store().put(key, metadata, compiled.image);
  return compiled.image;
}

} // namespace

std::uint64_t KernelImages::index(const Specialization& spec) {
  for (const auto& [known, index] : known_)
    if (known == spec) return index;
  known_.emplace_back(spec, job_.add_image(image_of(spec)));
  return known_.back().second;
}

} // namespace bilogp::test
