#include <doctest/doctest.h>

#include <string>

#include "bilogp/error.hpp"
#include "tests/cpu/test_backend_support.hpp"

using namespace bilogp;
using namespace bilogp::cpu;
using namespace backend_test;

namespace {

bool has(const std::string& sentence, const std::string& part) {
  CAPTURE(sentence);
  CAPTURE(part);
  const bool found = sentence.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

} // namespace

TEST_CASE("a compile error names template, line, column and clang's message") {
  const std::string sentence =
      compile_error(one_file("\n\nextern \"C\" int f() {\n  return unheard_of;\n}\n", "f", "x86-64-v3"));
  CHECK(sentence == "sum.kernel does not compile for x86-64-v3: sum.kernel:4:10: error: use of undeclared identifier "
                    "'unheard_of'");
}

TEST_CASE("the first of several errors is told, with its notes") {
  has(compile_error(one_file("int f() { return a + b; }\nint g() { return c; }", "f")), "'a' (and 2 more errors)");
  const std::string twice = compile_error(one_file("int f();\n\nfloat f();", "f"));
  has(twice, "sum.kernel:3:7: error: ");
  has(twice, "; sum.kernel:1:5: note: previous declaration is here");
}

TEST_CASE("an error in an included file names that file") {
  CompileRequest request = small_kernel("native");
  request.files[1].text = "typedef float Lanes;\n  broken;\n";
  has(compile_error(request), ": canon/lanes.h:2:3: error: ");
}

TEST_CASE("only the files given can be included") {
  for (const char* name : {"canon/absent.h", "/etc/hostname", "stddef.h", "math.h", "../../etc/hostname"}) {
    const std::string text = std::string("#include \"") + name + "\"\nextern \"C\" int f() { return 1; }";
    has(compile_error(one_file(text, "f")), std::string("sum.kernel:1:10: error: '") + name + "' file not found");
  }
  has(compile_error(one_file("#include <vector>\n", "f")), "'vector' file not found");
}

TEST_CASE("bad inline assembly is an error at its line") {
  has(compile_error(one_file("extern \"C\" void f() {\n  asm volatile(\"no_such_thing %eax\");\n}", "f", "x86-64-v2")),
      "sum.kernel:2:16: error: invalid instruction mnemonic 'no_such_thing'");
  has(compile_error(one_file("extern \"C\" void f() {\n  asm volatile(\"no_such_thing x0\");\n}", "f", "aarch64")),
      "sum.kernel:2:16: error: unrecognized instruction mnemonic");
}

TEST_CASE("entries that are missing, static or no functions are refused") {
  has(compile_error(one_file("extern \"C\" int f() { return 1; }", "g")), "does not define the function g");
  has(compile_error(one_file("extern \"C\" { static int f() { return 1; } } int h() { return f(); }", "f")),
      "does not define the function f");
  has(compile_error(one_file("extern \"C\" { extern const int f = 3; }", "f")), "does not define the function f");
  has(compile_error(one_file("extern \"C\" int f();", "f")), "does not define the function f");
}

TEST_CASE("undefined symbols are listed") {
  const std::string_view text =
      "extern \"C\" float sinf(float); extern \"C\" float expf(float);"
      "extern int outside; extern \"C\" float f(float x) { return sinf(x) + expf(x) + outside; }";
  for (const char* target : {"x86-64-v3", "aarch64"})
    has(compile_error(one_file(text, "f", target)), "uses what it does not define: expf, outside, sinf;");
  // What clang itself calls counts as well.
  has(compile_error(one_file("extern \"C\" float f(float x) { return __builtin_fmaf(x, x, x); }", "f", "x86-64-v2")),
      "uses what it does not define: fmaf;");
}

TEST_CASE("writable data is refused by name") {
  for (const char* target : {"x86-64-v3", "aarch64"}) {
    has(compile_error(one_file("int counter; extern \"C\" int f() { return ++counter; }", "f", target)),
        "has writable data: counter;");
    has(compile_error(one_file("int table[9] = {7}; extern \"C\" int f(int i) { return table[i]++; }", "f", target)),
        "has writable data: table;");
  }
}

TEST_CASE("absolute addresses are refused by name") {
  const std::string_view pointers = "extern const int a = 1, b = 2; extern const int* const table[] = {&a, &b};"
                                    "extern \"C\" int f(int i) { return *table[i]; }";
  for (const char* target : {"x86-64-v3", "aarch64"})
    has(compile_error(one_file(pointers, "f", target)), "table holds an absolute address of ");
  const std::string_view immediate = "extern \"C\" long f() { long r; asm(\"movabsq $f, %0\" : \"=r\"(r)); return r; }";
  has(compile_error(one_file(immediate, "f", "x86-64-v3")), "f holds an absolute address of f (relocation ");
}

TEST_CASE("a reference through a table of addresses is refused") {
  const std::string_view text = "extern \"C\" __attribute__((visibility(\"default\"))) int f() { long r;"
                                "asm(\"movq f@GOTPCREL(%%rip), %0\" : \"=r\"(r)); return (int)r; }";
  has(compile_error(one_file(text, "f", "x86-64-v3")), "f holds an absolute address of f (relocation ");
}

TEST_CASE("requests that make no sense are errors") {
  CompileRequest request = one_file("extern \"C\" int f() { return 1; }", "f");
  request.files.clear();
  has(compile_error(request), "there is no source file");
  request = one_file("extern \"C\" int f() { return 1; }", "f");
  request.target.cpu = "i386sx-turbo";
  has(compile_error(request), "error: ");
  request.target = resolve_target("native");
  request.target.triple = "mips-unknown-linux-gnu";
  request.target.cpu = "mips2";
  request.target.features.clear();
  has(compile_error(request), "error: ");
  request = one_file("extern \"C\" int f() { return 1; }", "f");
  request.files.push_back({request.files[0].name, "int g();"});
  has(compile_error(request), "there are two different files \"sum.kernel\"");
  request = one_file("extern \"C\" int f() { return 1; }", "f");
  request.entries.clear();
  has(compile_error(request), "no entry");
}
