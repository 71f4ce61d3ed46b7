// Opens what is to be scored: one .safetensors file, or .npy files for logits and target ids.
//
// Thread-safety: pure functions; Inputs owns the mappings its tensors point into.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/score/file_tensor.hpp"
#include "runtime/score/mapped_file.hpp"

namespace bilogp::score {

struct InputOptions {
  std::string file = {};                  // .safetensors or .npy; empty: `logits` is the path of an .npy file
  std::string logits = {};                // name of the tensor (default "logits"), or a path
  std::string target_ids = {};            // name of the tensor (default "target_ids"), or a path
  std::string sequence_ids = {};          // name of the tensor, or a path; empty: "sequence_ids" where there is one
  std::optional<DType> logits_dtype = {}; // what the user says the logits are
};

struct Inputs {
  std::vector<MappedFile> files; // the logits' file first
  FileTensor logits;
  FileTensor target_ids;
  std::optional<FileTensor> sequence_ids;
};

// Throws Error, its sentence beginning with the file's name.
Inputs open_inputs(const InputOptions& options);

// A whole safetensors file, mapped.
struct OpenedSafetensors {
  MappedFile file;
  std::vector<FileTensor> tensors;
  std::map<std::string, std::string> metadata;

  [[nodiscard]] const FileTensor* find(std::string_view name) const;
  [[nodiscard]] const std::string* find_metadata(std::string_view key) const;
  // Throws Error(invalid_argument) that lists the tensors there are.
  [[nodiscard]] const FileTensor& get(std::string_view name) const;
};
OpenedSafetensors open_safetensors(const std::string& path);

} // namespace bilogp::score
