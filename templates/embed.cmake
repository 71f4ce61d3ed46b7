# Writes OUTPUT: the FILES under ROOT as arrays of bytes, in the order given.
set(arrays "")
set(entries "")
set(index 0)
foreach(name IN LISTS FILES)
  file(READ "${ROOT}/${name}" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "const unsigned char file_${index}[] = {${bytes}0};\n")
  string(APPEND entries "    {\"${name}\", {reinterpret_cast<const char*>(file_${index}), sizeof file_${index} - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE "${OUTPUT}.new" "// Generated from templates/.
#include \"runtime/embedded_templates.hpp\"

namespace bilogp {
namespace {
${arrays}
const EmbeddedFile files[] = {
${entries}};
} // namespace
std::span<const EmbeddedFile> embedded_templates() noexcept { return files; }
} // namespace bilogp
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
