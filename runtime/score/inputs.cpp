#include "runtime/score/inputs.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/score/npy.hpp"
#include "runtime/score/safetensors.hpp"

namespace bilogp::score {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorKind::invalid_argument, sentence);
}

// Runs a parser and puts the file's name before what it complains of.
template<typename Parse> auto parse_file(const MappedFile& file, Parse parse) {
  try {
    return parse(file.bytes());
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", in_quotes(file.path()), error.what()));
  }
}

void append_listed(std::string& list, const FileTensor& tensor) {
  list += fmt::format("{}{} {} {}", list.empty() ? "" : ", ", in_quotes(tensor.name), tensor.dtype_name,
                      shape_text(tensor.shape));
}

FileTensor take_npy(std::vector<MappedFile>& files, const std::string& path, std::optional<DType> stated) {
  files.emplace_back(path);
  return parse_file(files.back(), [&](auto bytes) { return read_npy(bytes, path, stated); });
}

Inputs open_npy_inputs(const std::string& logits, const InputOptions& options) {
  if (options.target_ids.empty()) refuse("logits in an .npy file need --target-ids IDS.npy beside them");
  Inputs inputs;
  inputs.logits = take_npy(inputs.files, logits, options.logits_dtype);
  inputs.target_ids = take_npy(inputs.files, options.target_ids, {});
  if (!options.sequence_ids.empty()) inputs.sequence_ids = take_npy(inputs.files, options.sequence_ids, {});
  return inputs;
}

Inputs open_safetensors_inputs(const InputOptions& options) {
  OpenedSafetensors opened = open_safetensors(options.file);
  Inputs inputs;
  inputs.logits = opened.get(options.logits.empty() ? "logits" : options.logits);
  inputs.target_ids = opened.get(options.target_ids.empty() ? "target_ids" : options.target_ids);
  if (!options.sequence_ids.empty())
    inputs.sequence_ids = opened.get(options.sequence_ids);
  else if (const FileTensor* const found = opened.find("sequence_ids"))
    inputs.sequence_ids = *found;
  if (options.logits_dtype && inputs.logits.dtype != options.logits_dtype)
    refuse(fmt::format("{}: tensor {} is {}, but --dtype says {}", in_quotes(options.file),
                       in_quotes(inputs.logits.name), inputs.logits.dtype_name, to_string(*options.logits_dtype)));
  inputs.files.push_back(std::move(opened.file));
  return inputs;
}

} // namespace

Inputs open_inputs(const InputOptions& options) {
  if (options.file.empty()) {
    if (options.logits.empty()) refuse("nothing to score: give a FILE, or --logits A.npy --target-ids B.npy");
    return open_npy_inputs(options.logits, options);
  }
  // The suffix decides where there is one, so that an error speaks of the format that the user meant.
  const std::string_view file = options.file;
  const bool is_npy =
      file.ends_with(".npy") || (!file.ends_with(".safetensors") && looks_like_npy(MappedFile(options.file).bytes()));
  if (!is_npy) return open_safetensors_inputs(options);
  if (!options.logits.empty()) refuse("FILE is an .npy file and holds the logits itself; leave --logits away");
  return open_npy_inputs(options.file, options);
}

const FileTensor* OpenedSafetensors::find(std::string_view name) const {
  for (const FileTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

const std::string* OpenedSafetensors::find_metadata(std::string_view key) const {
  const auto found = metadata.find(std::string(key));
  return found == metadata.end() ? nullptr : &found->second;
}

const FileTensor& OpenedSafetensors::get(std::string_view name) const {
  if (const FileTensor* const found = find(name)) return *found;
  constexpr std::size_t listed_at_most = 20;
  std::string list;
  for (std::size_t i = 0; i < tensors.size() && i < listed_at_most; ++i) append_listed(list, tensors[i]);
  if (tensors.size() > listed_at_most) list += fmt::format(" and {} more", tensors.size() - listed_at_most);
  refuse(fmt::format("{}: there is no tensor {}; the file has {}", in_quotes(file.path()), in_quotes(name),
                     list.empty() ? "no tensor at all" : list));
}

OpenedSafetensors open_safetensors(const std::string& path) {
  MappedFile file(path);
  SafetensorsFile parsed = parse_file(file, [](auto bytes) { return parse_safetensors(bytes); });
  return {std::move(file), std::move(parsed.tensors), std::move(parsed.metadata)};
}

} // namespace bilogp::score
