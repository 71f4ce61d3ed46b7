// Writes the source of one kernel of a Hopper plan for the host model, with the definitions that the plans have it
// compiled with: write_hopper_kernel FILE OPERATOR VARIANT TYPE VOCABULARY
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "runtime/backends/cuda/hopper_plans.hpp"

namespace {

std::string source_of(const std::string& op, int variant, const std::string& type, const std::string& vocab) {
  bilogp::Specialization spec;
  spec.op = op == "forward" ? bilogp::Operator::logp_forward : bilogp::Operator::logp_with_gradient;
  spec.variant = static_cast<std::uint8_t>(variant);
  const std::string name = fmt::format("{}_{}_{}_{}", op, variant, type, vocab);
  std::string text =
      fmt::format("#define canon canon_hopper_{0}\n#define bilogp_logp_{1} model_hopper_{0}\n", name, op);
  for (const std::string& definition : bilogp::cuda::hopper_definitions(spec)) {
    const std::size_t equals = definition.find('=');
    text += fmt::format("#define {} {}\n", definition.substr(0, equals), definition.substr(equals + 1));
  }
  text += fmt::format("#define BILOGP_DEVICE_HOST_MODEL 1\n#define BILOGP_LOGITS {}\n#define BILOGP_ID i64\n"
                      "#define BILOGP_VOCAB {}\n#define BILOGP_PLAN {}\n#define BILOGP_NUMERICS 0\n",
                      type, vocab, variant);
  text +=
      fmt::format("#include \"device/cuda/hopper/logp_{}.h\"\n#include \"tests/gpu_model/hopper_kernels.hpp\"\n", op);
  return text + fmt::format("static const bool is_added = gpu_model::add_hopper_kernel(\n  \"{}\", {}, \"{}\", {}, "
                            "reinterpret_cast<void (*)()>(model_hopper_{}));\n",
                            op, variant, type, vocab, name);
}

} // namespace

int main(int count, char** arguments) {
  if (count != 6) return 2;
  const std::string text = source_of(arguments[2], std::atoi(arguments[3]), arguments[4], arguments[5]);
  std::FILE* file = std::fopen(arguments[1], "w");
  if (file == nullptr) return 1;
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && is_written ? 0 : 1;
}
