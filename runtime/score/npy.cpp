#include "runtime/score/npy.hpp"

#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "bilogp/error.hpp"

namespace bilogp::score {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

template<typename... Args> [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

// The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderText {
public:
  explicit HeaderText(std::string_view text) : rest_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool descr = false;
    bool order = false;
    bool shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key(string());
      expect(':');
      if (key == "descr" && !std::exchange(descr, true)) {
        if (peek() == '[') refuse("it holds a structured array, expected plain numbers");
        header.descr = string();
      } else if (key == "fortran_order" && !std::exchange(order, true)) {
        header.fortran_order = boolean();
      } else if (key == "shape" && !std::exchange(shape, true)) {
        header.shape = tuple();
      } else {
        refuse("its header has the key {} where numpy writes descr, fortran_order and shape, each once",
               in_quotes(key));
      }
      if (!take(',') && peek() != '}') broken();
    }
    if (peek() != '\0' || !rest_.empty()) broken();
    if (!descr || !order || !shape) refuse("its header lacks one of descr, fortran_order and shape");
    return header;
  }

private:
  [[noreturn]] static void broken() { refuse("its header is not what numpy writes; the file is damaged"); }

  // '\0' at the end of the text.
  char peek() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool take(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) broken();
  }
  bool take_word(std::string_view word) {
    peek();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') broken();
    const auto end = rest_.find(quote, 1);
    if (end == std::string_view::npos) broken();
    const auto text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    if (take_word("True")) return true;
    if (!take_word("False")) broken();
    return false;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!take(')')) {
      std::int64_t value = 0;
      peek();
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc{} || value < 0) refuse("its header has a shape that is not a list of whole numbers");
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      take('L'); // Python 2 wrote long integers so
      values.push_back(value);
      if (!take(',') && peek() != ')') broken();
    }
    return values;
  }

  std::string_view rest_;
};

struct DescrRow {
  std::string_view descr;
  std::int64_t bytes;
  DType dtype;
};

constexpr DescrRow known_descrs[] = {
    {"<f4", 4, DType::float32},  {"<f2", 2, DType::float16},  {"<i4", 4, DType::int32},   {"<i8", 8, DType::int64},
    {"<V2", 2, DType::bfloat16}, {"|V2", 2, DType::bfloat16}, {"V2", 2, DType::bfloat16}, {"<u2", 2, DType::bfloat16},
};

const DescrRow& choose_dtype(const std::string& descr, std::optional<DType> stated) {
  const DescrRow* found = nullptr;
  for (const DescrRow& row : known_descrs)
    if (row.descr == descr) found = &row;
  if (found == nullptr && descr.starts_with('>'))
    refuse("it holds big-endian numbers ({}); save it again as little-endian", in_quotes(descr));
  if (found == nullptr)
    refuse("it holds {}, expected <f4, <f2, <i4, <i8, or bfloat16 kept as <V2 or uint16", in_quotes(descr));
  if (found->dtype == DType::bfloat16 && stated != DType::bfloat16)
    refuse("it holds {}, 16 bits without a meaning of their own; pass --dtype bf16 if they are bfloat16",
           in_quotes(descr));
  if (stated && *stated != found->dtype)
    refuse("it holds {} ({}), but --dtype says {}", in_quotes(descr), to_string(found->dtype), to_string(*stated));
  return *found;
}

} // namespace

bool looks_like_npy(std::span<const std::byte> file) noexcept {
  return file.size() >= magic.size() &&
         std::string_view(reinterpret_cast<const char*>(file.data()), magic.size()) == magic;
}

NpyHeader parse_npy_header(std::span<const std::byte> file) {
  if (file.empty()) refuse("the file is empty, expected an array in numpy's .npy format");
  if (!looks_like_npy(file)) refuse("it does not begin as numpy's .npy files do");
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(file[i]); };
  constexpr std::size_t at = magic.size() + 2; // of the header's length
  if (file.size() < at + 2) refuse("the file ends inside its header");
  const std::size_t major = byte(magic.size());
  if (major < 1 || major > 3)
    refuse("it has format version {}.{}, expected 1.0, 2.0 or 3.0", major, byte(magic.size() + 1));
  const std::size_t width = major == 1 ? 2 : 4;
  if (file.size() < at + width) refuse("the file ends inside its header");
  std::size_t length = 0;
  for (std::size_t i = width; i-- > 0;) length = length << 8 | byte(at + i);
  if (length > file.size() - at - width)
    refuse("its header claims {} bytes, but only {} follow; the file is cut short", length, file.size() - at - width);
  NpyHeader header = HeaderText({reinterpret_cast<const char*>(file.data()) + at + width, length}).parse();
  header.data_offset = at + width + length;
  return header;
}

FileTensor read_npy(std::span<const std::byte> file, std::string name, std::optional<DType> stated) {
  NpyHeader header = parse_npy_header(file);
  const DescrRow& row = choose_dtype(header.descr, stated);
  if (header.fortran_order)
    refuse("it is in Fortran order, expected rows one after another; save numpy.ascontiguousarray of it");
  const auto data = file.subspan(header.data_offset);
  const auto needed = bytes_of(header.shape, row.bytes);
  if (!needed || static_cast<std::uint64_t>(*needed) != data.size())
    refuse("it has {} bytes of data, but dtype {} and shape {} need {}; the file is {}", data.size(), header.descr,
           shape_text(header.shape), needed ? fmt::format("{}", *needed) : "more than 2^63",
           !needed || static_cast<std::uint64_t>(*needed) > data.size() ? "cut short" : "damaged");
  return {std::move(name), std::move(header.descr), row.dtype, std::move(header.shape), data};
}

} // namespace bilogp::score
