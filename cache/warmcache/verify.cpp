#include <map>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "cache/warmcache/commands.hpp"
#include "runtime/backends/cpu/image.hpp"
#include "runtime/backends/cuda/module.hpp"
#include "runtime/score/printable.hpp"
#include "runtime/score/text_table.hpp"

namespace bilogp::warmcache {

namespace {

#if defined(__aarch64__)
constexpr std::uint32_t own_machine = cpu::machine_aarch64;
#else
constexpr std::uint32_t own_machine = cpu::machine_x86_64;
#endif

// What can be said without a device: that it is machine code or PTX, and names its entry.
std::string why_no_cuda_kernel(const cache::ListedEntry& entry, std::string_view payload) {
  try {
    cuda::check_image(payload);
  } catch (const Error& error) {
    return error.what();
  }
  const std::string name = "bilogp_" + entry.metadata.description.substr(0, entry.metadata.description.find(' '));
  return payload.find(name) == std::string_view::npos ? fmt::format("the image has no entry {}", name) : "";
}

// Why a payload whose checksum holds is no kernel of that description; empty when it is one. An image for another
// machine can only be taken apart, one for this machine is mapped as well.
std::string why_unusable(const cache::ListedEntry& entry, std::string_view payload) {
  if (entry.metadata.backend == "cuda") return why_no_cuda_kernel(entry, payload);
  if (entry.metadata.backend != "cpu") return ""; // a back end that this version does not have
  const std::string entry_point =
      "bilogp_" + entry.metadata.description.substr(0, entry.metadata.description.find(' '));
  try {
    const cpu::DecodedImage image = cpu::decode_image(payload);
    bool present = false;
    for (const cpu::ImageEntry& exported : image.entries) present = present || exported.name == entry_point;
    if (!present) return fmt::format("the image has no entry {}", entry_point);
    if (image.machine == own_machine) cpu::MappedImage mapped(payload);
    return "";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cache) throw; // the system refuses, the image is not to blame
    return error.what();
  }
}

} // namespace

Answer verify(cache::Store& store) {
  Answer answer;
  std::map<std::string, std::string> reasons; // by key hash, where the checksum holds
  const cache::VerifyReport report = store.verify([&](const cache::ListedEntry& entry, std::string_view payload) {
    const std::string why = why_unusable(entry, payload);
    if (!why.empty()) reasons[entry.key_hash] = why;
    return why.empty();
  });
  Json bad = Json::array();
  score::TextTable table({"<bad kernel", "<target", "<key", "<why"});
  for (const cache::ListedEntry& entry : report.bad) {
    const auto found = reasons.find(entry.key_hash);
    const std::string why = found == reasons.end() ? "its checksum does not match" : found->second;
    bad.push_back({{"description", entry.metadata.description},
                   {"target", entry.metadata.target},
                   {"key_hash", entry.key_hash},
                   {"why", why}});
    table.add({score::printable(entry.metadata.description),
               score::printable(entry.metadata.backend + ":" + entry.metadata.target), entry.key_hash.substr(0, 8),
               score::printable(why)});
  }
  answer.json = {{"store", place_json(store)}, {"checked", report.checked}, {"bad", std::move(bad)}};
  answer.text =
      fmt::format("Store: {}\n{}{} checked, {} bad\n", place_of(store), report.bad.empty() ? "" : table.text(),
                  score::counted(report.checked, "kernel"), report.bad.size());
  if (!report.bad.empty()) {
    answer.advice = "a bad kernel is never run: it is dropped and compiled again when it is needed; "
                    "`bilogp-warmcache clear` removes all kernels now";
    answer.exit_code = exit_problem;
  }
  return answer;
}

} // namespace bilogp::warmcache
