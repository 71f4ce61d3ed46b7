#include "runtime/score/safetensors.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bilogp/error.hpp"

namespace bilogp::score {
namespace {

using nlohmann::json;

// The format's own limit; it also bounds what a hostile header can make us allocate.
constexpr std::uint64_t longest_header = 100'000'000;

template<typename... Args> [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

struct DTypeRow {
  const char* name;
  std::int64_t bytes;
  std::optional<DType> known;
};

const DTypeRow* find_dtype(const std::string& name) {
  static const DTypeRow rows[] = {
      {"F32", 4, DType::float32},
      {"F16", 2, DType::float16},
      {"BF16", 2, DType::bfloat16},
      {"I32", 4, DType::int32},
      {"I64", 8, DType::int64},
      {"BOOL", 1, {}},
      {"U8", 1, {}},
      {"I8", 1, {}},
      {"F8_E5M2", 1, {}},
      {"F8_E4M3", 1, {}},
      {"F8_E8M0", 1, {}},
      {"I16", 2, {}},
      {"U16", 2, {}},
      {"U32", 4, {}},
      {"F64", 8, {}},
      {"U64", 8, {}},
      {"C64", 8, {}},
  };
  const auto* const found =
      std::find_if(std::begin(rows), std::end(rows), [&](const auto& row) { return row.name == name; });
  return found == std::end(rows) ? nullptr : found;
}

// JSON allows a name twice and keeps the last one; two readers could then see two different files.
class DuplicateNames {
public:
  bool operator()(int depth, json::parse_event_t event, const json& value) {
    if (depth > max_depth) refuse("its header is nested deeper than a safetensors header can be");
    if (event != json::parse_event_t::key) return true;
    if (depth == 1) inner_.clear();
    auto& names = depth == 1 ? outer_ : inner_;
    const auto& name = value.get_ref<const std::string&>();
    if (!names.insert(name).second) refuse("its header has the name {} twice", in_quotes(name));
    return true;
  }

private:
  static constexpr int max_depth = 4;
  std::set<std::string> outer_;
  std::set<std::string> inner_;
};

json parse_header(std::string_view text) {
  try {
    json header = json::parse(text.begin(), text.end(), DuplicateNames());
    if (!header.is_object()) refuse("its header is not a JSON object");
    return header;
  } catch (const json::parse_error& error) {
    refuse("its header is not valid JSON (byte {} of it)", error.byte);
  } catch (const json::exception&) {
    refuse("its header is not valid JSON");
  }
}

std::vector<std::int64_t> unsigned_list(const json& entry, const char* key, const std::string& name) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_array()) refuse("tensor {} has no list {}", in_quotes(name), in_quotes(key));
  std::vector<std::int64_t> values;
  for (const json& element : *found) {
    if (!element.is_number_unsigned() || element.get<std::uint64_t>() > INT64_MAX)
      refuse("tensor {} has a value in {} that is not a whole number from 0 to 2^63 - 1", in_quotes(name),
             in_quotes(key));
    values.push_back(element.get<std::int64_t>());
  }
  return values;
}

FileTensor parse_entry(const std::string& name, const json& entry, std::span<const std::byte> data) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string())
    refuse("tensor {} has no dtype", in_quotes(name));
  FileTensor tensor{name, entry["dtype"].get<std::string>(), {}, unsigned_list(entry, "shape", name), {}};
  const auto offsets = unsigned_list(entry, "data_offsets", name);
  const auto size = static_cast<std::int64_t>(data.size());
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    refuse("tensor {} has data_offsets {}, expected [begin, end]", in_quotes(name), shape_text(offsets));
  if (offsets[1] > size)
    refuse("tensor {} has data_offsets {}, but the file holds only {} bytes of data; it is cut short or damaged",
           in_quotes(name), shape_text(offsets), size);
  if (const DTypeRow* const row = find_dtype(tensor.dtype_name)) {
    const auto needed = bytes_of(tensor.shape, row->bytes);
    if (!needed || *needed != offsets[1] - offsets[0])
      refuse("tensor {} has {} bytes of data, but dtype {} and shape {} need {}", in_quotes(name),
             offsets[1] - offsets[0], tensor.dtype_name, shape_text(tensor.shape),
             needed ? fmt::format("{}", *needed) : "more than 2^63");
    tensor.dtype = row->known;
  }
  tensor.bytes = data.subspan(static_cast<std::size_t>(offsets[0]), static_cast<std::size_t>(offsets[1] - offsets[0]));
  return tensor;
}

void check_coverage(const std::vector<FileTensor>& tensors, std::span<const std::byte> data) {
  const std::byte* covered = data.data();
  const std::string* last = nullptr;
  for (const FileTensor& tensor : tensors) {
    if (tensor.bytes.data() < covered)
      refuse("the data of tensors {} and {} overlap", in_quotes(*last), in_quotes(tensor.name));
    if (tensor.bytes.data() > covered)
      refuse("{} bytes before the data of tensor {} belong to no tensor", tensor.bytes.data() - covered,
             in_quotes(tensor.name));
    covered = tensor.bytes.data() + tensor.bytes.size();
    last = &tensor.name;
  }
  const std::byte* const end = data.data() + data.size();
  if (covered != end) refuse("{} bytes at the end of the file belong to no tensor", end - covered);
}

std::map<std::string, std::string> parse_metadata(const json& entry) {
  if (!entry.is_object()) refuse("its __metadata__ is not an object");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) refuse("the entry {} of its __metadata__ is not a string", in_quotes(key));
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

} // namespace

SafetensorsFile parse_safetensors(std::span<const std::byte> file) {
  if (file.empty()) refuse("the file is empty, expected a safetensors file");
  std::uint64_t header_size = 0;
  if (file.size() < sizeof(header_size))
    refuse("the file has only {} bytes, too few for a safetensors header", file.size());
  for (std::size_t i = sizeof(header_size); i-- > 0;)
    header_size = header_size << 8 | std::to_integer<std::uint64_t>(file[i]);
  const auto rest = file.subspan(sizeof(header_size));
  if (header_size > rest.size())
    refuse("its header claims {} bytes, but only {} follow; the file is cut short or not a safetensors file",
           header_size, rest.size());
  if (header_size > longest_header)
    refuse("its header claims {} bytes, more than the {} allowed", header_size, longest_header);
  const auto header_bytes = rest.first(static_cast<std::size_t>(header_size));
  const auto data = rest.subspan(static_cast<std::size_t>(header_size));
  const json header = parse_header({reinterpret_cast<const char*>(header_bytes.data()), header_bytes.size()});

  SafetensorsFile result;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__")
      result.metadata = parse_metadata(entry);
    else
      result.tensors.push_back(parse_entry(name, entry, data));
  }
  std::sort(result.tensors.begin(), result.tensors.end(), [](const FileTensor& a, const FileTensor& b) {
    return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
  });
  check_coverage(result.tensors, data);
  return result;
}

} // namespace bilogp::score
